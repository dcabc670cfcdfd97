"""From the columns of a node table to features, the same way for every later table."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.column_kinds import Flag, Number
from memohop.data.text_columns import CATEGORIES, Category, Words, as_text, words_per_text
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
                infinite or beyond 1e30 is an error that names it.
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
        texts = {name for name in table.column_names if _is_text(table[name])}
        limit = min(WORDS, CELLS // max(1, len(texts) * table.num_rows))
        columns, left_out = [], []
        for name in table.column_names:
            fitted = _fit_column(name, table[name], limit, text=name in texts)
            if fitted is None:
                left_out.append(name)
            else:
                columns.append(fitted)
        return cls(tuple(columns), tuple(left_out))

    def transform(self, table: pa.Table) -> Encoded:
        """The features of a table that has these columns; a missing one is a `UsageError`."""
        absent = [column.name for column in self.columns if column.name not in table.column_names]
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
        return [column.name for column in self.columns if isinstance(column, Category | Words)]

    def describe(self) -> list[str]:
        """How each column becomes features, in plain words; columns treated alike in one line."""
        alike: dict[str, list[str]] = {}
        for column in self.columns:
            alike.setdefault(column.describe(), []).append(repr(column.name))
        notes = [f"{_listed(names)}: {text}" for text, names in alike.items()]
        if self.left_out:
            names = ", ".join(map(repr, self.left_out))
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


def _listed(names: list[str]) -> str:
    shown, more = ", ".join(names[:5]), len(names) - 5
    return f"column{'s' * (len(names) > 1)} {shown}" + (f" and {more} more" if more > 0 else "")


def _is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column of strings is a bag of words and not a category."""
    if not _is_string(column.type):
        return False
    text = as_text(column)
    return bool(pc.count_distinct(text).as_py() > CATEGORIES and words_per_text(text) >= 2)


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_string(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _fit_column(
    name: str, column: pa.ChunkedArray, limit: int, *, text: bool
) -> Number | Flag | Category | Words | None:
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return None
    if _is_string(kind):
        strings = as_text(column)
        return Words.fit(name, strings, limit=limit) if text else Category.fit(name, strings)
    if types.is_boolean(kind):
        return Flag.fit(name, column)
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
    ):
        return Number.fit(name, column)
    raise DataError(
        f"column {name!r} is of type {kind}, which is no number, flag or string; turn it into "
        "such columns or leave it out"
    )
