"""The pictures of the fair table: score against cost, and gain by memory against homophily."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from memohop.report.chart import ChartAxis, Dot, Series, draw_chart
from memohop.report.palette import Marker
from study.statistics.effects import Effect
from study.statistics.leaderboard import KINDS, Leaderboard, kind_of

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


def cost_chart(board: Leaderboard, width: int = 720, height: int = 420) -> str:
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
    return draw_chart(
        series,
        joined=False,
        title="Mean test score of each model against the time that its searches took",
        x=_logarithmic("time of all searches of a model, s", (dot.x for dot in points)),
        y=_rounded("mean score, %", (dot.y for dot in points)),
        width=width,
        height=height,
    )


def gain_chart(effects: Sequence[Effect], width: int = 720, height: int = 460) -> str:
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
    ends = [
        dot.y + side for of_backbone in series for dot in of_backbone.dots for side in _reach(dot)
    ]
    return draw_chart(
        series,
        joined=False,
        title="Gain of each backbone by memory against the homophily of the graph",
        x=ChartAxis("homophily of the graph", 0, 1, 0.2),
        y=_rounded("gain by memory, points", [*ends, 0.0]),
        width=width,
        height=height,
    )


def _reach(dot: Dot) -> tuple[float, float]:
    """The bar of a point, but no more than 15 points of it: a wide bar may leave the picture."""
    spread = min(dot.spread or 0.0, 15.0)
    return -spread, spread


def _rounded(label: str, values: Iterable[float]) -> ChartAxis:
    """An axis from a multiple of 1, 2, 5, 10 or 20 to another."""
    values = list(values)
    low, high = min(values), max(values)
    steps = (0.5, 1, 2, 5, 10, 20)
    step = next((step for step in steps if (high - low) / step <= 8), 50)
    first = math.floor(low / step) * step
    return ChartAxis(label, first, max(math.ceil(high / step) * step, first + step), step)


def _logarithmic(label: str, values: Iterable[float]) -> ChartAxis:
    values = list(values)
    low, high = math.floor(min(values)), math.ceil(max(values))
    return ChartAxis(label, low, max(high, low + 1), 1, log=True)
