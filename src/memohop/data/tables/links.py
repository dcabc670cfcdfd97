"""From ids to positions: the ids of a node table, and the edges that name them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.assemble import merge_arcs
from memohop.data.tables.column_kinds import first_few
from memohop.data.tables.column_types import spelled_whole, whole_as_text
from memohop.errors import DataError

_SHOWN = 5  # ids that an error names


class Links(NamedTuple):
    """Arcs between positions, how they were found, and warnings about what was left out."""

    arcs: NDArray[np.int64]
    notes: list[str]
    warnings: list[str]


def node_ids(column: pa.ChunkedArray, name: str, table: str) -> pa.Array:
    """The ids in column ``name`` of a node table as strings, each one there once."""
    ids = _spelled(column, f"{table}, column {name!r}").combine_chunks()
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


def plain_ids(ids: pa.Array) -> NDArray[Any]:
    """The ids as users know them: whole numbers if all are, and strings otherwise."""
    if spelled_whole(ids):
        return np.asarray(ids.cast(pa.int64()).to_numpy())
    return np.asarray(ids.to_numpy(zero_copy_only=False))


def id_array(ids: Iterable[Hashable]) -> NDArray[Any]:
    """Ids as an array: ``int64`` if all are whole numbers, and objects otherwise.

    A string array of NumPy gives each string the room of the longest, and would turn a tuple into
    a row.
    """
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    whole = all(type(name) is int and abs(name) < 2**63 for name in names)
    return np.fromiter(names, dtype=np.int64 if whole else object, count=len(names))


def link(
    source: pa.ChunkedArray,
    target: pa.ChunkedArray,
    ids: pa.Array,
    *,
    directed: bool,
    drop_unknown: bool,
    table: str,
) -> Links:
    """Arcs between the positions of the ids, every arc once.

    Args:
        source: The id at which each edge begins.
        target: The id at which it ends.
        ids: All known ids.
        directed: Whether an edge is one arc, or one each way.
        drop_unknown: Leave out edges that name an unknown id, instead of a :class:`DataError`.
        table: What errors call the table of edges.
    """
    ends = [_spelled(column, table) for column in (source, target)]
    positions = [pc.fill_null(pc.index_in(end, value_set=ids), -1).to_numpy() for end in ends]
    known = (positions[0] >= 0) & (positions[1] >= 0)
    notes, warnings = [], []
    unknown = len(known) - int(known.sum())
    if unknown:
        named = _unknown(ends, positions)
        if not drop_unknown or unknown == len(known):
            raise DataError(
                f"{table}: {unknown} of {len(known)} edges name a node that is not in the node "
                f"table, such as {named}; correct the ids, or drop these edges "
                "(drop_unknown=True, --drop-unknown)"
            )
        warnings.append(f"{unknown} edge(s) dropped that name unknown nodes, such as {named}")
    begin, end = (position[known].astype(np.int64) for position in positions)
    del ends, positions  # a few hundred megabytes where there are ten million edges
    arcs = merge_arcs(begin, end, nodes=len(ids), both_ways=not directed, origin=table)
    loops = int((arcs[0] == arcs[1]).sum())
    distinct = arcs.shape[1] if directed else (arcs.shape[1] + loops) // 2
    if repeated := len(begin) - distinct:
        again = "" if directed else ", the other way round included"
        notes.append(f"{repeated} edge(s) come again{again}; each counts once")
    if loops:
        notes.append(f"{loops} edge(s) from a node to itself, kept")
    ways = "one arc for each" if directed else "one arc each way"
    notes.append(f"{distinct} edges, {ways}")
    return Links(arcs, notes, warnings)


def _spelled(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    return whole_as_text(column, f"{where}: ids must be strings or whole numbers", "correct them")


def _unknown(ends: list[pa.ChunkedArray], positions: list[NDArray[Any]]) -> str:
    """The first unknown ids, and their rows."""
    rows = [
        (row, end[row].as_py())
        for end, position in zip(ends, positions, strict=True)
        for row in np.flatnonzero(position < 0)[: 20 * _SHOWN].tolist()
    ]
    first: dict[Any, int] = {}
    for row, value in sorted(rows, key=lambda item: item[0]):
        first.setdefault(value, row)
    return ", ".join(f"{value!r} (row {row + 1})" for value, row in [*first.items()][:_SHOWN])
