r"""Columns of an edge table become columns of its nodes: statistics of the edges of each node.

Of a number :math:`v_e` these are its mean, least and greatest value over the edges :math:`e` from a
node, and over those to it; of a category, the number of edges with each of its frequent values; and
of a number beside a category of few values, its mean where the category has each of them. Beside
these is the number of all edges, where edges that come again count again. If edges have no
direction, those at either end of a node are taken together. Where a node has no such edge, a number
of edges is 0 and all else is missing. With times, a node has only those edges that it may collect
by (:func:`~memohop.data.arcs.collects`), and their ages count as a number: the time of the node
less that of the edge, or else of its other end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from memohop.data.read_options import Roles
from memohop.data.tables._ngrams import Ngrams
from memohop.data.tables._number_columns import Code, Flag, Number, spelled_codes
from memohop.data.tables._text_columns import Category, Pieces
from memohop.data.tables._time_columns import Time
from memohop.data.tables.arc_attributes import comes_again, fits_in_ram
from memohop.data.tables.cells import Cells
from memohop.data.tables.column import Column, FeatureMatrix
from memohop.data.tables.columns import KINDS, ColumnEncoder, EdgeColumns, fit_columns
from memohop.data.tables.links import EdgeRows, Links, unused
from memohop.data.tables.sources import UnreadTable
from memohop.errors import UsageError
from memohop.outputs import count, listed

VALUES = 20
"""The most values of a category whose edges are counted."""
MOST = 500
"""The most columns of nodes that are made of edges."""
_FEW = 5  # values of a category within which means are taken

Statistic: TypeAlias = Literal["number", "mean", "least", "greatest"]


_Way: TypeAlias = Literal["from", "to", "at"]


_AGE = Number("age at its time", False, False, 0.0, 1.0, None, None)


class _Look(NamedTuple):
    """Statistics that one pass over the edges gives."""

    way: _Way
    statistics: Sequence[Statistic]
    number: Number | Flag | None = None
    category: Category | None = None

    def names(self) -> Iterator[str]:
        """One for each value of the category, and that for each statistic."""
        edges = f"edges {self.way} it"
        if self.number is not None:
            edges = f"{self.number.name} of {edges}"
        for statistic in self.statistics:
            if self.category is None:
                yield f"{edges}: {statistic}"
            else:
                for value in self.category.values:
                    yield f"{edges} where {self.category.name} is {value}: {statistic}"


class EdgeStatistics(NamedTuple):
    """Columns for the nodes, what they are made of, and what is to be told."""

    fitted: EdgeColumns
    made: Mapping[str, pa.Array]
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @classmethod
    def of(
        cls, rows: EdgeRows, links: Links, roles: Roles, encoder: ColumnEncoder | None, nodes: int
    ) -> Self:
        """Those of a graph; with the encoder of an earlier one, the same as there."""
        if encoder is not None:
            made, notes = _statistics(encoder.edges, rows, nodes)
            made = {name: made[name] for name in encoder.edges.made if name in made}
            return cls(encoder.edges, made, notes)
        named = zip(rows.columns.column_names, rows.columns.columns, strict=True)
        kinds = [kind for kind in KINDS if kind not in (Pieces, Ngrams)]  # which have no statistics
        columns, surprises = fit_columns(named, roles.edge_readings, kinds)
        ways: tuple[_Way, ...] = ("at",) if links.listed_both_ways else ("from", "to")
        fitted = EdgeColumns((), ways, time=rows.time, aged=rows.ages is not None)
        for column in columns.columns:
            more = replace(fitted, columns=(*fitted.columns, _with_frequent_values(column)))
            if len(_names(fitted)) < len(_names(more)) <= MOST:
                fitted = more
        made, notes = _statistics(fitted, rows, nodes)
        again = comes_again(rows, links.listed or links, nodes)
        fitted = replace(fitted, on_arcs=bool(fitted.columns), repeated=again)
        if not fits_in_ram(fitted, rows, links):
            number = count(len(fitted.attributes), "attribute")
            surprises.append(
                f"{number} of each of {links.arcs.shape[1]} arcs would be too many, so that these "
                "columns are only used as statistics of nodes; drop some"
            )
            fitted = replace(fitted, on_arcs=False, repeated=False)
        return cls(fitted, made, notes, [f"{roles.edges.name}: {line}" for line in surprises])

    def beside(self, table: pa.Table) -> pa.Table:
        """The node table with these columns."""
        for name, column in self.made.items():
            if name in table.column_names:
                raise UsageError(
                    f"the node table has a column {name!r}, which is how a statistic of a node's "
                    "edges is named; rename it"
                )
            table = table.append_column(name, column)
        return table

    def made_of(self) -> dict[str, list[str]]:
        """The columns of the edge table that each column of the nodes is made of."""
        sources: dict[str, list[str]] = {}
        for look in _looks(self.fitted):
            of = [column.name for column in (look.number, look.category) if column is not None]
            sources |= dict.fromkeys(look.names(), of)
        return {name: sources.get(name, []) for name in self.made}

    def known_to(self, encoder: ColumnEncoder) -> ColumnEncoder:
        """The encoder that was fitted to them, which makes them of later edges too."""
        made = tuple(column.name for column in encoder.columns if column.name in self.made)
        if not (made or self.fitted.attributes):
            return replace(encoder, edges=EdgeColumns(time=self.fitted.time))
        return replace(encoder, edges=replace(self.fitted, made=made))

    def tell_columns(
        self, tables: Sequence[UnreadTable], roles: Roles, *, again: bool
    ) -> list[str]:
        """A line for each edge table on its columns; those of an earlier graph are known."""
        used = [column.name for column in self.fitted.columns]
        made_of = [] if roles.edge_time is None else [roles.edge_time]
        sources = ["the times of both ends"] * (self.fitted.aged and not made_of)
        sources += [listed([*made_of, *used])] * bool(made_of or used)
        lines = []
        for table in tables:
            known = {*roles.of_edges, *roles.dropped, *used}
            more = [name for name in table.columns if name not in known]
            told, first = list[str](), not again and table is tables[0]
            if self.made and first:
                example = next(iter(self.made))
                told.append(
                    f"from {' and '.join(sources)}, {count(len(self.made), 'statistic')} of each "
                    f"node's edges become columns of the node, such as {example!r}"
                )
            apart = self._apart() if first else []
            if apart:
                told.append(f"fit also tries {' and '.join(apart)}")
            counted = bool(used or apart) or roles.weight is not None
            told += unused(more, "column", weighted=counted)
            lines += [f"{table.name}: {'; '.join(told)}"] * bool(told)
        return lines

    def _apart(self) -> list[str]:
        """What models may do with the attributes of arcs."""
        kinds = [
            column.name
            for column in self.fitted.columns
            if self.fitted.on_arcs and isinstance(column, Category | Code)
        ]
        apart = [f"to tell neighbours apart by {listed(kinds)}"] if kinds else []
        return apart + ["to count a neighbour as often as its edge comes"] * self.fitted.repeated


def _statistics(
    fitted: EdgeColumns, edges: EdgeRows, nodes: int
) -> tuple[dict[str, pa.Array], list[str]]:
    """Columns for the nodes, by their names, and notes on values that did not fit."""
    cells = {name: Cells(name, edges.columns[name]) for name in edges.columns.column_names}
    numbers, positions, notes = {}, {}, []
    for column in fitted.columns:
        if isinstance(column, Number | Flag):
            numbers[column.name], told = _values(column, cells[column.name])
            notes += told
        if isinstance(column, Code):
            coded = spelled_codes(cells[column.name].spelled_as(column.spelling))
            positions[column.name] = _positions(column.category, coded)
        elif isinstance(column, Category):
            positions[column.name] = _positions(column, cells[column.name])
    rows = dict(_nodes_of(edges))
    made: dict[str, pa.Array] = {}
    for look in _looks(fitted):
        row, node, ages = rows[look.way]
        parts, values, known = 1, None, None
        if look.category is not None:
            parts, position = len(look.category.values), positions[look.category.name][row]
            node, known = node * parts + position, position >= 0
        if look.number is not None:
            values = ages if look.number is _AGE else numbers[look.number.name][row]
            there = ~np.isnan(values)
            known = there if known is None else known & there
        if known is not None and not known.all():
            node, values = node[known], None if values is None else values[known]
        of_groups = _over(node, values, nodes * parts, look.statistics)
        columns = [
            column for statistic in of_groups for column in statistic.reshape(nodes, parts).T
        ]
        is_time = isinstance(look.number, Time)
        made |= {
            name: _as_times(column) if is_time else pa.array(column, from_pandas=True)
            for name, column in zip(look.names(), columns, strict=True)
        }
    return made, notes


def _nodes_of(edges: EdgeRows) -> Iterator[tuple[_Way, tuple[NDArray[Any], ...]]]:
    """For each way, the rows of edges, the node to which each of them counts, and its age there."""
    source, target = edges.ends
    counts = np.ones(edges.ends.shape, dtype=bool) if edges.counts is None else edges.counts
    ages = np.full(edges.ends.shape, np.nan) if edges.ages is None else edges.ages
    begins, ends = map(np.flatnonzero, counts)
    others = np.flatnonzero(counts[1] & (source != target))  # a loop is at its node once
    of_source = begins, source[begins], ages[0, begins]
    yield "from", of_source
    yield "to", (ends, target[ends], ages[1, ends])
    of_others = others, target[others], ages[1, others]
    yield "at", tuple(map(np.concatenate, zip(of_source, of_others, strict=True)))


def _with_frequent_values(column: Column) -> Column:
    """A category, also that of a code, with the most frequent of its values, and all others."""
    if isinstance(column, Code):
        return replace(column, category=_with_frequent_values(column.category))
    if isinstance(column, Category):
        other = column.other or len(column.values) > VALUES
        return replace(column, values=column.values[:VALUES], other=other)
    return column


def _looks(fitted: EdgeColumns) -> Iterator[_Look]:
    numbers = [column for column in fitted.columns if isinstance(column, Number | Flag)]
    categories = [column for column in fitted.columns if isinstance(column, Category)]
    codes = [column.category for column in fitted.columns if isinstance(column, Code)]
    few = [category for category in categories if len(category.values) <= _FEW]
    for way in fitted.ways if numbers or categories or fitted.aged else ():
        yield _Look(way, ("number",))
        if fitted.aged:
            yield _Look(way, ("mean", "least", "greatest"), _AGE)
            yield from (_Look(way, ("least",), _AGE, category) for category in few)
        for number in numbers:
            is_flag = isinstance(number, Flag)
            yield _Look(way, ("mean",) if is_flag else ("mean", "least", "greatest"), number)
        for category in [*categories, *codes]:
            yield _Look(way, ("number",), None, category)
        for number, category in product(numbers, few):
            yield _Look(way, ("mean",), number, category)


def _names(fitted: EdgeColumns) -> list[str]:
    return [name for look in _looks(fitted) for name in look.names()]


def _values(column: Number | Flag, cells: Cells) -> tuple[NDArray[np.float64], list[str]]:
    """Numbers as they are, and 1 for true; NaN where missing."""
    if isinstance(column, Number):
        return column.values(cells)
    flags = FeatureMatrix(len(cells.column), 1)
    absent, notes = column.fill(cells, flags)
    return np.where(absent, np.nan, flags.finish()[:, 0]), notes


def _positions(category: Category, cells: Cells) -> NDArray[np.int64]:
    """The number of each value in the category, -1 for others and where it is missing."""
    position = pc.index_in(cells.text, value_set=pa.array(category.values, pa.string()))
    return np.asarray(pc.fill_null(position, -1).to_numpy(), dtype=np.int64)


def _over(
    group: NDArray[np.int64],
    values: NDArray[np.float64] | None,
    groups: int,
    statistics: Sequence[Statistic],
) -> list[NDArray[np.float64]]:
    """Statistics of the values of each group; all but the number are NaN where there is none."""
    number = np.bincount(group, minlength=groups)
    if values is None:
        return [number.astype(np.float64)]
    empty = number == 0
    made: list[NDArray[np.float64]] = []
    for statistic in statistics:
        if statistic == "mean":
            zero = values[0] if values.size else 0.0  # the mean of equal values is that value
            sums = np.bincount(group, values - zero, minlength=groups).astype(np.float64)
            of_groups = sums / np.maximum(number, 1) + zero
        else:
            extreme = np.minimum if statistic == "least" else np.maximum
            of_groups = np.full(groups, np.inf if statistic == "least" else -np.inf)
            extreme.at(of_groups, group, values)
        of_groups[empty] = np.nan
        made.append(of_groups)
    return made


def _as_times(seconds: NDArray[np.float64]) -> pa.Array:
    absent = np.isnan(seconds)
    return pa.array(np.where(absent, 0, seconds).astype(np.int64), pa.timestamp("s"), mask=absent)
