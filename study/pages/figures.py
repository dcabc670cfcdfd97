"""The paper's two figures with their numbers in tables, the gates, and diagrams of ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from memohop.errors import DataError
from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.environment import render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, marker_of
from study.pages.table1 import lead_cell
from study.pages.tables import Table, TableCell, mean_and_std, score
from study.paper.curves import Curve, curves
from study.paper.gates import GateCurve
from study.runs.results import Results, grouped, measured
from study.statistics.comparison import Comparison

_ROW, _BAR = 19, 9  # height of a name and of a bar
_LETTER = 0.64  # width of a letter over the size of the font, in wide fonts
_NARROW = 500  # drawings below this width have smaller letters
_LEAST = 60  # the width of an axis between names on both sides; with less, all are on the left
_WIDTH = 480  # of a panel


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
        dots = [
            Dot(
                point.x,
                point.mean,
                f"{self.label}, {along} {point.x:g}: {score(point)} % (n = {len(point.scores)})",
                point.std or 0.0,
            )
            for point in self.curve.points
        ]
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
        low = min(point.mean - (point.std or 0) for point in points)
        high = max(point.mean + (point.std or 0) for point in points)
        chart = Chart(
            [line.series(self.x.label.partition(",")[0]) for line in self.lines],
            title=f"{self.title}: test accuracy against {self.x.label}",
            x=self.x,
            y=_accuracy_axis(f"{self.title}: test accuracy, %", low, high),
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
    series = [
        Series(
            label,
            marker,
            [
                Dot(
                    (bin_.low + bin_.high) / 2,
                    getattr(bin_, name),
                    f"{label}, local homophily {bin_.low:g} to {bin_.high:g}: "
                    f"{getattr(bin_, name):.2f} ({bin_.nodes} nodes)",
                    getattr(bin_, f"{name}_std"),
                )
                for bin_ in curve.bins
            ],
        )
        for name, label, marker in GATES
    ]
    about = f"{curve.dataset}, {curve.model}, λ {curve.lam:g} ({curve.protocol})"
    chart = Chart(
        series,
        title=f"Gates of {curve.model} on {curve.dataset} against local homophily",
        x=ChartAxis("local homophily"),
        y=ChartAxis(f"{about}: mean of the gate"),
    )
    return chart.svg(440, 280)


def _name(curve: Curve) -> str:
    """The model, and the axes whose values are numbers."""
    numbers = [f"{k} {v:g}" for k, v in curve.axes.items() if not isinstance(v, str)]
    return ", ".join([curve.model, *numbers])


def _accuracy_axis(label: str, low: float, high: float) -> ChartAxis:
    """An axis with round numbers that has room for all points and bands."""
    step = next((s for s in (1, 2, 5, 10) if (high - low) / s <= 7), 20)
    low, high = max(0, math.floor(low / step) * step), min(100, math.ceil(high / step) * step)
    if low >= high:  # all scores are equal, and at a tick
        low, high = (low, low + step) if low < 100 else (100 - step, 100)
    return ChartAxis(label, low, high, step)


def rank_diagram(comparison: Comparison, *, title: str, width: int = 720) -> str:
    """The diagram as one ``<svg>`` element, which is also a whole file; the best is on the left.

    The better half of the names is on the left of the axis and the other half on the right, if
    there is room. The bars join models between which the comparison finds no difference. The line
    above the axis is as long as Nemenyi's critical difference.

    Args:
        comparison: What to draw.
        title: What the diagram shows, for people who cannot see it.
        width: Width of the drawing; it scales to the space it is given.
    """
    size = 13 if width >= _NARROW else 11
    side = (max(len(name) for name in comparison.models) + 5) * _LETTER * size + 10
    both = width - 2 * side >= _LEAST
    right = side if both else 2.0 * size
    lowest, highest = math.floor(min(comparison.ranks)), math.ceil(max(comparison.ranks))
    # Ranks may be equal, and names long.
    scale = max(1, width - side - right) / max(1, highest - lowest)

    def across(rank: float) -> float:
        return side + (rank - lowest) * scale

    left = math.ceil(len(comparison.models) / 2) if both else len(comparison.models)
    axis = 58
    names = axis + 16 + _BAR * len(comparison.cliques)
    height = names + _ROW * left + 8
    rows = []
    for i, (model, rank) in enumerate(zip(comparison.models, comparison.ranks, strict=True)):
        # On the left the best is on top, on the right the worst.
        on_left = i < left
        row = i if on_left else len(comparison.models) - 1 - i
        edge = side - 6 if on_left else width - side + 6
        rows.append(
            {
                "rank": rank,
                "y": names + _ROW * row + 8,
                "edge": edge,
                "x": edge - 4 if on_left else edge + 4,
                "anchor": "end" if on_left else "start",
                "words": f"{model} {rank:.2f}" if on_left else f"{rank:.2f} {model}",
            }
        )
    bars = [
        {
            "ends": [comparison.by_model[name] for name in (clique[0], clique[-1])],
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
        height=height,
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
