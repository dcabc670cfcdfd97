"""The value of the columns, the gain from the graph, and the gain from memory, one by one.

Everything here uses the test nodes, which were not used for any choice. Each group of models is
represented by its best candidate by validation, with the mean of its splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memohop.intervals import Interval
from memohop.own.candidate import Candidate, Search
from memohop.own.candidates.family import Family
from memohop.own.paired import paired_interval
from memohop.own.problem import Outputs, Problem


@dataclass(frozen=True)
class Answer:
    """The gain of one group of models over another.

    Attributes:
        question: ``graph`` or ``memory``.
        better: The family that represents the group.
        than: The family that represents the other one.
        gain: The difference of their test scores, with its interval.
        short_of_time: Whether the one that is behind was stopped before it had finished.
    """

    question: str
    better: str
    than: str
    gain: Interval
    short_of_time: bool = False

    @property
    def behind(self) -> str:
        """The family with the lower test score."""
        return self.better if self.gain.mean < 0 else self.than


def answers(problem: Problem, families: Mapping[str, Family], found: Search) -> list[Answer]:
    """The gain from the graph over the columns, and from memory over the best without it."""
    columns = _first(found, [name for name, family in families.items() if not family.sees_graph])
    graph = _first(found, [name for name, family in families.items() if family.sees_graph])
    memory = _first(found, [name for name, family in families.items() if family.has_memory])
    plain = _first(found, [name for name, family in families.items() if not family.has_memory])
    answered = []
    for question, one, other in (("graph", graph, columns), ("memory", memory, plain)):
        if one is not None and other is not None:
            gain = paired_interval(problem, problem.masks.test, of_test(one), of_test(other))
            behind = one if gain.mean < 0 else other
            cut = not behind.unfinished.isdisjoint(found.splits)
            pair = one.setting.family, other.setting.family
            answered.append(Answer(question, *pair, gain, short_of_time=cut))
    return answered


def of_test(candidate: Candidate) -> Outputs:
    """The outputs of a candidate for the test nodes: the mean over its splits."""
    return np.mean([fit.test for fit in candidate.fits.values()], axis=0)


def _first(found: Search, names: Sequence[str]) -> Candidate | None:
    """The best candidate of some families by validation."""
    return next((one for one in found.complete() if one.setting.family in names), None)
