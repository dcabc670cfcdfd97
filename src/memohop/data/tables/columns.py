"""From the columns of a node table to features, in the same way for every later table."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memohop.data.tables.column_kinds import Flag, Number, listed
from memohop.data.tables.column_types import as_text, column_kind, no_kind
from memohop.data.tables.text_columns import Category, Words
from memohop.errors import DataError, UsageError

ColumnKind: TypeAlias = Flag | Number | Words | Category
"""All kinds of columns. A column becomes the first kind that reads it."""
WORDS = 1000
"""The most words of a text column that get a feature of their own."""
CELLS = 250_000_000
"""The most numbers that all text columns fill together (1 GB): features are a dense matrix."""


class Encoded(NamedTuple):
    """Features, one row for each row of the table, and notes on values that did not fit."""

    x: NDArray[np.float32]
    notes: tuple[str, ...]


class ColumnEncoder(msgspec.Struct, frozen=True):
    """Turns the columns of a table into numbers, as fitted once on some table.

    ==========  ====================================================================================
    a column    becomes
    ==========  ====================================================================================
    of numbers  one feature: minus the mean, divided by the standard deviation, cut off at ±10; a
                missing value is the mean. Dates and times are numbers of seconds. A value that is
                infinite or beyond 1e30 is an error. Strings are numbers if nearly all are spelled
                with thousands separators or per cent signs: 36,200 or 1 234 or 5 %.
    of flags    one feature: 1 for true, 0 for false or missing.
    of strings  a *category*, one feature for each of the 50 most frequent values that occur at
                least twice, and one for all others; or, if it has more than 50 values and two words
                or more on average, a *bag of words*, one feature of 0 or 1 for each of the 1000
                most frequent words (fewer if a million nodes would not fit) that are in at least
                two texts.
    ==========  ====================================================================================

    A column with missing values gets one more feature that says where. A column that carries no
    information (all values equal, or all strings different) is left out. If no column is left, the
    one feature is 1 everywhere. Means, values and words are those of all rows; labels are not used.

    In a later table a value that has no feature counts as other; if the column has no feature for
    others, all its features are 0. Every column must be there; additional ones are ignored.

    Attributes:
        columns: The columns that become features, in order.
        left_out: The columns without information.
    """

    columns: tuple[ColumnKind, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: pa.Table) -> ColumnEncoder:
        """Fit every column of a table."""
        for field in table.schema:
            if column_kind(field.type) is None:
                raise no_kind(field.name, field.type)
        kinds = [_kind(_values(column)) for column in table.columns]
        limit = min(WORDS, CELLS // max(1, kinds.count(Words) * table.num_rows))
        columns, left_out = [], []
        for name, column, kind in zip(table.column_names, table.columns, kinds, strict=True):
            fitted = None if kind is None else kind.fit(name, _values(column), limit)
            if fitted is None:
                left_out.append(name)
            else:
                columns.append(fitted)
        return cls(tuple(columns), tuple(left_out))

    def transform(self, table: pa.Table) -> Encoded:
        """The features of a table with these columns; a missing one is a :class:`UsageError`."""
        there = set(table.column_names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise UsageError(
                f"the table lacks the column(s) {', '.join(map(repr, absent))}, from which "
                "features were made; give a table with the same columns, empty where unknown"
            )
        if not self.columns:
            return Encoded(np.ones((table.num_rows, 1), dtype=np.float32), ())
        # Each column writes into its part, so no second matrix of this size is made.
        x = np.zeros((table.num_rows, len(self.feature_names)), dtype=np.float32)
        notes, start = [], 0
        for column in self.columns:
            end = start + len(column.names())
            notes += column.fill(table[column.name], x[:, start:end])
            start = end
        return Encoded(x, tuple(notes))

    @property
    def feature_names(self) -> list[str]:
        """The names: ``age``, ``age is missing``, ``city=Rome``, ``about: word``."""
        return [name for column in self.columns for name in column.names()] or ["constant"]

    @property
    def text_names(self) -> list[str]:
        """The columns that must be read as they are spelled."""
        return [column.name for column in self.columns if column.verbatim]

    def describe(self) -> list[str]:
        """How columns become features, in plain words; columns treated alike share a line."""
        alike: dict[str, list[str]] = {}
        for column in self.columns:
            alike.setdefault(column.describe(), []).append(column.name)
        notes = [f"{listed(names)}: {text}" for text, names in alike.items()]
        if self.left_out:
            names = listed(self.left_out)
            notes.append(f"left out, since all values are equal or all are different: {names}")
        if not self.columns:
            notes.append("no column tells nodes apart: the one feature is 1 everywhere")
        return notes

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which :meth:`from_json` makes the same encoder."""
        return dict(msgspec.to_builtins(self))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ColumnEncoder:
        """The encoder that :meth:`to_json` described; anything else is a :class:`DataError`."""
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"this describes no columns: {error}; save the model again") from error


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as its kind sees it: strings with missing values set to null."""
    return as_text(column) if column_kind(column.type) == "text" else column


def _kind(column: pa.ChunkedArray) -> type[ColumnKind] | None:
    """The kind of a column, None if it is empty."""
    return next((kind for kind in get_args(ColumnKind) if kind.reads(column)), None)
