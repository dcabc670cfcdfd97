r"""The value of the columns, the gain from the graph, and the gain from memory, one by one.

Everything here uses the test nodes, which were not used for any choice. Each group of models is
represented by its best candidate by validation, with the mean of its splits.

The uncertainty of a difference of two scores is estimated by leaving test nodes out: they are dealt
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from memohop.intervals import Interval
from memohop.own.candidates.family import Family
from memohop.own.portfolio import Candidate, Search
from memohop.own.problem import Outputs, Problem

_GROUPS = 50  # of test nodes; more of them hardly change the variance
_LEVEL = 0.95
_FEWEST = 10  # nodes that count; fewer show no spread


@dataclass(frozen=True)
class Answer:
    """The gain of one group of models over another.

    Attributes:
        question: ``graph`` or ``memory``.
        better: The family that represents the group.
        than: The family that represents the other one.
        gain: The difference of their test scores, with its interval.
    """

    question: str
    better: str
    than: str
    gain: Interval


def answers(problem: Problem, families: Mapping[str, Family], found: Search) -> list[Answer]:
    """The gain from the graph over the columns, and from memory over the best without it."""
    columns = _first(found, [name for name, family in families.items() if not family.sees_graph])
    graph = _first(found, [name for name, family in families.items() if family.sees_graph])
    memory = _first(found, [name for name, family in families.items() if family.has_memory])
    plain = _first(found, [name for name, family in families.items() if not family.has_memory])
    answered = []
    for question, one, other in (("graph", graph, columns), ("memory", memory, plain)):
        if one is not None and other is not None:
            gain = paired_interval(problem, of_test(one), of_test(other))
            answered.append(Answer(question, one.setting.family, other.setting.family, gain))
    return answered


def of_test(candidate: Candidate) -> Outputs:
    """The outputs of a candidate for the test nodes: the mean over its splits."""
    return np.mean([fit.test for fit in candidate.fits.values()], axis=0)


def paired_interval(problem: Problem, one: Outputs, other: Outputs) -> Interval:
    """The difference of two models on the test nodes, with its interval for other nodes."""
    rows = np.flatnonzero(problem.masks.test)
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
    """All test nodes for a mean over nodes; otherwise as many of each class as the rarest has."""
    if problem.objective.metric.is_mean or not problem.classes:
        return len(rows)
    sizes = np.bincount(problem.y[rows])
    return int(len(sizes[sizes > 0]) * sizes[sizes > 0].min())


def _first(found: Search, names: Sequence[str]) -> Candidate | None:
    """The best candidate of some families by validation."""
    return next((one for one in found.complete() if one.setting.family in names), None)
