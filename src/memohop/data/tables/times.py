"""Columns of times: when a node or an edge came to be."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from memohop.data.tables.cells import Cells
from memohop.data.tables.spelling import Spelling
from memohop.errors import DataError
from memohop.outputs import count

Role: TypeAlias = Literal["time column", "edge time"]


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
    """Times in seconds, or numbers as they are; NaN where they are missing."""
    if cells.stored == "flag":
        raise DataError(f"{role} {cells.name!r} holds true and false; name one with times")
    if cells.words.size:
        row = int(cells.words[0])
        where = f"in row {row + 1}" if role == "time column" else f"({cells.words.size} such)"
        raise DataError(
            f"{role} {cells.name!r} holds {cells.column[row].as_py()!r} {where}, which is "
            "neither a time such as 2024-05-31 18:30 nor a number; correct it or leave it empty"
        )
    return cells.numbers


def check_comparable(nodes: TimeColumn, edges: TimeColumn) -> None:
    """Refuse dates of edges beside years of nodes, and the like."""
    if nodes.dates != edges.dates:
        kinds = "dates or times", "numbers"
        of_nodes, of_edges = kinds if nodes.dates else kinds[::-1]
        raise DataError(
            f"time column {nodes.name!r} holds {of_nodes}, and edge time {edges.name!r} "
            f"{of_edges}; give both in the same way, so that they can be compared"
        )


def tell_order(alike: NDArray[np.bool_], late: NDArray[np.bool_]) -> str:
    """A line on what times do, given the edges between nodes of one time, and those left out."""
    line, of_all = "a node learns only from what is earlier than itself", count(len(late), "edge")
    if alike.any():
        line += f"; {alike.sum()} of {of_all} join nodes of the same time, neither of which does"
    if late.any():
        line += f"; {late.sum()} of {of_all} left out, as neither end comes after them"
    return line
