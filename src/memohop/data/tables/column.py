"""What a kind of column is: it tries a column, and rejects it or is fitted to it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.sparse_features import as_matrix
from memohop.data.tables.cells import (
    as_text,
    column_kind,
    is_time,
    look_of,
    no_kind,
    numbers,
    spelled_as_numbers,
    spelled_as_times,
    spelled_numbers,
)
from memohop.errors import DataError
from memohop.outputs import count

FEW = 50
"""Up to this many features are always dense."""
MOSTLY_ZERO = 0.2
"""Features are sparse if a smaller share of them is not 0."""

Reading: TypeAlias = Literal["categorical", "numeric", "text"]
"""How a user wants a column to be read."""
Absent: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Any
"""``NDArray[np.float32]`` or ``scipy.sparse.csr_array``, which has no type parameters."""


class RejectColumn(Exception):  # noqa: N818
    """A kind of column does not read this one; the next in the list may."""


class SaysNothing(Exception):  # noqa: N818
    """A kind reads this column, and it tells no two nodes apart: it is left out."""


class Cells:
    """The cells of a column as kinds look at them; each look is taken once.

    Args:
        name: The name of the column.
        column: Its cells.
        reading: How the user wants it to be read; None to guess.
    """

    def __init__(self, name: str, column: pa.ChunkedArray, reading: Reading | None = None) -> None:
        stored = column_kind(column.type)
        if stored is None:
            raise no_kind(name, column.type)
        self.name, self.column, self.reading, self.stored = name, column, reading, stored

    @cached_property
    def text(self) -> pa.ChunkedArray:
        """The cells as strings, null where they are missing."""
        return as_text(self.column)

    @cached_property
    def are_spelled(self) -> bool:
        """Whether strings are spelled as numbers or times."""
        return spelled_as_numbers(self.text)

    @cached_property
    def spelled(self) -> pa.ChunkedArray:
        """The numbers that strings spell, null where they spell none."""
        return spelled_numbers(self.text)

    @cached_property
    def are_times(self) -> bool:
        """Whether numbers are dates or times."""
        return spelled_as_times(self.text) if self.stored == "text" else is_time(self.column.type)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The cells as numbers, NaN where they are missing; times in seconds."""
        if self.stored != "text":
            return numbers(self.name, self.column)
        if self.reading is None and not self.are_spelled:
            raise RejectColumn("its strings are not spelled as numbers")
        if self.spelled.null_count == len(self.spelled) > self.text.null_count:
            raise DataError(
                f"column {self.name!r} is to be numeric and holds no number, but strings such as "
                f"{self.text.drop_null()[0].as_py()!r}; leave it out of the numeric columns"
            )
        return numbers(self.name, self.spelled)

    @cached_property
    def present(self) -> NDArray[np.float64]:
        """The numbers that are not missing; not all are equal."""
        present = self.numbers[~np.isnan(self.numbers)]
        if not present.size or present.min() == present.max():
            raise SaysNothing
        return present


class Column(msgspec.Struct, frozen=True, tag_field="kind"):
    """One fitted column; each kind of column is a subclass.

    A kind has :meth:`fit`, :meth:`own_names`, :meth:`own_text` and :meth:`own_fill`; what it needs
    of the column it keeps in a few plain values, which a saved model stores. Missing values are
    handled here, alike for all kinds.

    Attributes:
        name: Its name in the table.
        missing: Whether values were missing when it was fitted. If so, one more feature marks
            the rows where the value is missing.
        verbatim: Whether a text file must be read without interpreting this column.
    """

    asked_for: ClassVar[Reading]
    """What a user says who wants this kind or one like it."""
    read_as: ClassVar[str | None] = None
    """What a user is told that strings are read as, whatever they look like."""

    name: str
    missing: bool
    verbatim: bool

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """The fitted column.

        Raises:
            RejectColumn: If another kind should read it.
            SaysNothing: If it carries no information.
        """
        raise NotImplementedError

    def own_names(self) -> list[str]:
        """The names of its features, without the one for missing values."""
        return [self.name]

    def own_text(self) -> str:
        """How it becomes features, in words."""
        raise NotImplementedError

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Write the features.

        Returns:
            Where values are missing, and notes on values that did not fit.
        """
        raise NotImplementedError

    def surprise(self, cells: Cells) -> str | None:
        """A line on strings that are read as something other than what most of them look like."""
        return self.read_as and looks_otherwise(cells, f"read as {self.read_as}")

    def names(self) -> list[str]:
        """The names of all its features."""
        return self.own_names() + [f"{self.name} is missing"] * self.missing

    def describe(self) -> str:
        """How it becomes features, with the feature for missing values."""
        return self.own_text() + ", and one that says where it is missing" * self.missing

    def fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> list[str]:
        """Write all features; return notes on values that did not fit."""
        absent, notes = self.own_fill(column, matrix)
        if self.missing:
            matrix.put(np.flatnonzero(absent), len(self.own_names()), 1)
        elif absent.any():
            number = count(int(absent.sum()), "value")
            notes.append(f"column {self.name!r}: {number} missing, but none was when it was fitted")
        return notes


def looks_otherwise(cells: Cells, read: str) -> str | None:
    """A line on strings if most look like something that they are not read as."""
    there = cells.text.drop_null()
    look = look_of(there)
    if look is None:
        return None
    alike, others = there.filter(look.fits), there.filter(pc.invert(look.fits))
    but = f", but not {others[0].as_py()!r}" if len(others) else ""
    name = cells.name
    remedy = look.remedy or f"numeric=[{name!r}], --numeric {name} reads them as such"
    return (
        f"column {name!r} is {read}: {len(alike)} of {count(len(there), 'value')} look like "
        f"{look.noun}, such as {alike[0].as_py()!r}{but} ({remedy})"
    )


class FeatureMatrix:
    """Takes the values that are not 0; the others are not stored on the way either.

    Args:
        rows: Number of rows.
        features: Number of features.
    """

    def __init__(self, rows: int, features: int) -> None:
        self.shape = rows, features
        self.offset = 0
        """The first feature of the column that is written now."""
        self._dense = _zeros(self.shape) if features <= FEW else None
        self._entries: list[tuple[NDArray[Any], ...]] = []

    def put(self, rows: NDArray[np.integer[Any]], feature: Any, values: Any) -> None:
        """Write values into rows of one feature, or of one feature for each row.

        Features are counted from :attr:`offset`. An entry must be written only once.
        """
        columns = np.asarray(feature) + self.offset
        if self._dense is not None:
            self._dense[rows, columns] = values
            return
        entries = np.broadcast_arrays(rows, columns, values)
        types = np.int32, np.int32, np.float32
        self._entries.append(tuple(map(np.ndarray.astype, entries, types)))

    def put_all(self, feature: int, values: NDArray[Any]) -> None:
        """Write the values of all rows for one feature."""
        rows = np.flatnonzero(values)
        self.put(rows, feature, values[rows])

    def finish(self) -> Matrix:
        """The matrix: a dense array or a ``csr_array``."""
        if self._dense is not None:
            return self._dense
        if is_mostly_zero(sum(len(rows) for rows, *_ in self._entries), self.shape):
            rows, columns, values = (
                np.concatenate(parts) for parts in zip(*self._entries, strict=True)
            )
            self._entries.clear()
            return sparse.coo_array((values, (rows, columns)), shape=self.shape).tocsr()
        dense = _zeros(self.shape)
        while self._entries:
            rows, columns, values = self._entries.pop()
            dense[rows, columns] = values
        return dense


def as_features(x: Any) -> Matrix:
    """A matrix of numbers, dense or of SciPy, as a dense array or a ``csr_array``."""
    if not sparse.issparse(x):
        return np.ascontiguousarray(x, dtype=np.float32)
    if is_mostly_zero(x.nnz, x.shape):
        return as_matrix(x, torch.float32)
    return x.toarray().astype(np.float32)


def is_mostly_zero(stored: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix with so many values that are not 0 is kept sparse."""
    return shape[1] > FEW and stored < MOSTLY_ZERO * shape[0] * shape[1]


def _zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.zeros(shape, dtype=np.float32)
