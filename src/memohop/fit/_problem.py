"""The problem that every candidate is fitted on: columns, arcs, targets and splits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import NUMBER_OF_EDGES, ArcAttribute, check_arcs
from memohop.data.folds import Masks
from memohop.errors import UsageError
from memohop.fit._curve import Curve, CurveKind, curves_for
from memohop.fit._neighbourhood import Matrix, Neighbourhood
from memohop.fit._places import Places
from memohop.fit._saved import Saved, Sizes
from memohop.fit._values import Ends, ValueLabels
from memohop.fit._views import (
    COMBINED,
    Extras,
    Means,
    OwnColumns,
    Sees,
    View,
    Ways,
    combinations,
    rarely_zero,
)
from memohop.training.objective import Objective
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.networks import NodeModel
    from memohop.pyg import Data

Outputs = NDArray[np.float32]
"""Probabilities ``[rows, classes]``, or the predicted numbers ``[rows, 1]``."""

_FEW = 50  # validation nodes of the rarer class
_SPARSE = ("x.data", "x.indices", "x.indptr")  # columns that are saved as a sparse matrix
_AT_ONCE = 5_000_000  # nodes, all parts together, that are scored at once


@dataclass(frozen=True, eq=False)
class Inputs:
    """A graph to predict on.

    Attributes:
        x: The columns as features, ``[nodes, features]``, dense or sparse.
        arcs: ``[2, arcs]``, sources above targets.
        y: The targets that a model may use, ``[nodes]``: class numbers, -1 for nodes without a
            label, or numbers, NaN for nodes without one.
        of_fit: How many of the first nodes are those of the graph of ``fit``, in its order: all
            of them or none.
        directed: Whether directions count; by default, if some arc lacks its opposite.
        overall: The class shares, or the mean, to assume for nodes without labelled neighbours; by
            default those of ``y``.
        weights: Of the arcs, ``[arcs]``, in units of the mean weight of the graph of ``fit``; by
            default all count alike, with weight 1.
        attributes: What else is known of the arcs, ``[arcs, attributes]``; by default nothing.
        described: What each attribute is.
        hidden: Nodes of the graph of ``fit`` to treat as if they had come later: the rows that
            models have for them are not used; by default none.
        of_edges: How many of the columns, the last ones, are statistics of a node's edges.
        times: Of the nodes, ``[nodes]``, NaN where missing: a node collects only from those that
            are earlier or have no time. By default, nodes collect from all.
        words: Which columns are words or other parts of strings, ``[features]``, and so no numbers
            even if they are rarely 0; by default none.
        value_labels: Of another graph than that of ``fit``, the labels of values in that one.
    """

    x: Matrix
    arcs: NDArray[np.int64]
    y: NDArray[Any]
    of_fit: int = field(default=0, kw_only=True)
    directed: bool | None = field(default=None, kw_only=True)
    overall: NDArray[Any] | None = field(default=None, kw_only=True)
    weights: NDArray[np.float32] | None = field(default=None, kw_only=True)
    attributes: NDArray[np.float32] | None = field(default=None, kw_only=True)
    described: tuple[ArcAttribute, ...] = field(default=(), kw_only=True)
    hidden: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    of_edges: int = field(default=0, kw_only=True)
    times: NDArray[np.float64] | None = field(default=None, kw_only=True)
    words: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    value_labels: ValueLabels | None = field(default=None, kw_only=True)

    @property
    def own(self) -> Matrix:
        """The columns that do not say what a node's edges are like."""
        return self.x[:, : self.x.shape[1] - self.of_edges] if self.of_edges else self.x

    @property
    def nodes(self) -> int:
        """The number of nodes in the graph."""
        return len(self.y)

    def overall_shares(self, classes: int) -> NDArray[np.float64]:
        """The share of each class among the labels, or the mean of the numbers."""
        if classes:
            return np.bincount(self.y[self.y >= 0], minlength=classes) / (self.y >= 0).sum()
        return np.array([np.nanmean(self.y)])

    def with_new_nodes(
        self,
        x: Matrix,
        arcs: NDArray[np.int64],
        y: NDArray[Any],
        weights: NDArray[np.float32] | None,
        attributes: NDArray[np.float32] | None = None,
        times: NDArray[np.float64] | None = None,
    ) -> Inputs:
        """The graph with more nodes; ``arcs`` number its own nodes first, and its arcs stay.

        New arcs without weights have that of an average arc, 1. If arcs have attributes, or nodes
        times, new ones must have them.
        """
        both = np.hstack([self.arcs, arcs])
        joined, first = np.unique(both, axis=1, return_index=True)
        if self.weights is not None:
            added = np.ones(arcs.shape[1]) if weights is None else weights
            weights = np.concatenate([self.weights, added]).astype(np.float32)[first]
        if self.attributes is not None:
            assert attributes is not None
            attributes = np.vstack([self.attributes, attributes])[first]
        is_sparse = sparse.issparse(x) or sparse.issparse(self.x)
        return Inputs(
            sparse.vstack([self.x, x], format="csr") if is_sparse else np.vstack([self.x, x]),
            joined,
            np.concatenate([self.y, y]),
            of_fit=self.of_fit,
            directed=self.directed,
            weights=None if self.weights is None else weights,
            of_edges=self.of_edges,
            attributes=None if self.attributes is None else attributes,
            described=self.described,
            times=None if self.times is None or times is None else np.append(self.times, times),
        )

    def passed(self, network: NodeModel, data: Data) -> Any:
        """What a network in evaluation mode returns for the nodes of a graph, as it takes it."""
        return network(*make_inputs(data, network, torch.device("cpu")))

    def saved(self) -> Saved:
        """What :meth:`from_saved` needs, of the graph of ``fit``."""
        arrays = {"arcs": self.arcs, "y": self.y}
        if sparse.issparse(self.x):
            arrays |= {name: getattr(self.x, name.removeprefix("x.")) for name in _SPARSE}
        else:
            arrays["x"] = self.x
        if self.weights is not None:
            arrays["weights"] = self.weights
        if self.attributes is not None:
            arrays["attributes"] = self.attributes
        if self.times is not None:
            arrays["times"] = self.times
        return Saved({}, arrays)

    @classmethod
    def from_saved(cls, saved: Saved, sizes: Sizes) -> Inputs:
        """The graph that was saved; a ``UsageError`` if it does not match the model."""
        columns = ["x"] if "x" in saved.arrays else _SPARSE
        more = ["attributes"] * bool(sizes.described) + ["times"] * sizes.timed
        if saved.arrays.keys() - {"weights", "ids"} != {*columns, "arcs", "y", *more}:
            raise UsageError(f"it holds {', '.join(sorted(saved.arrays))}")
        arcs, y = saved.arrays["arcs"], saved.arrays["y"]
        if "x" in saved.arrays:
            x = saved.array("x", (sizes.nodes, sizes.features))
        else:
            entries, *places = saved.array("x.data", (None,)), *map(saved.arrays.get, _SPARSE[1:])
            try:
                x = sparse.csr_array((entries, *places), shape=(sizes.nodes, sizes.features))
                x.check_format(full_check=True)
            except (ValueError, TypeError, IndexError) as error:
                raise UsageError(f"x is not a sparse matrix ({error})") from error
        check_arcs(torch.from_numpy(arcs), sizes.nodes)
        weights = saved.array("weights", arcs.shape[1:]) if "weights" in saved.arrays else None
        if weights is not None and (weights < 0).any():
            raise UsageError("there are arcs with a negative weight")
        attributes = None
        if sizes.described:
            attributes = saved.array("attributes", (arcs.shape[1], len(sizes.described)))
        times = saved.arrays["times"] if sizes.timed else None
        if times is not None and (times.shape != (sizes.nodes,) or times.dtype != np.float64):
            raise UsageError(f"times has shape {list(times.shape)} and type {times.dtype}")
        if y.shape != (sizes.nodes,) or y.dtype != (np.int64 if sizes.classes else np.float64):
            raise UsageError(f"y has shape {list(y.shape)} and type {y.dtype}")
        if sizes.classes and not -1 <= y.min() <= y.max() < sizes.classes:
            raise UsageError(f"y goes from {y.min()} to {y.max()}")
        known = y >= 0 if sizes.classes else ~np.isnan(y)
        if not known.any() or np.isinf(y).any():
            raise UsageError("y has no label, or one that is infinite")
        return Inputs(
            x,
            arcs,
            y,
            of_fit=sizes.nodes,
            directed=sizes.directed,
            weights=weights,
            of_edges=sizes.of_edges,
            attributes=attributes,
            described=sizes.described,
            times=times,
        )

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The adjacency matrix and its products, computed once for all candidates."""
        return Neighbourhood(
            self.arcs,
            self.nodes,
            self.weights,
            self.directed,
            self.times,
            self.attributes,
            self.described,
        )

    def as_received(self) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """All arcs and their weights; with times, from each node to those it may collect from."""
        if self.times is None:
            return self.arcs, self.weights
        both = sparse.coo_array(self.neighbourhood.both)
        arcs = np.stack(both.coords).astype(np.int64)
        return arcs, None if self.weights is None else both.data

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The columns of nodes that are rarely 0."""
        return rarely_zero(
            self.own, None if self.words is None else self.words[: self.own.shape[1]]
        )

    @cached_property
    def all_numbers(self) -> NDArray[np.int64]:
        """The same, with statistics of edges."""
        return rarely_zero(self.x, self.words) if self.of_edges else self.numbers

    @cached_property
    def combinations(self) -> NDArray[np.float32]:
        """Combinations of the columns of nodes, computed once for all views."""
        return combinations(self.own, self.numbers)

    @cached_property
    def all_combinations(self) -> NDArray[np.float32]:
        """The same, with statistics of edges."""
        return combinations(self.x, self.all_numbers) if self.of_edges else self.combinations


@dataclass(frozen=True, eq=False)
class Problem(Inputs):
    """A graph to learn from.

    Attributes:
        objective: Loss, score and kind of target.
        masks: The nodes of each part.
        groups: The group of each node, ``[nodes]``: no part divides one, and each counts once in
            intervals; None if nodes have nothing to do with each other.
        values: The columns with many values that nodes share, and their features.
        places: Pairs of columns that are longitude and latitude; None without any.
        undecided: Whether it is not known if arcs, which are listed once, have a direction.
    """

    objective: Objective
    masks: Masks
    groups: NDArray[Any] | None = field(default=None, kw_only=True)
    values: Mapping[str, Ends] = field(default_factory=dict, kw_only=True)
    places: Places | None = field(default=None, kw_only=True)
    undecided: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_fit", self.nodes)  # it is the graph of fit

    @property
    def splits(self) -> int:
        """The number of splits."""
        return self.masks.train.shape[1]

    @property
    def classes(self) -> int:
        """The number of classes; 0 if numbers are predicted."""
        return 0 if self.y.dtype.kind == "f" else self.objective.outputs(torch.from_numpy(self.y))

    @cached_property
    def has_columns(self) -> bool:
        """Whether nodes have columns that carry information: a constant one stands for none."""
        own = self.own
        return own.shape[1] > 1 or (own.shape[1] == 1 and own.max() > own.min())

    @cached_property
    def ranks_few(self) -> bool:
        """Whether scores are largely luck: a ranking with few validation nodes of one class.

        The best score of many on a handful of nodes says nothing of others. The loss says more.
        """
        if not self.objective.metric.is_ranking:
            return False
        return int(np.bincount(self.y[self.masks.val[:, 0]], minlength=2).min()) < _FEW

    @property
    def classes_count_alike(self) -> bool:
        """Whether each class has the same weight in the score, however many nodes it has."""
        metric = self.objective.metric
        return bool(self.classes) and not (metric.is_mean or metric.is_ranking)

    def known(self, split: int) -> NDArray[Any]:
        """The targets that may be used in a split: those of its training nodes."""
        return self._shown(self.masks.train[:, split])

    @cached_property
    def labelled(self) -> NDArray[np.int64]:
        """The nodes with a target: all parts of all splits are among them."""
        return np.flatnonzero(self.y >= 0 if self.classes else ~np.isnan(self.y))

    @cached_property
    def curves(self) -> tuple[CurveKind, ...]:
        """On which curves the numbers may be learned better; none if they are not skewed."""
        return () if self.classes else curves_for(self.learned)

    @property
    def learned(self) -> NDArray[Any]:
        """The targets of nodes that are training nodes in some split."""
        return self.y[self.masks.train.any(axis=1)]

    def has_words(self, sees: Sees) -> bool:
        """Whether some columns are numbers, and others are words or categories, mostly 0."""
        numbers, words = self._numbers_and_words(sees)
        return numbers > 0 and words > 0

    def has_many_words(self, sees: Sees) -> bool:
        """Whether columns that are mostly 0 are so many that combinations can stand for them."""
        return sparse.issparse(self.x) and self._numbers_and_words(sees)[1] > COMBINED

    def width(self, sees: Sees, columns: OwnColumns = "all") -> int:
        """How many features the columns of the node itself make."""
        numbers, words = self._numbers_and_words(sees)
        return numbers + {"all": words, "numbers": 0, "low-rank": COMBINED}[columns]

    def _numbers_and_words(self, sees: Sees) -> tuple[int, int]:
        if sees == "columns":
            return len(self.numbers), self.own.shape[1] - len(self.numbers)
        return len(self.all_numbers), self.x.shape[1] - len(self.all_numbers)

    @cached_property
    def ways(self) -> tuple[Ways, ...]:
        """How neighbours may be told apart, if that is a choice: at first as little as makes sense.

        Where all edges are listed both ways, and nothing is known of them, there is none.
        """
        first: Ways = "merged" if self.undecided else "sides"
        kinds = any(is_relation for _, is_relation in self.described)
        again = any(name == NUMBER_OF_EDGES for name, _ in self.described)
        return (first, "apart") if self.neighbourhood.directed or kinds or again else (first,)

    def view(
        self,
        sees: Sees,
        means: Means = "all",
        columns: OwnColumns = "all",
        same_values: bool = False,
        extras: Extras = "none",
        ways: Ways = "sides",
    ) -> View:
        """How the features are made that models learn from."""
        key = sees, means, columns, same_values, extras, ways
        if key not in self._views:
            if same_values:  # what all of them have is made once
                plain = self.view(sees, means, columns, extras=extras, ways=ways)
                self._views[key] = replace(plain, values=self.values)
            elif sees in ("rows", "positions"):
                plain = self.view("neighbours", means, columns, extras=extras, ways=ways)
                self._views[key] = plain.seeing(sees, self)
            else:
                plain = View.fit(self, sees, self.classes, means, columns, extras, ways)
                self._views[key] = replace(plain, places=self.places)
        return self._views[key]

    def features(self, sees: Sees, split: int, **options: Any) -> Matrix:
        """The features of the :attr:`labelled` nodes, given the training targets of a split."""
        rows, view = self.labelled, self.view(sees, **options)
        for name, make in (makes := view.shares(self)).items():
            if (name, split) not in self._shares:
                self._shares[name, split] = make(self.known(split), rows=rows)
        return view.with_shares(self, [self._shares[name, split] for name in makes], rows)

    @cached_property
    def _views(self) -> dict[tuple[Sees, Means, OwnColumns, bool, Extras, Ways], View]:
        return {}

    @cached_property
    def on_curves(self) -> dict[CurveKind, tuple[Problem, Curve]]:
        """The problem with heights on a curve as targets, and the curve, as far as made."""
        return {}

    @cached_property
    def _shares(self) -> dict[tuple[Hashable, int], NDArray[np.float32]]:
        return {}

    def score(self, outputs: NDArray[Any], rows: NDArray[Any]) -> float:
        """The score of outputs ``[rows, outputs]`` for some nodes: their numbers, or a mask."""
        return float(self.scores(outputs, rows, np.ones((1, len(outputs)), dtype=bool))[0])

    def scores(
        self, outputs: NDArray[Any], rows: NDArray[Any], parts: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """The scores for parts of these nodes, ``[parts, rows]``: quicker than one by one."""
        said = torch.from_numpy(np.ascontiguousarray(outputs, dtype=np.float32))[None]
        y = torch.from_numpy(self.y[rows])
        scores = [
            self.objective.metric.score(said, y, torch.from_numpy(some)[None].float())[0].numpy()
            for some in np.array_split(parts, -(-parts.size // _AT_ONCE))
        ]
        return np.concatenate(scores).astype(np.float64)

    def for_the_end(self) -> Problem:
        """The problem of the kept models, which learn from every label."""
        masks = self.masks._replace(train=self.masks.end_train, val=self.masks.end_val)
        return self.with_others(masks=masks)

    def with_others(self, **changes: Any) -> Problem:
        """The same graph and targets with other parts, or another objective."""
        problem = replace(self, **changes)
        for name in ("neighbourhood", "labelled", "_views"):  # computed already
            vars(problem)[name] = getattr(self, name)
        return problem

    def with_all_labels(self) -> Inputs:
        """The graph to predict on, with the targets of all nodes that were learned from."""
        learned = (self.masks.end_train | self.masks.end_val).any(axis=1)
        return self._showing(learned, of_fit=self.nodes)

    def with_rows_hidden(self, split: int) -> Inputs:
        """The graph of a split, with its test nodes as if they had come later."""
        learned, test = self.masks.train[:, split], self.masks.test
        return self._showing(learned, of_fit=self.nodes, hidden=test)

    def as_another_graph(self, split: int) -> Inputs:
        """The graph as if it were another one than that of ``fit``, and no label were known."""
        overall = self._showing(self.masks.train[:, split]).overall_shares(self.classes)
        known = self.known(split)
        of_values = ValueLabels.of(self.x, self.values, known, self.classes, self.times)
        return self._showing(False, overall=overall, value_labels=of_values)

    def _showing(self, learned: Any, **more: Any) -> Inputs:
        """The graph with the targets of some nodes."""
        near, names = (
            self.neighbourhood,
            ("weights", "of_edges", "attributes", "described", "times"),
        )
        more |= {"directed": near.directed, **{name: getattr(self, name) for name in names}}
        graph = Inputs(self.x, self.arcs, self._shown(learned), **more)
        vars(graph)["neighbourhood"] = near  # computed already
        return graph

    def _shown(self, nodes: Any) -> NDArray[Any]:
        return np.where(nodes, self.y, np.nan if self.y.dtype.kind == "f" else -1)
