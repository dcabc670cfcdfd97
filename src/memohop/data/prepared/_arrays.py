"""Arrays that are written some rows at a time, and mapped from the disk when they are read.

Nothing is written through a mapping: a disk that is full is an error there, and not a signal that
ends the process.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


class ArrayFile:
    """A ``.npy`` file that grows by rows of this width, or has one dimension without it."""

    def __init__(self, path: Path, kind: DTypeLike, width: int | None = None) -> None:
        self.rows = 0
        self._kind, self._row = np.dtype(kind), () if width is None else (width,)
        self._file = path.open("wb")

    def __enter__(self) -> Self:
        self._write_header()
        return self

    def append(self, values: NDArray[Any]) -> None:
        """Write more rows."""
        assert values.shape[1:] == self._row
        self._file.write(np.ascontiguousarray(values, dtype=self._kind).data.cast("B"))
        self.rows += len(values)

    def __exit__(self, *error: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()  # of the same length

    def _write_header(self) -> None:
        self._file.write(header(self._kind, (self.rows, *self._row)))


def header(kind: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The beginning of a ``.npy`` file, as NumPy writes it, with room for any number of rows."""
    begin = io.BytesIO()
    described = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(begin, described)
    return begin.getvalue()


def is_array(path: Path, kind: DTypeLike, shape: tuple[int, ...]) -> bool:
    """Whether a file is an array of this type and shape, and was written by :class:`ArrayFile`."""
    begin = header(kind, shape)
    size = len(begin) + np.dtype(kind).itemsize * math.prod(shape)
    with path.open("rb") as file:
        return file.read(len(begin)) == begin and path.stat().st_size == size


def map_array(path: Path) -> NDArray[Any]:
    """An array that is read from the disk where it is used, read-only."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
