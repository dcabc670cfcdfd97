r"""What models learn from: a node's columns, its neighbours, its row of the graph.

Linear models take the row itself, one feature for each possible neighbour. Trees need few features,
so they take its position (:mod:`memohop.fit._positions`). Both may also see extras: what structure
says (:mod:`memohop.fit._structure`), with positions from the other end of the spectrum; and, beside
the means of numbers over the neighbours, their extremes and spread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from memohop.errors import MemohopWarning, UsageError, check_choice
from memohop.fit._features import Feature, side_by_side
from memohop.fit._neighbourhood import (
    EVERY,
    MERGED,
    Matrix,
    Neighbourhood,
    Rows,
    Way,
    as_numbers,
    ways_from,
)
from memohop.fit._places import Places, checked_places, points
from memohop.fit._positions import OTHER_END, basis_of, positions
from memohop.fit._saved import Saved, Sizes
from memohop.fit._values import Ends, value_shares

if TYPE_CHECKING:
    from memohop.fit._graph import Inputs

Sees = Literal["columns", "neighbours", "rows", "positions"]
"""A node's own columns; also its edges' and its neighbours'; also who these are, in two ways."""

Means = Literal["all", "numbers", "none"]
"""The columns whose means over the neighbours are features: all, those that are rarely 0, or none.

Means of words and of categories with many values are many features that say little each: trees
often do better without them. Where a neighbour's label says most, those of numbers are in the way.
"""

OwnColumns = Literal["all", "numbers", "low-rank"]
"""Columns of the node itself: all, those that are rarely 0, or these and combinations of others.

Among thousands of words, some numbers are rarely looked at by trees, which try features at random,
or one by one.
"""

Ways = Literal["merged", "sides", "apart"]
"""How neighbours are told apart: not at all; labels and degrees by the side that their arcs are on,
if arcs have a direction; or these and means of numbers by side and relation."""

Extras = Literal["none", "structure", "spread", "both"]
"""What else of the graph is seen: its structure; extremes and spread of numbers; or both."""

_WIDE = 256  # from this many columns on, two hops (and one, if dense) are combined
COMBINED = 64
"""How many combinations stand for all columns that are mostly 0."""
_OFTEN = 0.2  # share of nodes in which a column is not 0, for it to stay by itself
_SPREAD: tuple[Literal["least", "greatest", "spread"], ...] = ("least", "greatest", "spread")
_HOPS: tuple[Literal["one hop", "two hops"], ...] = ("one hop", "two hops")
_ENTRIES = 30_000_000  # the most in one-hop means of sparse columns that stay separate


Structure = Literal["none", "quick", "whole"]
"""How much of the structure is seen: nothing, all but triangles and longer walks, or all."""


@dataclass(frozen=True, eq=False)
class View:
    r"""How features are made, for one graph and for others.

    Attributes:
        sees: The features that a model uses.
        classes: The number of classes; 0 for numbers.
        nodes: The number of nodes of the graph that the rows belong to.
        columns: The combinations ``[combined, features]`` that stand for the columns of the node; a
            column that stays by itself is one of them. None for all columns as they are.
        components: The combinations of which means over the neighbours are taken.
        one_hop_apart: Whether the means over one hop are of the columns themselves.
        basis: For positions, :math:`\mathbf{D}^{-1/2} \mathbf{V}` of each direction side by side.
        places: Longitudes and latitudes, which become points on a sphere.
        values: The columns of which nodes with the same value share labels, and the first and the
            last but one of their features.
        structure: How much of the structure is seen.
        spread_of: The columns of which extremes and spread over the neighbours are seen.
        ways: Whom a node collects from, first all neighbours.
        apart: The columns whose means are taken over one hop of each of the other ways.
    """

    sees: Sees
    classes: int
    nodes: int
    columns: NDArray[np.float32] | None = None
    components: NDArray[np.float32] | None = None
    one_hop_apart: bool = True
    basis: NDArray[np.float32] | None = None
    values: Mapping[str, Ends] = field(default_factory=dict)
    structure: Structure = "none"
    spread_of: NDArray[np.int64] | None = None
    places: Places | None = None
    ways: tuple[Way, ...] = (MERGED,)
    apart: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _made: list[tuple[Neighbourhood, Rows, Matrix]] = field(default_factory=list, repr=False)

    @property
    def needs_whole_graph(self) -> bool:
        """Whether a block of the graph, with what it can fetch from the others, is too little."""
        return self.structure != "none" or self.spread_of is not None

    @classmethod
    def fit(
        cls,
        inputs: Inputs,
        sees: Sees,
        classes: int,
        means: Means = "all",
        columns: OwnColumns = "all",
        extras: Extras = "none",
        ways: Ways = "sides",
    ) -> View:
        """Make the view of a graph; means are of no columns that it leaves out or combines."""
        x, rare, few = inputs.x, inputs.all_numbers, lambda: inputs.all_combinations
        if sees == "columns":
            x, rare, few = inputs.own, inputs.numbers, lambda: inputs.combinations
        nodes, width = x.shape
        stand_ins: NDArray[np.float32] | None = None
        if columns != "all":
            stand_ins = few() if columns == "low-rank" else _alone(rare, width)
        components, apart = stand_ins, columns == "all"
        if means != "all":
            rare = rare if means == "numbers" else rare[:0]
            components, apart = _alone(rare, width), False
        elif columns == "all" and sees != "columns" and width > _WIDE:
            degrees = inputs.neighbourhood.both.sum(axis=1)
            components = few()
            apart = sparse.issparse(x) and float(degrees @ np.diff(x.indptr)) < _ENTRIES
        structure: Structure = "none"
        if extras in ("structure", "both"):
            structure = "whole" if inputs.neighbourhood.has_few_triangles else "quick"
            if structure == "quick":
                warnings.warn(
                    "the graph is too dense to count triangles: what its structure says is "
                    "without them, without clustering, and without walks of three and four steps",
                    MemohopWarning,
                    stacklevel=2,
                )
        spread_of = inputs.all_numbers if extras in ("spread", "both") else None
        view = cls(sees, classes, nodes, stand_ins, components, apart)
        view = replace(view, structure=structure, spread_of=spread_of)
        if ways == "sides":
            view = replace(view, ways=inputs.neighbourhood.ways)
        elif ways == "apart":
            of_all = inputs.neighbourhood.ways_apart(classes, len(rare))
            view = replace(view, ways=of_all, apart=rare)
        return view.seeing(sees, inputs)

    def seeing(self, sees: Sees, inputs: Inputs) -> View:
        """The view of the same graph with other features, for what both have alike."""
        other = replace(self, sees=sees)
        basis = basis_of(other._ends(inputs), inputs.nodes) if sees == "positions" else None
        return replace(other, basis=basis)

    def features(self, inputs: Inputs, known: NDArray[Any]) -> Matrix:
        """The features of every node, given the targets that may be used."""
        return self.with_shares(inputs, [make(known) for make in self.shares(inputs).values()])

    def shares(self, inputs: Inputs) -> dict[Hashable, Callable[..., NDArray[np.float32]]]:
        """What makes shares of labels, given the targets that may be used (and ``rows``)."""
        told: dict[str, Any] = {"classes": self.classes, "overall": inputs.overall}
        makes: dict[Hashable, Callable[..., NDArray[np.float32]]] = {}
        if self.sees != "columns":
            along = partial(inputs.neighbourhood.label_shares, ways=self.ways)
            makes[self.ways] = partial(along, **told)
        if self.values:
            told |= {"columns": self.values, "of_fit": inputs.value_labels, "times": inputs.times}
            makes["values"] = partial(value_shares, inputs.x, **told)
        return makes

    def own_columns(self, inputs: Inputs, rows: Rows = EVERY) -> Matrix:
        """What some nodes say of themselves."""
        x = inputs.own if self.sees == "columns" else inputs.x
        x = x if rows is EVERY else x[rows]
        # Of sparse columns, the sum of a row is the same wherever it stands.
        own = x if self.columns is None else sparse.csr_array(x) @ self.columns.T
        return own if self.places is None else side_by_side([own, points(x, self.places)])

    def with_shares(
        self, inputs: Inputs, shares: Sequence[NDArray[np.float32]], rows: Rows = EVERY
    ) -> Matrix:
        """The features of some nodes, with shares of labels: of neighbours, and of values."""
        if self.sees == "columns":
            x = self.own_columns(inputs, rows)
            return side_by_side([x, *shares]) if shares else x
        parts = [self._without_labels(inputs, rows), *shares]
        if self.sees == "rows":
            parts.append(self._rows(inputs)[rows])
        if self.basis is not None:
            parts.append(positions(inputs, self._ends(inputs), self.basis, rows))
        return side_by_side(parts)

    def names(self, inputs: Inputs, columns: Sequence[str]) -> list[Feature]:
        """The meaning of each feature, given the names of the columns."""
        own = inputs.own.shape[1]
        named = [Feature("own", name) for name in columns[:own]]
        if self.sees != "columns":
            named += [Feature("edges", name) for name in columns[own:]]
        names = [
            named[row] if isinstance(row, int) else Feature("own", row)
            for row in _stood_for(self.columns, len(named))
        ]
        for longitude, latitude in [] if self.places is None else self.places[:, :, 0].astype(int):
            names += [named[at] for at in (longitude, longitude, latitude)]
        each = max(self.classes, 1) + 1  # the shares or the mean, and the number of labels
        of_values = [Feature("values", name) for name in self.values for _ in range(each)]
        if self.sees == "columns":
            return names + of_values
        few = [
            columns[row] if isinstance(row, int) else row
            for row in _stood_for(self.components, len(columns))
        ]
        ways = [way.named(inputs.described) for way in self.ways]
        names += [Feature("degree", f"{way}degree") for way in ways]
        names += [Feature(hop, name) for hop in _HOPS for name in few]
        if self.components is not None and self.one_hop_apart:
            names += [Feature("one hop", name) for name in columns]
        names += [Feature("one hop", columns[i]) for _ in ways[1:] for i in self.apart]
        if self.spread_of is not None:
            numbers = [columns[column] for column in self.spread_of]
            names += [Feature(kind, name) for kind in _SPREAD for name in numbers]
        names += [Feature("structure", name) for name in self._structure(inputs)]
        names += [
            Feature("labels", f"{name}{hop}")
            for name, way in zip(ways, self.ways, strict=True)
            for hop in (_HOPS if way.attribute is None else _HOPS[:1])
            for _ in range(each)
        ]
        names += of_values
        if self.sees == "rows":
            names += [Feature("rows", f"{node}") for node in range(self.nodes)]
        if self.basis is not None:
            ends = self._ends(inputs)
            every = range(1, self.basis.shape[1] // len(ends) + 1)
            names += [Feature("position", f"{end}{number}") for end in ends for number in every]
        return names

    def _without_labels(self, inputs: Inputs, rows: Rows) -> Matrix:
        """The same for all splits, so kept, but for one graph only: they may be large."""
        near, x = inputs.neighbourhood, inputs.x
        for of_graph, of_rows, made in self._made:
            if of_graph is near and of_rows is rows:
                return made
        few: Matrix = x if self.components is None else x @ self.components.T
        if sparse.issparse(few):
            few = few.toarray()
        one_hop = near.mean(few)
        own, degrees = self.own_columns(inputs, rows), near.degrees(self.ways)
        parts = [own, degrees[rows], one_hop[rows], near.mean(one_hop, rows)]
        if self.components is not None and self.one_hop_apart:
            parts.append(near.mean(x, rows))
        if self.apart.size:
            numbers = x[:, self.apart]
            numbers = numbers.toarray() if sparse.issparse(numbers) else numbers
            parts += [near.mean(numbers, rows, way) for way in self.ways[1:]]
        if self.spread_of is not None:
            parts.append(near.spread(x[:, self.spread_of], rows))
        if told := self._structure(inputs):
            parts.append(np.stack([*told.values()], axis=1)[rows].astype(np.float32))
        self._made[:] = [(near, rows, side_by_side(parts))]
        return self._made[0][2]

    def _structure(self, inputs: Inputs) -> dict[str, NDArray[np.float64]]:
        """What is seen of it, by name."""
        if self.structure == "none":
            return {}
        return inputs.neighbourhood.structure(triangles=self.structure == "whole")

    def _ends(self, inputs: Inputs) -> dict[str, sparse.csr_array]:
        """The matrices that positions are made of."""
        near = inputs.neighbourhood
        ends = {way.named(()): near.matrix(way) for way in _sides(self.ways)}
        return ends if self.structure == "none" else {**ends, OTHER_END: near.both}

    def _rows(self, inputs: Inputs) -> Matrix:
        if inputs.of_fit != self.nodes:  # another graph: its rows are unknown
            return sparse.csr_array((inputs.nodes, self.nodes), dtype=np.float32)
        rows = inputs.neighbourhood.both[:, : self.nodes]  # arcs to later nodes have no feature
        if inputs.hidden is None:
            return rows
        return sparse.csr_array(rows @ sparse.diags_array((~inputs.hidden).astype(np.float32)))

    def saved(self) -> Saved:
        """What :meth:`from_saved` needs."""
        names = ("sees", "one_hop_apart", "values", "structure")
        about = {name: getattr(self, name) for name in names}
        stored = ("columns", "components", "basis", "spread_of", "places", "apart")
        arrays = {name: getattr(self, name) for name in stored} | {"ways": as_numbers(self.ways)}
        return Saved(about, {name: value for name, value in arrays.items() if value is not None})

    @classmethod
    def from_saved(cls, saved: Saved, sizes: Sizes) -> View:
        """The view that was saved."""
        check_choice("sees", sees := saved.value("sees", str), get_args(Sees))
        check_choice("structure", structure := saved.value("structure", str), get_args(Structure))
        basis = saved.array("basis", (sizes.nodes, None)) if sees == "positions" else None
        ways = ways_from(saved.array("ways", (None, 2), np.int64), sizes)
        ends = len(_sides(ways)) + (structure != "none")
        if basis is not None and basis.shape[1] % ends:
            raise UsageError(f"positions have {basis.shape[1]} numbers of {ends} kinds")
        width = sizes.features - (sizes.of_edges if sees == "columns" else 0)
        columns, components = (
            saved.array(name, (None, width)) if name in saved.arrays else None
            for name in ("columns", "components")
        )
        values = saved.value("values", dict)
        ends = [0, *(end for pair in values.values() for end in pair), sizes.features]
        if ends != sorted(ends) or any(first == end for first, end in values.values()):
            raise UsageError(f"values={values} are not the features of columns")
        spread_of = saved.arrays.get("spread_of")
        if spread_of is not None:
            spread_of = saved.array("spread_of", (None,), np.int64)
            if not np.isin(spread_of, np.arange(sizes.features)).all():
                raise UsageError("a view has the spread of columns that are not there")
        places = None
        if "places" in saved.arrays:
            places = checked_places(saved.array("places", (None, 2, 4), np.float64), width)
        alone = saved.array("apart", (None,), np.int64)
        if alone.size and not 0 <= alone.min() <= alone.max() < sizes.features:
            raise UsageError("a view has means of columns that are not there")
        return cls(
            sees,
            sizes.classes,
            sizes.nodes,
            columns,
            components,
            saved.value("one_hop_apart", bool),
            basis,
            values,
            structure,
            spread_of,
            places,
            ways,
            alone,
        )


def _sides(ways: Sequence[Way]) -> list[Way]:
    """The ways that positions are made of: either side, or all neighbours."""
    sides = [way for way in ways if way.attribute is None]
    return sides[1:] or sides


def rarely_zero(x: Matrix, words: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """The columns that are rarely 0, but for words; none if they are very many."""
    filled = np.asarray((x != 0).sum(axis=0)).ravel() / x.shape[0]
    if words is not None:
        filled = np.where(words, 0, filled)
    often = np.flatnonzero(filled >= _OFTEN)
    return often if len(often) <= _WIDE / 2 else often[:0]


def _alone(columns: NDArray[np.int64], width: int) -> NDArray[np.float32]:
    """Combinations of one column each, ``[columns, width]``."""
    alone = np.zeros((len(columns), width), dtype=np.float32)
    alone[np.arange(len(columns)), columns] = 1
    return alone


def combinations(x: Matrix, often: NDArray[np.int64]) -> NDArray[np.float32]:
    """Combinations of many columns: those that are rarely 0 by themselves, and a few of the others.

    A table may have some numbers beside thousands of words: means of the numbers are worth more
    than those of words, and must not drown in them.
    """
    others = np.ones(x.shape[1], dtype=np.float32)
    others[often] = 0
    count = min(COMBINED, *(size - 1 for size in x.shape))
    rest = x @ sparse.diags_array(others) if sparse.issparse(x) else x * others
    svd = TruncatedSVD(count, random_state=0).fit(rest)
    return np.vstack([_alone(often, x.shape[1]), svd.components_]).astype(np.float32)


def _stood_for(combined: NDArray[np.float32] | None, columns: int) -> list[int | str]:
    """The number of each column that stays by itself, and what combinations are called."""
    if combined is None:
        return [*range(columns)]
    alone = (np.count_nonzero(combined, axis=1) == 1) & (combined.max(axis=1) == 1)
    first = combined.argmax(axis=1).tolist()
    return [at if alone[row] else f"combination {row + 1}" for row, at in enumerate(first)]
