"""From the columns of a node table to features, the same way for every later table."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.column_kinds import Flag, Number, listed
from memohop.data.tables.column_types import as_text, column_kind, no_kind
from memohop.data.tables.spelled_numbers import spelled_as_numbers
from memohop.data.tables.text_columns import CATEGORIES, Category, Words, words_per_text
from memohop.errors import DataError, UsageError

WORDS = 1000
"""The most words of a text column that get a feature of their own."""
CELLS = 250_000_000
"""Text columns together fill at most so many numbers (1 GB): features are a dense matrix."""


class Encoded(NamedTuple):
    """Features, and what happened on the way.

    Attributes:
        x: One row for each row of the table.
        notes: Values that were missing, cut off or not known, in plain words.
    """

    x: NDArray[np.float32]
    notes: tuple[str, ...]


class ColumnEncoder(msgspec.Struct, frozen=True):
    """Turns the columns of a table into numbers, as fitted once on some table.

    ==========  ====================================================================================
    a column    becomes
    ==========  ====================================================================================
    of numbers  one feature: minus the mean, divided by the standard deviation, cut off at ±10; a
                missing value is the mean. Dates and times are numbers of seconds. A value that is
                infinite or beyond 1e30 is an error that names it. Strings are numbers if nearly all
                are spelled with thousands separators or per cent signs: 36,200 or 1 234 or 5 %.
    of flags    one feature: 1 for true, 0 for false or missing.
    of strings  a *category*, one feature for each of the 50 most frequent values that occur at
                least twice, and one for all others; or, if it has more than 50 values and two words
                or more in the mean, a *bag of words*, one feature of 0 or 1 for each of the 1000
                most frequent words (fewer where a million nodes would not fit) that are in at least
                two texts.
    ==========  ====================================================================================

    A column with missing values gets one more feature that says where. A column that says nothing
    (all values equal, or all different strings) is left out. If no column is left, the one feature
    is 1 everywhere. Means, values and words are those of all rows, labelled or not: labels play no
    part in it.

    In a later table a value that has no feature counts as other, or leaves all features of its
    column 0 where there is none for the others. Every column must be there; more may be.

    Attributes:
        columns: The columns that become features, in order.
        left_out: The columns that say nothing.
    """

    columns: tuple[Number | Flag | Category | Words, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: pa.Table) -> ColumnEncoder:
        """Looks at every column of a table once."""
        for field in table.schema:
            if column_kind(field.type) is None:
                raise no_kind(field.name, field.type)
        readings = [_reading(column) for column in table.columns]
        limit = min(WORDS, CELLS // max(1, readings.count(Words) * table.num_rows))
        columns, left_out = [], []
        for name, column, reading in zip(table.column_names, table.columns, readings, strict=True):
            fitted = _fit_column(name, column, reading, limit)
            if fitted is None:
                left_out.append(name)
            else:
                columns.append(fitted)
        return cls(tuple(columns), tuple(left_out))

    def transform(self, table: pa.Table) -> Encoded:
        """The features of a table that has these columns; a missing one is a `UsageError`."""
        there = set(table.column_names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise UsageError(
                f"the table lacks the column(s) {', '.join(map(repr, absent))}, from which "
                "features were made; give a table with the same columns, empty where unknown"
            )
        if not self.columns:
            return Encoded(np.ones((table.num_rows, 1), dtype=np.float32), ())
        # Each column writes into its part, so that no second matrix of this size is ever made.
        x = np.zeros((table.num_rows, len(self.feature_names)), dtype=np.float32)
        notes, start = [], 0
        for column in self.columns:
            end = start + len(column.names())
            notes += column.fill(table[column.name], x[:, start:end])
            start = end
        return Encoded(x, tuple(notes))

    @property
    def feature_names(self) -> list[str]:
        """The names of the features: `age`, `age is missing`, `city=Rome`, `about: word`."""
        return [name for column in self.columns for name in column.names()] or ["constant"]

    @property
    def text_names(self) -> list[str]:
        """The columns that must be read as they are spelled."""
        return [
            column.name
            for column in self.columns
            if isinstance(column, Category | Words)
            or (isinstance(column, Number) and column.spelled)
        ]

    def describe(self) -> list[str]:
        """How each column becomes features, in plain words; columns treated alike in one line."""
        alike: dict[str, list[str]] = {}
        for column in self.columns:
            alike.setdefault(column.describe(), []).append(column.name)
        notes = [f"{listed(names)}: {text}" for text, names in alike.items()]
        if self.left_out:
            names = listed(self.left_out)
            notes.append(f"left out, since all values are equal or all are different: {names}")
        if not self.columns:
            notes.append("no column says anything of a node: its one feature is 1 everywhere")
        return notes

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which `from_json` makes the same encoder."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ColumnEncoder:
        """The encoder that `to_json` was called on; anything else is a `DataError`."""
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"this describes no columns: {error}; save the model anew") from error


def _reading(column: pa.ChunkedArray) -> type[Number | Flag | Category | Words] | None:
    """What a column is read as, None if it is empty; labels and other columns play no part."""
    kind = column_kind(column.type)
    if kind != "text":
        return Number if kind == "number" else Flag if kind == "flag" else None
    text = as_text(column)
    if spelled_as_numbers(text):
        return Number
    many = pc.count_distinct(text).as_py() > CATEGORIES
    return Words if many and words_per_text(text) >= 2 else Category


def _fit_column(
    name: str,
    column: pa.ChunkedArray,
    reading: type[Number | Flag | Category | Words] | None,
    limit: int,
) -> Number | Flag | Category | Words | None:
    if reading is None:
        return None
    if column_kind(column.type) == "text":
        column = as_text(column)
    if issubclass(reading, Words):
        return reading.fit(name, column, limit=limit)
    return reading.fit(name, column)
