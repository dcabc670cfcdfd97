"""How a column of numbers or flags becomes features.

Each kind of column is fitted once, keeps what it needs in a few plain values, and then fills its
block of the feature matrix, for that table or for another with the same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.column_types import as_text, column_kind
from memohop.data.tables.spelled_numbers import spelled_as_numbers, spelled_numbers
from memohop.errors import DataError

CLIP = 10.0
"""Standardised numbers are cut off here."""
HUGE = 1e30
"""Numbers beyond this, positive or negative, are refused as mistakes."""

Block: TypeAlias = NDArray[np.float32]
Absent: TypeAlias = NDArray[np.bool_]


class Column(msgspec.Struct, frozen=True, tag_field="kind"):
    """One fitted column; each kind of column is a subclass.

    A kind has :meth:`reads`, :meth:`fit`, :meth:`own_names`, :meth:`own_text` and
    :meth:`own_fill`. Missing values are handled here, alike for all kinds.

    Attributes:
        name: Its name in the table.
        missing: Whether values were missing when it was fitted. If so, one more feature marks
            the rows where the value is missing.
    """

    name: str
    missing: bool

    @classmethod
    def reads(cls, column: pa.ChunkedArray) -> bool:
        """Whether a column can be read as this kind; the first kind that can is taken."""
        raise NotImplementedError

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray, limit: int) -> Self | None:
        """The fitted column, or None if it carries no information.

        Args:
            name: Its name.
            column: Its values; strings have been through :func:`as_text`.
            limit: The most features that a column of texts may have.
        """
        raise NotImplementedError

    @property
    def verbatim(self) -> bool:
        """Whether a text file must be read without interpreting this column."""
        return False

    def own_names(self) -> list[str]:
        """The names of its features, without the one for missing values."""
        return [self.name]

    def own_text(self) -> str:
        """How it becomes features, in words."""
        raise NotImplementedError

    def own_fill(self, column: pa.ChunkedArray, block: Block) -> tuple[Absent, list[str]]:
        """Write the features into a block of zeros.

        Returns:
            Where values are missing, and notes on values that did not fit.
        """
        raise NotImplementedError

    def names(self) -> list[str]:
        """The names of all its features."""
        return self.own_names() + [f"{self.name} is missing"] * self.missing

    def describe(self) -> str:
        """How it becomes features, with the feature for missing values."""
        return self.own_text() + ", and one that says where it is missing" * self.missing

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """Write all features into a block of zeros; return notes on values that did not fit."""
        absent, notes = self.own_fill(column, block)
        if self.missing:
            block[:, -1] = absent
        elif absent.any():
            number = count(int(absent.sum()), "value")
            notes.append(f"column {self.name!r}: {number} missing, but none was when it was fitted")
        return notes


class Flag(Column, frozen=True, tag="flag"):
    """True is 1; false and missing are 0."""

    @classmethod
    def reads(cls, column: pa.ChunkedArray) -> bool:
        """Booleans."""
        return column_kind(column.type) == "flag"

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray, limit: int) -> Self | None:
        """None if all values are equal."""
        if pc.count_distinct(column).as_py() < 2:
            return None
        return cls(name, column.null_count > 0)

    def own_text(self) -> str:
        """One feature."""
        return "one feature, 1 for true and 0 for false"

    def own_fill(self, column: pa.ChunkedArray, block: Block) -> tuple[Absent, list[str]]:
        """Whole numbers 0 and 1 are flags too."""
        try:
            flags = column.cast(pa.bool_())
        except pa.ArrowException as error:
            raise _other_kind(self.name, "true or false", column) from error
        block[:, 0] = pc.fill_null(flags, False).to_numpy()
        return column.is_null().to_numpy(), []


class Number(Column, frozen=True, tag="number"):
    """A number, date or time: minus ``mean``, divided by ``std``, cut off at ± ``CLIP``.

    Attributes:
        mean: The mean of the values when it was fitted.
        std: Their standard deviation.
        spelled: Whether they were strings, as in :mod:`memohop.data.tables.spelled_numbers`.
    """

    mean: float
    std: float
    spelled: bool = False

    @classmethod
    def reads(cls, column: pa.ChunkedArray) -> bool:
        """Numbers, dates, times, and strings that spell numbers."""
        kind = column_kind(column.type)
        return kind == "number" or (kind == "text" and spelled_as_numbers(column))

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray, limit: int) -> Self | None:
        """None if all values are equal."""
        spelled = column_kind(column.type) == "text"
        values = _numbers(name, spelled_numbers(column) if spelled else column)
        present = values[~np.isnan(values)]
        if not present.size or present.min() == present.max():
            return None
        mean, std = float(present.mean()), float(present.std())
        if std < np.finfo(np.float64).tiny:  # too small to divide by
            return None
        return cls(name, present.size < values.size, mean, std, spelled)

    @property
    def verbatim(self) -> bool:
        """Numbers that Arrow does not take for numbers."""
        return self.spelled

    def own_text(self) -> str:
        """One feature."""
        bare = " without its thousands separators or per cent sign" if self.spelled else ""
        return f"one feature, the number{bare}, standardised"

    def own_fill(self, column: pa.ChunkedArray, block: Block) -> tuple[Absent, list[str]]:
        """The mean becomes 0, and a missing value is 0 too."""
        notes = []
        if self.spelled and column_kind(column.type) == "text":
            text = as_text(column)
            column = spelled_numbers(text)
            words = text.filter(pc.and_(text.is_valid(), column.is_null()))
            if len(words) and not pc.any(column.is_valid()).as_py():
                raise _other_kind(self.name, "numbers", words)
            if len(words):
                notes.append(
                    f"column {self.name!r}: {count(len(words), 'value')} that are not numbers, "
                    f"such as {words[0].as_py()!r}, count as missing"
                )
        values = (_numbers(self.name, column) - self.mean) / self.std
        absent = np.isnan(values)
        block[:, 0] = np.clip(np.where(absent, 0, values), -CLIP, CLIP)
        if beyond := int((np.abs(values) > CLIP).sum()):
            notes.append(
                f"column {self.name!r}: {count(beyond, 'value')} more than {CLIP:g} standard "
                "deviations from the mean, cut off there"
            )
        return absent, notes


def _numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as floating-point numbers, NaN where missing; dates and times in seconds."""
    kind = column.type
    try:
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        elif pa.types.is_time(kind):
            column = column.cast(pa.time32("s"), safe=False).cast(pa.int32())
        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    except pa.ArrowException as error:
        raise _other_kind(name, "numbers", column) from error
    wrong = np.flatnonzero(np.abs(values) > HUGE)
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"column {name!r} holds {values[row]} in row {row + 1} ({wrong.size} such value(s) in "
            f"all); correct values that are infinite or beyond {HUGE:g}, or leave them empty"
        )
    return values


def _other_kind(name: str, kind: str, column: pa.ChunkedArray) -> DataError:
    example: Any = column.drop_null()[0].as_py()
    return DataError(
        f"column {name!r} held {kind} when it was fitted and now has type {column.type}, with "
        f"values such as {example!r}; give a table with columns of the same meaning"
    )


def count(number: int, noun: str) -> str:
    """A number and its noun, in the plural if needed."""
    return f"{number} {noun}{'s' * (number != 1)}"


def first_few(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def listed(names: Sequence[str], noun: str = "column") -> str:
    """The noun, in the plural if needed, and the first few names."""
    return f"{noun}{'s' * (len(names) > 1)} {first_few([repr(name) for name in names])}"
