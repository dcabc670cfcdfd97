"""Predictions as a table: the id of a node, its label, and the probability of each class."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

_DIGITS = 6  # single precision has hardly more
_ROWS = 1 << 15  # that are Python objects at a time


def write_predictions(
    path: Path, ids: NDArray[Any], probabilities: NDArray[np.float32], classes: NDArray[Any]
) -> None:
    """Write one row for each node, as CSV, or as Parquet if the name says so.

    Args:
        path: The file; what is there is replaced.
        ids: What the nodes are called.
        probabilities: `[nodes, classes]`.
        classes: What the classes are called.
    """
    names = classes.tolist()
    found = classes[probabilities.argmax(axis=1)]
    columns = {"id": pa.array(ids.tolist()), "predicted": pa.array(found.tolist())}
    for place, name in enumerate(names):
        shares = probabilities[:, place].astype(np.float64).round(_DIGITS)
        columns[f"probability of {name}"] = pa.array(shares)
    table = pa.table(columns)
    if path.suffix in (".parquet", ".pq"):
        pa.parquet.write_table(table, path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")  # quotes only where it must
            writer.writerow(table.column_names)
            for batch in table.to_batches(_ROWS):
                writer.writerows(zip(*(column.to_pylist() for column in batch), strict=True))
