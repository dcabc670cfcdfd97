"""From ids to sorted arcs, by a database on the disk: neither nodes nor edges need fit in RAM.

Nodes are numbered in the order of their rows, and both ends of every edge are looked up. Then edges
become pairs of nodes, each pair once, with the sums of the weights there and back. A pair is listed
both ways or not, which decides on directions; and what is read from the pairs in order are the rows
of the adjacency matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from memohop.data.prepared._arrays import ArrayFile
from memohop.data.read_options import Roles
from memohop.data.tables.cells import WHOLE, whole_as_text
from memohop.data.tables.links import (
    EXTRAS,
    check_header,
    describe_edges,
    direction_of,
    edge_weights,
    spelled_otherwise,
    tell_unknown,
)
from memohop.data.tables.sources import NO_ROWS, UnreadTable
from memohop.errors import DataError

MOST_NODES = 2**31 - 1
"""Nodes are numbered with 32 bits."""

_ROWS = 1 << 18  # arcs that are read at a time
_SHOWN = 5  # ids that an error names
_TRIED = 1000  # unknown ids that may be spelled in another way

_NODES = f"""
    SELECT count(*), min(number) FILTER (id IS NULL OR id::VARCHAR = ''),
        bool_and(regexp_matches(id::VARCHAR, '{WHOLE}'))
    FROM nodes
"""
_REPEATED = "SELECT id, min(number) AS first FROM nodes GROUP BY id HAVING count(*) > 1"
_NUMBERED = """
    CREATE TABLE edges AS
    SELECT begins.number AS begin, ends.number AS end, given.weight,
        CASE WHEN begins.number IS NULL OR ends.number IS NULL THEN given.row END AS unknown_row,
        CASE WHEN begins.number IS NULL THEN given.begin END AS unknown_begin,
        CASE WHEN ends.number IS NULL THEN given.end END AS unknown_end
    FROM given
    LEFT JOIN nodes AS begins ON begins.id = given.begin
    LEFT JOIN nodes AS ends ON ends.id = given.end
"""
_UNKNOWN = """
    SELECT id, min(place) // 2 AS row FROM (
        SELECT unknown_begin AS id, 2 * unknown_row AS place FROM edges WHERE begin IS NULL
        UNION ALL
        SELECT unknown_end, 2 * unknown_row + 1 FROM edges WHERE "end" IS NULL
    )
    GROUP BY id ORDER BY min(place) LIMIT ?
"""
_PAIRS = """
    CREATE TABLE pairs AS
    SELECT least(begin, "end") AS low, greatest(begin, "end") AS high,
        bool_or(begin <= "end") AS there, bool_or(begin > "end") AS back,
        coalesce(sum(weight) FILTER (begin <= "end"), 0) AS weight_there,
        coalesce(sum(weight) FILTER (begin > "end"), 0) AS weight_back
    FROM edges WHERE begin IS NOT NULL AND "end" IS NOT NULL
    GROUP BY low, high
"""
_COUNTS = """
    SELECT count(*) FILTER (low = high), count(*) FILTER (low < high),
        count(*) FILTER (there AND low < high) + count(*) FILTER (back),
        coalesce(bool_and(weight_there = weight_back) FILTER (low < high), true)
    FROM pairs
"""
_LISTED = """
    CREATE VIEW arcs AS
    SELECT low AS begin, high AS "end", weight_there AS weight FROM pairs WHERE there
    UNION ALL
    SELECT high, low, weight_back FROM pairs WHERE back
"""
_EITHER = """
    CREATE VIEW arcs AS
    SELECT low AS begin, high AS "end", {weight} AS weight FROM pairs
    UNION ALL
    SELECT high, low, {weight} FROM pairs WHERE low < high
"""


class LinkDatabase:
    """Numbers nodes, looks up both ends of edges, and sorts the arcs.

    Ids are compared as whole numbers, which is quicker, if they are stored so, or else as strings.

    Args:
        folder: A folder for the database and what it cannot hold in RAM.
        roles: The tables, and their columns of ids and weights.
        memory: The most bytes that it may hold in RAM.
    """

    def __init__(self, folder: Path, roles: Roles, memory: int) -> None:
        self._roles = roles
        ids = [(roles.nodes, roles.id), *((roles.edges, end) for end in roles.ends)]
        stored = [_stored(*column) for column in ids]
        are_whole = all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in stored)
        self._kind = pa.int64() if are_whole else pa.string()
        settings: dict[str, Any] = {
            "memory_limit": f"{memory // 2**20}MiB",
            "temp_directory": str(folder / "spilled"),
            "preserve_insertion_order": False,
        }
        if roles.weight is not None:
            settings["threads"] = 1  # which adds up weights in the same order always
        self._database = duckdb.connect(str(folder / "links.duckdb"), config=settings)
        # The size of a stream is not known beforehand: the nodes are what is looked up in any case.
        self._database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")

    def close(self) -> None:
        """Close the database, whose files may be removed then."""
        self._database.close()

    def add_nodes(self, output: Path) -> int:
        """Number all nodes, and write their ids to a file of Arrow; returns how many there are.

        They are whole numbers if all are spelled so, and strings otherwise.
        """
        name, column = self._roles.nodes.name, self._roles.id
        schema = pa.schema({"id": self._kind, "number": pa.int32()})

        def numbered() -> Iterator[pa.RecordBatch]:
            before = 0
            for (ids,) in self._columns(self._roles.nodes, [column]):
                numbers = np.arange(before, before + len(ids), dtype=np.int32)
                before += len(ids)
                yield pa.record_batch([ids, pa.array(numbers)], schema=schema)

        self._create("CREATE TABLE nodes AS SELECT id, number FROM given", schema, numbered())
        count, absent, are_whole = self._row(_NODES)
        if not count:
            raise DataError(NO_ROWS.format(name=name))
        if count > MOST_NODES:
            raise DataError(f"{name} has {count} nodes; the most is {MOST_NODES}")
        if absent is not None:
            raise DataError(
                f"{name}: column {column!r} has no id in row {absent + 1}; give every node an id, "
                "or name another column as the id"
            )
        if times := self._row(f"SELECT count(*) FROM ({_REPEATED})")[0]:
            first = self._names(f"SELECT id FROM ({_REPEATED}) ORDER BY first LIMIT {_SHOWN}")
            shown = ", ".join(map(repr, first.to_pylist()))
            raise DataError(
                f"{name}: {times} id(s) in column {column!r} come more than once, such as {shown}; "
                "keep one row for each node, or name another column as the id"
            )
        kind = "BIGINT" if are_whole else "VARCHAR"
        ordered = self._database.sql(f"SELECT id::{kind} AS id FROM nodes ORDER BY number")
        reader = ordered.to_arrow_reader(_ROWS)
        with pa.OSFile(str(output), "wb") as file, pa.ipc.new_file(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return int(count)

    def add_edges(self, *, drop_unknown: bool) -> list[str]:
        """Look up both ends of all edges.

        Edges that name an unknown id are a :class:`DataError`, or left out with a warning.
        """
        name, ends, weight = self._roles.edges.name, self._roles.ends, self._roles.weight
        known = self._names("SELECT id FROM nodes WHERE id::VARCHAR IN (?, ?)", ends)
        check_header(ends, known, name)
        schema = pa.schema(
            {"begin": self._kind, "end": self._kind, "weight": pa.float64(), "row": pa.int64()}
        )

        def given() -> Iterator[pa.RecordBatch]:
            before = 0
            for begin, end, *more in self._columns(self._roles.edges, ends, weight):
                weights = pa.nulls(len(begin), pa.float64())
                if weight is not None:
                    weights = pa.array(
                        edge_weights(pa.chunked_array(more), weight, name, before=before)
                    )
                rows = pa.array(np.arange(before + 1, before + len(begin) + 1))
                before += len(begin)
                yield pa.record_batch([begin, end, weights, rows], schema=schema)

        self._create(_NUMBERED, schema, given())
        edges, unknown = self._row("SELECT count(*), count(unknown_row) FROM edges")
        if not edges:
            raise DataError(NO_ROWS.format(name=name))
        if not unknown:
            return []
        lost = self._database.execute(_UNKNOWN, [_TRIED]).fetchall()
        named = ", ".join(f"{node!r} (row {row})" for node, row in lost[:_SHOWN])
        if self._kind == pa.string():
            named += self._spelled_otherwise(pa.array([node for node, _ in lost], pa.string()))
        return tell_unknown(name, unknown, edges, named, drop_unknown=drop_unknown)

    def write(
        self, folder: Path, nodes: int, *, directed: bool | None
    ) -> tuple[int, bool, list[str]]:
        """Write the rows of the adjacency matrix, both ways if these differ.

        The files are ``out-indptr.npy``, ``out-indices.npy`` and, if edges have weights,
        ``out-weights.npy``; of a directed graph also ``in-indptr.npy`` and so on. Weights add up as
        :func:`~memohop.data.tables.links.Links.of` says.

        Returns:
            The number of arcs, whether edges have a direction, and notes.
        """
        self._database.execute(_PAIRS)
        loops, pairs, listed, are_alike = self._row(_COUNTS)
        given, least, most = self._row(
            "SELECT count(*), min(weight), max(weight) FROM edges WHERE unknown_row IS NULL"
        )
        notes = []
        if directed is None:
            directed, note = direction_of(listed, 2 * pairs)
            notes.append(note)
        edges = loops + (listed if directed else pairs)
        span = None if self._roles.weight is None else (least, most)
        notes += describe_edges(edges, given, loops, span, directed=directed)
        weight = "weight_there" if are_alike else "weight_there + weight_back"
        self._database.execute(_LISTED if directed else _EITHER.format(weight=weight))
        self._write_rows(folder / "out", nodes, 'begin, "end"')
        if directed:
            self._write_rows(folder / "in", nodes, '"end", begin')
        return edges if directed else loops + 2 * pairs, directed, notes

    def _write_rows(self, path: Path, nodes: int, order: str) -> None:
        degrees = np.zeros(nodes + 1, dtype=np.int64)
        query = f"SELECT {order}, weight FROM arcs ORDER BY {order}"
        with ExitStack() as files:
            indices = files.enter_context(ArrayFile(Path(f"{path}-indices.npy"), np.int32))
            if self._roles.weight is not None:
                weights = files.enter_context(ArrayFile(Path(f"{path}-weights.npy"), np.float32))
            for batch in self._database.sql(query).to_arrow_reader(_ROWS):
                row, column, weight = (part.to_numpy() for part in batch.columns)
                degrees[row[0] + 1 : row[-1] + 2] += np.bincount(row - row[0])
                indices.append(column)
                if self._roles.weight is not None:
                    weights.append(weight)
        np.save(f"{path}-indptr.npy", degrees.cumsum())

    def _spelled_otherwise(self, unknown: pa.Array) -> str:
        bare = "trim(id, ' \t\r\n')"
        for pattern, kept in EXTRAS:
            bare = f"regexp_replace({bare}, '{pattern}', '{kept}')"
        self._database.register("looked_up", pa.table({"id": unknown}))
        alike = f"SELECT id FROM nodes WHERE {bare} IN (SELECT {bare} FROM looked_up)"
        return spelled_otherwise(unknown, self._names(alike))

    def _columns(
        self, table: UnreadTable, names: list[str], weight: str | None = None
    ) -> Iterator[list[pa.Array]]:
        """Columns of ids, in the type in which they are compared, and weights as they are stored.

        They come some rows at a time.
        """
        assert table.batches is not None
        kinds = dict.fromkeys(names, self._kind)
        for name in names:
            if pa.types.is_floating(_stored(table, name)):  # 2.0 is the id 2
                kinds[name] = pa.float64()
        if weight is not None:
            kinds[weight] = _stored(table, weight)
        wrong = f"{table.name}: ids must be strings or whole numbers"
        for batch in table.batches(pa.schema(kinds)):
            columns = batch.columns
            for index, ids in enumerate(columns[: len(names)]):
                if self._kind == pa.string():
                    text = whole_as_text(pa.chunked_array([ids]), wrong)
                    columns[index] = text.combine_chunks()
            yield columns

    def _names(self, query: str, given: Sequence[str] = ()) -> pa.Array:
        """The ids that a query gives, as strings."""
        rows = self._database.execute(query, given).fetchall()
        return pa.array([str(name) for (name,) in rows], pa.string())

    def _row(self, query: str) -> tuple[Any, ...]:
        """The only row that a query gives."""
        (row,) = self._database.execute(query).fetchall()
        return tuple(row)

    def _create(self, query: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Make a table of batches, ``given``; their own errors come through as they are."""
        failed: list[Exception] = []

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except Exception as error:
                failed.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, watched())
        self._database.register("given", reader)
        try:
            self._database.execute(query)
        except Exception as error:
            raise (failed[0] if failed else error) from None
        finally:
            self._database.unregister("given")


def _stored(table: UnreadTable, name: str) -> pa.DataType:
    return pa.string() if table.stored is None else table.stored.field(name).type
