"""From ids to numbers, by a database on the disk: neither nodes nor edges need fit in RAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.cells import spelled_whole, whole_as_text
from memohop.data.tables.links import EXTRAS, check_header, edge_weights, spelled_otherwise
from memohop.data.tables.sources import UnreadTable
from memohop.errors import DataError, UsageError

if TYPE_CHECKING:
    import duckdb

_ROWS = 1 << 18  # edges that are numbered at a time
_SHOWN = 5  # ids that an error names
_TRIED = 1000  # unknown ids that may be spelled in another way


class IdDatabase:
    """Numbers nodes in the order of their rows, and looks up both ends of edges.

    Args:
        folder: A folder for the database and what it cannot hold in RAM.
        memory: The most bytes that it may hold in RAM.
        whole: Whether ids are compared as whole numbers, which is quicker, or as strings.
    """

    def __init__(self, folder: Path, memory: int, *, whole: bool) -> None:
        self._whole = whole
        self._database = _connect(folder, memory)

    def close(self) -> None:
        """Close the database, whose files may be removed then."""
        self._database.close()

    def add_nodes(self, table: UnreadTable, column: str, output: Path) -> int:
        """Number all nodes, and write their ids to a file of Arrow.

        Args:
            table: The node table.
            column: Its column of ids.
            output: The file; its ids are whole numbers if all are, and strings otherwise.

        Returns:
            The number of nodes.
        """
        spelled = output.with_suffix(".spelled")
        kind = pa.int64() if self._whole else pa.string()
        count, all_whole = 0, True

        def numbered() -> Iterator[pa.RecordBatch]:
            nonlocal count, all_whole
            with pa.OSFile(str(spelled), "wb") as file, pa.ipc.new_file(file, _ids(kind)) as writer:
                for (ids,) in self._columns(table, [column]):
                    _check_present(ids, column, table.name, before=count)
                    all_whole = all_whole and (self._whole or spelled_whole(ids))
                    writer.write_batch(pa.record_batch([ids], schema=_ids(kind)))
                    numbers = np.arange(count, count + len(ids), dtype=np.int32)
                    count += len(ids)
                    yield pa.record_batch([ids, pa.array(numbers)], names=["id", "number"])

        schema = pa.schema({"id": kind, "number": pa.int32()})
        with self._streaming(schema, numbered()):
            self._database.execute("CREATE TABLE nodes AS SELECT id, number FROM given")
        if not count:
            raise DataError(f"{table.name} has column names and no rows; give at least one row")
        self._check_distinct(column, table.name)
        if all_whole and not self._whole:
            _rewrite_whole(spelled, output)
        else:
            spelled.replace(output)
        return count

    def edges(
        self, table: UnreadTable, ends: list[str], weight: str | None = None
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64] | None]]:
        """The numbers of both ends of some edges at a time, -1 for an unknown id, and weights.

        Edges come in no order.

        Args:
            table: The edge table.
            ends: Its columns of ids.
            weight: Its column of weights, if there is one.
        """
        kind = pa.int64() if self._whole else pa.string()
        kinds = {"b": kind, "e": kind, **({} if weight is None else {"w": pa.float64()})}
        schema = pa.schema(kinds)
        chosen = "".join(f", given.{name}" for name in kinds if name == "w")

        def given() -> Iterator[pa.RecordBatch]:
            before = 0
            for found in self._columns(table, ends, [] if weight is None else [weight]):
                if weight is not None:
                    column = pa.chunked_array([found[2]])
                    found[2] = pa.array(edge_weights(column, weight, table.name, before=before))
                before += len(found[0])
                yield pa.record_batch(found, schema=schema)

        with self._streaming(schema, given()):
            found = self._database.sql(
                f"SELECT coalesce(begins.number, -1) AS b, coalesce(ends.number, -1) AS e{chosen} "
                "FROM given LEFT JOIN nodes AS begins ON begins.id = given.b "
                "LEFT JOIN nodes AS ends ON ends.id = given.e"
            )
            for batch in found.to_arrow_reader(_ROWS):
                begin, end, *weights = (column.to_numpy() for column in batch.columns)
                yield begin, end, weights[0] if weights else None

    def unknown(self, table: UnreadTable, ends: list[str]) -> str:
        """The first few ids of an edge table that no node has, and how they would be known."""
        found: dict[str | int, int] = {}
        row = 0
        for pair in self._columns(table, ends):
            for ids in pair:
                missing = self._missing(ids)
                for number in np.flatnonzero(missing)[:_TRIED].tolist():
                    name, here = ids[number].as_py(), row + number + 1
                    found[name] = min(found.get(name, here), here)
            row += len(pair[0])
            if len(found) >= _SHOWN:
                break
        listed = sorted(found.items(), key=lambda item: item[1])[:_SHOWN]
        hint = "" if self._whole else self._spelled_otherwise(pa.array(found, pa.string()))
        return ", ".join(f"{name!r} (row {number})" for name, number in listed) + hint

    def _spelled_otherwise(self, unknown: pa.Array) -> str:
        bare = "trim(id, ' \t\r\n')"
        for pattern, kept in EXTRAS:
            bare = f"regexp_replace({bare}, '{pattern}', '{kept}')"
        self._database.register("looked_up", pa.table({"id": unknown}))
        alike = f"SELECT id FROM nodes WHERE {bare} IN (SELECT {bare} FROM looked_up)"
        nodes = self._database.execute(alike).fetchnumpy()["id"]
        return spelled_otherwise(unknown, pa.array(nodes.tolist(), pa.string()))

    def check_header(self, table: UnreadTable, ends: list[str]) -> None:
        """Refuse an edge file with an edge on its first line."""
        found = self._database.execute(
            "SELECT id::VARCHAR FROM nodes WHERE id::VARCHAR IN (?, ?)", ends
        ).fetchall()
        check_header(ends, pa.array([name for (name,) in found], pa.string()), table.name)

    def _missing(self, ids: pa.Array) -> NDArray[np.bool_]:
        given = pa.table({"id": ids, "row": np.arange(len(ids))})
        self._database.register("looked_up", given)
        rows = self._database.execute(
            "SELECT row FROM looked_up ANTI JOIN nodes ON nodes.id = looked_up.id"
        ).fetchnumpy()["row"]
        missing = np.zeros(len(ids), dtype=bool)
        missing[rows] = True
        return missing

    def _columns(
        self, table: UnreadTable, names: list[str], beside: Sequence[str] = ()
    ) -> Iterator[list[pa.Array]]:
        """Columns of ids, some rows at a time, in the type in which they are compared.

        Other columns beside them are as they are stored.
        """
        assert table.batches is not None
        kinds = {name: pa.int64() if self._whole else pa.string() for name in names}
        for name in names:
            if pa.types.is_floating(_stored(table, name)):  # 2.0 is the id 2
                kinds[name] = pa.float64()
        kinds |= {name: _stored(table, name) for name in beside}
        for batch in table.batches(pa.schema(kinds)):
            ids = [self._as_ids(column, table.name) for column in batch.columns[: len(names)]]
            yield [*ids, *batch.columns[len(names) :]]

    def _as_ids(self, column: pa.Array, name: str) -> pa.Array:
        if self._whole:
            return column
        wrong = f"{name}: ids must be strings or whole numbers"
        text = whole_as_text(pa.chunked_array([column]), wrong, "correct them")
        return text.combine_chunks()

    def _check_distinct(self, column: str, name: str) -> None:
        often = "FROM nodes GROUP BY id HAVING count(*) > 1"
        twice = self._database.execute(
            f"SELECT id::VARCHAR {often} ORDER BY min(number) LIMIT {_SHOWN}"
        ).fetchall()
        if twice:
            shown = ", ".join(repr(one) for (one,) in twice)
            ((count,),) = self._database.execute(
                f"SELECT count(*) FROM (SELECT id {often})"
            ).fetchall()
            raise DataError(
                f"{name}: {count} id(s) in column {column!r} come more than once, such as {shown}; "
                "keep one row for each node, or name another column as the id"
            )

    @contextmanager
    def _streaming(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[None]:
        """Offer batches to the database as ``given``; their own errors come through as they are."""
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
            yield
        except Exception as error:
            raise (failed[0] if failed else error) from None
        finally:
            self._database.unregister("given")


def are_whole(table: UnreadTable, names: list[str]) -> bool:
    """Whether columns are stored as whole numbers, as in Parquet; those of text files are not."""
    kinds = [_stored(table, name) for name in names]
    return all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in kinds)


def _stored(table: UnreadTable, name: str) -> pa.DataType:
    return pa.string() if table.stored is None else table.stored.field(name).type


def _check_present(ids: pa.Array, column: str, table: str, *, before: int) -> None:
    absent = ids.is_null()
    if pa.types.is_string(ids.type):
        absent = pc.fill_null(pc.equal(ids, ""), True)
    rows = np.flatnonzero(absent.to_numpy(zero_copy_only=False))
    if rows.size:
        raise DataError(
            f"{table}: column {column!r} has no id in row {before + rows[0] + 1}; give every node "
            "an id, or name another column as the id"
        )


def _ids(kind: pa.DataType) -> pa.Schema:
    return pa.schema({"id": kind})


def _rewrite_whole(spelled: Path, output: Path) -> None:
    with (
        pa.memory_map(str(spelled)) as source,
        pa.OSFile(str(output), "wb") as file,
        pa.ipc.new_file(file, _ids(pa.int64())) as writer,
    ):
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            writer.write_batch(reader.get_batch(number).cast(_ids(pa.int64())))
    spelled.unlink()


def _connect(folder: Path, memory: int) -> duckdb.DuckDBPyConnection:
    duckdb = import_duckdb()
    settings: dict[str, Any] = {
        "memory_limit": f"{memory // 2**20}MiB",
        "temp_directory": str(folder / "spilled"),
        "preserve_insertion_order": False,
    }
    found = duckdb.connect(str(folder / "ids.duckdb"), config=settings)
    # The size of a stream is not known beforehand: the nodes are what is looked up in any case.
    found.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    return found


def import_duckdb() -> Any:
    """The module, or an error that says how to install it."""
    try:
        import duckdb
    except ImportError:
        raise UsageError(
            "preparing a graph takes DuckDB, which is not installed here: "
            "pip install 'memohop[large]'"
        ) from None
    return duckdb
