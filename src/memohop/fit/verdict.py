"""The value of the columns, the gain from the graph, and the gain from memory, one by one.

Before that, whether there is any value: a model may be no better than one that knows nothing.

Everything here uses the test nodes, which were not used for any choice. Each group of models is
represented by its best candidate by validation, with the mean of its splits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memohop.fit.candidate import Candidate, Search
from memohop.fit.candidates.family import Family
from memohop.fit.paired import paired_interval
from memohop.fit.problem import Outputs, Problem
from memohop.training.metrics import Interval, Metric


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


def over_constant(problem: Problem, said: Outputs, class_sizes: Sequence[int]) -> Interval:
    """The lead over saying the same of every test node: the most frequent class, or the mean.

    Args:
        problem: The problem that the model was fitted on.
        said: The outputs of the model for the test nodes.
        class_sizes: How many nodes have each class; none if numbers are predicted.
    """
    learned = problem.masks.train[:, 0] | problem.masks.val[:, 0]
    if class_sizes:
        usual = np.eye(len(class_sizes), dtype=np.float32)[np.argmax(class_sizes)]
    else:
        usual = np.array([problem.y[learned].mean()], dtype=np.float32)
    constant = np.tile(usual, (len(said), 1))
    return paired_interval(problem, problem.masks.test, said, constant)


def against_constant(
    gap: Interval | None, metric: Metric, class_sizes: Mapping[str, int]
) -> list[str]:
    """A sentence if a model may be no better than one that says the same of every node."""
    if gap is None or gap.above_zero:
        return []
    constant = "saying the mean of every node"
    if metric.is_ranking:
        constant = "a random ranking"
    elif class_sizes:
        usual = max(class_sizes, key=class_sizes.__getitem__)
        constant = f"always saying {usual!r}, the most frequent class"
    if gap.says_nothing:
        return [f"Whether it is better than {constant} is not known: there are too few test nodes."]
    how = "is worse" if gap.below_zero else "is no better" if gap.mean <= 0 else "may be no better"
    mean, low, high = map(metric.signed_text, (gap.mean, gap.low, gap.high))
    return [f"It {how} than {constant}: {mean} ({low} to {high})."]


def of_test(candidate: Candidate) -> Outputs:
    """The outputs of a candidate for the test nodes: the mean over its splits."""
    return np.mean([fit.test for fit in candidate.fits.values()], axis=0)


def _first(found: Search, names: Sequence[str]) -> Candidate | None:
    """The best candidate of some families by validation."""
    return next((one for one in found.complete() if one.setting.family in names), None)


def lacking_for_verdict(
    families: Mapping[str, Family], ranked: Sequence[Candidate], splits: Sequence[int]
) -> list[tuple[Candidate, list[int]]]:
    """What :func:`answers` needs and a search may leave out: candidates, and splits they lack.

    The columns alone, and memory, are each compared with others on splits that both have. Where no
    candidate of theirs has them all, it is the one that lacks the fewest, unless it failed on one.

    Args:
        families: The kinds of model, by id.
        ranked: The candidates that were tried, the best first.
        splits: The splits to have.
    """
    tried = [one for one in ranked if one.scores]
    columns = [one for one in tried if not families[one.setting.family].sees_graph]
    memory = [one for one in tried if families[one.setting.family].has_memory]
    needed = []
    for group in (columns, memory):
        lacking = [[split for split in splits if split not in one.scores] for one in group]
        if all(lacking):
            pairs = zip(group, lacking, strict=True)
            hopeful = [(one, own) for one, own in pairs if one.unfinished.isdisjoint(own)]
            needed += sorted(hopeful, key=lambda pair: len(pair[1]))[:1]
    return needed
