"""The fair table: its tables and pictures, the same in words, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Literal, get_args

from memohop.data.datasets.registry import describe
from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.palette import Marker
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
from study.statistics.leaderboard import KINDS, PUBLISHED, Leaderboard, Side, family_of, kind_of

LABELS = "\N{DAGGER}"
"""Marks models that take training labels as input."""

SIDES: tuple[Side, ...] = get_args(Side)

_LOOKS = {  # of kinds of models
    "no graph": Marker("grey", "diamond"),
    "backbone": Marker("orange", "square"),
    "plug-in": Marker("pink", "diamond"),
    "memory": Marker("blue", "circle"),
    "rival": Marker("green", "triangle"),
}
_BACKBONES = {
    "gcn": Marker("blue", "circle"),
    "gat": Marker("orange", "square"),
    "sage": Marker("green", "triangle"),
    "gin": Marker("grey", "diamond"),
    "gatv2": Marker("amber", "square"),
    "dir-gcn": Marker("pink", "triangle"),
    "gcnii": Marker("purple", "diamond"),
}
_APART = 0.006  # in homophily, between the points of two backbones on one graph


def name_of(cell: TunedCell) -> str:
    """The name of the model, marked if it takes labels."""
    return f"{cell.row} {LABELS}" if cell.takes_labels else cell.row


def board_table(board: Leaderboard) -> Table:
    """A row for each model: rank and mean (if there are ranks), cost, and score on each dataset."""
    ranks = ("average rank", "mean") if board.ranks else ()
    head = ("model", "kind", *ranks, "networks", "time", *board.columns)
    kinds = tuple(kind_of(cell.model) for cell in map(board.of_row.__getitem__, board.rows))
    rows = tuple(
        (
            TableCell(name_of(board.of_row[row])),
            TableCell(kind),
            *((number(board.ranks.get(row)), number(board.mean(row))) if ranks else ()),
            number(board.networks(row), ","),
            duration(board.seconds(row)),
            *(score_cell(board, row, column) for column in board.columns),
        )
        for row, kind in zip(board.rows, kinds, strict=True)
    )
    families = {column: family_of(cell.dataset) for column, cell in board.of_column.items()}
    return Table(head, rows, "fair-flawed" if board.flawed else "fair-board", kinds, families)


def score_cell(board: Leaderboard, row: str, column: str) -> TableCell:
    """A score, bold if it is the best and grey if it is not among the best."""
    measured = board.measured.get((row, column))
    if measured is None:
        return TableCell()
    soft = not board.among_the_best(row, column)
    return mean_and_std(measured, strong=board.is_best(row, column), soft=soft)


def effects_table(effects: Sequence[Effect]) -> Table:
    """Wins, ties and losses of each plug-in on each backbone, and how likely a real gain is."""
    rows = tuple(
        (
            TableCell(effect.base),
            TableCell(
                effect.plug_in.strip() + (f" {LABELS}" if "labels" in effect.plug_in else "")
            ),
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
    return Table(head, rows, "fair-effects")


def published_table(board: Leaderboard) -> Table:
    """The best models of each side, by validation, beside what was published."""
    rows = []
    for column in board.columns:
        published, with_memory = PUBLISHED.get(column), board.best(column, "with memory")
        known = published and number(published.points, ".1f", notes=(published.method,))
        ahead = published and with_memory and points(with_memory.mean - published.points)
        best = (_best(board, board.best(column, side)) for side in SIDES)
        rows.append((TableCell(column), *best, known or TableCell(), ahead or TableCell()))
    head = ("dataset", *SIDES, "published", "with memory less published")
    return Table(head, tuple(rows), "fair-published")


def _best(board: Leaderboard, measured: Measured | None) -> TableCell:
    notes = (name_of(board.of_row[measured.model]),) if measured else ()
    return mean_and_std(measured, notes=notes)


def cell_tables(board: Leaderboard) -> list[tuple[str, Table]]:
    """For each dataset what was chosen for each model, what was tried, and the command."""
    head = ("model", "test", "validation", "tried", "networks", "time", "chosen setting")
    tables = []
    for place, column in enumerate(board.columns):
        rows = tuple(
            _cell_row(board, row, column) for row in board.rows if (row, column) in board.cells
        )
        name = f"fair-{'flawed' if board.flawed else 'cells'}-{place}"
        tables.append((column, Table(head, rows, name)))
    return tables


def _cell_row(board: Leaderboard, row: str, column: str) -> tuple[TableCell, ...]:
    cell, measured = board.cells[row, column], board.measured[row, column]
    sound = [100 * score for score in cell.rungs[0].val if score >= 0]
    spread = f"{min(sound):.1f} to {max(sound):.1f}, median {median(sound):.1f}"
    lost = len(cell.rungs[0].val) - len(sound)
    tried = (f"{len(cell.rungs[0].val)} settings", *((f"{lost} diverged",) if lost else ()))
    setting = (f"{name} {text.lower()}" for name, text in as_texts(measured.setting).items())
    return (
        TableCell(name_of(cell)),
        mean_and_std(measured),
        number(measured.val),
        TableCell(spread, tried),
        number(cell.networks, ""),
        duration(cell.seconds),
        TableCell(", ".join(setting), (_command(cell, board.tuned.experiment),)),
    )


def _command(cell: TunedCell, experiment: str) -> str:
    """The command that makes a cell."""
    only = as_texts({"dataset": cell.dataset, "model": cell.model} | cell.axes)
    words = (f"--only {name}={text}" for name, text in only.items())
    return " ".join((f"python -m study run {experiment}", *words))


def cost_chart(board: Leaderboard) -> Chart:
    """The mean score of each ranked model against the time that its searches took."""
    series = []
    for kind in KINDS:
        dots = []
        for row, cell in board.of_row.items():
            mean, seconds = board.mean(row), board.seconds(row)
            if kind_of(cell.model) == kind and mean is not None and seconds > 0:
                title = f"{row}: {mean:.2f} after {seconds:.0f} s"
                dots.append(Dot(math.log10(seconds), mean, title))
        if dots:
            series.append(Series(kind, _LOOKS[kind], sorted(dots)))
    points = [dot for kind_series in series for dot in kind_series.dots]
    low, high = (end(dot.x for dot in points) for end in (min, max))
    label, first = "time of all searches of a model, s", math.floor(low)
    return Chart(
        series,
        joined=False,
        title="Mean test score of each model against the time that its searches took",
        x=ChartAxis(label, first, max(math.ceil(high), first + 1), 1, log=True),
        y=_rounded("mean score, %", (dot.y for dot in points)),
    )


def gain_chart(effects: Sequence[Effect]) -> Chart:
    """What memory adds to each backbone on each graph, against its homophily."""
    series = []
    for place, (backbone, marker) in enumerate(_BACKBONES.items()):
        shift = _APART * (place - (len(_BACKBONES) - 1) / 2)
        dots = [
            Dot(
                gain.homophily + shift,
                gain.points,
                f"{effect.backbone}{effect.plug_in} on {gain.column}: {gain.points:+.2f} points, "
                f"from {100 * gain.interval.low:+.2f} to {100 * gain.interval.high:+.2f}",
                spread=min(100 * (gain.interval.high - gain.interval.mean), 100.0),
            )
            for effect in effects
            if effect.backbone == backbone
            for gain in effect.gains
        ]
        if dots:
            series.append(Series(backbone, marker, sorted(dots)))
    # A bar may leave the picture, but not by the first 15 points of it.
    bars = [(dot.y, min(dot.spread or 0.0, 15.0)) for each in series for dot in each.dots]
    ends = [0.0, *(y - spread for y, spread in bars), *(y + spread for y, spread in bars)]
    return Chart(
        series,
        joined=False,
        title="Gain of each backbone by memory against the homophily of the graph",
        x=ChartAxis("homophily of the graph", 0, 1, 0.2),
        y=_rounded("gain by memory, points", ends),
    )


def _rounded(label: str, values: Iterable[float]) -> ChartAxis:
    """An axis from a multiple of 1, 2, 5, 10 or 20 to another."""
    values = list(values)
    low, high = min(values), max(values)
    steps = (0.5, 1, 2, 5, 10, 20)
    step = next((step for step in steps if (high - low) / step <= 8), 50)
    first = math.floor(low / step) * step
    return ChartAxis(label, first, max(math.ceil(high / step) * step, first + step), step)


MEMORY = "+mmp"
"""The plug-in that the question is about."""

Part = Literal["board", "flawed", "effects", "answers", "best"]
PARTS: tuple[Part, ...] = ("board", "flawed", "effects", "answers", "best")
"""Both leaderboards, what plug-ins add, the same in words, and the best beside published ones."""

_WITH_MEMORY: Mapping[Side, str] = {
    "plain memory": "Plain memory",
    "with memory": "Memory of any kind",
}
_TAKES_LABELS = f"{LABELS} takes training labels as input."


def markdown(tuned: Tuned, parts: Sequence[Part] = PARTS) -> str:
    """Parts of the fair table, one below the other; those without any figure are left out."""
    boards = {flawed: Leaderboard(tuned, flawed=flawed) for flawed in (False, True)}
    texts = []
    for part in parts:
        board = boards[part == "flawed"]
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
        texts = [_score(board, row, column) for column in board.columns]
        rows.append([name_of(board.of_row[row]), *rank, *texts])
    return aligned(rows)


def _score(board: Leaderboard, row: str, column: str) -> str:
    cell = score_cell(board, row, column)
    if cell.strong:
        return f"**{cell.line}**"
    return cell.line if cell.soft or cell.value is None else f"{cell.line}*"


def legend(board: Leaderboard, *, marks: str) -> list[str]:
    """How to read the leaderboard, in paragraphs of a sentence or two.

    Args:
        board: The leaderboard.
        marks: How it shows that a score is not significantly worse than the best.
    """
    shapes = {(len(cell.scores), cell.seeds) for cell in board.measured.values()}
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
        texts += unfinished(board)
    else:
        flawed = dict.fromkeys(cell.dataset for cell in board.of_column.values())
        texts.append(
            "These data have a flaw, and scores on them mislead: "
            + "; ".join(f"{name} {describe(name).note}" for name in flawed)
            + "."
        )
    return texts


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
        for side in SIDES
    }
    counts = {side: len(board.of_side(side)) for side in SIDES}
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
