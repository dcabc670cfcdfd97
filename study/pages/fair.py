"""The fair table: its tables, the same in words, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Literal, get_args

from memohop.data.datasets.registry import describe
from study.pages.tables import (
    Table,
    TableCell,
    aligned,
    duration,
    markdown_table,
    mean_and_std,
    number,
    points,
    signed,
)
from study.runs.results import Measured, as_texts
from study.runs.tuned import Tuned, TunedCell
from study.statistics.comparison import ALPHA
from study.statistics.effects import (
    ALL,
    MARGIN,
    RESIDUALS,
    Effect,
    beside_residuals,
    effects,
    homophily_correlation,
    on_other_real_graphs,
)
from study.statistics.leaderboard import PUBLISHED, Leaderboard, Side, family_of, kind_of

LABELS = "\N{DAGGER}"
"""Marks models that take training labels as input."""

MEMORY = "+mmp"
"""The plug-in that the question is about."""

Part = Literal["board", "flawed", "effects", "answers", "best"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Both leaderboards, what plug-ins add, the same in words, and the best beside published ones."""

_SIDES: tuple[Side, ...] = get_args(Side)
_WITH_MEMORY: Mapping[Side, str] = {
    "plain memory": "Plain memory",
    "with memory": "Memory of any kind",
}
_TAKES_LABELS = f"{LABELS} takes training labels as input."


def name_of(cell: TunedCell) -> str:
    """The name of the model, marked if it takes labels."""
    return f"{cell.row} {LABELS}" if cell.takes_labels else cell.row


def board_table(board: Leaderboard) -> Table:
    """A row for each model: rank and mean (if there are ranks), cost, and score on each dataset."""
    ranks = ("average rank", "mean") if board.ranks else ()
    kinds = tuple(kind_of(board.of_row[row].model) for row in board.rows)
    rows = []
    for row, kind in zip(board.rows, kinds, strict=True):
        cells = [TableCell(name_of(board.of_row[row])), TableCell(kind)]
        if ranks:
            cells += [number(board.ranks.get(row)), number(board.mean(row))]
        cells += [number(board.networks(row), ","), duration(board.seconds(row))]
        rows.append((*cells, *(score_cell(board, row, column) for column in board.columns)))
    head = ("model", "kind", *ranks, "networks", "time", *board.columns)
    families = {column: family_of(cell.dataset) for column, cell in board.of_column.items()}
    name = "fair-flawed" if board.flawed else "fair-board"
    return Table(head, tuple(rows), name, kinds, families)


def score_cell(board: Leaderboard, row: str, column: str) -> TableCell:
    """A score, bold if it is the best and grey if it is not among the best."""
    if (row, column) not in board.measured:
        return TableCell()
    soft = not board.among_the_best(row, column)
    return mean_and_std(board.measured[row, column], strong=board.is_best(row, column), soft=soft)


def effects_table(effects: Sequence[Effect]) -> Table:
    """Wins, ties and losses of each plug-in on each backbone, and how likely a real gain is."""
    rows = []
    for effect in effects:
        likely = (effect.posterior.better, effect.posterior.same, effect.posterior.worse)
        plug_in = effect.plug_in.strip() + (f" {LABELS}" if "labels" in effect.plug_in else "")
        counts = (effect.count(verdict) if effect.gains else None for verdict in (1, 0, -1))
        rows.append(
            (
                TableCell(effect.base),
                TableCell(plug_in),
                *(number(count, "") for count in counts),
                points(effect.mean),
                *(number(p, strong=p >= 1 - ALPHA) for p in likely),
            )
        )
    counted = ("wins", "ties", "losses")
    head = ("model", "plug-in", *counted, "mean gain", "p better", "p same", "p worse")
    return Table(head, tuple(rows), "fair-effects")


def published_table(board: Leaderboard) -> Table:
    """The best models of each side, by validation, beside what was published."""
    rows = []
    for column in board.columns:
        best = {side: board.best(column, side) for side in _SIDES}
        cells = [TableCell(column)]
        for cell in best.values():
            notes = (name_of(board.of_row[cell.model]),) if cell else ()
            cells.append(mean_and_std(cell, notes=notes))
        known = ahead = TableCell()
        if published := PUBLISHED.get(column):
            known = number(published.points, ".1f", notes=(published.method,))
            if with_memory := best["with memory"]:
                ahead = points(with_memory.mean - published.points)
        rows.append((*cells, known, ahead))
    head = ("dataset", *_SIDES, "published", "with memory less published")
    return Table(head, tuple(rows), "fair-published")


def cell_tables(board: Leaderboard) -> list[tuple[str, Table]]:
    """For each dataset what was chosen for each model, what was tried, and the command."""
    head = ("model", "test", "validation", "tried", "networks", "time", "chosen setting")
    tables = []
    for place, column in enumerate(board.columns):
        there = [row for row in board.rows if (row, column) in board.cells]
        name = f"fair-{'flawed' if board.flawed else 'cells'}-{place}"
        rows = tuple(_cell_row(board, row, column) for row in there)
        tables.append((column, Table(head, rows, name)))
    return tables


def _cell_row(board: Leaderboard, row: str, column: str) -> tuple[TableCell, ...]:
    cell, measured = board.cells[row, column], board.measured[row, column]
    tried = cell.rungs[0].val
    sound = [100 * score for score in tried if score >= 0]
    spread = f"{min(sound):.1f} to {max(sound):.1f}, median {median(sound):.1f}"
    diverged = [f"{len(tried) - len(sound)} diverged"] if len(sound) < len(tried) else []
    setting = (f"{name} {text.lower()}" for name, text in as_texts(measured.setting).items())
    only = as_texts({"dataset": cell.dataset, "model": cell.model} | cell.axes)
    words = (f"--only {name}={text}" for name, text in only.items())
    command = " ".join((f"python -m study run {board.tuned.experiment}", *words))
    return (
        TableCell(name_of(cell)),
        mean_and_std(measured),
        number(measured.val),
        TableCell(spread, (f"{len(tried)} settings", *diverged)),
        number(cell.networks, ""),
        duration(cell.seconds),
        TableCell(", ".join(setting), (command,)),
    )


def markdown(tuned: Tuned, parts: Sequence[Part] = PARTS) -> str:
    """Parts of the fair table, one below the other; those without any figure are left out."""
    texts = []
    for part in parts:
        board = Leaderboard(tuned, flawed=part == "flawed")
        if not board.cells:
            continue
        if part == "effects":
            texts += [markdown_table(effects_table(effects(board))), effects_legend()]
        elif part == "answers":
            texts += [f"- {text}" for text in answers(board, effects(board))]
        elif part == "best":
            texts += [markdown_table(published_table(board)), *published_legend(board)]
            texts += unfinished(board)
        else:
            texts += [_board(board), *legend(board, marks="With a star")]
    return "\n\n".join(texts) + "\n"


def _board(board: Leaderboard) -> str:
    rows = [["model", *(["average rank"] if board.ranks else []), *board.columns]]
    for row in board.rows:
        rank = [number(board.ranks.get(row)).text] if board.ranks else []
        texts = []
        for cell in (score_cell(board, row, column) for column in board.columns):
            star = "" if cell.soft or cell.value is None else "*"
            texts.append(f"**{cell.line}**" if cell.strong else cell.line + star)
        rows.append([name_of(board.of_row[row]), *rank, *texts])
    return aligned(rows)


def legend(board: Leaderboard, *, marks: str) -> list[str]:
    """How to read the leaderboard, in paragraphs of a sentence or two.

    ``marks`` says how it shows that a score is not significantly worse than the best.
    """
    shapes = {(len(cell.scores), cell.seeds) for cell in board.measured.values()}
    counts = " or ".join(
        f"{splits} splits" + (f" with {seeds} seeds" if seeds > 1 else "")
        for splits, seeds in sorted(shapes)
    )
    auc = [c for c in board.columns if describe(board.of_column[c].dataset).metric == "roc_auc"]
    texts = [
        f"Protocol {board.tuned.protocol}. Test accuracy in percent"
        + (f" (ROC-AUC on {', '.join(auc)})" if auc else "")
        + f", mean ± sample standard deviation (ddof=1) over {counts}"
        + ("; a split counts with the mean over its seeds" if max(s for _, s in shapes) > 1 else "")
        + ". Settings are chosen on validation alone, with the same budget for every model.",
        f"Bold: significantly better than every other model. {marks}: not significantly worse than "
        f"the best mean (corrected resampled t-test with Holm's correction, {100 * ALPHA:g} %).",
    ]
    if any(cell.takes_labels for cell in board.of_row.values()):
        texts.append(_TAKES_LABELS)
    if board.comparison:
        texts.append(
            f"Average rank and mean: over {len(board.ranked)} datasets, for models that have a "
            "score on all of them; equals share a rank."
        )
    if not board.flawed:
        return texts + unfinished(board)
    flawed = dict.fromkeys(cell.dataset for cell in board.of_column.values())
    notes = "; ".join(f"{name} {describe(name).note}" for name in flawed)
    return [*texts, f"These data have a flaw, and scores on them mislead: {notes}."]


def unfinished(board: Leaderboard) -> list[str]:
    """A sentence on the datasets that are left out, if there are any."""
    names = ", ".join(board.tuned.unfinished)
    return [f"Not measured to the end yet, and left out: {names}."] if names else []


def effects_legend() -> str:
    """How to read the table of effects."""
    return (
        "Wins and losses: datasets on which the plug-in is significantly better or worse than its "
        "model without it (corrected resampled t-test, with Holm's correction for all plug-ins and "
        f"backbones of a dataset, {100 * ALPHA:g} %). p: the probability that over datasets the "
        f"plug-in makes the model better by more than {MARGIN:g} point, worse by as much, or "
        "neither (Bayesian signed-rank test). all seven: the mean gain over the backbones."
    )


def published_legend(board: Leaderboard) -> list[str]:
    """How to read the table beside published figures, and how often which side is ahead."""
    best = {
        side: {column: cell for column in board.columns if (cell := board.best(column, side))}
        for side in _SIDES
    }
    counts = {side: len(board.of_side(side)) for side in _SIDES}
    chosen = [board.of_row[cell.model] for cell in best["with memory"].values()]
    known = {
        column: cell.mean - PUBLISHED[column].points
        for column, cell in best["with memory"].items()
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


def _ahead(name: str, best: Mapping[str, Measured], reference: Mapping[str, Measured]) -> str:
    """How often and how far the best of one side are ahead of those of another, in a sentence."""
    leads = [best[column].mean - reference[column].mean for column in best if column in reference]
    if not leads:
        return ""
    return (
        f" {name} is ahead of the best without on {sum(lead > 0 for lead in leads)} of "
        f"{len(leads)} datasets, and {signed(f'{fmean(leads):+.2f}')} points on average."
    )


def answers(board: Leaderboard, of_all: list[Effect]) -> list[str]:
    """What memory adds, in a sentence or two for each way of using it, and beside residuals."""
    texts = []
    for effect in of_all:
        if not effect.plug_in.startswith(MEMORY) or effect.backbone != ALL:
            continue
        own = [each for each in of_all if each.plug_in == effect.plug_in and each.gains]
        wins, ties, losses = (sum(each.count(verdict) for each in own) for verdict in (1, 0, -1))
        alone = ", ".join(f"{each.backbone} {each.posterior.better:.2f}" for each in own)
        texts.append(
            f"{effect.plug_in}: {effect.mean:+.2f} points on average over {len(effect.points)} "
            f"datasets and {len(own)} backbones. Of {wins + ties + losses} cases it is "
            f"significantly better than its backbone in {wins}, worse in {losses}, and neither in "
            f"{ties}. The probability that it makes the mean of the {len(own)} backbones better by "
            f"more than {MARGIN:g} point is {effect.posterior.better:.2f}, that it makes it worse "
            f"by as much {effect.posterior.worse:.2f}, and that it makes no such difference "
            f"{effect.posterior.same:.2f}. That it makes a single one better by as much: {alone}."
        )
        elsewhere = on_other_real_graphs(board, effect)
        if len(elsewhere.points) > 2:
            rho, p = homophily_correlation(board, elsewhere)
            texts.append(
                f"{effect.plug_in} on the {len(elsewhere.points)} real graphs that are not web "
                f"graphs: {elsewhere.mean:+.2f} points on average. The probability that it makes "
                f"the mean of the {len(own)} backbones better by more than {MARGIN:g} point is "
                f"{elsewhere.posterior.better:.2f}. Rank correlation of gain and homophily there: "
                f"{rho:+.2f} (p {p:.2g}); over all {len(effect.points)} datasets: "
                "{:+.2f} (p {:.2g}).".format(*homophily_correlation(board, effect))
            )
    for effect in beside_residuals(board, MEMORY):
        given = effect.posterior
        texts.append(
            f"{effect.backbone}{effect.plug_in} less {effect.backbone}{RESIDUALS}: "
            f"{effect.mean:+.2f} points on average over {len(effect.points)} datasets. The "
            f"probability that memory is better than residuals by more than {MARGIN:g} point is "
            f"{given.better:.2f}, that it is worse by as much {given.worse:.2f}."
        )
    return texts
