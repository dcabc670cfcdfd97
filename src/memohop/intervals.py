"""How far apart two models are, and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

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


def corrected_interval(
    differences: Sequence[float],
    *,
    test_to_train: float,
    node_reach: float = 0.0,
    level: float = 0.95,
) -> Interval:
    r"""An interval for the true difference of two models, given the splits and the test nodes.

    With the error :math:`e` of :func:`corrected_error` over :math:`n` splits, the corrected
    resampled t-interval is :math:`\bar{d} \pm t_{n-1} e`. A few splits may agree by chance, which
    makes :math:`e` 0, although other test nodes would have given another difference. The interval
    is therefore at least as wide as the one of the test nodes alone,
    :math:`\bar{d} \pm \max(t_{n-1} e, r)`. (The two are not added: scores of splits also differ
    because their test nodes do.) The ends are cut at -1 and 1.

    Args:
        differences: Differences of the scores of two models, one for each split. A single one
            gives an interval that holds everything.
        test_to_train: Test nodes for each training node.
        node_reach: Half the width :math:`r` of the interval that the test nodes give.
        level: The share of such intervals that hold the true difference.
    """
    count, mean = len(differences), float(np.mean(differences))
    reach = math.inf
    if count > 1:
        error = corrected_error(differences, test_to_train=test_to_train)
        reach = max(float(stats.t.ppf((1 + level) / 2, count - 1)) * error, node_reach)
    return Interval(mean, max(mean - reach, -1.0), min(mean + reach, 1.0), level)
