"""The tables of the fair table's page and of its Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, get_args

from memohop.data.datasets.registry import describe
from study.pages.page_tables import HtmlCell, HtmlTable, duration, plus_minus
from study.runs.measured import Measured
from study.runs.tuned import TunedCell
from study.statistics.best_published import PUBLISHED
from study.statistics.comparison import ALPHA
from study.statistics.effects import MARGIN, Effect
from study.statistics.leaderboard import Leaderboard, Side, family_of, kind_of

NOTHING = "-"
"""Stands where there is no figure."""

LABELS = "\N{DAGGER}"
"""Marks models that take training labels as input."""

SIDES: tuple[Side, ...] = get_args(Side)
_WITH_MEMORY: Mapping[Side, str] = {
    "plain memory": "Plain memory",
    "with memory": "Memory of any kind",
}

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
            _points(effect.mean),
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
    """The best models of each side, by validation, beside what was published."""
    rows = []
    for column in board.columns:
        found = [board.best(column, side) for side in SIDES]
        published, with_memory = PUBLISHED.get(column), board.best(column, "with memory")
        rows.append(
            (
                HtmlCell(column),
                *(_best(board, one) for one in found),
                HtmlCell(NOTHING)
                if published is None
                else HtmlCell(f"{published.points:.1f}", (published.method,), published.points),
                HtmlCell(NOTHING)
                if with_memory is None or published is None
                else _points(with_memory.mean - published.points),
            )
        )
    head = ("dataset", *SIDES, "published", "with memory less published")
    return HtmlTable(head, tuple(rows), "fair-published")


def _best(board: Leaderboard, found: Measured | None) -> HtmlCell:
    if found is None:
        return HtmlCell(NOTHING)
    name = name_of(board.of_row[found.model])
    return HtmlCell(f"{found.mean:.2f}", (name,), found.mean, beside=plus_minus(found.std))


def published_legend(board: Leaderboard) -> list[str]:
    """How to read the table beside published figures, and how often which side is ahead."""
    best = {
        side: {column: found for column in board.columns if (found := board.best(column, side))}
        for side in SIDES
    }
    counts = {side: len(board.models(side)) for side in SIDES}
    chosen = [board.of_row[found.model] for found in best["with memory"].values()]
    known = {
        column: found.mean - PUBLISHED[column].points
        for column, found in best["with memory"].items()
        if column in PUBLISHED
    }
    met = [column for column, away in known.items() if away >= -MARGIN]
    sources = {PUBLISHED[c].method: PUBLISHED[c].source for c in board.columns if c in PUBLISHED}
    texts = [
        "Of each side the model whose validation score is best, of "
        f"{counts['with memory']} with memory and {counts['without']} without. Of the former, "
        f"{counts['plain memory']} are plain; the others also take training labels or rows of the "
        "adjacency matrix as input, as do "
        f"{sum(cell.row != cell.model for cell in chosen)} of the {len(chosen)} chosen."
        + "".join(_ahead(name, best[side], best["without"]) for side, name in _WITH_MEMORY.items()),
        "The one with memory is above the best published figure or at most "
        f"{MARGIN:g} point below it on {len(met)} of {len(known)} datasets"
        + (f": {', '.join(met)}." if met else ".")
        + (f" {_TAKES_LABELS}" if any(cell.takes_labels for cell in chosen) else ""),
    ]
    if sources:
        listed = "; ".join(f"{method}: {source}" for method, source in sources.items())
        texts.append(f"Published: the best figure that we know on these splits. {listed}.")
    return texts


def _ahead(name: str, one: Mapping[str, Measured], other: Mapping[str, Measured]) -> str:
    """How often and how far the best of one side are ahead of those of another, in a sentence."""
    leads = [one[column].mean - other[column].mean for column in one if column in other]
    if not leads:
        return ""
    return (
        f" {name} is ahead of the best without on {sum(lead > 0 for lead in leads)} of "
        f"{len(leads)} datasets, and {_signed(fmean(leads))} points on average."
    )


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
    return HtmlCell(_signed(points), value=points)


def _signed(points: float) -> str:
    return f"{points:+.2f}".replace("-", "\N{MINUS SIGN}")


def _datasets(board: Leaderboard) -> list[str]:
    return list(dict.fromkeys(cell.dataset for cell in board.of_column.values()))
