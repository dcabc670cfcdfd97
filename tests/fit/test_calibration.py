"""Calibrated probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from memohop.fit.calibration import Calibration, fit_calibration
from memohop.training import Enough


def draw(classes: int, rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Honest probabilities, and classes drawn by them."""
    generator = np.random.default_rng(0)
    honest = generator.dirichlet(np.ones(classes), rows).clip(0.01)
    honest /= honest.sum(axis=1, keepdims=True)
    y = (generator.random(rows)[:, None] > honest.cumsum(axis=1)).sum(axis=1)
    return honest, y.clip(max=classes - 1)


def test_probabilities_that_are_too_sure():
    honest, y = draw(2)
    too_sure = Calibration(1 / 3).of(honest)
    found = fit_calibration(too_sure, y, shifted=False)
    assert found.temperature == pytest.approx(3, rel=0.05)
    assert found.shifts == ()
    assert np.allclose(Calibration(3.0).of(too_sure), honest, atol=1e-3)


def test_probabilities_that_lean_towards_a_class():
    honest, y = draw(3)
    leaning = Calibration(0.5, (0.8, -0.4, -0.4)).of(honest)
    found = fit_calibration(leaning, y, shifted=True)
    assert found.temperature == pytest.approx(2, rel=0.05)
    # Raised to a power, the shifts are halved as well.
    assert np.subtract(found.shifts, np.mean(found.shifts)) == pytest.approx(
        [-0.4, 0.2, 0.2], abs=0.05
    )
    assert np.allclose(found.of(leaning), honest, atol=0.03)


def test_it_is_the_minimum_that_a_search_without_gradients_finds():
    honest, y = draw(3, rows=60)
    wrong = Calibration(0.4, (1.0, 0.0, -1.0)).of(honest).astype(np.float64)

    def loss(theta: np.ndarray) -> float:
        """The formula of the module, written out."""
        raised = wrong ** np.exp(theta[0]) * np.exp(theta[1:])
        right = raised[np.arange(60), y] / raised.sum(axis=1)
        return -np.log(right).sum() + (theta[1:] ** 2).sum() / 2

    slow = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000})
    found = fit_calibration(wrong, y, shifted=True)
    theta = np.array([-np.log(found.temperature), *found.shifts])
    assert loss(theta) == pytest.approx(slow.fun, rel=1e-4)
    assert loss(theta) <= slow.fun * (1 + 1e-6)


def test_a_class_that_is_not_validated_is_not_shifted():
    honest, y = draw(3)
    validated = y < 2
    found = fit_calibration(honest[validated], y[validated], shifted=True)
    assert found.shifts[2] == 0


def test_few_nodes_shift_little():
    said = np.full((2, 2), 0.5)
    y = np.zeros(2, dtype=int)
    found = fit_calibration(said, y, shifted=True)
    assert 0 < found.shifts[0] < 1


def test_numbers_stay_as_they_are():
    numbers = np.array([[3.0], [-7.0]], dtype=np.float32)
    assert (Calibration(2.0).of(numbers) == numbers).all()


def test_what_time_is_too_short_for_is_calibrated_roughly():
    """One step instead of many: better than nothing, and worse than all of them."""
    honest, y = draw(3)
    leaning = Calibration(0.5, (0.8, -0.4, -0.4)).of(honest)

    def enough():
        raise Enough

    found = [fit_calibration(leaning, y, shifted=True, look=look) for look in (enough, list)]
    losses = [
        -np.log(one.of(leaning)[np.arange(len(y)), y]).mean() for one in (Calibration(), *found)
    ]
    assert losses[0] > losses[1] > losses[2]
