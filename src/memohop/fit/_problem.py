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

from memohop.data.arcs import NUMBER_OF_EDGES
from memohop.data.folds import Masks
from memohop.fit._curve import Curve, CurveKind, curves_for
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import Matrix
from memohop.fit._places import Places
from memohop.fit._values import Ends, ValueLabels
from memohop.fit._views import (
    COMBINED,
    Extras,
    Means,
    OwnColumns,
    Sees,
    View,
    Ways,
)
from memohop.training.objective import Objective

if TYPE_CHECKING:
    pass

Outputs = NDArray[np.float32]
"""Probabilities ``[rows, classes]``, or the predicted numbers ``[rows, 1]``."""

_FEW = 50  # validation nodes of the rarer class
_AT_ONCE = 5_000_000  # nodes, all parts together, that are scored at once


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
