"""Charts: the paper's two figures with their numbers in tables, gates, the fair table, ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from memohop.errors import DataError
from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.environment import render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, Marker, marker_of
from study.pages.table1 import lead_cell
from study.pages.tables import Table, TableCell, mean_and_std, score
from study.paper.curves import Curve, curves
from study.paper.gates import GateCurve
from study.runs.results import Results, grouped, measured
from study.statistics.comparison import Comparison
from study.statistics.effects import Effect
from study.statistics.leaderboard import KINDS, Leaderboard, kind_of

_ROW, _BAR = 19, 9  # height of a name and of a bar
_LETTER = 0.64  # width of a letter over the size of the font, in wide fonts
_NARROW = 500  # drawings below this width have smaller letters
_LEAST = 60  # the width of an axis between names on both sides; with less, all are on the left
_WIDTH = 480  # of a panel
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


class Line(NamedTuple):
    """A curve with its name in the figure, and whether it is dashed."""

    label: str
    curve: Curve
    dashed: bool = False

    def panel(self, *, named: bool = False) -> str:
        """The dataset, the axes of the experiment whose values are words, perhaps the protocol."""
        words = [value for value in self.curve.axes.values() if isinstance(value, str)]
        title = ", ".join([self.curve.dataset, *words])
        return f"{title} ({self.curve.protocol})" if named else title

    def series(self, along: str) -> Series:
        """The points with their bands."""
        dots = []
        for point in self.curve.points:
            where = f"{self.label}, {along} {point.x:g}: {score(point)} % (n = {len(point.scores)})"
            dots.append(Dot(point.x, point.mean, where, point.std or 0.0))
        return Series(self.label, marker_of(self.curve.model), dots, self.dashed)


class Panel(NamedTuple):
    """One chart of a figure, with its horizontal axis and its height."""

    title: str
    lines: list[Line]
    x: ChartAxis
    height: int

    def draw(self) -> str:
        """The chart as an ``<svg>`` element."""
        points = [point for line in self.lines for point in line.curve.points]
        ends = [point.mean + way * (point.std or 0) for point in points for way in (-1, 1)]
        chart = Chart(
            [line.series(self.x.label.partition(",")[0]) for line in self.lines],
            title=f"{self.title}: test accuracy against {self.x.label}",
            x=self.x,
            y=_round_axis(f"{self.title}: test accuracy, %", ends, (1, 2, 5, 10, 20), 7, (0, 100)),
        )
        return chart.svg(_WIDTH, self.height)


def noise_panels(results: Results) -> list[Panel]:
    """A panel for each dataset and protocol; models with a lambda also have a line for λ 0."""
    lines = [Line(_name(curve), curve) for curve in curves(measured(results), "noise")]
    choices = {(r.model, r.setting["lam"]) for r in results.rows if "lam" in r.setting}
    searched = {model for model, lam in choices if (model, 0) in choices and lam != 0}
    without = tuple(row for row in results.rows if row.setting.get("lam") == 0)
    lines += [
        Line(f"{_name(curve)}, λ 0", curve, dashed=True)
        for curve in curves(measured(msgspec.structs.replace(results, rows=without)), "noise")
        if curve.model in searched
    ]
    several = len({line.curve.protocol for line in lines}) > 1
    panels = []
    for title, own in grouped(lines, lambda line: line.panel(named=several)).items():
        most = max(line.curve.points[-1].x for line in own) or 100
        axis = ChartAxis("added edges, %", 0, most, 100 * max(1, math.ceil(most / 1000)))
        panels.append(Panel(title, own, axis, 400))
    return panels


def lambda_panels(results: Results) -> list[Panel]:
    """A panel for each dataset; the lines of all protocols but the first are dashed."""
    of_lambda = curves(measured(results), "lam")
    protocols = list(dict.fromkeys(curve.protocol for curve in of_lambda))
    lines = []
    for curve in of_lambda:
        label = _name(curve) + (f", {curve.protocol}" if len(protocols) > 1 else "")
        lines.append(Line(label, curve, dashed=curve.protocol != protocols[0]))
    panels = []
    for title, own in grouped(lines, Line.panel).items():
        most = max(1, *(line.curve.points[-1].x for line in own))
        axis = ChartAxis("λ, weight of the decoupling loss", 0, most, most / 5)
        panels.append(Panel(title, own, axis, 300))
    return panels


FIGURES = {"noise": noise_panels, "lambda": lambda_panels}


def figure_svg(name: str, results: Results) -> str:
    """A whole figure as a file of its own, legible on white and on dark."""
    panels = FIGURES[name](results)
    if not panels:
        raise DataError(
            f"the results of {results.experiment} have nothing to draw: every network has diverged"
        )
    words = {"noise": "added edges", "lambda": "lambda"}
    figure = render(
        "figure.svg",
        package="study.pages",
        charts=[panel.draw() for panel in panels],
        columns=min(2, len(panels)),
        size=(_WIDTH, panels[0].height),
        title=f"Test accuracy against {words[name]}",
        ink=INK_FOR_ANY_BACKGROUND,
    )
    return figure + "\n"


def noise_table(panel: Panel) -> Table:
    """The numbers of a noise panel, a row for each line of the figure."""
    levels = sorted({point.x for line in panel.lines for point in line.curve.points})
    rows = []
    for line in panel.lines:
        points = {point.x: point for point in line.curve.points}
        rows.append(
            (TableCell(line.label), *(mean_and_std(points.get(level), ".1f") for level in levels))
        )
    head = (panel.title, *(f"+{level:g} %" for level in levels))
    return Table(head, tuple(rows), "noise-" + re.sub(r"\W+", "-", panel.title))


def lambda_table(panels: Sequence[Panel]) -> Table:
    """What each lambda changes against the smallest one, a row for each dataset and model."""
    lines = [(panel.title, line) for panel in panels for line in panel.lines]
    levels = sorted({point.x for _, line in lines for point in line.curve.points})
    rows = []
    for dataset, line in lines:
        first, changes = line.curve.points[0], line.curve.against(levels[0])
        least = mean_and_std(first if first.x == levels[0] else None, ".1f")
        cells = (lead_cell(changes.get(level)) for level in levels[1:])
        rows.append((TableCell(dataset, (line.label,)), least, *cells))
    head = ("dataset", *(f"λ {level:g}" for level in levels))
    return Table(head, tuple(rows), "lambda-changes")


def gates_chart(curve: GateCurve) -> str:
    """The gates of a model on one dataset as an ``<svg>`` element."""
    series = []
    for name, label, marker in GATES:
        dots = []
        for nodes in curve.bins:
            middle, mean = (nodes.low + nodes.high) / 2, getattr(nodes, name)
            where = f"{label}, local homophily {nodes.low:g} to {nodes.high:g}"
            told = f"{where}: {mean:.2f} ({nodes.nodes} nodes)"
            dots.append(Dot(middle, mean, told, getattr(nodes, f"{name}_std")))
        series.append(Series(label, marker, dots))
    about = f"{curve.dataset}, {curve.model}, λ {curve.lam:g} ({curve.protocol})"
    chart = Chart(
        series,
        title=f"Gates of {curve.model} on {curve.dataset} against local homophily",
        x=ChartAxis("local homophily"),
        y=ChartAxis(f"{about}: mean of the gate"),
    )
    return chart.svg(440, 280)


def cost_chart(board: Leaderboard) -> Chart:
    """The mean score of each ranked model against the time that its searches took."""
    dots: dict[str, list[Dot]] = {kind: [] for kind in KINDS}
    for row, cell in board.of_row.items():
        mean, seconds = board.mean(row), board.seconds(row)
        if mean is not None and seconds > 0:
            title = f"{row}: {mean:.2f} after {seconds:.0f} s"
            dots[kind_of(cell.model)].append(Dot(math.log10(seconds), mean, title))
    of_all = [dot for of_kind in dots.values() for dot in of_kind]
    first, last = math.floor(min(dot.x for dot in of_all)), math.ceil(max(dot.x for dot in of_all))
    return Chart(
        [Series(kind, _LOOKS[kind], sorted(own)) for kind, own in dots.items() if own],
        joined=False,
        title="Mean test score of each model against the time that its searches took",
        x=ChartAxis("time of all searches of a model, s", first, max(last, first + 1), 1, log=True),
        y=_round_axis("mean score, %", [dot.y for dot in of_all]),
    )


def gain_chart(effects: Sequence[Effect]) -> Chart:
    """What memory adds to each backbone on each graph, against its homophily."""
    series = []
    for place, (backbone, marker) in enumerate(_BACKBONES.items()):
        shift = _APART * (place - (len(_BACKBONES) - 1) / 2)
        dots = []
        for effect in effects:
            for gain in effect.gains if effect.backbone == backbone else ():
                low, high = 100 * gain.interval.low, 100 * gain.interval.high
                name = f"{effect.backbone}{effect.plug_in} on {gain.column}"
                title = f"{name}: {gain.points:+.2f} points, from {low:+.2f} to {high:+.2f}"
                spread = min(100 * (gain.interval.high - gain.interval.mean), 100.0)
                dots.append(Dot(gain.homophily + shift, gain.points, title, spread))
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
        y=_round_axis("gain by memory, points", ends),
    )


def _name(curve: Curve) -> str:
    """The model, and the axes whose values are numbers."""
    numbers = [f"{k} {v:g}" for k, v in curve.axes.items() if not isinstance(v, str)]
    return ", ".join([curve.model, *numbers])


def _round_axis(
    label: str,
    values: Iterable[float],
    steps: Sequence[float] = (0.5, 1, 2, 5, 10, 20, 50),
    most: int = 8,
    ends: tuple[float, float] = (-math.inf, math.inf),
) -> ChartAxis:
    """An axis between two multiples of a step, at most so many of which hold all values."""
    low, high = min(values), max(values)
    step = next((step for step in steps if (high - low) / step <= most), steps[-1])
    low = max(math.floor(low / step) * step, ends[0])
    high = min(math.ceil(high / step) * step, ends[1])
    if low >= high:  # all values are equal, and at a tick
        low, high = (low, low + step) if low < ends[1] else (low - step, low)
    return ChartAxis(label, low, high, step)


def rank_diagram(comparison: Comparison, *, title: str, width: int = 720) -> str:
    """The diagram as one ``<svg>`` element, which is also a whole file; the best is on the left.

    The better half of the names is on the left of the axis and the other half on the right, if
    there is room. The bars join models between which the comparison finds no difference. The line
    above the axis is as long as Nemenyi's critical difference. The title is for people who cannot
    see it.
    """
    ranks, size = comparison.by_model, 13 if width >= _NARROW else 11
    side = (max(map(len, ranks)) + 5) * _LETTER * size + 10
    both = width - 2 * side >= _LEAST
    right = side if both else 2.0 * size
    lowest, highest = math.floor(min(ranks.values())), math.ceil(max(ranks.values()))
    # Ranks may be equal, and names long.
    scale = max(1, width - side - right) / max(1, highest - lowest)

    def across(rank: float) -> float:
        return side + (rank - lowest) * scale

    left = math.ceil(len(ranks) / 2) if both else len(ranks)
    axis = 58
    names = axis + 16 + _BAR * len(comparison.cliques)
    rows = []
    for place, (model, rank) in enumerate(ranks.items()):
        # On the left the best is on top, on the right the worst.
        if place < left:
            row, edge, away, anchor = place, side - 6, -4, "end"
        else:
            row, edge, away, anchor = len(ranks) - 1 - place, width - side + 6, 4, "start"
        words = f"{model} {rank:.2f}" if place < left else f"{rank:.2f} {model}"
        at = {"y": names + _ROW * row + 8, "edge": edge, "x": edge + away, "anchor": anchor}
        rows.append({"rank": rank, "words": words, **at})
    bars = [
        {
            "ends": [ranks[clique[0]], ranks[clique[-1]]],
            "y": axis + 12 + _BAR * i,
            "names": ", ".join(clique),
        }
        for i, clique in enumerate(comparison.cliques)
    ]
    # The critical difference may be longer than the axis but not than the drawing.
    length, words = comparison.critical_difference * scale, "critical difference (Nemenyi)"
    start = max(4.0, min(side, width - 4 - length))
    return render(
        "ranks.svg",
        package="study.pages",
        title=title,
        width=width,
        height=names + _ROW * left + 8,
        ink=None,
        size=size,
        ruler={
            "start": start,
            "length": min(length, width - 8),
            "words": words,
            "words_at": min(start, width - 4 - len(words) * _LETTER * size),
        },
        ticks=range(lowest, highest + 1, math.ceil(2 * size / scale)),
        highest=highest,
        axis=axis,
        across=across,
        names=rows,
        bars=bars,
    )
