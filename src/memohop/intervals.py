"""How far apart two models are, and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_DIGITS = 9  # beyond these, scores differ by rounding alone


@dataclass(frozen=True)
class Interval:
    """A mean difference of two scores between 0 and 1, and an interval for the true difference.

    The ends lie between -1 and 1; ``level`` is the share of such intervals that hold the truth.
    """

    mean: float
    low: float
    high: float
    level: float

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def says_nothing(self) -> bool:
        """Whether the interval holds every possible difference."""
        return self.low <= -1 and self.high >= 1


def corrected_error(differences: Sequence[float], *, test_to_train: float) -> float:
    r"""Nadeau and Bengio's standard error of the mean difference over splits of one graph.

    Random splits of one graph overlap. Their scores are therefore not independent, and an ordinary
    standard error is far too small. C. Nadeau and Y. Bengio, *Inference for the generalization
    error* (Machine Learning 2003), correct it: with :math:`n` splits and the sample variance
    :math:`s^2`,

    .. math::
        \sqrt{\left(\frac{1}{n} + \frac{n_\mathrm{test}}{n_\mathrm{train}}\right) s^2}.

    Args:
        differences: Differences of the scores of two models, one for each of two or more splits.
        test_to_train: Test nodes for each training node.
    """
    sample = np.asarray(differences, dtype=float).round(_DIGITS)
    if np.ptp(sample) == 0:  # the variance would be rounding
        return 0.0
    return math.sqrt((1 / len(sample) + test_to_train) * sample.var(ddof=1))
