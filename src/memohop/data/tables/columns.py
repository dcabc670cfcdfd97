"""From the columns of a node table to features, in the same way for every later table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from memohop.data.arcs import NUMBER_OF_EDGES, ArcAttribute
from memohop.data.read_options import check_there
from memohop.data.tables._ngrams import Ngrams
from memohop.data.tables._number_columns import Amount, Code, Flag, Number
from memohop.data.tables._places import coordinate, pairs_of
from memohop.data.tables._text_columns import Bag, Category, Pieces, Words
from memohop.data.tables._time_columns import Time
from memohop.data.tables.cells import Cells, Reading, RejectColumn, SaysNothing
from memohop.data.tables.column import Column, FeatureMatrix, Matrix
from memohop.data.tables.leaks import Target
from memohop.data.tables.times import TimeColumn
from memohop.outputs import count, listed

KINDS: tuple[type[Column], ...] = (
    Flag,
    Time,
    Code,
    Amount,
    Number,
    Words,
    Pieces,
    Ngrams,
    Category,
)
"""All kinds of columns, in the order in which they try a column; the first that takes it has it."""
ENTRIES = 100_000_000
"""The most features that all rows and text columns together may have set: 0.8 GB."""
_SURPRISES = 5  # lines on columns that are read in an unexpected way

if TYPE_CHECKING:
    AnyKind: TypeAlias = Column
else:
    AnyKind = reduce(or_, KINDS)  # so that a saved column is read as its own kind


class EdgeColumns(msgspec.Struct, frozen=True):
    """Columns of an edge table, the columns of nodes that are made of them, attributes of arcs.

    Attributes:
        columns: Those of the edge table, as fitted.
        ways: Which edges of a node count: those from it, those to it, or those at either end.
        made: The columns of nodes that became features, by their names.
        on_arcs: Whether the features of the columns are attributes of arcs, too.
        repeated: Whether how often an arc comes is one.
        time: The column with times, if there is one.
        aged: Whether edges have an age, since nodes have times.
    """

    columns: tuple[AnyKind, ...] = ()
    ways: tuple[Literal["from", "to", "at"], ...] = ()
    made: tuple[str, ...] = ()
    on_arcs: bool = False
    repeated: bool = False
    time: TimeColumn | None = None
    aged: bool = False

    @property
    def attributes(self) -> tuple[ArcAttribute, ...]:
        """What each attribute of an arc is; the values of a category are relations."""
        made: list[ArcAttribute] = []
        for column in self.columns if self.on_arcs else ():
            category = column.category if isinstance(column, Code) else column
            kinds = category.names() if isinstance(category, Category) else ()
            made += [ArcAttribute(name, name in kinds) for name in column.feature_names]
        return (*made, *[ArcAttribute(NUMBER_OF_EDGES)] * self.repeated)


class ColumnEncoder(msgspec.Struct, frozen=True):
    """Turns the columns of a table into numbers, as fitted once on some table.

    Each of :data:`KINDS` says what becomes of its columns. A column with missing values gets one
    more feature that says where. A column that carries no information (all values equal, or all
    strings different without a pattern, as digests are) is left out. If no column is left, the one
    feature is 1 everywhere. Means, values and words are those of all rows; labels are not used.

    In a later table every column must be there; additional ones are ignored.

    Attributes:
        columns: The columns that become features, in order.
        left_out: The columns without information.
        edges: The columns of the edge table that some of these columns are made of.
        time: The column of the node table with times, which has no features; None without.
        places: Pairs of columns that are longitude and latitude.
    """

    columns: tuple[AnyKind, ...]
    left_out: tuple[str, ...] = ()
    edges: EdgeColumns = EdgeColumns()
    time: TimeColumn | None = None
    places: tuple[tuple[str, str], ...] = ()

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
        check_there((column.name for column in self.columns), names, table)

    def without_attributes(self) -> ColumnEncoder:
        """The same for a model that does without attributes of arcs."""
        edges = msgspec.structs.replace(self.edges, on_arcs=False, repeated=False)
        if not edges.made:
            edges = EdgeColumns(time=edges.time)
        return msgspec.structs.replace(self, edges=edges)

    def apart(self) -> tuple[ColumnEncoder, ColumnEncoder]:
        """For the columns of the node table, and for those that are made of edges, which follow."""
        own = tuple(column for column in self.columns if column.name not in self.edges.made)
        of_edges = replace(self, columns=self.columns[len(own) :])
        return ColumnEncoder(own, time=self.time), of_edges

    @property
    def feature_names(self) -> list[str]:
        """The names: ``age``, ``age is missing``, ``city=Rome``, ``about: word``."""
        return [name for column in self.columns for name in column.feature_names] or ["constant"]

    @property
    def of_edges(self) -> int:
        """How many of the features are made of edges: they come last."""
        made = [column for column in self.columns if column.name in self.edges.made]
        return sum(len(column.feature_names) for column in made)

    @property
    def words(self) -> NDArray[np.bool_]:
        """Which of the features are words or other parts of strings."""
        marks = [
            np.repeat([isinstance(column, Bag), False], [len(column.names()), column.missing])
            for column in self.columns
        ]
        return np.concatenate(marks) if marks else np.zeros(1, dtype=bool)

    @property
    def of_values(self) -> dict[str, tuple[int, int]]:
        """The columns with values that are names, and the features that tell these apart.

        They are all from one feature on, and before another.
        """
        ends, first = {}, 0
        for column in self.columns:
            if some := column.of_value:
                ends[column.name] = first + some.start, first + some.stop
            first += len(column.feature_names)
        return ends

    @property
    def coordinates(self) -> NDArray[np.float64]:
        """Of each of :attr:`places`, longitude and latitude, ``[places, 2, 4]``.

        These are the number of the feature, mean and standard deviation of its values, and the
        feature that says where it is missing, or -1.
        """
        numbers, first = {}, 0
        for column in self.columns:
            if isinstance(column, Number):
                flag = first + len(column.names()) if column.missing else -1
                numbers[column.name] = first, column.mean, column.std, flag
            first += len(column.feature_names)
        return np.array([[numbers[name] for name in pair] for pair in self.places], dtype=float)

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
            notes.append(
                f"left out, since all values are equal, or different without a pattern: {names}"
            )
        if not self.columns:
            notes.append("no column tells nodes apart: the one feature is 1 everywhere")
        return notes


def fit_columns(
    columns: Iterable[tuple[str, pa.ChunkedArray]],
    readings: Mapping[str, Reading] | None = None,
    kinds: Collection[type[Column]] | None = None,
    target: Target | None = None,
) -> tuple[ColumnEncoder, list[str]]:
    """Fit columns, of which not more than one need be in RAM; some may be read as the user says.

    They are of ``kinds``, by default of :data:`KINDS`.

    Lines tell of the first few columns that may be the label under another name, and of those that
    are read in an unexpected way, and name the others; then of those that are guessed, or left out.
    """
    kept: list[Column] = []
    left_out, surprises, leaks = [], {}, {}
    guesses: dict[str, list[str]] = {}
    coordinates: dict[tuple[str, ...], str] = {}
    for name, column in columns:
        cells = Cells(name, column, (readings or {}).get(name))
        fitted = _fit_column(cells, kinds or KINDS)
        if fitted is None:
            left_out.append(name)
            surprise = cells.looks_otherwise("left out")
        else:
            kept.append(fitted)
            surprise = fitted.surprise(cells)
            if words := coordinate(fitted, cells):
                coordinates[words] = name
        if target is not None and (leak := target.leak(cells)):
            leaks[name] = leak
        if surprise and cells.reading in (None, "numeric"):  # the user did not say how to read it
            surprises[name] = surprise
        elif cells.reading is None and fitted is not None and fitted.guess is not None:
            guesses.setdefault(fitted.guess, []).append(name)
    texts = sum(isinstance(column, Bag) for column in kept)
    kept = [
        column.within(ENTRIES // texts) if isinstance(column, Bag) else column for column in kept
    ]
    lines = _first_few(leaks, "the same goes for") + _first_few(surprises, "so are the values of")
    for guess, names in guesses.items():
        are = "are" if len(names) > 1 else "is"
        lines.append(f"{listed(names)} {are} read as {guess.format(names[0])}")
    if quiet := [name for name in left_out if name not in surprises]:
        are = "are" if len(quiet) > 1 else "is"
        why = "all values are equal, or different without a pattern"
        lines.append(f"{listed(quiet)} {are} left out: {why}")
    places = pairs_of(coordinates)
    lines += [
        f"columns {longitude!r} and {latitude!r} are taken for longitude and latitude, and become "
        "points on a sphere, too"
        for longitude, latitude in places
    ]
    return ColumnEncoder(tuple(kept), tuple(left_out), places=places), lines


def _first_few(lines: Mapping[str, str], others: str) -> list[str]:
    """Lines on the first few columns, and one that names the others."""
    more = [*lines][_SURPRISES:]
    tail = [f"{others} {len(more)} more: {listed(more)}"] if more else []
    return [*lines.values()][:_SURPRISES] + tail


def _fit_column(cells: Cells, kinds: Collection[type[Column]]) -> Column | None:
    """The column as the first kind that takes it, or None if it carries no information."""
    for kind in kinds:
        if cells.reading in (None, kind.asked_for):
            try:
                return kind.fit(cells)
            except RejectColumn:
                continue
            except SaysNothing:
                return None
    return None
