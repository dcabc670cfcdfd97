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
    """A mean difference of two scores between 0 and 1, and where the true one is likely to be.

    Attributes:
        mean: Of the differences.
        low: The lower end of the interval, -1 at least.
        high: The upper end, 1 at most.
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

    @property
    def says_nothing(self) -> bool:
        """Whether it holds every difference that two scores can have."""
        return self.low <= -1 and self.high >= 1


def corrected_error(differences: Sequence[float], *, test_to_train: float) -> float:
    r"""Nadeau and Bengio's standard error of the mean difference over splits of one graph.

    Random splits of one graph overlap, so that their scores are not independent, and an ordinary
    standard error is far too small. C. Nadeau and Y. Bengio, *Inference for the generalization
    error* (Machine Learning 2003), correct it: with :math:`n` splits and the sample variance
    :math:`s^2`,

    .. math::
        \sqrt{\left(\frac{1}{n} + \frac{n_\mathrm{test}}{n_\mathrm{train}}\right) s^2}.

    Args:
        differences: Of the scores of two models, one for each split, two at least.
        test_to_train: Test nodes for each training node.
    """
    sample = np.asarray(differences, dtype=float).round(_DIGITS)
    if np.ptp(sample) == 0:  # the variance would be rounding
        return 0.0
    return math.sqrt((1 / len(sample) + test_to_train) * sample.var(ddof=1))


def corrected_interval(
    differences: Sequence[float],
    *,
    test_to_train: float,
    node_reach: float = 0.0,
    level: float = 0.95,
) -> Interval:
    r"""Where the true difference of two models is likely to be, by splits and by test nodes.

    With the error :math:`e` of :func:`corrected_error` over :math:`n` splits, the corrected
    resampled t-interval is :math:`\bar{d} \pm t_{n-1} e`. A few splits may agree by chance, and
    :math:`e` is 0 then, although other test nodes would have given another difference: the
    interval is therefore no narrower than what the test nodes allow by themselves,
    :math:`\bar{d} \pm \max(t_{n-1} e, r)`. (Not the sum of both: the scores of splits differ for
    their different test nodes, too.) Two scores between 0 and 1 differ by 1 at most, and the ends
    are cut there.

    Args:
        differences: Of the scores of two models, one for each split. A single one says nothing of
            the spread, and its interval holds everything.
        test_to_train: Test nodes for each training node.
        node_reach: The reach :math:`r` of the interval that the test nodes give.
        level: The share of such intervals that hold the true difference.
    """
    count, mean = len(differences), float(np.mean(differences))
    reach = math.inf
    if count > 1:
        error = corrected_error(differences, test_to_train=test_to_train)
        reach = max(float(stats.t.ppf((1 + level) / 2, count - 1)) * error, node_reach)
    return Interval(mean, max(mean - reach, -1.0), min(mean + reach, 1.0), level)
