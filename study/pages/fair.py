"""The tables and pictures of the fair table's page; its Markdown has some of the tables too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import get_args

from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.palette import Marker
from study.pages.tables import Table, TableCell, duration, mean_and_std, number, points
from study.runs.results import Measured, as_texts
from study.runs.tuned import TunedCell
from study.statistics.best_published import PUBLISHED
from study.statistics.comparison import ALPHA
from study.statistics.effects import Effect
from study.statistics.leaderboard import KINDS, Leaderboard, Side, family_of, kind_of

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
