"""Columns become features: fitted a few columns at a time, encoded a few rows at a time.

Every kind of column is fitted to all its values, as a ``ColumnEncoder`` does it. A few columns of
the node table must therefore fit in RAM, but never all of them, nor the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy import sparse

from memohop.data.prepared._arrays import ArrayFile, map_array
from memohop.data.read_options import Roles
from memohop.data.tables.column import FEW, is_mostly_zero
from memohop.data.tables.columns import ColumnEncoder, fit_columns
from memohop.data.tables.leaks import Target
from memohop.data.tables.sources import UnreadTable

_BYTES = 16  # of a value while its column is fitted, roughly
_CHUNK = 1 << 18  # rows of a dense chunk
_VALUES = 1 << 25  # values of a chunk, if rows are wide


class Encoding(NamedTuple):
    """How columns become features, the type of each in all files, and what may be unexpected."""

    encoder: ColumnEncoder
    types: dict[str, pa.DataType]
    warnings: list[str]


def fit_in_passes(
    roles: Roles,
    encoder: ColumnEncoder | None,
    target: Target | None,
    *,
    rows: int,
    memory: int,
) -> Encoding:
    """Fit columns of the node table, as many at a time as their part of the memory allows.

    The encoder of an earlier table decides on columns and readings; their types are still read.
    """
    names, spelled = roles.columns, roles.spelled
    if encoder is not None:
        names = [column.name for column in encoder.columns if column.name in roles.nodes.columns]
        spelled = encoder.text_names
    at_once = max(1, memory // (_BYTES * rows))
    types: dict[str, pa.DataType] = {}

    def columns() -> Iterator[tuple[str, pa.ChunkedArray]]:
        for start in range(0, len(names), at_once):
            read = roles.nodes.read(names[start : start + at_once], text=spelled)
            for name, column in zip(read.column_names, read.columns, strict=True):
                types[name] = _without_dictionary(column.type)
                yield name, column

    if encoder is not None:
        for _ in columns():
            pass
        return Encoding(encoder, types, [])
    encoder, warnings = fit_columns(columns(), roles.readings, target=target)
    return Encoding(encoder, types | dict.fromkeys(encoder.text_names, pa.string()), warnings)


def write_features(
    table: UnreadTable, encoding: Encoding, folder: Path
) -> tuple[int | None, list[str]]:
    """Encode all rows of the node table, some at a time.

    The file is ``features.npy``; if features are mostly zeros, the three arrays of a sparse matrix
    are ``features-indptr.npy``, ``features-indices.npy`` and ``features-data.npy``.

    Returns:
        How many values are stored of a sparse matrix, and notes on values that did not fit.
    """
    width = len(encoding.encoder.feature_names)
    notes: dict[str, str] = {}
    chunks = _encoded(table, encoding, notes)
    if width <= FEW:
        with ArrayFile(folder / "features.npy", np.float32, width) as file:
            for x in chunks:
                file.append(x)
        return None, list(notes.values())
    paths = [folder / f"features-{part}.npy" for part in ("indptr", "indices", "data")]
    with (
        ArrayFile(paths[0], np.int64) as indptr,
        ArrayFile(paths[1], np.int32) as indices,
        ArrayFile(paths[2], np.float32) as data,
    ):
        indptr.append(np.zeros(1))
        for x in chunks:
            part = sparse.csr_array(x)
            indptr.append(indices.rows + part.indptr[1:].astype(np.int64))
            indices.append(part.indices)
            data.append(part.data)
    if is_mostly_zero(data.rows, (indptr.rows - 1, width)):
        return data.rows, list(notes.values())
    _write_dense(folder / "features.npy", paths, width)
    for path in paths:
        path.unlink()
    return None, list(notes.values())


def _encoded(
    table: UnreadTable, encoding: Encoding, notes: dict[str, str]
) -> Iterator[np.ndarray | sparse.csr_array]:
    """The features of some rows at a time; the first note on each column is kept."""
    assert table.batches is not None
    encoder = encoding.encoder
    names = [column.name for column in encoder.columns] or table.columns[:1]
    schema = pa.schema({name: encoding.types.get(name, pa.string()) for name in names})
    most = max(1, min(_CHUNK, _VALUES // len(encoder.feature_names)))
    start = 0
    for batch in table.batches(schema):
        for first in range(0, len(batch), most):
            rows = pa.table(batch.slice(first, most))
            x, told = encoder.transform(rows)
            for note in told:
                where = f"rows {start + 1} to {start + rows.num_rows}, and perhaps later ones: "
                notes.setdefault(note.partition(":")[0], where + note)
            start += rows.num_rows
            yield x


def _write_dense(path: Path, parts: list[Path], width: int) -> None:
    """A matrix that turned out not to be mostly zeros."""
    indptr, indices, data = map(map_array, parts)
    most = max(1, _VALUES // width)
    with ArrayFile(path, np.float32, width) as file:
        for start in range(0, len(indptr) - 1, most):
            bounds = indptr[start : start + most + 1]
            inside = slice(bounds[0], bounds[-1])
            rows = (data[inside], indices[inside], bounds - bounds[0])
            shape = (len(bounds) - 1, width)
            file.append(sparse.csr_array(rows, shape=shape).toarray())


def _without_dictionary(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.string()
    return kind.value_type if pa.types.is_dictionary(kind) else kind
