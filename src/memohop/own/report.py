"""The report of a fit: scores, comparisons, and conclusions about the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from memohop.intervals import Interval, corrected_interval
from memohop.own.differences import node_reach
from memohop.own.search import Search, Stop
from memohop.own.space import MODEL
from memohop.pyg import Data
from memohop.training.metrics import METRICS


@dataclass(frozen=True)
class ModelScore:
    """The setting of a model that validation chose, and its scores between 0 and 1."""

    model: str  # its id
    options: Mapping[str, Any]  # of the model
    numbers: Mapping[str, float]  # learning rate, weight decay, dropout rates and lambda
    val: float  # mean validation score over the splits
    test: tuple[float, ...]  # of each split
    mean: float  # of the test scores
    std: float  # their sample standard deviation (ddof=1); 0 for a single split


@dataclass(frozen=True)
class FitReport:
    """How a classifier was made, and how good it is on nodes that it has not seen.

    Attributes:
        nodes, arcs: Of the graph.
        labelled: Nodes with a label.
        class_sizes: Labelled nodes of each class.
        metric: The id of the score.
        scores: Of ``gcn+mmp``, ``mlp`` and ``gcn``; a model without time is left out.
        differences: From ``gcn+mmp`` to each of the others: mean test score and interval.
        trials: How many settings of each model were tried.
        splits: How many splits of the labelled nodes, and networks of each model.
        train, val, test: Nodes in each part of a split.
        epochs: The most epochs of a trial.
        stopped: Why the search ended: all ``trials`` made, ``time`` up, or ``interrupted``.
        seconds: How long the search took.
        epochs_cut: How many more epochs were asked for than ``epochs``, if time was short.
        own_test: Whether the graph came with its test nodes, which every network then shares.
        notes: How tables were read, in plain words.
        diverged: How many settings, of all models, were rejected because a network diverged.
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
        """A sentence on the epochs that were cut; empty if none were."""
        if not self.epochs_cut:
            return ""
        return (
            f"Time was short: every network got {self.epochs} epoch(s) at most instead of "
            f"{self.epochs + self.epochs_cut}, and all scores may be too low; give more time."
        )

    def _of_the_graph(self) -> str:
        if self.arcs == 0:
            return "There are no arcs, so the features alone decide."
        against = self.differences.get("mlp")
        if against is None:
            return "There was no time to compare with mlp: whether the graph helps is not known."
        if against.says_nothing:
            return (
                f"Whether the graph helps is not known: {self.splits} splits with {self.test} test "
                "node(s) are too few to say anything; raise splits, or label more nodes."
            )
        gap = f"{MODEL} is {_apart(against)} mlp, which does not see it"
        if against.above_zero:
            return f"The graph helps: {gap}."
        if against.below_zero:
            return f"The graph hurts: {gap}; use the features alone."
        return f"It is not clear that the graph helps: {gap}, and that may be chance."

    def _against_gcn(self) -> str:
        against = self.differences.get("gcn")
        if self.arcs == 0 or against is None or against.says_nothing:
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
        metric, rows = METRICS[self.metric], []
        for score in self.scores:
            row = {
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
            }
            if gap := self.differences.get(score.model):
                ends = {"difference": gap.mean, "low": gap.low, "high": gap.high}
                row |= {name: metric.gap_in_unit(value) for name, value in ends.items()}
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which ``msgspec.convert`` makes the same report."""
        return asdict(self)


def make_report(
    search: Search, graph: Data, classes: NDArray[Any], notes: tuple[str, ...] = ()
) -> FitReport:
    """The report of a search.

    Args:
        search: The search.
        graph: The graph of the search, with class numbers, masks and metric.
        classes: The names of the classes.
        notes: How tables were read.
    """
    best = {model: search.best(model) for model in search.tried}
    scores = tuple(
        ModelScore(
            model=model,
            options=one.trial.options,
            numbers=one.trial.numbers,
            val=one.selection.val,
            test=tuple(result.test for result in one.selection.results),
            mean=one.selection.mean,
            std=one.selection.std,
        )
        for model, one in best.items()
    )
    sizes = torch.bincount(graph.y[graph.y >= 0], minlength=len(classes)).tolist()
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    train, val, test = (int(mask[:, 0].sum()) for mask in masks)
    own_test = bool((graph.test_mask == graph.test_mask[:, :1]).all())
    return FitReport(
        nodes=len(graph.y),
        arcs=graph.num_edges,
        labelled=sum(sizes),
        class_sizes=dict(zip(map(str, classes.tolist()), sizes, strict=True)),
        metric=graph.metric,
        scores=scores,
        differences=_differences(search, scores, graph, own_test=own_test),
        trials=len(search.tried[MODEL]),
        splits=graph.train_mask.shape[1],
        train=train,
        val=val,
        test=test,
        epochs=search.epochs,
        stopped=search.stopped,
        seconds=search.seconds,
        epochs_cut=search.epochs_asked - search.epochs,
        own_test=own_test,
        notes=notes,
        diverged=sum(one.selection.diverged > 0 for many in search.tried.values() for one in many),
    )


def _differences(
    search: Search, scores: tuple[ModelScore, ...], graph: Data, *, own_test: bool
) -> dict[str, Interval]:
    """Intervals of the differences from the first model to the others, on the same splits.

    Nadeau and Bengio's correction is for test sets that are drawn anew in each split. If all
    networks have the same test nodes, the spread of their scores shows the chance in training alone
    and needs no correction; :func:`node_reach` accounts for the choice of test nodes.
    """
    first, *others = scores
    ratio = 0.0 if own_test else float(graph.test_mask.sum() / graph.train_mask.sum())
    return {
        other.model: corrected_interval(
            [one - two for one, two in zip(first.test, other.test, strict=True)],
            test_to_train=ratio,
            node_reach=node_reach(search.logits[first.model], search.logits[other.model], graph),
        )
        for other in others
    }


def _apart(interval: Interval) -> str:
    better = "better" if interval.mean >= 0 else "worse"
    low, high = 100 * interval.low, 100 * interval.high
    return (
        f"{100 * abs(interval.mean):.1f} points {better} (95 % interval {low:+.1f} to {high:+.1f}) "
        "than"
    )
