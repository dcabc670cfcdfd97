"""Predictions as a table: the id of a node, its label, and the probability of that label."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from memohop.outputs import whole_file

if TYPE_CHECKING:
    from memohop.fit._problem import Outputs
    from memohop.fit.estimator import GraphEstimator

_DIGITS = 6  # single precision has few more
_ROWS = 1 << 15  # rows held as Python objects at a time
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def table_of(model: GraphEstimator, ids: Any, outputs: Outputs) -> pa.Table:
    """One row for each node: its id, its class and the probability of each.

    Or its id, the number that is predicted, and the ends of its interval. The ids are in the form
    of Arrow or NumPy.
    """
    columns = {"id": pa.array(ids.tolist()) if isinstance(ids, np.ndarray) else ids}
    if model.report_.residual is not None:
        low, high = model.report_.residual.ends(outputs[:, 0])
        ends = {"predicted": outputs[:, 0], "low": low, "high": high}
        for name, values in ends.items():
            columns[name] = pa.array([float(str(value)) for value in values])
        return pa.table(columns)
    names = model.classes_.tolist()
    columns["predicted"] = pa.array(names).take(pa.array(outputs.argmax(axis=1)))
    for name, shares in zip(names, outputs.T, strict=True):
        columns[f"probability of {name}"] = pa.array(shares.astype(np.float64).round(_DIGITS))
    return pa.table(columns)


def write_predictions(path: Path, table: pa.Table, *, raw: bool = False) -> int:
    """Write a table as Parquet if the name ends in .parquet or .pq, and else as CSV.

    A spreadsheet runs a cell of a CSV file as a formula if it begins with ``=``, ``+``, ``-``,
    ``@``, a tab or a line break. Such an id or label, unless it is a plain number, gets a leading
    ``'``, which a spreadsheet reads as "text follows". Parquet does not need it.

    Args:
        path: The file; an older one is replaced once everything is written.
        table: The table.
        raw: Whether to write all ids and labels unchanged.

    Returns:
        How many cells got a ``'``.
    """
    changed = 0
    with whole_file(path) as part:
        if path.suffix in (".parquet", ".pq"):
            pa.parquet.write_table(table, part)
            return 0
        with part.open("w", newline="", encoding="utf-8") as file:
            _write_rows(file, [table.column_names])
            for batch in table.to_batches(_ROWS):
                cells = [column.to_pylist() for column in batch]
                changed += 0 if raw else sum(map(_disarm, cells[:2]))
                _write_rows(file, list(zip(*cells, strict=True)))
    return changed


def _disarm(cells: list[Any]) -> int:
    """Put a ``'`` before all that a spreadsheet would run; return how many these are."""
    formulas = [
        row
        for row, cell in enumerate(cells)
        if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    ]
    for row in formulas:
        cells[row] = f"'{cells[row]}"
    return len(formulas)


def _write_rows(file: Any, rows: list[Any]) -> None:
    """Quote only if needed; Python 3.11 would not quote a lone carriage return."""
    returns = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row)
    csv.writer(
        file,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
    ).writerows(rows)
