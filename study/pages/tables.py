"""A table, and how it is written as Markdown, CSV and on a terminal; templates write HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from study.paper.table1 import Printed
from study.runs.results import MeanAndStd

if TYPE_CHECKING:
    from rich.table import Table as RichTable

NOTHING = "-"
"""Stands where there is no figure."""


@dataclass(frozen=True)
class TableCell:
    """A text, perhaps strong (bold) or soft (grey), with smaller notes below it and text beside it.

    The value sorts the column; the text does if None.
    """

    text: str = NOTHING
    notes: tuple[str, ...] = ()
    value: float | None = None
    strong: bool = False
    soft: bool = False
    beside: str = ""

    @property
    def line(self) -> str:
        """The text with what stands beside it."""
        return f"{self.text} {self.beside}".strip()


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, its rows, and its name on the page.

    Attributes:
        kinds: The kind of each row, if the page can choose between them.
        families: The family of columns, by their names, if the page can choose between them.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    id: str = ""
    kinds: tuple[str, ...] = ()
    families: Mapping[str, str] = field(default_factory=dict)

    def is_text(self, column: int) -> bool:
        """Whether a column holds words."""
        cells = [row[column] for row in self.rows]
        return all(c.value is None for c in cells) and any(c.text != NOTHING for c in cells)


def number(value: float | None, form: str = ".2f", **more: Any) -> TableCell:
    """A number, or nothing."""
    return TableCell(**more) if value is None else TableCell(f"{value:{form}}", value=value, **more)


def points(value: float, form: str = "+.2f", **more: Any) -> TableCell:
    """A difference in points."""
    return TableCell(signed(f"{value:{form}}"), value=value, **more)


def mean_and_std(scores: MeanAndStd | Printed | None, form: str = ".2f", **more: Any) -> TableCell:
    """A mean with its standard deviation beside it, if there is one, or nothing."""
    if scores is None:
        return TableCell(**more)
    beside = "" if scores.std is None else f"± {scores.std:.2f}"
    return number(scores.mean, form, beside=beside, **more)


def signed(text: str) -> str:
    """The text of a number with a true minus."""
    return text.replace("-", "\N{MINUS SIGN}")


def score(scores: MeanAndStd | Printed) -> str:
    """Mean and standard deviation, where there is one."""
    return mean_and_std(scores).line


def duration(seconds: float) -> TableCell:
    """Seconds in the unit that suits them."""
    unit, length = ("s", 1) if seconds < 60 else ("min", 60) if seconds < 3600 else ("h", 3600)
    return TableCell(f"{seconds / length:.1f} {unit}", value=seconds)


def table_of(columns: Mapping[str, str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table of texts, and of numbers in the form of their columns."""

    def cell(value: Any, form: str) -> TableCell:
        if isinstance(value, str):
            return TableCell(value)
        is_cell = isinstance(value, TableCell)
        return value if is_cell else TableCell(form.format(value), value=value)

    cells = (tuple(map(cell, row, columns.values())) for row in rows)
    return Table(tuple(columns), tuple(cells))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]]
    body = (" | ".join(map(str.ljust, row, widths)) for row in ruled)
    return "\n".join(f"| {row} |" for row in body)


def markdown_table(table: Table) -> str:
    """A Markdown table; what stands beside and below the text of a cell follows it."""
    rows = [[" ".join((c.line, *(f"`{n}`" for n in c.notes))) for c in row] for row in table.rows]
    return aligned([table.head, *rows])


def comma_separated(rows: Sequence[dict[str, Any]]) -> str:
    """Flat objects as CSV, with every key that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def on_terminal(table: Table) -> RichTable:
    """A table without lines, with numbers on the right; a row whose name is bold is so itself."""
    from memohop.report.terminal import plain_table

    shown = plain_table(table.head[0], numbers=())
    for column, name in enumerate(table.head[1:], start=1):
        is_text = table.is_text(column)
        shown.add_column(name, justify="left" if is_text else "right", no_wrap=is_text)
    for row in table.rows:
        style = "bold" if row[0].strong else None
        shown.add_row(*(cell.text for cell in row), style=style)
    return shown
