"""Small charts of lines or of single points, each one ``<svg>`` element.

Whatever has no colour of its own is drawn in ``currentColor``, the colour of the surrounding text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from memohop.report.environment import on_page, render
from memohop.report.palette import Marker

_SYMBOLS = {  # drawn round the origin; shapes tell the lines apart where colours do not
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.6-3.6h7.2v7.2h-7.2z",
    "triangle": "M0-4.8L4.6 3.4H-4.6z",
    "diamond": "M0-5.2L5.2 0L0 5.2L-5.2 0z",
}
_LETTER, _LINE = 9.8, 15  # width of a bold letter and height of a line, in wide fonts


class Dot(NamedTuple):
    """A point, its tooltip, and half the height of the band or bar round it, if there is one."""

    x: float
    y: float
    title: str
    spread: float | None = None


class Series(NamedTuple):
    """One line of a chart: its name, its colour and symbol, and its points from left to right."""

    label: str
    marker: Marker
    dots: Sequence[Dot]
    dashed: bool = False


@dataclass(frozen=True)
class ChartAxis:
    """An axis: its name, its two ends, and the distance between its numbers.

    On a logarithmic one, ends, distance and points are powers of ten.
    """

    label: str
    low: float = 0
    high: float = 1
    step: float = 0.2
    log: bool = False

    @property
    def ticks(self) -> list[float]:
        """The multiples of the step."""
        first, last = round(self.low / self.step), round(self.high / self.step)
        return [round(i * self.step, 10) for i in range(first, last + 1)]

    def shown(self, tick: float) -> str:
        """The number at a tick."""
        return f"{10**tick:g}" if self.log else f"{tick:g}"

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


class VerticalMark(NamedTuple):
    """A vertical line at a value of the horizontal axis, and the text above it."""

    x: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart, drawn at any size; later lines are drawn over earlier ones.

    If they are not ``joined``, there are points alone, the ``spread`` of each is a bar instead of a
    part of a band, and the names are listed on the right. The title is for people who cannot see
    the chart. Of the name of the horizontal axis, what follows a colon is left out where there is
    no room for it.
    """

    series: Sequence[Series]
    title: str
    x: ChartAxis
    y: ChartAxis
    mark: VerticalMark | None = None
    joined: bool = True

    def svg(self, width: int = 720, height: int = 420, ink: str | None = None) -> str:
        """One ``<svg>`` element, which is also a whole file and scales to any size.

        Axes and text are drawn in ``ink``, by default the colour of the surrounding text.
        """
        longest = max(len(line.label) for line in self.series)
        right, top = width - longest * _LETTER - 24, 48.0 if self.joined else 30.0
        plot = _Plot(self.x, self.y, left=40.0, right=right, top=top, bottom=height - 46.0)
        label = self.x.label
        return render(
            "chart.svg",
            chart=self,
            plot=plot,
            size=(width, height),
            x_label=label if len(label) * _LETTER < width else label.partition(":")[0],
            names=self._names(plot),
            ink=ink,
            symbols=_SYMBOLS,
        )

    def _names(self, plot: _Plot) -> list[tuple[Series, float]]:
        """The lines, and the heights of their names: beside the last points, or as a list."""
        if not self.joined:
            step, first = 1.3 * _LINE, plot.top + 3.5
            return [(line, first + step * place) for place, line in enumerate(self.series)]
        lines = sorted(self.series, key=lambda line: plot.up(line.dots[-1].y))
        ends = [plot.up(line.dots[-1].y) for line in lines]
        return list(zip(lines, spread_out(ends, gap=_LINE, high=plot.bottom), strict=True))

    def both_widths(self, *, wide: int, narrow: int) -> dict[str, Markup]:
        """For screens and paper, and again for phones, where its text would be too small.

        ``wide`` and ``narrow`` are the two heights.
        """
        sizes = {"wide": (720, wide), "narrow": (360, narrow)}
        return {name: on_page(self.svg(*size), name) for name, size in sizes.items()}


@dataclass(frozen=True)
class _Plot:
    """The rectangle that holds the points of a chart, and the coordinates of numbers in it."""

    x: ChartAxis
    y: ChartAxis
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        return self.left + self.x.share(value) * (self.right - self.left)

    def up(self, value: float) -> float:
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def path(self, points: Iterable[Sequence[Any]]) -> str:
        return "M" + "L".join(f"{self.across(x):.2f} {self.up(y):.2f}" for x, y, *_ in points)

    def ends(self, dot: Dot) -> list[tuple[float, float]]:
        """Both ends of the spread of a point, cut off at those of the axis."""
        below, above = dot.y - (dot.spread or 0), dot.y + (dot.spread or 0)
        return [(dot.x, max(below, self.y.low)), (dot.x, min(above, self.y.high))]

    def band(self, dots: Sequence[Dot]) -> str:
        """Above the points from left to right, and back below them."""
        below, above = zip(*map(self.ends, dots), strict=True)
        return self.path([*above, *below[::-1]])


def spread_out(values: Sequence[float], *, gap: float, high: float) -> list[float]:
    """Rising values moved so that neighbours are ``gap`` apart and none is beyond ``high``."""
    steps = gap * np.arange(len(values))
    apart = np.maximum.accumulate(np.asarray(values) - steps)
    moved: list[float] = (np.minimum(apart, high - steps[-1]) + steps).tolist()
    return moved
