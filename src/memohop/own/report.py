"""What came of a fit: scores, what they were compared with, and what that says of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from memohop.intervals import Interval, corrected_interval
from memohop.own.differences import node_reach
from memohop.own.model import MODEL
from memohop.own.search import Search, Stop
from memohop.pyg import Data
from memohop.training.metrics import METRICS


@dataclass(frozen=True)
class ModelScore:
    """The setting of a model that validation chose, and its scores between 0 and 1.

    Attributes:
        model: Its id.
        options: Options of the model.
        numbers: Learning rate, weight decay, dropout rates and lambda.
        val: Mean validation score over the splits.
        test: The test score of each split.
        mean: Their mean.
        std: Their sample standard deviation (ddof=1); 0 for a single split.
    """

    model: str
    options: Mapping[str, Any]
    numbers: Mapping[str, float]
    val: float
    test: tuple[float, ...]
    mean: float
    std: float


@dataclass(frozen=True)
class FitReport:
    """How a classifier was made, and how good it is on nodes that it has not seen.

    Attributes:
        nodes: Of the graph.
        arcs: Of the graph.
        labelled: Nodes with a label.
        class_sizes: Labelled nodes of each class.
        metric: What the scores are.
        scores: Of `gcn+mmp`, `mlp` and `gcn`, as far as time allowed.
        differences: Of `gcn+mmp` to each of the others: mean test score and interval.
        trials: How many settings of each model were tried.
        splits: How many splits of the labelled nodes, and networks of each model.
        train, val, test: Nodes in each part of a split.
        epochs: The most epochs of a trial.
        stopped: Whether all `trials` were made, the `time` was over, or it was `interrupted`.
        seconds: How long the search took.
        epochs_cut: How many more epochs were asked for than `epochs`, where time was short.
        own_test: Whether the graph came with the test nodes, which are those of every network.
        notes: How tables were read, in plain words.
        diverged: How many settings, of all models, were not chosen since a network diverged.
    """

    nodes: int
    arcs: int
    labelled: int
    class_sizes: Mapping[str, int]
    metric: str
    scores: tuple[ModelScore, ...]
    differences: Mapping[str, Interval]
    trials: int
    splits: int
    train: int
    val: int
    test: int
    epochs: int
    stopped: Stop
    seconds: float
    epochs_cut: int = 0
    own_test: bool = False
    notes: tuple[str, ...] = ()
    diverged: int = 0

    def score(self, model: str = MODEL) -> ModelScore:
        """The score of a model."""
        return next(score for score in self.scores if score.model == model)

    def verdict(self) -> str:
        """Whether the graph helps at all, in a sentence or two."""
        return " ".join(filter(None, (self._of_the_graph(), self._against_gcn(), self.short_of())))

    def short_of(self) -> str:
        """What time was too short for, in a sentence; empty if for nothing."""
        if not self.epochs_cut:
            return ""
        return (
            f"Time was short: every network got {self.epochs} epoch(s) at most instead of "
            f"{self.epochs + self.epochs_cut}, and all scores may be too low; give more time."
        )

    def _of_the_graph(self) -> str:
        if self.arcs == 0:
            return "There are no arcs, so the features alone decide."
        if "mlp" not in self.differences:
            return "There was no time to compare with mlp: whether the graph helps is not known."
        against = self.differences["mlp"]
        if against.says_nothing:
            return (
                f"Whether the graph helps is not known: {self.splits} splits with {self.test} test "
                "node(s) are too few to say anything; raise splits, or label more nodes."
            )
        if against.above_zero:
            return f"The graph helps: {MODEL} is {_apart(against)} mlp, which does not see it."
        if against.below_zero:
            return (
                f"The graph hurts: {MODEL} is {_apart(against)} mlp, which does not see it; use "
                "the features alone."
            )
        return (
            f"It is not clear that the graph helps: {MODEL} is {_apart(against)} mlp, which does "
            "not see it, and that may be chance."
        )

    def _against_gcn(self) -> str:
        if self.arcs == 0 or "gcn" not in self.differences:
            return ""
        against = self.differences["gcn"]
        if against.says_nothing:
            return ""
        sure = against.above_zero or against.below_zero
        tail = "." if sure else "; that may be chance."
        return f"It is {_apart(against)} gcn, which has no memory{tail}"

    def legend(self) -> str:
        """How to read the scores."""
        if self.own_test:
            over = (
                f"{self.splits} networks with {self.train} training and {self.val} validation "
                f"nodes each, on the {self.test} test nodes that came with the graph"
            )
        else:
            over = (
                f"{self.splits} splits of {self.train} training, {self.val} validation and "
                f"{self.test} test nodes"
            )
        metric = METRICS[self.metric]
        return (
            f"{metric.words} in {metric.unit} on test nodes, mean and sample standard "
            f"deviation (ddof=1) over {over}; the best of {self.trials} setting(s) of each model "
            f"by mean validation score, {self.epochs} epochs at most"
            + (f"; {self.diverged} setting(s) diverged and were not chosen" * bool(self.diverged))
        )

    def rows(self) -> list[dict[str, Any]]:
        """Flat objects for JSON, one for each model, scores in the unit of the metric."""
        metric = METRICS[self.metric]
        return [
            {
                "model": score.model,
                "metric": self.metric,
                "unit": metric.unit,
                "val": metric.in_unit(score.val),
                "mean": metric.in_unit(score.mean),
                "std": metric.gap_in_unit(score.std),
                "ddof": 1,
                "splits": self.splits,
                "trials": self.trials,
                "epochs": self.epochs,
                "epochs_cut": self.epochs_cut,
                "stopped": self.stopped,
                **score.numbers,
                **score.options,
                **self._difference_row(score.model),
            }
            for score in self.scores
        ]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which `msgspec.convert` makes the same report."""
        return asdict(self)

    def _difference_row(self, model: str) -> dict[str, float | None]:
        if model not in self.differences:
            return {}
        found = self.differences[model]
        ends = {"difference": found.mean, "low": found.low, "high": found.high}
        metric = METRICS[self.metric]
        return {name: metric.gap_in_unit(value) for name, value in ends.items()}


def make_report(
    search: Search, graph: Data, classes: NDArray[Any], notes: tuple[str, ...] = ()
) -> FitReport:
    """What a search says of the models and of the graph that it was made on.

    Args:
        search: The search.
        graph: With class numbers, masks and metric.
        classes: What the class numbers stand for.
        notes: How tables were read.
    """
    scores = make_scores(search)
    sizes = torch.bincount(graph.y[graph.y >= 0], minlength=len(classes)).tolist()
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    train, val, test = (int(mask[:, 0].sum()) for mask in masks)
    names = [str(name) for name in classes.tolist()]
    return FitReport(
        nodes=len(graph.y),
        arcs=graph.num_edges,
        labelled=sum(sizes),
        class_sizes=dict(zip(names, sizes, strict=True)),
        metric=graph.metric,
        scores=scores,
        differences=make_differences(search, scores, graph),
        trials=len(search.tried[MODEL]),
        splits=graph.train_mask.shape[1],
        train=train,
        val=val,
        test=test,
        epochs=search.epochs,
        stopped=search.stopped,
        seconds=search.seconds,
        epochs_cut=search.epochs_asked - search.epochs,
        own_test=_has_one_test_set(graph),
        notes=notes,
        diverged=sum(
            one.selection.diverged > 0 for tried in search.tried.values() for one in tried
        ),
    )


def make_scores(search: Search) -> tuple[ModelScore, ...]:
    """The score of what validation chose, for each model that was tried."""
    found = []
    for model in search.tried:
        best = search.best(model)
        found.append(
            ModelScore(
                model=model,
                options=best.trial.options,
                numbers=best.trial.numbers,
                val=best.selection.val,
                test=tuple(result.test for result in best.selection.results),
                mean=best.selection.mean,
                std=best.selection.std,
            )
        )
    return tuple(found)


def make_differences(
    search: Search, scores: tuple[ModelScore, ...], graph: Data
) -> dict[str, Interval]:
    """How far the first model is from each of the others, on the same splits.

    Nadeau and Bengio's correction is for test sets that are drawn anew in each split. Where all
    networks have the same test nodes, the spread of their scores says how much chance in training
    matters and needs no correction; the rest is for the test nodes to say.
    """
    first, *others = scores
    drawn = graph.test_mask.sum() / graph.train_mask.sum()
    ratio = 0.0 if _has_one_test_set(graph) else float(drawn)
    return {
        other.model: corrected_interval(
            [one - two for one, two in zip(first.test, other.test, strict=True)],
            test_to_train=ratio,
            node_reach=node_reach(search.logits[first.model], search.logits[other.model], graph),
        )
        for other in others
    }


def _has_one_test_set(graph: Data) -> bool:
    return bool((graph.test_mask == graph.test_mask[:, :1]).all())


def _apart(interval: Interval) -> str:
    better = "better" if interval.mean >= 0 else "worse"
    low, high = 100 * interval.low, 100 * interval.high
    return (
        f"{100 * abs(interval.mean):.1f} points {better} (95 % interval {low:+.1f} to {high:+.1f}) "
        "than"
    )
