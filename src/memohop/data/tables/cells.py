"""What the cells of a table hold: their types, what stands for nothing, and how they are spelled.

Strings that nearly all spell numbers or times are read as these. Values such as ? or unknown say
nothing of the kind of a column: they are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray
from pyarrow import types

from memohop.data.tables._time_spelling import TimeSpelling
from memohop.data.tables.spelling import (
    PLAIN,
    NumberSpelling,
    Spelling,
    numbers_in,
    spelling_of,
)
from memohop.errors import DataError
from memohop.outputs import count, first_few

HUGE = 1e30
"""Numbers beyond this, positive or negative, are refused as mistakes."""

Kind: TypeAlias = Literal["empty", "flag", "text", "number"]
Reading: TypeAlias = Literal["categorical", "numeric", "text"]
"""How a user wants a column to be read."""

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""Strings that mean a missing value in a text file, in every column except ids."""

WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
"""A whole number as Python writes it."""

_MISSING = pa.array(MISSING)
_KINDS: dict[Kind, tuple[str, ...]] = {
    "empty": ("null",),
    "flag": ("boolean",),
    "text": ("string", "large_string", "string_view"),
    "number": ("integer", "floating", "decimal", "date", "timestamp", "time"),
}


def kind_of(kind: pa.DataType, column: str) -> Kind:
    """What a column of this type holds: dates and times are numbers.

    Other types are a :class:`DataError`, which speaks of ``column``.
    """
    stored = kind.value_type if types.is_dictionary(kind) else kind
    for name, members in _KINDS.items():
        if any(getattr(types, f"is_{member}")(stored) for member in members):
            return name
    raise DataError(
        f"{column} is of type {kind}, which is not a number, flag or string; convert it to columns "
        "of these types or leave it out"
    )


def plain_table(table: pa.Table, name: str) -> pa.Table:
    """The table, if :func:`kind_of` knows all its columns and its strings are valid UTF-8.

    Numbers and flags that are stored as a dictionary are decoded. Errors call the table ``name``.
    """
    for index, field in enumerate(table.schema):
        if kind_of(field.type, f"{name}: column {field.name!r}") == "text":
            try:
                table.column(index).validate(full=True)
            except pa.ArrowException as error:
                raise DataError(
                    f"{name}: column {field.name!r} holds strings that are not text in UTF-8 "
                    f"({error}); write the table again"
                ) from error
        elif types.is_dictionary(field.type):
            decoded = table.column(index).cast(field.type.value_type)
            table = table.set_column(index, field.name, decoded)
    return table


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as strings; those that mean a missing value in a text file become null."""
    column = column.cast(pa.string())
    blank = pc.is_in(column, value_set=_MISSING)
    # Not if_else: before pyarrow 24 it damages strings that are a slice of others.
    return pc.replace_with_mask(column, blank.combine_chunks(), pa.scalar(None, pa.string()))


def whole_as_text(
    column: pa.ChunkedArray, wrong: str, remedy: str = "correct them"
) -> pa.ChunkedArray:
    """Ids or labels as strings; 2.0 becomes 2, since tables with gaps store 2 as 2.0.

    Other fractions are a :class:`DataError` that begins and ends with these words.
    """
    if types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        try:
            column = column.cast(pa.int64())
        except pa.ArrowException as error:
            raise DataError(f"{wrong} ({error}); {remedy}") from error
    return column.cast(pa.string())


def spelled_whole(text: pa.ChunkedArray | pa.Array) -> bool:
    """Whether all strings are whole numbers, each spelled in the one usual way."""
    return bool(pc.all(pc.match_substring_regex(text, WHOLE)).as_py())


_OBVIOUS = pa.array(
    [
        *("?", "??", "???", "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", ".", "..", "..."),
        *("None", "<NA>", "n.a.", "N.A.", "Null", "<null>", "(null)", "NaT", "\\N", "#N/A N/A"),
    ]
)
_AMBIGUOUS = pa.array(
    [
        *("none", "na", "nil", "unknown", "unk", "missing", "undefined", "unspecified", "tbd"),
        *("unlabelled", "unlabeled", "no label", "no value", "no data", "not known"),
        *("not available", "not applicable", "nr", "n/r", "n.r.", "not rated", "not reported"),
    ]
)


def are_obvious(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each string stands for nothing, whatever the column; False for null."""
    return pc.is_in(pc.utf8_trim_whitespace(text), value_set=_OBVIOUS)


def are_placeholders(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each string stands for nothing in a column of numbers, though it may be a class."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    return pc.or_(are_obvious(text), pc.is_in(words, value_set=_AMBIGUOUS))


NEARLY_ALL = 0.95
"""The share of the values of a column that must be numbers; the others count as missing."""
_MOST = 0.5  # share of values that look like something else than what the column is read as

_FLAG = r"(?i)^(?:true|false|yes|no)$"


class RejectColumn(Exception):  # noqa: N818
    """A kind of column does not read this one; the next in the list may."""


class SaysNothing(Exception):  # noqa: N818
    """A kind reads this column, and it tells no two nodes apart: it is left out."""


class Cells:
    """The cells of a column, and looks at them; each look is taken once.

    Args:
        name: The name of the column.
        column: Its cells.
        reading: How the user wants it to be read; None to guess.
        spelling: How strings spell numbers, as found in an earlier table; None to look.
    """

    def __init__(
        self,
        name: str,
        column: pa.ChunkedArray,
        reading: Reading | None = None,
        spelling: Spelling | None = None,
    ) -> None:
        self.name, self.column, self.reading, self._known = name, column, reading, spelling
        self.stored = kind_of(column.type, f"column {name!r}")

    @cached_property
    def text(self) -> pa.ChunkedArray:
        """The cells as strings, null where they are missing."""
        return as_text(self.column)

    def spelled_as(self, spelling: Spelling | None) -> Cells:
        """The same cells, where strings spell numbers as in an earlier table."""
        return Cells(self.name, self.column, self.reading, spelling)

    @cached_property
    def spelling(self) -> Spelling | None:
        """How most strings spell numbers or times; None if the cells are no strings."""
        if self._known is not None or self.stored != "text":
            return self._known
        usual = spelling_of(self._said)
        asked = self.reading == "numeric" and isinstance(usual, NumberSpelling) and usual.unit
        return replace(usual, bare=True) if asked else usual

    @property
    def unit(self) -> str:
        """What stands beside numbers."""
        return self.spelling.unit if isinstance(self.spelling, NumberSpelling) else ""

    @property
    def has_currencies(self) -> bool:
        """Whether strings are amounts of money in several currencies."""
        return isinstance(self.spelling, NumberSpelling) and self.spelling.currencies

    @property
    def converted(self) -> list[str]:
        """What was converted from other units."""
        if not isinstance(self.spelling, NumberSpelling) or self.spelling.currencies:
            return []
        return self.spelling.conversions(self._bare)

    @property
    def guesses(self) -> list[str]:
        """How strings are read, as the column as a whole decided."""
        return [] if self.spelling is None else self.spelling.guesses(self._bare)

    def told(self, what: str) -> list[str]:
        """A line on that, and on a unit, if ``what`` is read so; none if it needs none."""
        if self.spelling is None or not (self.unit or self.guesses):
            return []
        return [f"{what} is read as {', '.join([self.spelling.noun, *self.guesses])}"]

    @cached_property
    def spelled(self) -> pa.ChunkedArray:
        """The cells; or the numbers that strings spell, null where they spell none."""
        if self.stored != "text" or self.spelling is None:
            return self.column
        return self.spelling.read(self._bare)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The rows of the strings that spell no number."""
        if self.stored != "text":
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(pc.and_(self.text.is_valid(), self.spelled.is_null()).to_numpy())

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The cells as numbers, NaN where they are missing or words; times in seconds."""
        return self.as_numbers(self.spelled)

    def as_numbers(self, column: pa.ChunkedArray) -> NDArray[np.float64]:
        """These cells as floating-point numbers; what is none or too large is an error."""
        kind = column.type
        try:
            if types.is_time(kind):
                column = column.cast(pa.time32("s"), safe=False).cast(pa.int32())
            elif types.is_temporal(kind):
                column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
            values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        except pa.ArrowException as error:
            raise self.not_as_fitted("numbers") from error
        wrong = np.flatnonzero(np.abs(values) > HUGE)
        if wrong.size:
            row = int(wrong[0])
            raise DataError(
                f"column {self.name!r} holds {values[row]} in row {row + 1} ({wrong.size} such "
                f"value(s) in all); correct values that are infinite or beyond {HUGE:g}, or leave "
                "them empty"
            )
        return values

    def not_as_fitted(self, kind: str) -> DataError:
        """The error for a column that held something else when it was fitted."""
        there = self.column.take(self.words) if self.words.size else self.column.drop_null()
        return DataError(
            f"column {self.name!r} held {kind} when it was fitted and now has type "
            f"{self.column.type}, with values such as {there[0].as_py()!r}; give a table with "
            "columns of the same meaning"
        )

    @cached_property
    def _bare(self) -> pa.ChunkedArray:
        """The strings without spaces around them."""
        return pc.utf8_trim_whitespace(self.text)

    @cached_property
    def _says(self) -> pa.ChunkedArray:
        """Which cells do not stand for nothing."""
        return pc.and_not(self._bare.is_valid(), are_placeholders(self._bare))

    @property
    def _said(self) -> pa.ChunkedArray:
        """The strings without spaces around them, except those that stand for nothing."""
        return self._bare.filter(self._says)

    @cached_property
    def _fits(self) -> pa.ChunkedArray:
        """Which of the strings that say something are spelled as most are."""
        return self.spelled.is_valid().filter(self._says)

    @cached_property
    def are_times(self) -> bool:
        """Whether they are dates or times; nearly all strings, and one, are so."""
        if self.stored != "text":
            return bool(types.is_temporal(self.column.type))
        return isinstance(self.spelling, TimeSpelling) and self._fit_nearly_all

    @property
    def _fit_nearly_all(self) -> bool:
        number = pc.sum(self._fits).as_py() or 0
        return bool(number > 0 and number >= NEARLY_ALL * len(self._said))

    @cached_property
    def are_plain(self) -> bool:
        """Whether strings are numbers, if they are some, as files have them, such as codes."""
        plain = pc.match_substring_regex(self._said.filter(self._fits), PLAIN)
        return bool(pc.all(plain).as_py())

    @cached_property
    def are_spelled(self) -> bool:
        """Whether nearly all strings are times, or numbers that Arrow does not take for numbers.

        Some of the numbers must have separators, signs or a unit, or there must be a few words
        among them. Plain numbers alone that are stored as strings are no numbers: somebody decided
        so, and they may be codes. Nor are there any where decimal points and commas are mixed up.
        """
        if not self._fit_nearly_all or isinstance(self.spelling, TimeSpelling):
            return self.are_times
        assert self.spelling is not None
        others = self._said.filter(pc.invert(self._fits))
        otherwise = replace(self.spelling, decimal_comma=not self.spelling.decimal_comma)
        if otherwise.read(others).null_count < len(others):
            return False
        numbers = len(self._said) - len(others)
        return not self.are_plain or numbers < len(self.text) - self.text.null_count

    @cached_property
    def present(self) -> NDArray[np.float64]:
        """The numbers of a column that is read as such; not all are equal."""
        if self.stored == "text":
            if self.reading is None and not self.are_spelled:
                raise RejectColumn("its strings are not spelled as numbers")
            if self.spelled.null_count == len(self.spelled) > self.text.null_count:
                raise DataError(
                    f"column {self.name!r} is to be numeric and holds no number, but strings such "
                    f"as {self.text.drop_null()[0].as_py()!r}; leave it out of the numeric columns"
                )
        present = self.numbers[~np.isnan(self.numbers)]
        if not present.size or present.min() == present.max():
            raise SaysNothing
        return present

    def looks_otherwise(self, read: str) -> str | None:
        """A line on strings if most look like something that they are not read as."""
        if self.stored != "text":
            return None
        there = self.text.drop_null()
        for fits, share, noun, remedy in self._looks(pc.utf8_trim_whitespace(there)):
            if (pc.sum(fits).as_py() or 0) <= share * len(there):
                continue
            alike, others = there.filter(fits), there.filter(pc.invert(fits))
            but = f", but not {others[0].as_py()!r}" if len(others) else ""
            return (
                f"column {self.name!r} is {read}: {len(alike)} of {count(len(there), 'value')} "
                f"look like {noun}, such as {alike[0].as_py()!r}{but} ({remedy})"
            )
        return None

    def _looks(self, text: pa.ChunkedArray) -> Iterator[tuple[pa.ChunkedArray, float, str, str]]:
        """What strings may look like to a person.

        Yields:
            Which look so, the share of them that must, a noun, and what to do to have them read so.
        """
        assert self.spelling is not None
        numbers = numbers_in(text, decimal_comma=self.spelling.decimal_comma)
        if len(names := numbers.frequent_units()) > 1:
            any_unit = np.zeros(len(text), dtype=bool)
            any_unit[numbers.rows] = True
            noun = "numbers in different units, " + first_few([repr(name) for name in names])
            yield pa.chunked_array([any_unit]), NEARLY_ALL, noun, "write them in one unit"
        numeric = f"numeric=[{self.name!r}], --numeric {self.name} reads them as such"
        yield self.spelling.read(text).is_valid(), _MOST, self.spelling.noun, numeric
        remedy = "with nothing else in it, it is read as a flag"
        yield pc.match_substring_regex(text, _FLAG), NEARLY_ALL, "true or false", remedy
