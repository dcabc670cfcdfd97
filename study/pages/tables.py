"""A table of texts, and how it is written as Markdown and CSV; the page's templates write HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from study.paper.printed import Printed
from study.runs.results import MeanAndStd

NOTHING = "-"
"""Stands where there is no figure."""


@dataclass(frozen=True)
class HtmlCell:
    """One cell.

    Attributes:
        notes: Smaller lines below the text.
        value: Sorts the column; the text does if None.
        strong: Whether the text is bold.
        soft: Whether it is grey.
        beside: Smaller text beside it.
    """

    text: str = NOTHING
    notes: tuple[str, ...] = ()
    value: float | None = None
    strong: bool = False
    soft: bool = False
    beside: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """The names of the columns, the rows, each starting with its name, and an id on the page."""

    head: tuple[str, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    id: str

    def is_text(self, column: int) -> bool:
        """Whether a column holds words."""
        cells = [row[column] for row in self.rows]
        return all(c.value is None for c in cells) and any(c.text != NOTHING for c in cells)


def number(value: float | None, form: str = ".2f", **more: Any) -> HtmlCell:
    """A number, or nothing."""
    return HtmlCell(**more) if value is None else HtmlCell(f"{value:{form}}", value=value, **more)


def points(value: float, form: str = "+.2f", **more: Any) -> HtmlCell:
    """A difference in points."""
    return HtmlCell(signed(f"{value:{form}}"), value=value, **more)


def mean_and_std(scores: MeanAndStd | None, form: str = ".2f", **more: Any) -> HtmlCell:
    """A mean with its standard deviation beside it, if there is one, or nothing."""
    if scores is None:
        return HtmlCell(**more)
    beside = "" if scores.std is None else f"± {scores.std:.2f}"
    return number(scores.mean, form, beside=beside, **more)


def signed(text: str) -> str:
    """The text of a number with a true minus."""
    return text.replace("-", "\N{MINUS SIGN}")


def score(scores: MeanAndStd | Printed) -> str:
    """Mean and standard deviation, where there is one."""
    return f"{scores.mean:.2f}" if scores.std is None else f"{scores.mean:.2f} ± {scores.std:.2f}"


def duration(seconds: float) -> HtmlCell:
    """Seconds in the unit that suits them."""
    minutes = seconds / 60
    if seconds < 60:
        text = f"{seconds:.1f} s"
    else:
        text = f"{minutes:.1f} min" if minutes < 60 else f"{minutes / 60:.1f} h"
    return HtmlCell(text, value=seconds)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]]
    body = (" | ".join(map(str.ljust, row, widths)) for row in ruled)
    return "\n".join(f"| {row} |" for row in body)


def markdown_table(table: HtmlTable) -> str:
    """A Markdown table: what stands beside and below a text follows it."""
    return aligned([table.head, *(list(map(_inline, row)) for row in table.rows)])


def _inline(cell: HtmlCell) -> str:
    return " ".join(filter(None, (cell.text, cell.beside, *(f"`{note}`" for note in cell.notes))))


def comma_separated(rows: Sequence[dict[str, Any]]) -> str:
    """Flat objects as CSV, with every key that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
