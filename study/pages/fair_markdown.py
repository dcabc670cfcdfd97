"""The fair table as Markdown: the leaderboards, and the smaller tables that documents quote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from study.pages import fair_tables
from study.pages.fair_page import answers
from study.pages.page_tables import HtmlCell, HtmlTable
from study.pages.table import aligned, score
from study.runs.tuned import Tuned
from study.statistics.effects import effects
from study.statistics.leaderboard import Leaderboard

Part = Literal["board", "flawed", "effects", "answers", "best"]
PARTS: tuple[Part, ...] = ("board", "flawed", "effects", "answers", "best")
"""Both leaderboards, what plug-ins add, the same in words, and the best beside published ones."""


def markdown(tuned: Tuned, parts: Sequence[Part] = PARTS) -> str:
    """Parts of the fair table, one below the other; those without any figure are left out."""
    board = Leaderboard(tuned)
    texts = [text for part in parts for text in _part(part, board)]
    return "\n\n".join(texts) + "\n"


def _part(part: Part, board: Leaderboard) -> list[str]:
    if part == "flawed":
        board = Leaderboard(board.tuned, flawed=True)
    if not board.cells:
        return []
    if part == "effects":
        return [_table(fair_tables.effects_table(effects(board))), fair_tables.effects_legend()]
    if part == "answers":
        return [f"- {text}" for text in answers(board, effects(board))]
    if part == "best":
        table, legend = fair_tables.published_table(board), fair_tables.published_legend(board)
        return [_table(table), *legend, *fair_tables.unfinished(board)]
    return [_board(board), *fair_tables.legend(board, marks="With a star")]


def _board(board: Leaderboard) -> str:
    rows = [["model", *(["average rank"] if board.ranks else []), *board.columns]]
    for row in board.rows:
        rank = []
        if board.ranks:
            rank = [f"{board.ranks[row]:.2f}" if row in board.ranks else fair_tables.NOTHING]
        texts = [_score(board, row, column) for column in board.columns]
        rows.append([fair_tables.name_of(board.of_row[row]), *rank, *texts])
    return aligned(rows)


def _score(board: Leaderboard, row: str, column: str) -> str:
    found = board.measured.get((row, column))
    if found is None:
        return fair_tables.NOTHING
    if board.is_best(row, column):
        return f"**{score(found)}**"
    return f"{score(found)}*" if board.among_the_best(row, column) else score(found)


def _table(table: HtmlTable) -> str:
    return aligned([list(table.head), *([_text(cell) for cell in row] for row in table.rows)])


def _text(cell: HtmlCell) -> str:
    """A text with what stands beside it, and the names that stand below it."""
    names = (f"`{note}`" for note in cell.notes)
    return " ".join(filter(None, (cell.text, cell.beside, *names)))
