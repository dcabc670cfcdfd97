"""How far two models are apart, and how sure one can be of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

_DIGITS = 9  # beyond these, scores differ by rounding alone


@dataclass(frozen=True)
class Interval:
    """A mean difference and where the true one is likely to be.

    Attributes:
        mean: Of the differences.
        low: The lower end of the interval.
        high: The upper end.
        level: The share of such intervals that hold the true difference.
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


def corrected_interval(
    differences: Sequence[float], *, test_to_train: float, level: float = 0.95
) -> Interval:
    r"""Nadeau and Bengio's corrected resampled t-interval of a mean difference.

    Random splits of one graph overlap, so that their scores are not independent, and an ordinary
    interval is far too narrow. C. Nadeau and Y. Bengio, *Inference for the generalization error*
    (Machine Learning 2003), widen it: with :math:`n` splits and the sample variance :math:`s^2`,

    .. math::
        \bar{d} \pm t_{n-1} \sqrt{\left(\frac{1}{n} +
            \frac{n_\mathrm{test}}{n_\mathrm{train}}\right) s^2}.

    Args:
        differences: Of the scores of two models, one for each split. A single one has an interval
            without ends.
        test_to_train: Test nodes for each training node.
        level: The share of such intervals that hold the true difference.
    """
    sample = np.asarray(differences, dtype=float).round(_DIGITS)
    mean, count = float(sample.mean()), len(sample)
    if count < 2:
        return Interval(mean, -math.inf, math.inf, level)
    error = math.sqrt((1 / count + test_to_train) * sample.var(ddof=1))
    reach = float(stats.t.ppf((1 + level) / 2, count - 1)) * error
    return Interval(mean, mean - reach, mean + reach, level)
