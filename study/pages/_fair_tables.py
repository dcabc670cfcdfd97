"""The tables of the fair table's page; its Markdown has those on effects and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, get_args

from study.pages.tables import HtmlCell, HtmlTable, duration, mean_and_std, number, points
from study.runs.results import Measured
from study.runs.tuned import TunedCell
from study.statistics.best_published import PUBLISHED
from study.statistics.comparison import ALPHA
from study.statistics.effects import Effect
from study.statistics.leaderboard import Leaderboard, Side, family_of, kind_of

LABELS = "\N{DAGGER}"
"""Marks models that take training labels as input."""

SIDES: tuple[Side, ...] = get_args(Side)


@dataclass(frozen=True)
class BoardTable:
    """The leaderboard as HTML: a table, and the kind of each row and of each column."""

    table: HtmlTable
    kinds: tuple[str, ...]
    families: tuple[str, ...]


def name_of(cell: TunedCell) -> str:
    """The name of the model, marked if it takes labels."""
    return f"{cell.row} {LABELS}" if cell.takes_labels else cell.row


def board_table(board: Leaderboard) -> BoardTable:
    """A row for each model: rank and mean (if there are ranks), cost, and score on each dataset."""
    ranks = ("average rank", "mean") if board.ranks else ()
    head = ("model", "kind", *ranks, "networks", "time", *board.columns)
    kinds = tuple(kind_of(board.of_row[row].model) for row in board.rows)
    rows = tuple(
        (
            HtmlCell(name_of(board.of_row[row])),
            HtmlCell(kind),
            *((number(board.ranks.get(row)), number(board.mean(row))) if ranks else ()),
            number(board.networks(row), ","),
            duration(board.seconds(row)),
            *(score_cell(board, row, column) for column in board.columns),
        )
        for row, kind in zip(board.rows, kinds, strict=True)
    )
    families = [""] * (len(head) - len(board.columns))
    families += [family_of(board.of_column[column].dataset) for column in board.columns]
    name = "fair-flawed" if board.flawed else "fair-board"
    return BoardTable(HtmlTable(head, rows, name), kinds, tuple(families))


def score_cell(board: Leaderboard, row: str, column: str) -> HtmlCell:
    """A score, bold if it is the best and grey if it is not among the best."""
    measured = board.measured.get((row, column))
    if measured is None:
        return HtmlCell()
    soft = not board.among_the_best(row, column)
    return mean_and_std(measured, strong=board.is_best(row, column), soft=soft)


def effects_table(effects: Sequence[Effect]) -> HtmlTable:
    """Wins, ties and losses of each plug-in on each backbone, and how likely a real gain is."""
    rows = tuple(
        (
            HtmlCell(effect.base),
            HtmlCell(effect.plug_in.strip() + (f" {LABELS}" if "labels" in effect.plug_in else "")),
            *(
                number(effect.count(verdict) if effect.gains else None, "")
                for verdict in (1, 0, -1)
            ),
            points(effect.mean),
            *(
                number(p, strong=p >= 1 - ALPHA)
                for p in (effect.posterior.better, effect.posterior.same, effect.posterior.worse)
            ),
        )
        for effect in effects
    )
    counts = ("wins", "ties", "losses")
    head = ("model", "plug-in", *counts, "mean gain", "p better", "p same", "p worse")
    return HtmlTable(head, rows, "fair-effects")


def published_table(board: Leaderboard) -> HtmlTable:
    """The best models of each side, by validation, beside what was published."""
    rows = []
    for column in board.columns:
        published, with_memory = PUBLISHED.get(column), board.best(column, "with memory")
        known = published and number(published.points, ".1f", notes=(published.method,))
        ahead = published and with_memory and points(with_memory.mean - published.points)
        best = (_best(board, board.best(column, side)) for side in SIDES)
        rows.append((HtmlCell(column), *best, known or HtmlCell(), ahead or HtmlCell()))
    head = ("dataset", *SIDES, "published", "with memory less published")
    return HtmlTable(head, tuple(rows), "fair-published")


def _best(board: Leaderboard, measured: Measured | None) -> HtmlCell:
    notes = (name_of(board.of_row[measured.model]),) if measured else ()
    return mean_and_std(measured, notes=notes)


def cell_tables(board: Leaderboard) -> list[tuple[str, HtmlTable]]:
    """For each dataset what was chosen for each model, what was tried, and the command."""
    head = ("model", "test", "validation", "tried", "networks", "time", "chosen setting")
    tables = []
    for place, column in enumerate(board.columns):
        rows = tuple(
            _cell_row(board, row, column) for row in board.rows if (row, column) in board.cells
        )
        name = f"fair-{'flawed' if board.flawed else 'cells'}-{place}"
        tables.append((column, HtmlTable(head, rows, name)))
    return tables


def _cell_row(board: Leaderboard, row: str, column: str) -> tuple[HtmlCell, ...]:
    cell, measured = board.cells[row, column], board.measured[row, column]
    sound = [100 * score for score in cell.rungs[0].val if score >= 0]
    spread = f"{min(sound):.1f} to {max(sound):.1f}, median {median(sound):.1f}"
    lost = len(cell.rungs[0].val) - len(sound)
    tried = (f"{len(cell.rungs[0].val)} settings", *((f"{lost} diverged",) if lost else ()))
    return (
        HtmlCell(name_of(cell)),
        mean_and_std(measured),
        number(measured.val),
        HtmlCell(spread, tried),
        number(cell.networks, ""),
        duration(cell.seconds),
        HtmlCell(_in_words(dict(measured.setting)), (_command(cell, board.tuned.experiment),)),
    )


def _command(cell: TunedCell, experiment: str) -> str:
    """The command that makes a cell."""
    only = {"dataset": cell.dataset, "model": cell.model} | cell.axes
    words = (f"--only {k}={f'{v:g}' if isinstance(v, float) else v}" for k, v in only.items())
    return " ".join((f"python -m study run {experiment}", *words))


def _in_words(setting: dict[str, Any]) -> str:
    """A setting as options on the command line have it."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}".lower()
        for name, value in setting.items()
    )
