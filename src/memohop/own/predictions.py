"""Predictions as a table: the id of a node, its label, and the probability of each class."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from memohop.outputs import whole_file

_DIGITS = 6  # single precision has hardly more
_ROWS = 1 << 15  # that are Python objects at a time
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
    """Write one row for each node, as CSV, or as Parquet if the name says so.

    A spreadsheet takes a cell of a CSV file that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
    line break for a formula and computes it, whoever wrote it. Before such an id or label, unless
    it is a plain number, goes a ``'``, which spreadsheets take for "text follows". Parquet has no
    need of it.

    Args:
        path: The file; what is there is replaced once all is written.
        ids: What the nodes are called.
        probabilities: `[nodes, classes]`.
        classes: What the classes are called.
        raw: Write all ids and labels as they are.

    Returns:
        The number of cells that a ``'`` was put before.
    """
    found = classes[probabilities.argmax(axis=1)]
    columns = {"id": pa.array(ids.tolist()), "predicted": pa.array(found.tolist())}
    for place, name in enumerate(classes.tolist()):
        shares = probabilities[:, place].astype(np.float64).round(_DIGITS)
        columns[f"probability of {name}"] = pa.array(shares)
    table = pa.table(columns)
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
                    for place, cell in enumerate(cells):
                        if _is_formula(cell):
                            cells[place] = f"'{cell}"
                            changed += 1
            _write_rows(file, list(zip(ids, labels, *shares, strict=True)))
    return changed


def _write_rows(file: TextIO, rows: Sequence[Sequence[Any]]) -> None:
    """With quotes only where there must be; Python 3.11 has none round a lone carriage return."""
    returns = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row)
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    plain = csv.writer(file, lineterminator="\n")
    (quoted if returns else plain).writerows(rows)


def _is_formula(cell: Any) -> bool:
    if not isinstance(cell, str) or not _FORMULA.match(cell):
        return False
    return not _NUMBER.fullmatch(cell)
