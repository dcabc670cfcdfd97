"""The judgement of benchmarks/tables.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from lead import Lead, average, is_judged, lead


def accuracy(outputs: np.ndarray, truth: np.ndarray) -> float:
    return float((outputs == truth).mean())


def known(percent: float, error: float) -> Lead:
    """A lead whose resamples have that standard error."""
    return Lead(percent, percent + error * np.sqrt(0.5) * np.array([-1.0, 1.0]))


def test_a_lead_has_the_error_of_a_paired_comparison() -> None:
    truth = np.arange(400) % 2
    right, wrong = truth.copy(), truth.copy()
    wrong[:40] = 1 - wrong[:40]  # wrong for a tenth of the nodes
    ahead = lead(accuracy, truth, right, wrong)
    assert ahead.percent == pytest.approx(10)
    assert ahead.error == pytest.approx(100 * np.sqrt(0.1 * 0.9 / 400), rel=0.1)
    assert ahead.p_value == 0


def test_precise_graphs_count_more() -> None:
    leads = {"small": [known(-10, 5)], "large": [known(1, 0.5)]}
    plain, weighted = average(leads, "the best")
    # weights 1/25 and 1/0.25: (-10 * 0.04 + 1 * 4) / 4.04, with error 4.04 ** -0.5
    assert "+0.89 (-0.08 to +1.87)" in weighted
    assert "-4.50 (-9.42 to +0.42)" in plain


def test_draws_of_one_graph_are_averaged() -> None:
    plain, _ = average({"graph": [known(-10, 5), known(14, 5)]}, "trees")
    assert f"fit ahead of trees by +2.00 ({2 - 1.96 * 50**0.5 / 2:+.2f} to" in plain


def test_few_positives_are_not_judged() -> None:
    assert not is_judged(np.array([0] * 50 + [1] * 4))
    assert is_judged(np.array([0] * 50 + [1] * 5))
    assert is_judged(np.linspace(0, 1, 3))
    assert average({}, "the best") == []
