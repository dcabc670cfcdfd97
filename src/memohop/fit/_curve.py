r"""Curves on which skewed numbers are learned.

A few large numbers decide the squared error of skewed ones. On a curve, models learn
:math:`z = h(y)` in place of the number :math:`y`: its logarithm, or the normal quantile of its
rank. What goes back from a model's :math:`\hat{z}` is a median: the mean of :math:`y` is above it
where the curve is a logarithm. With the errors :math:`e_j = h(y_j) - \hat{z}_j` of nodes that were
not learned from,

.. math:: \frac{1}{m} \sum_{j=1}^m h^{-1}(\hat{z} + e_j)

is an estimate of the mean whatever the distribution of errors (N. Duan, *Smearing estimate*, JASA
1983). A few quantiles stand for all of them. No number outside of those that were learned from is
predicted: the exponential of an error would know no bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtri

from memohop.errors import UsageError, check_choice

CurveKind = Literal["log", "rank"]
"""Logarithms, or normal quantiles of ranks."""

_FEWEST = 20  # numbers, to see that they are skewed
_SKEWED = 1.0  # skewness from which numbers are: that of the exponential distribution is 2
_CHANCE = 0.01  # with which as much skewness may come from a normal distribution
_KNOTS = 1000  # ranks between which the curve is straight
_ERRORS = 25  # quantiles that stand for all errors


@dataclass(frozen=True, eq=False)
class Curve:
    r"""What models learn in place of skewed numbers.

    Attributes:
        kind: The logarithm :math:`\ln(y + s)`, or the normal quantile of the rank.
        shift: :math:`s`: 0 if all numbers are above 0, and else the median of those that are, so
            that the unit does not matter.
        values: Numbers with the :attr:`heights` of the curve there, both increasing: for ranks, the
            curve is straight between them; for logarithms they are the least and the greatest.
        heights: As many.
        mean: Of the heights of all numbers.
        errors: Over which a prediction is a mean; a single 0 for the median.

    Example:
        >>> import numpy as np
        >>> from memohop.fit._curve import Curve
        >>> curve = Curve.fit("log", np.array([1.0, 10.0, 100.0]))
        >>> curve.numbers(curve.heights_of(np.array([10.0, 1000.0]))).round(3).tolist()
        [10.0, 100.0]
    """

    kind: CurveKind
    shift: float
    values: NDArray[np.float64]
    heights: NDArray[np.float64]
    mean: float
    errors: NDArray[np.float64]

    @classmethod
    def fit(cls, kind: CurveKind, y: NDArray[np.float64]) -> Curve:
        """The curve for some numbers, which are not all the same."""
        shift, values = 0.0, np.quantile(y, np.linspace(0, 1, min(len(y), _KNOTS)))
        if kind == "log":
            values = values[[0, -1]]
            if values[0] <= 0:
                shift = float(np.median(y[y > 0])) if values[1] > 0 else 1.0
                shift -= float(min(values[0], 0.0))
            heights = np.log(values + shift)
        else:
            levels = ndtri((np.arange(len(values)) + 0.5) / len(values))
            values, place = np.unique(values, return_inverse=True)
            heights = np.bincount(place, levels) / np.bincount(place)
        curve = cls(kind, shift, values, heights, 0.0, np.zeros(1))
        return replace(curve, mean=float(curve.heights_of(y).mean()))

    def heights_of(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is learned in place of numbers; NaN stays."""
        if self.kind == "rank":
            return np.asarray(np.interp(y, self.values, self.heights))
        return np.asarray(np.log(np.maximum(y, self.values[0]) + self.shift))

    def numbers(self, heights: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers that are predicted where a model says these heights."""
        total = np.zeros(heights.shape)
        for error in self.errors:
            at = np.clip(heights + error, self.heights[0], self.heights[-1])
            if self.kind == "rank":
                total += np.interp(at, self.heights, self.values)
            else:
                total += np.clip(np.exp(at) - self.shift, *self.values)
        return total / len(self.errors)

    def smeared(self, errors: NDArray[np.float64]) -> Curve:
        """The same, where numbers are means over errors of heights; without any, it is itself."""
        if not len(errors):
            return self
        levels = (np.arange(_ERRORS) + 0.5) / _ERRORS
        return replace(self, errors=np.quantile(errors, levels))

    def check(self) -> None:
        """A ``UsageError`` if this cannot be a curve."""
        check_choice("kind", self.kind, get_args(CurveKind))
        both = np.stack([self.values, self.heights])
        sound = both.shape[1] >= 2 and bool((np.diff(both) > 0).all()) and len(self.errors) > 0
        if self.kind == "log":
            sound = sound and self.shift >= 0 and self.values[0] + self.shift > 0
        if not (sound and np.isfinite([self.shift, self.mean]).all()):
            raise UsageError(f"a curve of kind {self.kind!r} is damaged")


def curves_for(y: NDArray[np.float64]) -> tuple[CurveKind, ...]:
    """The curves on which some numbers may be learned better, the first to try first.

    None unless they are skewed beyond chance. Ranks are normal whatever the distribution, and for
    logarithms of normal numbers they are the same; logarithms themselves are on the list if no
    number is negative, and if they are less skewed than the numbers.
    """
    if len(y) < _FEWEST or len(np.unique(y)) < 3:
        return ()
    skewness = abs(float(stats.skew(y)))
    if skewness < _SKEWED or stats.skewtest(y).pvalue > _CHANCE:
        return ()
    if y.min() >= 0 and abs(float(stats.skew(Curve.fit("log", y).heights_of(y)))) < skewness:
        return ("rank", "log")
    return ("rank",)
