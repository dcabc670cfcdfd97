"""From the columns of a node table to features, in the same way for every later table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from memohop.data.tables._number_columns import Code, Flag, Number
from memohop.data.tables._text_columns import Category, Words
from memohop.data.tables.cells import Cells, Reading, RejectColumn, SaysNothing
from memohop.data.tables.column import Column, FeatureMatrix, Matrix
from memohop.errors import UsageError
from memohop.outputs import count, listed

KINDS: tuple[type[Column], ...] = (Flag, Code, Number, Words, Category)
"""All kinds of columns, in the order in which they try a column; the first that takes it has it."""
ENTRIES = 100_000_000
"""The most features that all rows and text columns together may have set: 0.8 GB."""
_SURPRISES = 5  # lines on columns that are read in an unexpected way

if TYPE_CHECKING:
    AnyKind: TypeAlias = Column
else:
    AnyKind = reduce(or_, KINDS)  # so that a saved column is read as its own kind


class ColumnEncoder(msgspec.Struct, frozen=True):
    """Turns the columns of a table into numbers, as fitted once on some table.

    ===========  ===================================================================================
    a column     becomes
    ===========  ===================================================================================
    of flags     one feature: 1 for true, 0 for false or missing. Flags are booleans, the numbers 0
                 and 1, and pairs of words: yes and no, true and false, y and n, t and f.
    of numbers   one feature: minus the mean, divided by the standard deviation, cut off at ±10; a
                 missing value is the mean. Dates and times are numbers of seconds. A value that is
                 infinite or beyond 1e30 is an error. Strings are numbers if nearly all are spelled
                 with thousands separators or per cent signs (36,200 or 1 234 or 5 %), or as dates
                 and times (2024-05-31 18:30), or are plain numbers with a few words among them. The
                 others are missing; of ? or unknown there may be any number. Numbers from 0 on with
                 a skewness above 2 are taken as log(1 + v / s), where s is the lowest tenth of
                 those that are not 0.
    mostly of 0  and never negative, such as counts of words: one feature, log2(1 + v / s), where s
                 is the median of the values that are not 0. It is not centred, so 0 stays 0.
    of codes     the number and a category. Codes are whole numbers in a column that is named so
                 (dorm, zip_code), or that come five times each on average and are at most 20, or
                 begin further from 0 than they go on, or have gaps all over.
    of strings   a *category*, one feature for each of the 10,000 most frequent values that occur
                 at least twice, and one for all others; or, if it has more than 50 values and two
                 words or more on average, a *bag of words*, one feature of 0 or 1 for each of the
                 10,000 most frequent words (fewer if they would not fit in RAM) that are in at
                 least two texts.
    ===========  ===================================================================================

    A column with missing values gets one more feature that says where. A column that carries no
    information (all values equal, or all strings different) is left out. If no column is left, the
    one feature is 1 everywhere. Means, values and words are those of all rows; labels are not used.

    In a later table a value that has no feature counts as other; if the column has no feature for
    others, all its features are 0. Every column must be there; additional ones are ignored.

    Attributes:
        columns: The columns that become features, in order.
        left_out: The columns without information.
    """

    columns: tuple[AnyKind, ...]
    left_out: tuple[str, ...] = ()

    def transform(self, table: pa.Table) -> tuple[Matrix, list[str]]:
        """The features of a table with these columns, and notes on values that did not fit.

        The features have a row for each row of the table. They are a ``csr_array`` if there are
        more than 50 and fewer than a fifth of their values are not 0, and a dense array otherwise.
        """
        self.check_columns(table.column_names, "the table")
        if not self.columns:
            return np.ones((table.num_rows, 1), dtype=np.float32), []
        matrix = FeatureMatrix(table.num_rows, len(self.feature_names))
        notes = []
        for column in self.columns:
            absent, told = column.fill(Cells(column.name, table[column.name]), matrix)
            notes += told
            matrix.offset += len(column.names())
            if column.missing:
                matrix.put(np.flatnonzero(absent), 0, 1)
                matrix.offset += 1
            elif absent.any():
                number = count(int(absent.sum()), "value")
                notes.append(
                    f"column {column.name!r}: {number} missing, but none was when it was fitted"
                )
        return matrix.finish(), notes

    def check_columns(self, names: Collection[str], table: str) -> None:
        """Refuse a table, of which errors speak as ``table``, that lacks a column it needs."""
        there = set(names)
        absent = [column.name for column in self.columns if column.name not in there]
        if absent:
            raise UsageError(
                f"{table} lacks the column(s) {', '.join(map(repr, absent))}, from which features "
                "were made; give a table with the same columns, empty where unknown"
            )

    @property
    def feature_names(self) -> list[str]:
        """The names: ``age``, ``age is missing``, ``city=Rome``, ``about: word``."""
        return [name for column in self.columns for name in column.feature_names] or ["constant"]

    @property
    def text_names(self) -> list[str]:
        """The columns that must be read as they are spelled."""
        return [column.name for column in self.columns if column.verbatim]

    def describe(self) -> list[str]:
        """How columns become features, in plain words; columns treated alike share a line."""
        alike: dict[str, list[str]] = {}
        for column in self.columns:
            how = column.describe() + ", and one that says where it is missing" * column.missing
            alike.setdefault(how, []).append(column.name)
        notes = [f"{listed(names)}: {text}" for text, names in alike.items()]
        if self.left_out:
            names = listed(self.left_out)
            notes.append(f"left out, since all values are equal or all are different: {names}")
        if not self.columns:
            notes.append("no column tells nodes apart: the one feature is 1 everywhere")
        return notes


def fit_columns(
    columns: Iterable[tuple[str, pa.ChunkedArray]], readings: Mapping[str, Reading] | None = None
) -> tuple[ColumnEncoder, list[str]]:
    """Fit columns, of which not more than one need be in RAM; some may be read as the user says.

    Lines tell of the first few columns that are read in an unexpected way, and name the others.
    """
    kept: list[Column] = []
    left_out, surprises = [], {}
    for name, column in columns:
        cells = Cells(name, column, (readings or {}).get(name))
        fitted = _fit_column(cells)
        if fitted is None:
            left_out.append(name)
            surprise = cells.looks_otherwise("left out")
        else:
            kept.append(fitted)
            surprise = fitted.surprise(cells)
        if surprise and cells.reading in (None, "numeric"):  # the user did not say how to read it
            surprises[name] = surprise
    texts = sum(isinstance(column, Words) for column in kept)
    kept = [
        column.within(ENTRIES // texts) if isinstance(column, Words) else column for column in kept
    ]
    lines = [*surprises.values()][:_SURPRISES]
    if more := [*surprises][_SURPRISES:]:
        lines.append(f"so are the values of {len(more)} more: {listed(more)}")
    return ColumnEncoder(tuple(kept), tuple(left_out)), lines


def _fit_column(cells: Cells) -> Column | None:
    """The column as the first kind that takes it, or None if it carries no information."""
    for kind in KINDS:
        if cells.reading in (None, kind.asked_for):
            try:
                return kind.fit(cells)
            except RejectColumn:
                continue
            except SaysNothing:
                return None
    return None
