r"""Probabilities that are as sure as they should be.

The mean of several models is rarely as sure as the share of nodes on which it is right, and it may
lean towards a class, often the most frequent one. A temperature :math:`T` and a shift :math:`b_c`
of each class turn probabilities :math:`p_c` into :math:`p_c^{1/T} e^{b_c}`, divided by their sum.
They are those with the smallest

.. math::
    -\sum_i \log \frac{p_{i y_i}^{1/T} e^{b_{y_i}}}{\sum_c p_{ic}^{1/T} e^{b_c}}
    + \frac{1}{2} \sum_c b_c^2

over the validation nodes :math:`i` with class :math:`y_i`. The second term keeps a class with few
nodes from being shifted far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from memohop.fit.candidates.logistic import stopping
from memohop.fit.problem import Outputs

_SHARPNESS = (-2.0, 2.0)  # natural logarithms of the least and the greatest 1 / T
_BINS = 10  # of probabilities, in the reliability plot
_TINY = 1e-12  # the least probability to take a logarithm of


@dataclass(frozen=True)
class Calibration:
    """How probabilities are corrected.

    Attributes:
        temperature: Above 1 if models were too sure.
        shifts: Of the logit of each class; none if classes stay as they are.
    """

    temperature: float = 1.0
    shifts: tuple[float, ...] = ()

    def of(self, outputs: Outputs) -> Outputs:
        """Calibrated probabilities; numbers ``[rows, 1]`` stay as they are."""
        if outputs.shape[1] == 1 or self == UNCHANGED:
            return outputs.astype(np.float32)
        logits = _logarithms(outputs) / self.temperature + np.array(self.shifts or 0.0)
        found: Outputs = softmax(logits, axis=1).astype(np.float32)
        return found


UNCHANGED = Calibration()
"""Probabilities as they are."""


@dataclass(frozen=True)
class Reliability:
    """Validation nodes with a similar probability of their most probable class.

    Attributes:
        said: The mean of that probability.
        right: The share of them that have that class.
        nodes: Their number.
    """

    said: float
    right: float
    nodes: int


def fit_calibration(
    probabilities: Outputs,
    y: NDArray[np.int64],
    *,
    shifted: bool,
    look: Callable[[], None] = lambda: None,
) -> Calibration:
    """The calibration that suits validation nodes best.

    Args:
        probabilities: ``[rows, classes]``.
        y: The class numbers of these nodes.
        shifted: Whether classes may be shifted.
        look: Called at each step; if it raises ``Enough``, the calibration so far counts.
    """
    logarithms, rows = _logarithms(probabilities), np.arange(len(y))
    classes = probabilities.shape[1]
    # Of a class that is not validated nothing is known, except that none of these nodes is in it.
    validated = np.bincount(y, minlength=classes) > 0

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The mean loss and its gradient."""
        sharpness, shifts = np.exp(theta[0]), theta[1:]
        said = log_softmax(sharpness * logarithms + (shifts if shifted else 0.0), axis=1)
        wrong = np.exp(said)
        wrong[rows, y] -= 1
        slope = [sharpness * float((wrong * logarithms).sum(axis=1).mean())]
        if shifted:
            slope += (validated * (wrong.mean(axis=0) + shifts / len(y))).tolist()
        held = float(shifts @ shifts) / 2 / len(y)
        return held - float(said[rows, y].mean()), np.array(slope)

    start = np.zeros(1 + classes * shifted)
    bounds = [_SHARPNESS] + [(None, None)] * (len(start) - 1)
    found = minimize(loss, start, jac=True, bounds=bounds, callback=stopping(look)).x
    return Calibration(float(np.exp(-found[0])), tuple(found[1:].tolist()))


def reliability(probabilities: Outputs, y: NDArray[np.int64]) -> list[Reliability]:
    """Nodes with the class numbers ``y``, by the probability of their most probable class."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    return [
        Reliability(float(sure[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (bins == number for number in range(_BINS))
        if inside.any()
    ]


def _logarithms(probabilities: Outputs) -> NDArray[np.float64]:
    return np.log(probabilities.astype(np.float64).clip(_TINY))
