"""The record of a fit: the models tried, the model kept, and its results on the test nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from memohop.fit.calibration import UNCHANGED, Reliability, reliability
from memohop.fit.candidate import Search, Stop
from memohop.fit.candidates.family import Family
from memohop.fit.conformal import reach
from memohop.fit.finish import Chosen
from memohop.fit.later import LaterNodes, measure_later
from memohop.fit.paired import paired_interval, score_interval, too_high
from memohop.fit.problem import Outputs, Problem
from memohop.fit.ranking import RarePositives, rare_positives
from memohop.fit.verdict import Answer, against_constant, answers, of_test, over_constant
from memohop.training.metrics import METRICS, Interval, Metric


@dataclass(frozen=True)
class FamilyScore:
    """The best candidate of one kind of model, by validation."""

    family: str
    tried: int  # settings of it
    seconds: float  # that they took
    val: float  # mean over splits
    test: float | None  # None if it was not fitted on all splits
    options: Mapping[str, Any]
    numbers: Mapping[str, float]
    behind: Interval | None  # how far, of the kept model on the test nodes


@dataclass(frozen=True)
class KeptPart:
    """A part of the kept model, and its weight."""

    family: str
    weight: float
    options: Mapping[str, Any]
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class FitRecord:
    """How a model was made, and how good it is on nodes that were not used in making it."""

    nodes: int
    arcs: int
    labelled: int  # nodes with a target
    class_sizes: Mapping[str, int]  # labelled nodes of each class; empty if numbers are predicted
    metric: str  # its id
    families: tuple[
        FamilyScore, ...
    ]  # kinds of model that were tried, the best by validation first
    kept: tuple[KeptPart, ...]  # the parts of the kept model
    val: float  # its mean validation score
    test: float  # its score on the test nodes, by models that had not learned from them
    interval: Interval  # of that score, for other nodes
    answers: tuple[Answer, ...]  # the gain from the graph, and the gain from memory
    reliability: tuple[Reliability, ...]  # how far calibrated probabilities can be trusted
    temperature: float  # that calibrates the probabilities
    shifts: tuple[float, ...]  # of the logits of the classes, for the same; none if they stay
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
    # If numbers are predicted, the distance from their prediction within which nine of ten new ones
    # are expected to be, by the validation nodes; infinite if they are too few.
    residual: float | None
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
        constant = against_constant(self.over_constant, self._metric, self.class_sizes)
        kept = (self._what_was_kept(), *constant)
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
        if self.residual is not None and math.isfinite(self.residual):
            reached += f"; nine of ten numbers are within {self.residual:.4g} of their prediction"
        elif self.residual is not None:
            few = self._units("validation nodes")
            reached += f"; there are too few {few} to tell how close nine of ten numbers are"
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

    def _answer(self, answer: Answer) -> str:
        gain, subject = answer.gain, {"graph": "The graph", "memory": "Memory"}[answer.question]
        if gain.says_nothing:
            few = self._units("test nodes")
            return f"Whether {subject.lower()} helps is not known: there are too few {few}."
        against = {"graph": "the columns alone", "memory": "the best without it"}[answer.question]
        mean, low, high = map(self._metric.signed_text, (gain.mean, gain.low, gain.high))
        helps = "does not help" if gain.below_zero else "may or may not help"
        text = (
            f"{subject} {'helps' if gain.above_zero else helps}: {mean} ({low} to {high}) over "
            f"{against}, {answer.better} against {answer.than}."
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
        low, high = self.interval.low, self.interval.high
        kept = {
            "model": "kept",
            "val": metric.in_unit(self.val),
            "test": metric.in_unit(self.test),
            "test_low": metric.in_unit(high if metric.is_error else low),
            "test_high": metric.in_unit(low if metric.is_error else high),
            "parts": [asdict(part) for part in self.kept],
        }
        rows = [shared | kept]
        for score in self.families:
            gap = score.behind
            values = (None,) * 3 if gap is None else (gap.mean, gap.low, gap.high)
            gaps = [None if value is None else metric.gap_in_unit(value) for value in values]
            row = {
                "model": score.family,
                "val": metric.in_unit(score.val),
                "test": None if score.test is None else metric.in_unit(score.test),
                **dict(zip(("behind", "low", "high"), gaps, strict=True)),
                "tried": score.tried,
                "seconds": round(score.seconds, 1),
            }
            rows.append({**shared, **row, **score.numbers, **score.options})
        return rows


def make_record(
    problem: Problem,
    families: Mapping[str, Family],
    search: Search,
    chosen: Chosen,
    *,
    classes: Sequence[str],
    seconds: float,
    notes: tuple[str, ...],
    named: bool = False,
    look: Callable[[], None] = lambda: None,
) -> FitRecord:
    """Score the test nodes, once, and record the results; less if ``look`` raises ``Enough``.

    ``named`` says that the user named the positive class.
    """
    masks, metric, splits = problem.masks, problem.objective.metric, search.splits
    test = np.flatnonzero(masks.test)
    said, (val_said, val_y) = chosen.of_test(splits), chosen.of_validation(problem, splits)
    uncalibrated = replace(chosen, calibration=UNCHANGED).of_test(splits)
    labelled = masks.train[:, 0] | masks.val[:, 0] | masks.test
    sizes = np.bincount(problem.y[labelled], minlength=len(classes)).tolist() if classes else []
    residual = positives = None
    if not classes:
        groups = None
        if problem.groups is not None:
            groups = np.concatenate([problem.groups[masks.val[:, split]] for split in splits])
        residual = reach(np.abs(val_said[:, 0] - val_y), groups)
    if metric.id == "average_precision":
        positives = int((problem.y[test] == metric.positive).sum())
    return FitRecord(
        nodes=problem.nodes,
        arcs=problem.arcs.shape[1],
        labelled=int(labelled.sum()),
        class_sizes=dict(zip(classes, sizes, strict=True)),
        metric=metric.id,
        families=tuple(_family_scores(problem, families, search, said)),
        kept=tuple(
            KeptPart(weight=float(weight), **vars(candidate.setting))
            for candidate, weight in zip(chosen.candidates, chosen.weights, strict=True)
        ),
        val=chosen.val(problem, splits),
        test=problem.score(said, test),
        interval=score_interval(problem, masks.test, said),
        test_groups=None if problem.groups is None else len(np.unique(problem.groups[test])),
        test_positives=positives,
        answers=tuple(answers(problem, families, search)),
        reliability=tuple(reliability(val_said, val_y)) if classes else (),
        temperature=chosen.calibration.temperature,
        shifts=chosen.calibration.shifts,
        rare=rare_positives(problem, val_said, val_y, said, named=named),
        positive=metric.positive,
        over_constant=over_constant(problem, said, sizes),
        reclassified=int((said.argmax(axis=1) != uncalibrated.argmax(axis=1)).sum()),
        splits=len(splits),
        train=int(masks.train[:, 0].sum()),
        val_nodes=int(masks.val[:, 0].sum()),
        test_nodes=len(test),
        own_test=not (masks.end_train | masks.end_val)[test].any(),
        candidates=len(search.candidates),
        stopped=search.stopped,
        seconds=seconds,
        notes=notes,
        residual=residual,
        has_columns=problem.has_columns,
        later=measure_later(problem, chosen, splits, look),
        left_out=search.left_out,
    )


def _family_scores(
    problem: Problem, families: Mapping[str, Family], search: Search, kept: Outputs
) -> list[FamilyScore]:
    """The best candidate of each kind, of those whose outputs are at hand if there are any."""
    scores = []
    for name in families:
        of_kind = (each for each in search.candidates if each.setting.family == name)
        own = [candidate for candidate in of_kind if candidate.scores]
        if not own:
            continue
        best = max(
            [candidate for candidate in own if candidate.fits] or own,
            key=lambda candidate: [candidate.mean(s) for s in (search.splits, search.splits[:1])],
        )
        test = behind = None
        if best in search.complete():
            said, mask = of_test(best), problem.masks.test
            test, behind = problem.score(said, mask), paired_interval(problem, mask, kept, said)
        scores.append(
            FamilyScore(
                family=name,
                tried=len(own),
                seconds=sum(candidate.spent for candidate in own),
                val=float(np.mean(list(best.scores.values()))),
                test=test,
                options=best.setting.options,
                numbers=best.setting.numbers,
                behind=behind,
            )
        )
    return sorted(scores, key=lambda score: -score.val)
