"""The record of a fit: the models tried, the model kept, and its results on the test nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from memohop.fit._candidate import Setting, Stop
from memohop.fit._certainty import Calibration, Reliability, too_high
from memohop.fit._residual import Residual
from memohop.training.metrics import METRICS, Interval, Metric


@dataclass(frozen=True)
class FamilyScore(Setting):
    """The best candidate of one kind of model, by validation."""

    tried: int  # settings of it
    seconds: float  # that they took
    val: float  # mean over splits
    test: float | None  # None if it was not fitted on all splits
    behind: Interval | None  # how far, of the kept model on the test nodes


@dataclass(frozen=True)
class KeptPart(Setting):
    """A part of the kept model, and its weight."""

    weight: float


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


@dataclass(frozen=True)
class LaterNodes:
    """Differences of the score on the test nodes; None if nothing that the model uses is lost.

    Attributes:
        appended: For nodes that are appended to the graph of ``fit``.
        elsewhere: For nodes of another graph.
    """

    appended: Interval | None
    elsewhere: Interval | None

    def text(self, metric: Metric) -> str:
        """Both in a sentence."""
        if self.appended is None and self.elsewhere is None:
            return (
                "Nodes that come later lose nothing, in this graph or in another one: the model "
                "has no weights for single nodes, and uses no labels of neighbours."
            )

        def cost(gap: Interval | None) -> str:
            if gap is None:
                return "nothing is lost"
            if gap.says_nothing:
                return f"{metric.signed_text(gap.mean)}, by too few test nodes to tell,"
            return _with_ends(metric, gap)

        return (
            f"Nodes that come later: {cost(self.appended)} if they are appended to this graph, "
            f"{cost(self.elsewhere)} on another graph, where no label is known."
        )


@dataclass(frozen=True)
class RarePositives:
    """The value of the top of the ranking, for two classes of which the positive one is rare.

    Attributes:
        share: The share of positive nodes among the validation nodes.
        threshold: The probability from which a node is best called positive, by the F1 score on
            the validation nodes.
        tops: Shares of the test nodes, ``0.01`` for the top 1 %.
        precision: The share of positive nodes in each of them.
    """

    share: float
    threshold: float
    tops: tuple[float, ...]
    precision: tuple[float, ...]


@dataclass(frozen=True)
class FitRecord:
    """How a model was made, and how good it is on nodes that were not used in making it."""

    nodes: int
    arcs: int
    labelled: int  # nodes with a target
    class_sizes: Mapping[str, int]  # labelled nodes of each class; empty if numbers are predicted
    metric: str  # its id
    families: tuple[FamilyScore, ...]  # the best by validation first
    kept: tuple[KeptPart, ...]  # the parts of the kept model
    val: float  # its mean validation score
    test: float  # its score on the test nodes, by models that had not learned from them
    interval: Interval  # of that score, for other nodes
    answers: tuple[Answer, ...]  # the gain from the graph, and the gain from memory
    reliability: tuple[Reliability, ...]  # how far calibrated probabilities can be trusted
    calibration: Calibration  # of the probabilities
    rare: RarePositives | None  # the ranking, if one of two classes is rare
    positive: int  # the number of the positive one of two classes
    splits: int  # on which candidates were compared
    train: int  # nodes in each part of a split
    val_nodes: int
    test_nodes: int
    test_groups: int | None  # in which the test nodes are; None if nodes have no groups
    test_positives: int | None  # test nodes that are positive, if average precision counts
    own_test: bool  # whether the graph came with its test nodes
    candidates: int  # settings that were tried in all
    stopped: Stop  # why the search ended
    seconds: float  # that everything took
    notes: tuple[str, ...]  # how tables were read, in plain words
    left_out: tuple[str, ...]  # kinds of model that there was no time or RAM for
    # If numbers are predicted, how far from their prediction nine of ten new ones are expected to
    # be, by the validation nodes.
    residual: Residual | None
    has_columns: bool  # whether the columns carry information
    later: LaterNodes | None  # the cost for nodes that come later; None if it was not measured
    # How far the kept model is ahead, on the test nodes, of saying the most frequent class, or the
    # mean, of every node.
    over_constant: Interval
    reclassified: int  # test nodes to which calibration gave another class

    @property
    def _metric(self) -> Metric:
        return METRICS[self.metric]

    def test_text(self) -> str:
        """The test score, with its interval."""
        ends = self._metric.ends_text(self.interval, signed=False)
        return f"{self._metric.text(self.test)} ({ends})"

    def later_text(self) -> str:
        """The cost in accuracy for nodes that come later; nothing if it was not measured."""
        return "" if self.later is None else self.later.text(self._metric)

    def verdict(self) -> str:
        """The kept model, the gain from the graph and the gain from memory, in a few sentences."""
        kept = (self._what_was_kept(), *self._on_curves(), *self._against_constant())
        if not self.arcs:
            return " ".join((*kept, "There are no edges: the columns are all there is."))
        alone = [] if self.has_columns else ["There are no columns: the graph is all there is."]
        return " ".join((*kept, *map(self._answer, self.answers), *alone, *self._without_time()))

    def _without_time(self) -> list[str]:
        """What there was no time for."""
        if self.left_out:
            *others, last = self.left_out
            names = f"{', '.join(others)} and {last}" if others else last
            return [f"This graph is too large for {names} in this time and RAM."]
        tried = [score.family.endswith("+mmp") for score in self.families]
        answered = any(answer.question == "memory" for answer in self.answers)
        if answered or not any(tried) or len(tried) == 1:
            return []
        return ["There was no time to see what memory adds."]

    def _against_constant(self) -> list[str]:
        """A sentence if it may be no better than a model that says the same of every node."""
        gap, constant = self.over_constant, "saying the mean of every node"
        if gap.above_zero:
            return []
        if self._metric.is_ranking:
            constant = "a random ranking"
        elif self.class_sizes:
            usual = max(self.class_sizes, key=self.class_sizes.__getitem__)
            constant = f"always saying {usual!r}, the most frequent class"
        if gap.says_nothing:
            few = "is not known: there are too few test nodes"
            return [f"Whether it is better than {constant} {few}."]
        may = "is no better" if gap.mean <= 0 else "may be no better"
        how = "is worse" if gap.below_zero else may
        return [f"It {how} than {constant}: {_with_ends(self._metric, gap)}."]

    def _units(self, nodes: str) -> str:
        """What is counted in intervals."""
        return nodes if self.test_groups is None else f"groups of {nodes}"

    def _what_was_kept(self) -> str:
        reached = f"{self._metric.words} {self.test_text()} on {self.test_nodes} test nodes"
        if self.test_groups is not None:
            reached += f" in {self.test_groups} groups"
        if self.test_positives is not None and (points := too_high(self.test_positives)):
            few = f"{self.test_positives} of them positive: with so few it is too high on average"
            reached += f", {few}, by up to {points} points"
        if self.residual is not None:
            few = self._units("validation nodes")
            unknown = f"there are too few {few} to tell how close nine of ten numbers are"
            reached += f"; {self.residual.text() or unknown}"
        if len(self.kept) == 1:
            return f"Kept: {self.kept[0].family}, {reached}."
        weights: dict[str, list[float]] = {}
        for part in self.kept:
            weights.setdefault(part.family, []).append(part.weight)
        parts = ", ".join(
            f"{family} ({sum(of_family):.0%}"
            + (f", {len(of_family)} settings)" if len(of_family) > 1 else ")")
            for family, of_family in weights.items()
        )
        return f"Kept: an ensemble of {parts}, {reached}."

    def _on_curves(self) -> list[str]:
        """A sentence if numbers were learned otherwise than as they are."""
        targets = {part.target: 0.0 for part in self.kept if part.target}
        if not targets:
            return []
        share = sum(part.weight for part in self.kept if part.target)
        names = " or ".join({"log": "logarithms", "rank": "ranks"}[name] for name in targets)
        part = "" if len(self.kept) == 1 else f", in parts with {share:.0%} of the weight"
        return [
            f"The numbers are skewed, so their {names} were learned{part}; predictions are in the "
            "unit of the numbers."
        ]

    def _answer(self, answer: Answer) -> str:
        gain, subject = answer.gain, {"graph": "The graph", "memory": "Memory"}[answer.question]
        if gain.says_nothing:
            few = self._units("test nodes")
            return f"Whether {subject.lower()} helps is not known: there are too few {few}."
        against = {"graph": "the columns alone", "memory": "the best without it"}[answer.question]
        helps = "does not help" if gain.below_zero else "may or may not help"
        text = (
            f"{subject} {'helps' if gain.above_zero else helps}: {_with_ends(self._metric, gain)} "
            f"over {against}, {answer.better} against {answer.than}."
        )
        if answer.short_of_time:
            text += f" With more time this may change: {answer.behind} was stopped before its end."
        return text

    def legend(self) -> str:
        """How to read the scores, and why the row of a kind may differ from what was kept of it."""
        origin = "that came with the graph" if self.own_test else "put aside before anything else"
        several = f"mean over {self.splits} splits of " * (self.splits > 1)
        texts = [
            f"{self._metric.words} in {self._metric.unit}",
            f"validation: {several}{self.train} training and {self.val_nodes} validation nodes",
            f"test: {self.test_nodes} nodes {origin}",
            "intervals of 95 % by the "
            f"{'' if self.test_groups is None else 'groups of the '}test nodes",
        ]
        if any(score.behind is not None and score.behind.mean < 0 for score in self.families):
            texts.append(
                "a kind with a negative value in the column behind did better than kept on the "
                "test nodes, which had no say in the choice"
            )
        kept = [(part.family, part.options, part.numbers) for part in self.kept]
        rows = [(score.family, score.options, score.numbers) for score in self.families]
        if len({family for family, *_ in kept}) == 1 and (len(kept) > 1 or kept[0] not in rows):
            texts.append(
                f"the row of {kept[0][0]} is its best setting by validation score, and kept has "
                "others, chosen together"
            )
        if self.reclassified:
            texts.append(
                "kept is calibrated, and the kinds are not, which changes the class of "
                f"{self.reclassified} test node{'s' * (self.reclassified > 1)}"
            )
        return "; ".join(texts)

    def rows(self) -> list[dict[str, Any]]:
        """Flat objects for JSON: the kept model, and each kind of model."""
        metric = self._metric
        shared = {"metric": self.metric, "unit": metric.unit, "splits": self.splits}
        ends = map(metric.in_unit, (self.interval.low, self.interval.high))
        low, high = reversed([*ends]) if metric.is_error else ends
        kept = {
            "model": "kept",
            "val": metric.in_unit(self.val),
            "test": metric.in_unit(self.test),
            "test_low": low,
            "test_high": high,
            "parts": [asdict(part) for part in self.kept],
        }
        rows = [shared | kept]
        for score in self.families:
            gap = score.behind or Interval(math.nan, math.nan, math.nan, math.nan)
            row = {
                "model": score.family,
                "val": metric.in_unit(score.val),
                "test": None if score.test is None else metric.in_unit(score.test),
                "behind": metric.gap_in_unit(gap.mean),
                "low": metric.gap_in_unit(gap.low),
                "high": metric.gap_in_unit(gap.high),
                "tried": score.tried,
                "seconds": round(score.seconds, 1),
            }
            rows.append({**shared, **row, **score.numbers, **score.options})
        return rows


def _with_ends(metric: Metric, gap: Interval) -> str:
    """A difference of scores, with its interval."""
    return f"{metric.signed_text(gap.mean)} ({metric.ends_text(gap)})"
