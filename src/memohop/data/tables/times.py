"""Columns of times: when a node or an edge came to be."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.cells import Cells
from memohop.data.tables.spelling import Spelling
from memohop.errors import DataError
from memohop.outputs import count

Role: TypeAlias = Literal["time column", "edge time"]

_SEASON = r"^(?P<first>[0-9]{4}) ?[/\x{2013}-] ?(?P<next>[0-9]{2}|[0-9]{4})$"


class TimeColumn(msgspec.Struct, frozen=True):
    """A column of times, or of numbers such as years, as it was first read.

    Attributes:
        name: Its name in the table.
        dates: Whether it holds dates or times, and not numbers.
        spelling: How strings spell them, and later ones alike; None if they are stored as such.
    """

    name: str
    dates: bool
    spelling: Spelling | None = None

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """The column as these cells have it."""
        return cls(cells.name, cells.are_times, cells.spelling)

    def read(self, column: pa.ChunkedArray, role: Role) -> NDArray[np.float64]:
        """The times, NaN where they are missing."""
        cells = Cells(self.name, column).spelled_as(self.spelling)
        times = read_times(cells, role)
        if cells.are_times != self.dates and not np.isnan(times).all():
            raise cells.not_as_fitted("dates or times" if self.dates else "numbers, not dates")
        return times


def read_times(cells: Cells, role: Role) -> NDArray[np.float64]:
    """Times in seconds, numbers as they are, or first years of seasons; NaN where missing."""
    if cells.stored == "flag":
        raise DataError(f"{role} {cells.name!r} holds true and false; name one with times")
    if cells.words.size and (years := first_years(cells)) is not None:
        return years
    if cells.words.size:
        row = int(cells.words[0])
        where = f"in row {row + 1}" if role == "time column" else f"({cells.words.size} such)"
        raise DataError(
            f"{role} {cells.name!r} holds {cells.column[row].as_py()!r} {where}, which is "
            "neither a time such as 2024-05-31 18:30 nor a number; correct it or leave it empty"
        )
    return cells.numbers


def first_years(cells: Cells) -> NDArray[np.float64] | None:
    """The first year of seasons such as 2010/2011 or 2010-11; None if cells hold anything else."""
    years = pc.extract_regex(pc.utf8_trim_whitespace(cells.text), _SEASON)
    if years.null_count > cells.text.null_count:
        return None
    first, following = (
        np.asarray(pc.struct_field(years, name).cast(pa.float64()).to_numpy())
        for name in ("first", "next")
    )
    following = following + np.where(following < 100, first + 1 - (first + 1) % 100, 0)
    return first if (np.isnan(first) | (following == first + 1)).all() else None


def check_comparable(nodes: TimeColumn, edges: TimeColumn) -> None:
    """Refuse dates of edges beside years of nodes, and the like."""
    if nodes.dates != edges.dates:
        kinds = "dates or times", "numbers"
        of_nodes, of_edges = kinds if nodes.dates else kinds[::-1]
        raise DataError(
            f"time column {nodes.name!r} holds {of_nodes}, and edge time {edges.name!r} "
            f"{of_edges}; give both in the same way, so that they can be compared"
        )


def tell_order(column: str, alike: NDArray[np.bool_], late: NDArray[np.bool_]) -> str:
    """A line on what times do, given the edges between nodes of one time, and those left out."""
    of_all = count(len(late), "edge")
    line = (
        f"column {column!r}: a node learns only from what is earlier than itself, so that "
        "positions and the structure of the whole graph are left out"
    )
    if alike.any():
        line += f"; {alike.sum()} of {of_all} join nodes of one time, of no use to either"
    if late.any():
        line += f"; {late.sum()} of {of_all} left out, as neither end comes after them"
    return line
