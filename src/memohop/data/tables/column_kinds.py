"""How a column of numbers or flags becomes features.

Each kind of column is fitted once, keeps what it needs in a few plain values, and then fills its
block of the feature matrix, for that table or for another with the same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.column_types import as_text, column_kind
from memohop.data.tables.spelled_numbers import spelled_numbers
from memohop.errors import DataError

CLIP = 10.0
"""Standardised numbers are cut off here."""
HUGE = 1e30
"""Numbers beyond this, either way, are refused as mistakes."""

Block: TypeAlias = NDArray[np.float32]


class Column(msgspec.Struct, frozen=True, tag_field="kind"):
    """One fitted column.

    Attributes:
        name: Its name in the table.
        missing: Whether values were missing when it was fitted. If so, one more feature says
            where one is missing.
    """

    name: str
    missing: bool

    def own_names(self) -> list[str]:
        """The names of its features but for the one that says where a value is missing."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """The names of all its features."""
        return self.own_names() + [f"{self.name} is missing"] * self.missing

    def describe(self) -> str:
        """How it becomes features, in words."""
        raise NotImplementedError

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """Writes the features into a block of zeros, and tells what did not fit."""
        raise NotImplementedError

    def _fill_missing(self, absent: NDArray[np.bool_], block: Block) -> list[str]:
        if self.missing:
            block[:, -1] = absent
            return []
        if not absent.any():
            return []
        number = count(int(absent.sum()), "value")
        return [f"column {self.name!r}: {number} missing, where none was when it was fitted"]

    def _with_missing(self, text: str) -> str:
        return text + ", and one that says where it is missing" * self.missing


class Number(Column, frozen=True, tag="number"):
    """A number, date or time: minus `mean`, divided by `std`, cut off at ±`CLIP`.

    Attributes:
        mean: The mean of the values that were there when it was fitted.
        std: Their standard deviation.
        spelled: Whether these were strings, as in `memohop.data.tables.spelled_numbers`.
    """

    mean: float
    std: float
    spelled: bool = False

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> Number | None:
        """None where all values that are there are equal."""
        spelled = column_kind(column.type) == "text"
        values = _numbers(name, spelled_numbers(column) if spelled else column)
        there = values[~np.isnan(values)]
        if not there.size or there.min() == there.max():
            return None
        mean, std = float(there.mean()), float(there.std())
        if std < np.finfo(np.float64).tiny:  # one cannot divide by it
            return None
        return cls(name, there.size < values.size, mean, std, spelled)

    def own_names(self) -> list[str]:
        """One feature."""
        return [self.name]

    def describe(self) -> str:
        """How it becomes a feature."""
        bare = " without its thousands separators or per cent sign" if self.spelled else ""
        return self._with_missing(f"one feature, the number{bare}, standardised")

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """The mean is 0 then, and so is a missing value."""
        notes = []
        if self.spelled and column_kind(column.type) == "text":
            text = as_text(column)
            column = spelled_numbers(text)
            words = text.filter(pc.and_(text.is_valid(), column.is_null()))
            if len(words) and not pc.any(column.is_valid()).as_py():
                raise _other_kind(self.name, "numbers", words)
            if len(words):
                notes.append(
                    f"column {self.name!r}: {count(len(words), 'value')} that are no numbers, such "
                    f"as {words[0].as_py()!r}, count as missing"
                )
        values = (_numbers(self.name, column) - self.mean) / self.std
        absent = np.isnan(values)
        beyond = int((np.abs(values) > CLIP).sum())
        block[:, 0] = np.clip(np.where(absent, 0, values), -CLIP, CLIP)
        notes += self._fill_missing(absent, block)
        if beyond:
            notes.append(
                f"column {self.name!r}: {count(beyond, 'value')} more than {CLIP:g} standard "
                "deviations from the mean, cut off there"
            )
        return notes


class Flag(Column, frozen=True, tag="flag"):
    """True is 1; false and missing are 0."""

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> Flag | None:
        """None where all values that are there are equal."""
        if pc.count_distinct(column).as_py() < 2:
            return None
        return cls(name, column.null_count > 0)

    def own_names(self) -> list[str]:
        """One feature."""
        return [self.name]

    def describe(self) -> str:
        """How it becomes a feature."""
        return self._with_missing("one feature, 1 for true and 0 for false")

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """Whole numbers 0 and 1 will do as well."""
        try:
            flags = column.cast(pa.bool_())
        except pa.ArrowException as error:
            raise _other_kind(self.name, "true or false", column) from error
        block[:, 0] = pc.fill_null(flags, False).to_numpy()
        return self._fill_missing(column.is_null().to_numpy(), block)


def _numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as floating-point numbers, NaN where there is none; dates in seconds."""
    kind = column.type
    try:
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        elif pa.types.is_time(kind):
            column = column.cast(pa.time32("s"), safe=False).cast(pa.int32())
        values = column.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException as error:
        raise _other_kind(name, "numbers", column) from error
    wrong = np.flatnonzero(np.abs(values) > HUGE)
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"column {name!r} holds {values[row]} in row {row + 1} ({wrong.size} such value(s) in "
            f"all); correct what is infinite or beyond {HUGE:g}, or leave it empty if unknown"
        )
    return np.asarray(values)


def _other_kind(name: str, kind: str, column: pa.ChunkedArray) -> DataError:
    example: Any = column.drop_null()[0].as_py()
    return DataError(
        f"column {name!r} held {kind} when it was fitted and now has type {column.type}, with "
        f"values such as {example!r}; give a table whose columns mean the same"
    )


def count(number: int, noun: str) -> str:
    """A number and what is counted, in the plural where that is right."""
    return f"{number} {noun}{'s' * (number != 1)}"


def first_few(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def listed(names: Sequence[str], noun: str = "column") -> str:
    """What is named, in the plural where that is right, and the first few of the names."""
    return f"{noun}{'s' * (len(names) > 1)} {first_few([repr(name) for name in names])}"
