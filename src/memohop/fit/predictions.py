"""Predictions as a table: the id of a node, its label, and the probability of that label."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from memohop.outputs import whole_file

_DIGITS = 6  # single precision has few more
_ROWS = 1 << 15  # rows held as Python objects at a time
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def write_predictions(
    path: Path,
    ids: NDArray[Any],
    probabilities: NDArray[np.float32],
    classes: NDArray[Any],
    *,
    raw: bool = False,
) -> int:
    """Write one row for each node, as Parquet if the name ends in .parquet or .pq, else as CSV.

    A spreadsheet runs a cell of a CSV file as a formula if it begins with ``=``, ``+``, ``-``,
    ``@``, a tab or a line break. Such an id or label, unless it is a plain number, gets a leading
    ``'``, which a spreadsheet reads as "text follows". Parquet does not need it.

    Args:
        path: The file; an older one is replaced once everything is written.
        ids: The names of the nodes.
        probabilities: ``[nodes, classes]``.
        classes: The names of the classes.
        raw: Whether to write all ids and labels unchanged.

    Returns:
        How many cells got a ``'``.
    """
    return _write(path, table_of_classes(pa.array(ids.tolist()), probabilities, classes), raw=raw)


def table_of_classes(
    ids: pa.Array | pa.ChunkedArray, probabilities: NDArray[np.float32], classes: NDArray[Any]
) -> pa.Table:
    """One row for each node: its id, its class, and the probability of each."""
    found = pa.array(classes.tolist()).take(pa.array(probabilities.argmax(axis=1)))
    columns = {"id": ids, "predicted": found}
    for name, shares in zip(classes.tolist(), probabilities.T, strict=True):
        columns[f"probability of {name}"] = pa.array(shares.astype(np.float64).round(_DIGITS))
    return pa.table(columns)


def write_numbers(
    path: Path,
    ids: NDArray[Any],
    predicted: NDArray[np.float32],
    ends: NDArray[np.float32],
    *,
    raw: bool = False,
) -> int:
    """The same for numbers: the id of a node, the number, and the ends of its interval.

    Args:
        path: The file; an older one is replaced once everything is written.
        ids: The names of the nodes.
        predicted: ``[nodes]``.
        ends: ``[nodes, 2]``.
        raw: Whether to write all ids unchanged.

    Returns:
        How many cells got a ``'``.
    """
    return _write(path, table_of_numbers(pa.array(ids.tolist()), predicted, ends), raw=raw)


def table_of_numbers(
    ids: pa.Array | pa.ChunkedArray, predicted: NDArray[np.float32], ends: NDArray[np.float32]
) -> pa.Table:
    """One row for each node: its id, the number, and the ends of its interval."""
    columns = {"predicted": predicted, "low": ends[:, 0], "high": ends[:, 1]}
    numbers = {
        name: pa.array([float(str(one)) for one in values]) for name, values in columns.items()
    }
    return pa.table({"id": ids, **numbers})


def write_tables(path: Path, tables: Iterator[pa.Table]) -> int:
    """Write tables one after the other into a Parquet file; return the number of rows.

    Args:
        path: The file; an older one is replaced once everything is written.
        tables: At least one; all have the same columns.
    """
    rows = 0
    with whole_file(path) as part:
        first = next(tables)
        with pa.parquet.ParquetWriter(part, first.schema) as writer:
            for table in itertools.chain([first], tables):
                writer.write_table(table)
                rows += table.num_rows
    return rows


def _write(path: Path, table: pa.Table, *, raw: bool) -> int:
    with whole_file(path) as part:
        if path.suffix in (".parquet", ".pq"):
            pa.parquet.write_table(table, part)
            return 0
        return _write_csv(part, table, raw=raw)


def _write_csv(path: Path, table: pa.Table, *, raw: bool) -> int:
    changed = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        _write_rows(file, [table.column_names])
        for batch in table.to_batches(_ROWS):
            ids, labels, *shares = (column.to_pylist() for column in batch)
            if not raw:
                for cells in (ids, labels):
                    for row, cell in enumerate(cells):
                        if _is_formula(cell):
                            cells[row] = f"'{cell}"
                            changed += 1
            _write_rows(file, list(zip(ids, labels, *shares, strict=True)))
    return changed


def _write_rows(file: TextIO, rows: Sequence[Sequence[Any]]) -> None:
    """Quote only if needed; Python 3.11 would not quote a lone carriage return."""
    returns = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row)
    csv.writer(
        file,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
    ).writerows(rows)


def _is_formula(cell: Any) -> bool:
    is_suspicious = isinstance(cell, str) and _FORMULA.match(cell) is not None
    return is_suspicious and not _NUMBER.fullmatch(cell)
