r"""The difference of two models on the same nodes, and how certain it is.

The uncertainty of a difference of two scores is estimated by leaving nodes out: they are dealt
to :math:`G` groups, each with its share of every class, and without group :math:`g` the difference
is :math:`d_g`. The jackknife's variance of the difference is then

.. math::
    v = \frac{G - 1}{G} \sum_g \left(d_g - \bar{d}\right)^2 .

Both models are scored on the same nodes, so nodes that are hard for both do not count. If
the models agree on every node, it is 0; after A. Agresti and Y. Min, *Effects and non-effects of
paired identical observations in comparing proportions with binary matched-pairs data* (Statistics
in Medicine 2004), half a node is added to either side, :math:`v + 1 / (m + 2)^2`. If numbers are
predicted, models with the same outputs for every node are the same, and nothing is added.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from memohop.data.folds import Mask
from memohop.intervals import Interval
from memohop.own.problem import Outputs, Problem

_GROUPS = 50  # of nodes; more of them hardly change the variance
_LEVEL = 0.95
_FEWEST = 10  # nodes that count; fewer show no spread


def paired_interval(problem: Problem, mask: Mask, one: Outputs, other: Outputs) -> Interval:
    """The difference of two models on some nodes, with its interval for other nodes.

    Args:
        problem: The problem that they were fitted on.
        mask: The nodes, ``[nodes]``; neither model has learned from them.
        one: The outputs of a model for these nodes.
        other: The outputs of the other model.
    """
    rows = np.flatnonzero(mask)
    order = np.argsort(problem.y[rows], kind="stable")  # each group has its share of every class
    groups = min(len(rows), _GROUPS)
    gap = problem.score(one, rows) - problem.score(other, rows)
    if groups < 2 or _counting(problem, rows) < _FEWEST:
        return Interval(gap, -1.0, 1.0, _LEVEL)
    left_out = np.empty(len(rows), dtype=int)
    left_out[order] = np.arange(len(rows)) % groups
    without = []
    for group in range(groups):
        kept = left_out != group
        without.append(
            problem.score(one[kept], rows[kept]) - problem.score(other[kept], rows[kept])
        )
    gaps = np.where(np.isfinite(without), without, gap)
    variance = (groups - 1) * float(np.var(gaps))
    if problem.classes:
        variance += (_counting(problem, rows) + 2) ** -2
    reach = float(stats.t.ppf((1 + _LEVEL) / 2, groups - 1)) * math.sqrt(variance)
    if not problem.classes:
        return Interval(gap, gap - reach, gap + reach, _LEVEL)
    return Interval(gap, max(gap - reach, -1.0), min(gap + reach, 1.0), _LEVEL)


def _counting(problem: Problem, rows: NDArray[Any]) -> int:
    """All nodes for a mean over nodes; otherwise as many of each class as the rarest has."""
    if problem.objective.metric.is_mean or not problem.classes:
        return len(rows)
    sizes = np.bincount(problem.y[rows])
    return int(len(sizes[sizes > 0]) * sizes[sizes > 0].min())
