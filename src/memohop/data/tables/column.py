"""What a kind of column is: it tries a column, and rejects it or is fitted to it."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.tables.cells import Cells, Reading

CLIP = 10.0
"""Standardised numbers are cut off here, so no feature is larger."""
FEW = 50
"""Up to this many features are always dense."""
MOSTLY_ZERO = 0.2
"""Features are sparse if a smaller share of them is not 0."""

Absent: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Any
"""``NDArray[np.float32]`` or ``scipy.sparse.csr_array``, which has no type parameters."""


class Column(msgspec.Struct, frozen=True, tag_field="kind"):
    """One fitted column; each kind of column is a subclass.

    A kind has :meth:`fit`, :meth:`names`, :meth:`describe` and :meth:`fill`; what it needs of the
    column it keeps in a few plain values, which a saved model stores.

    Attributes:
        name: Its name in the table.
        missing: Whether values were missing when it was fitted. If so, the encoder adds one more
            feature, which marks the rows where the value is missing.
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

    def names(self) -> list[str]:
        """The names of its features, without the one for missing values."""
        return [self.name]

    @property
    def feature_names(self) -> list[str]:
        """The names of its features, with that of the one for missing values."""
        return [*self.names(), *[f"{self.name} is missing"] * self.missing]

    @property
    def of_value(self) -> range:
        """Which of these tell its values apart; none if values are no names of anything."""
        return range(0)

    def describe(self) -> str:
        """How it becomes features, in words."""
        raise NotImplementedError

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Write the features.

        Returns:
            Where values are missing, and notes on values that did not fit.
        """
        raise NotImplementedError

    @property
    def guess(self) -> str | None:
        """What cells are read as that could be something else, and how to overrule that, with {}
        for the name of the column; None if there is no doubt.
        """
        return None

    def surprise(self, cells: Cells) -> str | None:
        """A line on strings that are read as something other than what most of them look like."""
        return self.read_as and cells.looks_otherwise(f"read as {self.read_as}")


class FeatureMatrix:
    """Takes the values that are not 0; the others are not stored on the way either."""

    def __init__(self, rows: int, features: int) -> None:
        self.shape = rows, features
        self.offset = 0
        """The first feature of the column that is written now."""
        self._dense = np.zeros(self.shape, dtype=np.float32) if features <= FEW else None
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

    def finish(self) -> Matrix:
        """The matrix: a dense array or a ``csr_array``."""
        if self._dense is not None:
            return self._dense
        if is_mostly_zero(sum(len(rows) for rows, *_ in self._entries), self.shape):
            rows, columns, values = map(np.concatenate, zip(*self._entries, strict=True))
            self._entries.clear()
            return sparse.coo_array((values, (rows, columns)), shape=self.shape).tocsr()
        dense = np.zeros(self.shape, dtype=np.float32)
        while self._entries:
            rows, columns, values = self._entries.pop()
            dense[rows, columns] = values
        return dense


def is_mostly_zero(stored: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix with so many values that are not 0 is kept sparse."""
    return shape[1] > FEW and stored < MOSTLY_ZERO * shape[0] * shape[1]
