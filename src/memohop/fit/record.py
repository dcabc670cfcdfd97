"""The record of a fit: the models tried, the model kept, and its results on the test nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from memohop.intervals import Interval
from memohop.training.metrics import METRICS


@dataclass(frozen=True)
class FamilyScore:
    """The best candidate of one kind of model, by validation.

    Attributes:
        family: The kind.
        tried: How many settings of it were tried.
        seconds: The time that they took.
        val: The mean validation score over splits.
        test: The score on the test nodes; None if it was not fitted on all splits.
        options, numbers: The setting.
        behind: How far it is behind the kept model on the test nodes, with an interval.
    """

    family: str
    tried: int
    seconds: float
    val: float
    test: float | None
    options: Mapping[str, Any]
    numbers: Mapping[str, float]
    behind: Interval | None


@dataclass(frozen=True)
class KeptPart:
    """A part of the kept model, and its weight."""

    family: str
    weight: float
    options: Mapping[str, Any]
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class FitRecord:
    """How a model was made, and how good it is on nodes that were not used in making it.

    Attributes:
        nodes, arcs: Of the graph.
        labelled: Nodes with a target.
        class_sizes: Labelled nodes of each class; empty if numbers are predicted.
        metric: The id of the score.
        families: The kinds of model that were tried, the best by validation first.
        kept: The parts of the kept model.
        val: Its mean validation score.
        test: Its score on the test nodes, by models that had not learned from them.
        answers: The gain from the graph, and the gain from memory.
        reliability: How far calibrated probabilities can be trusted.
        temperature: The temperature that calibrates the probabilities.
        shifts: Of the logits of the classes, which calibrate them too; none if they stay.
        rare: The ranking, if one of two classes is rare.
        splits: How many splits candidates were compared on.
        train, val_nodes, test_nodes: Nodes in each part of a split.
        own_test: Whether the graph came with its test nodes.
        candidates: How many settings were tried in all.
        stopped: Why the search ended.
        seconds: How long everything took.
        notes: How tables were read, in plain words.
        left_out: The kinds of model that there was no time or RAM for.
        residual: If numbers are predicted, the distance from their prediction within which nine of
            ten new ones are expected to be, by the validation nodes; infinite if they are too few.
        has_columns: Whether the columns carry information.
        later: The cost in accuracy for nodes that come later; None if it was not measured.
        positive: The number of the positive one of two classes.
        over_constant: How far the kept model is ahead, on the test nodes, of saying the most
            frequent class, or the mean, of every node.
        reclassified: Test nodes to which calibration gave another class.
        interval: Of the test score, for other nodes; None in older models.
        test_groups: How many groups the test nodes are in; None if nodes have no groups.
        test_positives: How many test nodes are positive, if average precision counts.
    """

    nodes: int
    arcs: int
    labelled: int
    class_sizes: Mapping[str, int]
    metric: str
    families: tuple[FamilyScore, ...]
    kept: tuple[KeptPart, ...]
    val: float
    test: float
    answers: tuple[Answer, ...]
    reliability: tuple[Reliability, ...]
    temperature: float
    rare: RarePositives | None
    splits: int
    train: int
    val_nodes: int
    test_nodes: int
    own_test: bool
    candidates: int
    stopped: Stop
    seconds: float
    notes: tuple[str, ...] = ()
    residual: float | None = None
    has_columns: bool = True
    later: LaterNodes | None = None
    left_out: tuple[str, ...] = ()
    shifts: tuple[float, ...] = ()
    positive: int = 1
    over_constant: Interval | None = None
    reclassified: int = 0
    interval: Interval | None = None
    test_groups: int | None = None
    test_positives: int | None = None

    def verdict(self) -> str:
        """The kept model, the gain from the graph and the gain from memory, in a few sentences."""
        answers = self.answers if self.arcs else ()
        constant = against_constant(self.over_constant, METRICS[self.metric], self.class_sizes)
        kept = (self._what_was_kept(), *constant)
        return " ".join((*kept, *map(self._answer, answers), *self._open()))

    def test_text(self) -> str:
        """The test score, with its interval."""
        metric = METRICS[self.metric]
        if self.interval is None:
            return metric.text(self.test)
        return f"{metric.text(self.test)} ({metric.ends_text(self.interval, signed=False)})"

    def later_text(self) -> str:
        """The cost in accuracy for nodes that come later; nothing if it was not measured."""
        return "" if self.later is None else self.later.text(METRICS[self.metric])

    def _open(self) -> list[str]:
        """Why a question has no answer: nothing to compare with, or no time."""
        if not self.arcs:
            return ["There are no edges: the columns are all there is."]
        alone = [] if self.has_columns else ["There are no columns: the graph is all there is."]
        return alone + self._without_time()

    def _without_time(self) -> list[str]:
        """Notes on what there was no time for."""
        left_out = self.left_out
        if left_out:
            *others, last = left_out
            names = f"{', '.join(others)} and {last}" if others else last
            return [f"This graph is too large for {names} in this time and RAM."]
        tried = any(one.family.endswith("+mmp") for one in self.families)
        if (
            not tried
            or len(self.families) == 1
            or "memory" in {one.question for one in self.answers}
        ):
            return []
        return ["There was no time to see what memory adds."]

    def _what_was_kept(self) -> str:
        metric = METRICS[self.metric]
        reached = f"{metric.words} {self.test_text()} on {self.test_nodes} test nodes"
        if self.test_groups is not None:
            reached += f" in {self.test_groups} groups"
        if self.test_positives is not None and (points := too_high(self.test_positives)):
            few = f"{self.test_positives} of them positive: with so few it is too high on average"
            reached += f", {few}, by up to {points} points"
        if self.residual is not None and math.isfinite(self.residual):
            reached += f"; nine of ten numbers are within {self.residual:.4g} of their prediction"
        elif self.residual is not None:
            few = "validation nodes" if self.test_groups is None else "groups of validation nodes"
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
        against = {"graph": "the columns alone", "memory": "the best without it"}[answer.question]
        pair = f"{answer.better} against {answer.than}"
        mean, low, high = map(METRICS[self.metric].signed_text, (gain.mean, gain.low, gain.high))
        reach = f"{mean} ({low} to {high}) over {against}"
        if gain.says_nothing:
            few = "test nodes" if self.test_groups is None else "groups of test nodes"
            return f"Whether {subject.lower()} helps is not known: there are too few {few}."
        if gain.above_zero:
            helps = "helps"
        elif gain.below_zero:
            helps = "does not help"
        else:
            helps = "may or may not help"
        stopped = f" With more time this may change: {answer.behind} was stopped before its end."
        return f"{subject} {helps}: {reach}, {pair}." + stopped * answer.short_of_time

    def legend(self) -> str:
        """How to read the scores."""
        metric = METRICS[self.metric]
        origin = "that came with the graph" if self.own_test else "put aside before anything else"
        several = f"mean over {self.splits} splits of " * (self.splits > 1)
        return (
            f"{metric.words} in {metric.unit}; validation: {several}{self.train} training and "
            f"{self.val_nodes} validation nodes; test: {self.test_nodes} nodes {origin}; intervals "
            f"of 95 % by the {'' if self.test_groups is None else 'groups of the '}test nodes"
            f"{self._rows_and_kept()}"
        )

    def _rows_and_kept(self) -> str:
        """Why the row of a kind may have another score than what was kept of it, or a better."""
        texts = [""]
        if any(one.behind is not None and one.behind.mean < 0 for one in self.families):
            texts.append(
                "a kind with a negative value in the column behind did better than kept on the "
                "test nodes, which had no say in the choice"
            )
        kept = [(part.family, part.options, part.numbers) for part in self.kept]
        rows = [(one.family, one.options, one.numbers) for one in self.families]
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
        metric = METRICS[self.metric]
        kept = {
            "model": "kept",
            "val": metric.in_unit(self.val),
            "test": metric.in_unit(self.test),
            **self._test_ends(),
            "parts": [asdict(part) for part in self.kept],
        }
        rows = [kept]
        for one in self.families:
            behind = one.behind
            rows.append(
                {
                    "model": one.family,
                    "val": metric.in_unit(one.val),
                    "test": None if one.test is None else metric.in_unit(one.test),
                    "behind": None if behind is None else metric.gap_in_unit(behind.mean),
                    "low": None if behind is None else metric.gap_in_unit(behind.low),
                    "high": None if behind is None else metric.gap_in_unit(behind.high),
                    "tried": one.tried,
                    "seconds": round(one.seconds, 1),
                    **one.numbers,
                    **one.options,
                }
            )
        shared = {"metric": self.metric, "unit": metric.unit, "splits": self.splits}
        return [shared | row for row in rows]

    def _test_ends(self) -> dict[str, float | None]:
        """The ends of the interval of the test score, for JSON."""
        if self.interval is None:
            return {}
        ends = map(METRICS[self.metric].in_unit, (self.interval.low, self.interval.high))
        low, high = reversed([*ends]) if METRICS[self.metric].is_error else ends
        return {"test_low": low, "test_high": high}

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which ``msgspec.convert`` makes the same record."""
        return asdict(self)


def make_record(
    problem: Problem,
    families: Mapping[str, Family],
    found: Search,
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
    masks, metric = problem.masks, problem.objective.metric
    test = np.flatnonzero(masks.test)
    said, validated = chosen.of_test(found.splits), chosen.of_validation(problem, found.splits)
    uncalibrated = replace(chosen, calibration=UNCHANGED).of_test(found.splits)
    labelled = masks.train[:, 0] | masks.val[:, 0] | masks.test
    sizes = np.bincount(problem.y[labelled], minlength=len(classes)).tolist() if classes else []
    return FitRecord(
        nodes=problem.nodes,
        arcs=problem.arcs.shape[1],
        labelled=int(labelled.sum()),
        class_sizes=dict(zip(classes, sizes, strict=True)),
        metric=metric.id,
        families=tuple(_family_scores(problem, families, found, said)),
        kept=tuple(
            KeptPart(one.setting.family, float(weight), one.setting.options, one.setting.numbers)
            for one, weight in zip(chosen.candidates, chosen.weights, strict=True)
        ),
        val=chosen.val(problem, found.splits),
        test=problem.score(said, test),
        interval=score_interval(problem, masks.test, said),
        test_groups=None if problem.groups is None else len(np.unique(problem.groups[test])),
        test_positives=int((problem.y[test] == metric.positive).sum())
        if metric.id == "average_precision"
        else None,
        answers=tuple(answers(problem, families, found)),
        reliability=() if not classes else tuple(reliability(*validated)),
        temperature=chosen.calibration.temperature,
        shifts=chosen.calibration.shifts,
        rare=rare_positives(problem, *validated, said, named=named),
        positive=metric.positive,
        over_constant=over_constant(problem, said, sizes),
        reclassified=int((said.argmax(axis=1) != uncalibrated.argmax(axis=1)).sum()),
        splits=len(found.splits),
        train=int(masks.train[:, 0].sum()),
        val_nodes=int(masks.val[:, 0].sum()),
        test_nodes=len(test),
        own_test=not (masks.end_train | masks.end_val)[test].any(),
        candidates=len(found.candidates),
        stopped=found.stopped,
        seconds=seconds,
        notes=notes,
        residual=None if classes else _residual(problem, found.splits, *validated),
        has_columns=problem.has_columns,
        later=measure_later(problem, chosen, found.splits, look),
        left_out=found.left_out,
    )


def _family_scores(
    problem: Problem, families: Mapping[str, Family], found: Search, kept: Outputs
) -> list[FamilyScore]:
    scores = []
    for name in families:
        own = [one for one in found.candidates if one.setting.family == name and one.scores]
        if not own:
            continue
        has_outputs = [one for one in own if one.fits] or own
        best = max(
            has_outputs, key=lambda one: (one.mean(found.splits), one.mean(found.splits[:1]))
        )
        complete = best in found.complete()
        said = of_test(best)
        scores.append(
            FamilyScore(
                family=name,
                tried=len(own),
                seconds=sum(one.spent for one in own),
                val=float(np.mean(list(best.scores.values()))),
                test=problem.score(said, problem.masks.test) if complete else None,
                options=best.setting.options,
                numbers=best.setting.numbers,
                behind=paired_interval(problem, problem.masks.test, kept, said)
                if complete
                else None,
            )
        )
    return sorted(scores, key=lambda one: -one.val)


def _residual(problem: Problem, splits: Sequence[int], said: Outputs, y: NDArray[Any]) -> float:
    groups = None
    if problem.groups is not None:
        groups = np.concatenate([problem.groups[problem.masks.val[:, one]] for one in splits])
    return reach(np.abs(said[:, 0] - y), groups)
