r"""Logistic regression that can be stopped at any step.

With features :math:`\mathbf{x}_i`, classes :math:`y_i` and weights of the nodes :math:`c_i`, it
minimises

.. math::
    \frac{1}{\sum_i c_i} \Big( \sum_i -c_i \log
        \operatorname{softmax}(\mathbf{W}\mathbf{x}_i + \mathbf{b})_{y_i}
        + \frac{1}{2 C} \lVert\mathbf{W}\rVert^2 \Big)

as scikit-learn's ``LogisticRegression`` does, which has no way to stop it. For two classes
scikit-learn has one row :math:`\mathbf{w}` of weights; here there are two, :math:`\pm\mathbf{w}/2`,
with half its norm, so half its :math:`C` gives the same solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from memohop.fit.neighbourhood import Matrix
from memohop.training import Enough

_STEPS = 300  # at most: nearly converged is good enough
_FLAT = 1e-4  # the largest slope at which it has converged, as in scikit-learn
_PRECISE = 64 * float(np.finfo(np.float64).eps)


def logistic_regression(
    x: Matrix,
    y: NDArray[np.int64],
    counts: NDArray[np.float64],
    freedom: float,
    look: Callable[[], None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights ``[classes, features]`` and biases ``[classes]``.

    Args:
        x: Features, dense or sparse.
        y: Class numbers, each from 0 on at least once.
        counts: The weight of each row.
        freedom: :math:`C`, the inverse of the penalty.
        look: Called at each step; if it raises ``Enough``, the weights so far count.
    """
    classes, features = int(y.max()) + 1, x.shape[1]
    penalty = (2 if classes == 2 else 1) / (freedom * counts.sum())
    share, rows, across = (counts / counts.sum())[:, None], np.arange(len(y)), x.T

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, bias = _apart(flat, classes, features)
        logarithms = log_softmax(np.asarray(x @ weight.T.astype(x.dtype)) + bias, axis=1)
        slope = np.exp(logarithms)
        slope[rows, y] -= 1
        slope *= share
        of_weight = np.asarray(across @ slope.astype(x.dtype)).T + penalty * weight
        value = -(share[:, 0] @ logarithms[rows, y]) + penalty / 2 * np.vdot(weight, weight)
        return float(value), np.concatenate([of_weight.ravel(), slope.sum(axis=0)])

    found = minimize(
        loss,
        np.zeros(classes * (features + 1)),
        jac=True,
        method="L-BFGS-B",
        callback=stopping(look),
        options={"maxiter": _STEPS, "gtol": _FLAT, "ftol": _PRECISE, "maxls": 50},
    )
    return _apart(found.x, classes, features)


def stopping(look: Callable[[], None]) -> Callable[[Any], None]:
    """A callback for SciPy, which ends with its result so far if ``look`` raises ``Enough``."""

    def at_each_step(intermediate_result: Any) -> None:
        try:
            look()
        except Enough:
            raise StopIteration from None

    return at_each_step


def _apart(
    flat: NDArray[np.float64], classes: int, features: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights and biases from one row of numbers."""
    return flat[:-classes].reshape(classes, features), flat[-classes:]
