"""How a column of numbers or flags becomes features.

Each kind of column is fitted once, keeps what it needs in a few plain values, and then writes its
features into the matrix, for that table or for another with the same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta
from numpy.typing import NDArray

from memohop.data.tables.column_types import as_text, column_kind
from memohop.data.tables.feature_matrix import FeatureMatrix
from memohop.data.tables.spelled_numbers import spelled_numbers
from memohop.errors import DataError

CLIP = 10.0
"""Standardised numbers are cut off here."""
HUGE = 1e30
"""Numbers beyond this, positive or negative, are refused as mistakes."""

_FLAGS = {"true": "false", "yes": "no", "t": "f", "y": "n"}

Absent: TypeAlias = NDArray[np.bool_]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]


class Column(msgspec.Struct, frozen=True, tag_field="kind"):
    """One fitted column; each kind of column is a subclass.

    A kind has :meth:`own_names`, :meth:`own_text` and :meth:`own_fill`. Missing values are handled
    here, alike for all kinds.

    Attributes:
        name: Its name in the table.
        missing: Whether values were missing when it was fitted. If so, one more feature marks
            the rows where the value is missing.
    """

    name: str
    missing: bool

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

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Write the features.

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

    def fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> list[str]:
        """Write all features; return notes on values that did not fit."""
        absent, notes = self.own_fill(column, matrix)
        if self.missing:
            matrix.put(np.flatnonzero(absent), len(self.own_names()), 1)
        elif absent.any():
            number = count(int(absent.sum()), "value")
            notes.append(f"column {self.name!r}: {number} missing, but none was when it was fitted")
        return notes


class Flag(Column, frozen=True, tag="flag"):
    """True is 1; false and missing are 0.

    Attributes:
        spelled: Whether it holds words, such as yes and no.
    """

    spelled: bool = False

    @property
    def verbatim(self) -> bool:
        """Words that Arrow may take for true and false, or not."""
        return self.spelled

    def own_text(self) -> str:
        """One feature."""
        return "one feature, 1 for true and 0 for false"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Numbers are flags too: 0 is false."""
        try:
            if column_kind(column.type) == "text":
                column = spelled_flags(as_text(column))
            values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        except pa.ArrowException as error:
            raise other_kind(self.name, "true or false", column) from error
        absent = np.isnan(values)
        matrix.put(np.flatnonzero((values != 0) & ~absent), 0, 1)
        return absent, []


def spelled_flags(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings such as Yes and no as 1 and 0; others are a :class:`pyarrow.ArrowInvalid`."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    values = pa.array([*_FLAGS, "1", *_FLAGS.values(), "0"])
    index = pc.index_in(words, value_set=values)
    if index.null_count > text.null_count:
        raise pa.ArrowInvalid("not true or false")
    return pc.less(index, len(values) // 2).cast(pa.int8())


def are_flags(text: pa.ChunkedArray) -> bool:
    """Whether the strings are the two words of a pair such as yes and no."""
    words = set(pc.utf8_lower(pc.utf8_trim_whitespace(text.drop_null())).unique().to_pylist())
    return any(words == {yes, no} for yes, no in _FLAGS.items())


class Number(Column, frozen=True, tag="number"):
    r"""A number, date or time: minus ``mean``, divided by ``std``, cut off at ± ``CLIP``.

    With ``log_scale``, :math:`s`, it is :math:`\operatorname{sign}(v) \log(1 + |v| / s)` that is
    standardised so: numbers with a long tail differ by their size, not by their distance.

    Attributes:
        mean: The mean of the values when it was fitted.
        std: Their standard deviation.
        spelled: Whether they were strings, as in :mod:`memohop.data.tables.spelled_numbers`.
        log_scale: For a long tail, a small value among those that are not 0.
        time: Whether they are dates or times.
    """

    mean: float
    std: float
    spelled: bool = False
    log_scale: Positive | None = None
    time: bool = False

    def __post_init__(self) -> None:
        if not self.std > 0:
            raise ValueError(f"column {self.name!r} has std={self.std}")

    @property
    def verbatim(self) -> bool:
        """Numbers that Arrow does not take for numbers."""
        return self.spelled

    def own_text(self) -> str:
        """One feature."""
        what = "the time" if self.time else "the number"
        if self.spelled and not self.time:
            what += " without thousands separators or a per cent sign"
        if self.log_scale is not None:
            what += ", on a logarithmic scale for its long tail"
        return f"one feature, {what}, standardised"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """The mean becomes 0, and a missing value is 0 too."""
        values, notes = read_numbers(self, column)
        if self.log_scale is not None:
            values = logarithm(values, self.log_scale)
        values = (values - self.mean) / self.std
        absent = np.isnan(values)
        matrix.put_all(0, np.clip(np.where(absent, 0, values), -CLIP, CLIP))
        if beyond := int((np.abs(values) > CLIP).sum()):
            notes.append(
                f"column {self.name!r}: {count(beyond, 'value')} more than {CLIP:g} standard "
                "deviations from the mean, cut off there"
            )
        return absent, notes


class Amount(Column, frozen=True, tag="amount"):
    r"""A number that is mostly 0 and never negative, as counts of words are.

    A missing value is 0, and :math:`v` becomes :math:`\log_2(1 + v / s)`: a typical value is 1,
    and 0 stays 0, so that the column can be stored sparse.

    Attributes:
        scale: :math:`s`, the median of the values that are not 0.
        spelled: As of :class:`Number`.
    """

    scale: Positive
    spelled: bool = False

    @property
    def verbatim(self) -> bool:
        """Numbers that Arrow does not take for numbers."""
        return self.spelled

    def own_text(self) -> str:
        """One feature."""
        return "one feature, the number, mostly 0, on a logarithmic scale"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Cut off as :class:`Number` is."""
        values, notes = read_numbers(self, column)
        absent = np.isnan(values)
        rows = np.flatnonzero((values != 0) & ~absent)
        scaled = logarithm(values[rows], self.scale) / np.log(2)
        matrix.put(rows, 0, np.clip(scaled, -CLIP, CLIP))
        return absent, notes


def logarithm(values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The logarithm of 1 plus the values in units of the scale, odd in the values."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values) / scale))


def read_numbers(
    fitted: Number | Amount, column: pa.ChunkedArray
) -> tuple[NDArray[np.float64], list[str]]:
    """The column as numbers, NaN where missing, and a note on strings that are no numbers."""
    notes = []
    if fitted.spelled and column_kind(column.type) == "text":
        text = as_text(column)
        column = spelled_numbers(text)
        words = text.filter(pc.and_(text.is_valid(), column.is_null()))
        if len(words) and not pc.any(column.is_valid()).as_py():
            raise other_kind(fitted.name, "numbers", words)
        if len(words):
            notes.append(
                f"column {fitted.name!r}: {count(len(words), 'value')} that are not numbers, "
                f"such as {words[0].as_py()!r}, count as missing"
            )
    return numbers(fitted.name, column), notes


def numbers(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column as floating-point numbers, NaN where missing; dates and times in seconds."""
    kind = column.type
    try:
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        elif pa.types.is_time(kind):
            column = column.cast(pa.time32("s"), safe=False).cast(pa.int32())
        values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    except pa.ArrowException as error:
        raise other_kind(name, "numbers", column) from error
    wrong = np.flatnonzero(np.abs(values) > HUGE)
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"column {name!r} holds {values[row]} in row {row + 1} ({wrong.size} such value(s) in "
            f"all); correct values that are infinite or beyond {HUGE:g}, or leave them empty"
        )
    return values


def other_kind(name: str, kind: str, column: pa.ChunkedArray) -> DataError:
    """The error for a column that holds something else than when it was fitted."""
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
