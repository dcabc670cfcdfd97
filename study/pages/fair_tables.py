"""The tables of the fair table's page and of its Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from memohop.data.datasets.registry import describe
from study.pages.page_tables import HtmlCell, HtmlTable, duration, plus_minus
from study.runs.measured import Measured
from study.runs.tuned import TunedCell
from study.statistics.comparison import ALPHA
from study.statistics.effects import MARGIN, Effect
from study.statistics.leaderboard import PUBLISHED, Leaderboard, family_of, kind_of

NOTHING = "-"
"""Stands where there is no figure."""

LABELS = "\N{DAGGER}"
"""Marks models that take training labels as input."""

_TAKES_LABELS = f"{LABELS} takes training labels as input."


@dataclass(frozen=True)
class Board:
    """The leaderboard as HTML: a table, and the kind of each row and of each column."""

    table: HtmlTable
    kinds: tuple[str, ...]
    families: tuple[str, ...]


def name_of(cell: TunedCell) -> str:
    """The name of the model, marked if it takes labels."""
    return f"{cell.row} {LABELS}" if cell.takes_labels else cell.row


def board_table(board: Leaderboard) -> Board:
    """A row for each model: rank and mean (if there are ranks), cost, and score on each dataset."""
    ranks = ("average rank", "mean") if board.ranks else ()
    head = ("model", "kind", *ranks, "networks", "time", *board.columns)
    rows, kinds = [], []
    for row in board.rows:
        cell = board.of_row[row]
        kind, seconds, networks = kind_of(cell.model), board.seconds(row), board.networks(row)
        of_ranks = (_number(board.ranks.get(row)), _number(board.mean(row))) if ranks else ()
        rows.append(
            (
                HtmlCell(name_of(cell)),
                HtmlCell(kind),
                *of_ranks,
                HtmlCell(f"{networks:,}", value=networks),
                HtmlCell(duration(seconds), value=seconds),
                *(_score(board, row, column) for column in board.columns),
            )
        )
        kinds.append(kind)
    families = [""] * (len(head) - len(board.columns))
    families += [family_of(board.of_column[column].dataset) for column in board.columns]
    name = "fair-flawed" if board.flawed else "fair-board"
    return Board(HtmlTable(head, tuple(rows), name), tuple(kinds), tuple(families))


def effects_table(found: Sequence[Effect]) -> HtmlTable:
    """Wins, ties and losses of each plug-in on each backbone, and how likely a real gain is."""
    rows = tuple(
        (
            HtmlCell(effect.base),
            HtmlCell(effect.plug_in.strip() + (f" {LABELS}" if "labels" in effect.plug_in else "")),
            *(
                HtmlCell(f"{count}", value=count) if effect.gains else HtmlCell(NOTHING)
                for count in (effect.count(1), effect.count(0), effect.count(-1))
            ),
            _points(sum(effect.points) / len(effect.points)),
            *(
                HtmlCell(f"{p:.2f}", value=p, strong=p >= 1 - ALPHA)
                for p in (effect.posterior.better, effect.posterior.same, effect.posterior.worse)
            ),
        )
        for effect in found
    )
    head = (
        "model",
        "plug-in",
        "wins",
        "ties",
        "losses",
        "mean gain",
        "p better",
        "p same",
        "p worse",
    )
    return HtmlTable(head, rows, "fair-effects")


def published_table(board: Leaderboard) -> HtmlTable:
    """The best model with memory and the best without, by validation, beside what was published."""
    rows = []
    for column in board.columns:
        with_memory, without = (board.best(column, memory=memory) for memory in (True, False))
        published = PUBLISHED.get(column)
        away = None
        if with_memory and published is not None:
            away = with_memory.mean - published
        rows.append(
            (
                HtmlCell(column),
                *(
                    HtmlCell(NOTHING)
                    if one is None
                    else HtmlCell(
                        f"{one.mean:.2f}",
                        (name_of(board.of_row[one.model]),),
                        one.mean,
                        beside=plus_minus(one.std),
                    )
                    for one in (with_memory, without)
                ),
                HtmlCell(NOTHING)
                if published is None
                else HtmlCell(f"{published:.1f}", value=published),
                HtmlCell(NOTHING) if away is None else _points(away),
            )
        )
    head = ("dataset", "with memory", "without", "published", "with memory less published")
    return HtmlTable(head, tuple(rows), "fair-published")


def published_legend(board: Leaderboard) -> str:
    """How to read the table beside published figures, and on how many datasets they are met."""
    found = {column: board.best(column, memory=True) for column in board.columns}
    known = {c: one.mean - PUBLISHED[c] for c, one in found.items() if one and c in PUBLISHED}
    met = [column for column, away in known.items() if away >= -MARGIN]
    return (
        "With memory and without: the model whose validation score is best. The one with memory is "
        f"above the best published figure or at most {MARGIN:g} point below it on {len(met)} of "
        f"{len(known)} datasets"
        + (f": {', '.join(met)}." if met else ".")
        + (f" {_TAKES_LABELS}" if any(map(_takes_labels, found.values())) else "")
    )


def _takes_labels(found: Measured | None) -> bool:
    return found is not None and found.axes.get("labels") == "memory"


def cell_tables(board: Leaderboard) -> list[tuple[str, HtmlTable]]:
    """For each dataset what was chosen for each model, what was tried, and the command."""
    found = []
    for number, column in enumerate(board.columns):
        rows = tuple(
            _cell_row(board, row, column) for row in board.rows if (row, column) in board.cells
        )
        head = ("model", "test", "validation", "tried", "networks", "time", "chosen setting")
        name = f"fair-{'flawed' if board.flawed else 'cells'}-{number}"
        found.append((column, HtmlTable(head, rows, name)))
    return found


def command_of(cell: TunedCell, experiment: str) -> str:
    """The command that makes a cell."""
    only = {"dataset": cell.dataset, "model": cell.model} | cell.axes
    words = (f"--only {k}={f'{v:g}' if isinstance(v, float) else v}" for k, v in only.items())
    return " ".join((f"python -m study run {experiment}", *words))


def in_words(setting: dict[str, Any]) -> str:
    """A setting as options on the command line have it."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}".lower()
        for name, value in setting.items()
    )


def legend(board: Leaderboard, *, marks: str) -> list[str]:
    """How to read the leaderboard, in paragraphs of a sentence or two.

    Args:
        board: The leaderboard.
        marks: How it shows that a score is not significantly worse than the best.
    """
    shapes = {(len(one.scores), one.seeds) for one in board.measured.values()}
    counts = " or ".join(
        f"{splits} splits" + (f" with {seeds} seeds" if seeds > 1 else "")
        for splits, seeds in sorted(shapes)
    )
    metrics = sorted({describe(board.of_column[column].dataset).metric for column in board.columns})
    auc = [c for c in board.columns if describe(board.of_column[c].dataset).metric == "roc_auc"]
    texts = [
        f"Protocol {board.tuned.protocol}. Test accuracy in percent"
        + (f" (ROC-AUC on {', '.join(auc)})" if "roc_auc" in metrics else "")
        + f", mean ± sample standard deviation (ddof=1) over {counts}"
        + ("; a split counts with the mean over its seeds" if max(s for _, s in shapes) > 1 else "")
        + ". Settings are chosen on validation alone, with the same budget for every model.",
        _significance(marks),
    ]
    if any(cell.takes_labels for cell in board.of_row.values()):
        texts.append(_TAKES_LABELS)
    if board.comparison:
        texts.append(
            f"Average rank and mean: over {len(board.ranked)} datasets, for models that have a "
            "score on all of them; equals share a rank."
        )
    if not board.flawed:
        texts += unfinished(board)
    if board.flawed:
        texts.append(
            "These data have a flaw, and scores on them mislead: "
            + "; ".join(f"{name} {describe(name).note}" for name in _datasets(board))
            + "."
        )
    return texts


def unfinished(board: Leaderboard) -> list[str]:
    """A sentence on the datasets that are left out, if there are any."""
    names = ", ".join(board.tuned.unfinished)
    return [f"Not measured to the end yet, and left out: {names}."] if names else []


def _significance(marks: str) -> str:
    return (
        f"Bold: significantly better than every other model. {marks}: not significantly worse than "
        f"the best mean (corrected resampled t-test with Holm's correction, {100 * ALPHA:g} %)."
    )


def effects_legend() -> str:
    """How to read the table of effects."""
    return (
        "Wins and losses: datasets on which the plug-in is significantly better or worse than its "
        "model without it (corrected resampled t-test, with Holm's correction for all plug-ins and "
        f"backbones of a dataset, {100 * ALPHA:g} %). p: the probability that over datasets the "
        f"plug-in makes the model better by more than {MARGIN:g} point, worse by as much, or "
        "neither (Bayesian signed-rank test). all seven: the mean gain over the backbones."
    )


def _cell_row(board: Leaderboard, row: str, column: str) -> tuple[HtmlCell, ...]:
    cell, found = board.cells[row, column], board.measured[row, column]
    sound = [100 * score for score in cell.rungs[0].val if score >= 0]
    spread = f"{min(sound):.1f} to {max(sound):.1f}, median {median(sound):.1f}"
    lost = len(cell.rungs[0].val) - len(sound)
    tried = (f"{len(cell.rungs[0].val)} settings", *((f"{lost} diverged",) if lost else ()))
    return (
        HtmlCell(name_of(cell)),
        HtmlCell(f"{found.mean:.2f}", value=found.mean, beside=plus_minus(found.std)),
        HtmlCell(f"{found.val:.2f}", value=found.val),
        HtmlCell(spread, tried),
        HtmlCell(f"{cell.networks}", value=cell.networks),
        HtmlCell(duration(cell.seconds), value=cell.seconds),
        HtmlCell(in_words(dict(found.setting)), (command_of(cell, board.tuned.experiment),)),
    )


def _score(board: Leaderboard, row: str, column: str) -> HtmlCell:
    found = board.measured.get((row, column))
    if found is None:
        return HtmlCell(NOTHING)
    return HtmlCell(
        f"{found.mean:.2f}",
        value=found.mean,
        strong=board.is_best(row, column),
        soft=not board.among_the_best(row, column),
        beside=plus_minus(found.std),
    )


def _number(value: float | None) -> HtmlCell:
    return HtmlCell(NOTHING) if value is None else HtmlCell(f"{value:.2f}", value=value)


def _points(points: float) -> HtmlCell:
    return HtmlCell(f"{points:+.2f}".replace("-", "\N{MINUS SIGN}"), value=points)


def _datasets(board: Leaderboard) -> list[str]:
    return list(dict.fromkeys(cell.dataset for cell in board.of_column.values()))
