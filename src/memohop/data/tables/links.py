"""From ids to positions: the ids of a node table, and the edges that name them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.types import is_temporal

from memohop.data.arcs import LARGEST_WEIGHT, collects, merge_arcs
from memohop.data.read_options import ReadOptions, Roles, spelled
from memohop.data.tables.cells import Cells, as_text, whole_as_text
from memohop.data.tables.sources import UnreadTable
from memohop.data.tables.spelling import NumberSpelling
from memohop.data.tables.times import TimeColumn, tell_order
from memohop.errors import DataError
from memohop.outputs import first_few, listed

_SHOWN = 5  # ids that an error names
EXTRAS = ((r"^0+([0-9])", r"\1"), (r"^([0-9]+)\.0+$", r"\1"))
"""What a number may have more than another spelling of it, and what is kept."""
_FEW = 0.05  # share of edges that may be listed both ways, or not, by accident


class EdgeRows(NamedTuple):
    """Those columns of edge tables that may describe nodes, and the positions of both ends."""

    columns: pa.Table
    ends: NDArray[np.int64]  # [2, rows]
    time: TimeColumn | None = None  # of the edge table
    counts: NDArray[np.bool_] | None = None  # at which ends an edge does, [2, rows]; or at both
    ages: NDArray[np.float64] | None = None  # at the times of its ends, [2, rows]


class Links(NamedTuple):
    """Arcs between positions, what was done to the edges, and what was left out."""

    arcs: NDArray[np.int64]  # [2, arcs], every arc once
    weight: NDArray[np.float32] | None = None  # of each arc
    attributes: NDArray[np.float32] | None = None  # [arcs, attributes]
    directed: bool = False  # whether an edge is one arc, or one each way
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    listed_both_ways: bool = False  # or said to have no direction
    listed: Links | None = None  # with directions, where edges are listed once and may have one

    @classmethod
    def of(
        cls,
        ends: NDArray[np.int64],
        weight: NDArray[np.float64] | None,
        *,
        nodes: int,
        directed: bool | None,
    ) -> Links:
        """The arcs of edges; of those that come several times, the weights add up.

        Without a direction, an edge that is listed both ways has the sum of the weights, unless all
        are listed so with equal weights, as in a symmetric matrix. If ``directed`` is None, the
        edges decide whether they have one; if they are listed once, so that they do not tell, there
        are the arcs with directions, too.
        """
        begin, end = ends
        ways = [both for both in (False, True) if directed in (None, not both)]
        merged = [merge_arcs(begin, end, nodes=nodes, both_ways=both) for both in ways]
        arcs, told, listed = merged[-1], list[str](), None
        loops = int((arcs[0] == arcs[1]).sum())
        both = directed is False
        if directed is None:
            counts = [way.shape[1] - loops for way in merged]
            directed, note = direction_of(*counts, keeps_both=True)
            both = share_both_ways(*counts) >= 1 - _FEW
            arcs, told = merged[not directed], [note]
            if not (directed or both):
                listed = cls.of(ends, weight, nodes=nodes, directed=True)
        span = None if weight is None or not weight.size else (weight.min(), weight.max())
        edges = arcs.shape[1] if directed else (arcs.shape[1] + loops) // 2
        notes = describe_edges(edges, len(begin), loops, span, directed=directed)
        if weight is None:
            return cls(arcs, None, None, directed, notes, told, both, listed)
        sums = totals(arcs, ends, weight, nodes=nodes, directed=directed)
        return cls(arcs, sums.astype(np.float32), None, directed, notes, told, both, listed)


def totals(
    arcs: NDArray[np.int64],
    ends: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    nodes: int,
    directed: bool,
) -> NDArray[np.float64]:
    """The sum of the weights of each arc's edges, or their number.

    Without a direction both arcs of a pair have that of either, unless all edges are listed both
    ways with equal sums, as in a symmetric matrix.
    """
    keys, (begin, end) = arcs[0] * nodes + arcs[1], ends

    def total(keys_of_edges: NDArray[np.int64]) -> NDArray[np.float64]:
        index = np.searchsorted(keys, keys_of_edges)
        return np.bincount(index, weight, minlength=len(keys)).astype(np.float64)

    sums = total(begin * nodes + end)
    if not directed:
        back = total(end * nodes + begin)
        if not np.array_equal(sums, back):
            sums += np.where(arcs[0] == arcs[1], 0, back)
    return sums


def describe_edges(
    edges: int, rows: int, loops: int, weights: tuple[float, float] | None, *, directed: bool
) -> list[str]:
    """What became of the rows of edge tables, with the least and the largest weight."""
    notes = [] if weights is None else [f"weights of edges from {weights[0]:g} to {weights[1]:g}"]
    if repeated := rows - edges:
        again = "" if directed else ", the other way round included"
        effect = "each counts once" if weights is None else "their weights add up"
        notes.append(f"{repeated} edge(s) come again{again}; {effect}")
    if loops:
        notes.append(f"{loops} edge(s) from a node to itself, kept")
    return [*notes, f"{edges} edges, {'one arc for each' if directed else 'one arc each way'}"]


def node_ids(column: pa.ChunkedArray, name: str, table: str) -> pa.Array:
    """The ids in column ``name`` of a node table as strings, each one there once."""
    wrong = f"{table}, column {name!r}: ids must be strings or whole numbers"
    ids = whole_as_text(column, wrong).combine_chunks()
    empty = np.flatnonzero(pc.fill_null(pc.equal(ids, ""), True).to_numpy(zero_copy_only=False))
    if empty.size:
        raise DataError(
            f"{table}: column {name!r} has no id in row {empty[0] + 1} ({empty.size} such row(s) "
            "in all); give every node an id, or name another column as the id"
        )
    values, times = pc.value_counts(ids).flatten()
    if len(values) < len(ids):
        twice = [repr(value) for value in values.filter(pc.greater(times, 1)).to_pylist()]
        raise DataError(
            f"{table}: {len(twice)} id(s) in column {name!r} come more than once, such as "
            f"{first_few(twice)}; keep one row for each node, or name another column as the id"
        )
    return ids


def read_edges(
    tables: Sequence[UnreadTable],
    roles: Roles,
    ids: pa.Array,
    options: ReadOptions,
    times: NDArray[np.float64] | None = None,
) -> tuple[Links, EdgeRows]:
    """The edges of tables between the positions of the ids, which may have times."""
    located, weights, columns, warnings = zip(
        *(_located(table, roles, ids, options) for table in tables),
        strict=True,
    )
    rows, told = EdgeRows(_one_table(columns), np.concatenate(located, axis=1)), list[str]()
    weight = None if roles.weight is None else np.concatenate(weights)
    if times is not None:
        rows, kept, told = _in_time(rows, times, roles, options)
        weight = None if weight is None else weight[kept]
    links = Links.of(rows.ends, weight, nodes=len(ids), directed=options.directed)
    return links._replace(warnings=[*chain(*warnings), *links.warnings, *told]), rows


def _in_time(
    rows: EdgeRows, times: NDArray[np.float64], roles: Roles, options: ReadOptions
) -> tuple[EdgeRows, NDArray[np.bool_], list[str]]:
    """The edges without those that are too late for both ends, which are kept, and a line."""
    columns, ends, time, since = rows.columns, rows.ends, None, None
    if (name := roles.edge_time) is not None:
        known = None if options.encoder is None else options.encoder.edges.time
        time = known or TimeColumn.fit(Cells(name, columns[name]))
        since = time.read(columns[name], "edge time")
        columns = columns.drop_columns([name])
    counts, ever = collects(ends, times, since), np.logical_or(*collects(ends, times))
    late = ever > counts.any(axis=0)
    told, kept = [tell_order(str(roles.time), ~ever, late)], ~late
    if columns.num_columns:  # without, it has no rows
        columns = columns.filter(pa.array(kept))
    began = times[ends[::-1]] if since is None else since
    ages = (times[ends] - began)[:, kept]
    return EdgeRows(columns, ends[:, kept], time, counts[:, kept], ages), kept, told


def _one_table(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables; a column that is of several types becomes one of strings."""

    def column(name: str) -> pa.ChunkedArray:
        parts = [table.select([name]) for table in tables]
        try:
            return pa.concat_tables(parts, promote_options="permissive")[name]
        except pa.ArrowException:
            return pa.chunked_array(
                [chunk for part in parts for chunk in as_text(part[name]).chunks]
            )

    return pa.table({name: column(name) for name in tables[0].column_names})


def _located(
    unread: UnreadTable, roles: Roles, ids: pa.Array, options: ReadOptions
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None, pa.Table, list[str]]:
    """Positions of both ends, weights if there are some, columns on nodes, and warnings."""
    name, weight = unread.name, roles.weight
    fitted = () if options.encoder is None else options.encoder.edges.columns
    verbatim = [column.name for column in fitted if column.verbatim]
    text = [*roles.ends, *spelled(roles.edge_readings), *verbatim]
    table = unread.read([*roles.of_edges, *roles.edge_columns], text=text)
    check_header(roles.ends, ids, name)
    warnings = [*unread.warnings]
    wrong = f"{name}: ids must be strings or whole numbers"
    columns = [whole_as_text(table[end], wrong) for end in roles.ends]
    ends = pa.chunked_array([part for column in columns for part in column.chunks])
    positions = pc.fill_null(pc.index_in(ends, value_set=ids), -1).to_numpy().reshape(2, -1)
    known = (positions >= 0).all(axis=0)
    if unknown := len(known) - int(known.sum()):
        rows: dict[str, int] = {}  # the first of each unknown id
        for row, side in np.argwhere(positions.T < 0)[: 40 * _SHOWN].tolist():
            rows.setdefault(columns[side][row].as_py(), row + 1)
        named = ", ".join(f"{value!r} (row {row})" for value, row in [*rows.items()][:_SHOWN])
        named += spelled_otherwise(ends.filter(pa.array(positions.ravel() < 0)).unique(), ids)
        warnings += tell_unknown(
            name, unknown, len(known), named, drop_unknown=options.drop_unknown
        )
    weights = None if weight is None else edge_weights(table[weight], weight, name)[known]
    more = [] if roles.edge_time is None else [roles.edge_time]
    columns = table.select([*roles.edge_columns, *more]).filter(pa.array(known))
    return positions[:, known].astype(np.int64), weights, columns, warnings


def check_header(ends: list[str], ids: pa.Array, table: str) -> None:
    """Refuse an edge table with an edge on its first line, where its column names should be."""
    if pc.all(pc.is_in(pa.array(ends), value_set=ids)).as_py():
        raise DataError(
            f"the first line of {table} is an edge, from {ends[0]!r} to {ends[1]!r}, and not "
            "the names of the columns; add a line such as source,target"
        )


def unused(names: list[str], noun: str, prefix: str = "", *, weighted: bool = False) -> list[str]:
    """A warning if edges have more columns or attributes than are read."""
    alike = "" if weighted else "every edge counts alike; "
    return [f"{prefix}{alike}not used: {listed(names, noun)}"] if names else []


def tell_unknown(
    name: str, unknown: int, edges: int, named: str, *, drop_unknown: bool
) -> list[str]:
    """A warning on edges that are dropped, which may not be all; or a :class:`DataError`."""
    if drop_unknown and unknown < edges:
        return [f"{unknown} edge(s) dropped that name unknown nodes, such as {named}"]
    drop = ", or drop these edges (drop_unknown=True, --drop-unknown)" * (unknown < edges)
    raise DataError(
        f"{name}: {unknown} of {edges} edges name a node that is not in the node table, such as "
        f"{named}; correct the ids{drop}"
    )


def spelled_otherwise(unknown: pa.Array, ids: pa.Array) -> str:
    """How unknown ids would be known: in text files, 007 and 7.0 are not 7.

    It is an addition to a message, with an example; nothing unless half of the ids, or more, would
    be known without leading zeros, a trailing .0 and spaces on either side.
    """
    unknown = unknown.drop_null().cast(pa.string())
    index = pc.index_in(_bare(unknown), value_set=_bare(ids))
    if index.null_count * 2 > len(index) or index.null_count == len(index):
        return ""
    first = int(np.flatnonzero(index.is_valid().to_numpy(zero_copy_only=False))[0])
    ours, theirs = unknown[first].as_py(), ids[index[first].as_py()].as_py()
    number = len(index) - index.null_count
    return (
        f" (without leading zeros, a trailing .0 and spaces, {number} of {len(index)} unknown ids "
        f"would be known, {ours!r} as {theirs!r}: spell them alike in both tables)"
    )


def _bare(ids: pa.Array) -> pa.Array:
    ids = pc.utf8_trim_whitespace(ids)
    for pattern, kept in EXTRAS:
        ids = pc.replace_substring_regex(ids, pattern, kept)
    return ids


def share_both_ways(listed: int, either: int) -> float:
    """The share of arcs whose opposite is listed too."""
    return (2 * listed - either) / max(listed, 1)


def direction_of(listed: int, either: int, *, keeps_both: bool = False) -> tuple[bool, str]:
    """Whether edges have a direction, and why, from how many arcs there are as listed, each once,
    without self-loops, and from their number with all opposites.

    It is told if arcs with directions are kept, too, where edges are listed once.
    """
    share = share_both_ways(listed, either)
    if share >= 1 - _FEW:
        return False, "edges are listed both ways, so they have no direction"
    if share > _FEW:
        return True, (
            f"{share:.0%} of the edges are listed the other way round too, so edges have a "
            "direction; directed=False ignores it"
        )
    tries = ", but fit tries both" * keeps_both
    return False, (
        f"edges are listed once, and taken to have no direction{tries} "
        "(directed=True, --directed or directed=False, --undirected decides)"
    )


def edge_weights(
    column: pa.ChunkedArray, name: str, table: str, *, before: int | None = None
) -> NDArray[np.float64]:
    """The weights of a table's edges; one that cannot be a weight is a :class:`DataError`.

    If the column is a part of one, ``before`` counts the rows that came before.
    """
    cells = Cells(name, column)
    if cells.stored not in ("text", "number") or is_temporal(column.type):
        raise DataError(
            f"{table}: column {name!r} holds no weights, but {column.type}; give numbers"
        )
    if cells.stored == "text":  # a part of a column cannot tell what its commas or units are
        cells = cells.spelled_as(NumberSpelling("%" if cells.unit == "%" else ""))
    values = np.asarray(cells.spelled.cast(pa.float64(), safe=False).to_numpy())
    wrong = np.flatnonzero(~(values >= 0) | (values > LARGEST_WEIGHT))
    if wrong.size:
        row = int(wrong[0])
        cell = cells.text[row].as_py()
        what = "no weight" if cell is None else f"the weight {cell!r}"
        in_all = f" ({wrong.size} such row(s) in all)" if before is None else ""
        raise DataError(
            f"{table}: column {name!r} has {what} in row {row + 1 + (before or 0)}{in_all}; give "
            f"every edge a number from 0 to {LARGEST_WEIGHT:g}"
        )
    return values
