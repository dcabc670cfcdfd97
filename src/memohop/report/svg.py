"""Small charts of lines or of single points, each written as one SVG element.

Whatever has no colour of its own is drawn in ``currentColor``, the colour of the surrounding text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from typing import NamedTuple

from memohop.printable import printable
from memohop.report.palette import Look

_SYMBOLS = {  # drawn round the origin; shapes tell the lines apart where colours do not
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.6-3.6h7.2v7.2h-7.2z",
    "triangle": "M0-4.8L4.6 3.4H-4.6z",
    "diamond": "M0-5.2L5.2 0L0 5.2L-5.2 0z",
}
_FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_LETTER, _LINE = 9.8, 15  # width of a bold letter and height of a line, in wide fonts


class Dot(NamedTuple):
    """A point of a line, its tooltip, and half the height of the band round it, if there is one."""

    x: float
    y: float
    title: str
    spread: float | None = None


class Series(NamedTuple):
    """One line of a chart: its name, its colour and symbol, and its points from left to right."""

    label: str
    look: Look
    dots: Sequence[Dot]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
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


class VerticalMark(NamedTuple):
    """A vertical line at a value of the horizontal axis, and the text above it."""

    x: float
    text: str


class _Plot(NamedTuple):
    """The rectangle that holds the lines, and the coordinates of numbers in it."""

    x: Axis
    y: Axis
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        share = (value - self.x.low) / (self.x.high - self.x.low)
        return self.left + share * (self.right - self.left)

    def up(self, value: float) -> float:
        share = (value - self.y.low) / (self.y.high - self.y.low)
        return self.bottom - share * (self.bottom - self.top)

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        coordinates = (f"{self.across(x):.2f} {self.up(y):.2f}" for x, y in points)
        return "M" + "L".join(coordinates)


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x: Axis,
    y: Axis,
    mark: VerticalMark | None = None,
    width: int = 720,
    height: int = 420,
    ink: str | None = None,
) -> str:
    """A chart as one ``<svg>`` element, which is also a whole file and scales to any size.

    Later lines are drawn over earlier ones. The title is for people who cannot see the chart. Axes
    and text are drawn in ``ink``, by default the colour of the surrounding text.
    """
    names = max(len(line.label) for line in series)
    plot = _Plot(x, y, left=40, right=width - names * _LETTER - 24, top=48, bottom=height - 46)
    parts = [
        opening(title, width=width, height=height, ink=ink),
        *_axes(plot),
        *(_mark(plot, mark) if mark else ()),
        *(_band(plot, line) for line in series if line.dots[0].spread is not None),
        *(part for line in series for part in _line(plot, line)),
        *_labels(plot, series),
        "</svg>",
    ]
    return "\n".join(parts)


def scatter_chart(
    series: Sequence[Series],
    *,
    title: str,
    x: Axis,
    y: Axis,
    width: int = 720,
    height: int = 420,
    ink: str | None = None,
) -> str:
    """Points without lines, each with a bar of its ``spread`` if it has one; names on the right."""
    names = max(len(one.label) for one in series)
    plot = _Plot(x, y, left=40, right=width - names * _LETTER - 24, top=30, bottom=height - 46)
    parts = [opening(title, width=width, height=height, ink=ink), *_axes(plot)]
    if y.low < 0 < y.high:
        parts.append(
            f'<path d="M{plot.left:.2f} {plot.up(0):.2f}H{plot.right:.2f}" stroke="currentColor"/>'
        )
    for one in series:
        parts.append(f'<g style="color:{escape(one.look.colour)}" fill="currentColor">')
        parts += [_bar(plot, dot) for dot in one.dots if dot.spread is not None]
        parts += [_symbol(plot, one.look, dot) for dot in one.dots]
        parts.append("</g>")
    for place, one in enumerate(series):
        down = plot.top + 8 + _LINE * 1.3 * place
        parts.append(
            f'<g style="color:{escape(one.look.colour)}" fill="currentColor" font-weight="600">'
            f'<path transform="translate({plot.right + 14:.2f} {down - 4.5:.2f})" '
            f'd="{_SYMBOLS[one.look.symbol]}"/>{text_at(plot.right + 24, down, one.label)}</g>'
        )
    return "\n".join([*parts, "</svg>"])


def _bar(plot: _Plot, dot: Dot) -> str:
    """The spread of a point, cut off at the ends of the axis."""
    spread = dot.spread or 0
    ends = (max(dot.y - spread, plot.y.low), min(dot.y + spread, plot.y.high))
    low, high = map(plot.up, ends)
    return (
        f'<path d="M{plot.across(dot.x):.2f} {low:.2f}V{high:.2f}" stroke="currentColor" '
        'stroke-opacity="0.45" stroke-width="1.4"/>'
    )


def _symbol(plot: _Plot, look: Look, dot: Dot) -> str:
    # The circle is invisible; it makes the point easier to hit with a mouse.
    return (
        f'<g class="point" transform="translate({plot.across(dot.x):.2f} {plot.up(dot.y):.2f})">'
        f'<path d="{_SYMBOLS[look.symbol]}"/><circle r="10" fill-opacity="0"/>'
        f"<title>{escape(dot.title)}</title></g>"
    )


def _axes(plot: _Plot) -> Iterable[str]:
    yield '<g fill="currentColor" stroke="none">'
    for tick in plot.y.ticks:
        y = plot.up(tick)
        yield (
            f'<path d="M{plot.left:.2f} {y:.2f}H{plot.right:.2f}" stroke="currentColor" '
            'stroke-opacity="0.2"/>'
        )
        yield text_at(plot.left - 7, y + 4.5, plot.y.shown(tick), anchor="end")
    for tick in plot.x.ticks:
        x = plot.across(tick)
        yield (
            f'<path d="M{x:.2f} {plot.bottom:.2f}v5" stroke="currentColor" stroke-opacity="0.6"/>'
        )
        yield text_at(x, plot.bottom + 19, plot.x.shown(tick), anchor="middle")
    yield text_at(4, 14, plot.y.label)
    yield text_at((plot.left + plot.right) / 2, plot.bottom + 39, plot.x.label, anchor="middle")
    yield "</g>"


def _mark(plot: _Plot, mark: VerticalMark) -> Iterable[str]:
    x = plot.across(mark.x)
    yield (
        f'<path d="M{x:.2f} {plot.top - 8:.2f}V{plot.bottom:.2f}" stroke="currentColor" '
        'stroke-dasharray="2 4"/>'
    )
    yield text_at(x - 4, plot.top - 14, mark.text, more='fill="currentColor"')


def _band(plot: _Plot, line: Series) -> str:
    """The band round a line, cut off at the ends of the axis."""
    above = [(dot.x, min(dot.y + (dot.spread or 0), plot.y.high)) for dot in line.dots]
    below = [(dot.x, max(dot.y - (dot.spread or 0), plot.y.low)) for dot in line.dots]
    return (
        f'<path d="{plot.path(above + below[::-1])}z" style="fill:{escape(line.look.colour)}" '
        'fill-opacity="0.15"/>'
    )


def _line(plot: _Plot, line: Series) -> Iterable[str]:
    dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
    yield f'<g style="color:{escape(line.look.colour)}" fill="currentColor">'
    yield (
        f'<path d="{plot.path((dot.x, dot.y) for dot in line.dots)}" fill="none" '
        f'stroke="currentColor" stroke-width="2.2" stroke-linejoin="round"{dashes}/>'
    )
    yield from (_symbol(plot, line.look, dot) for dot in line.dots)
    yield "</g>"


def _labels(plot: _Plot, series: Sequence[Series]) -> Iterable[str]:
    """The names, beside the last points and never over one another."""
    ordered = sorted(series, key=lambda line: plot.up(line.dots[-1].y))
    ends = [plot.up(line.dots[-1].y) for line in ordered]
    heights = spread_out(ends, gap=_LINE, high=plot.bottom)
    for line, end, height in zip(ordered, ends, heights, strict=True):
        yield f'<g style="color:{escape(line.look.colour)}" fill="currentColor" font-weight="600">'
        yield (
            f'<path d="M{plot.across(line.dots[-1].x) + 7:.2f} {end:.2f}'
            f'L{plot.right + 14:.2f} {height:.2f}" stroke="currentColor" stroke-opacity="0.5"/>'
        )
        yield text_at(plot.right + 18, height + 4.5, line.label)
        yield "</g>"


def spread_out(values: Sequence[float], *, gap: float, high: float) -> list[float]:
    """Rising values moved so that neighbours are ``gap`` apart and none is beyond ``high``."""
    moved = list(values)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    limit = high
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], limit)
        limit = moved[i] - gap
    return moved


def panels(charts: Sequence[str], *, title: str, columns: int, ink: str | None = None) -> str:
    """Charts of one size beside and below one another, as one ``<svg>`` element."""
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', charts[0])
    assert found
    width, height = int(found[1]), int(found[2])
    rows = -(-len(charts) // columns)
    parts = [opening(title, width=width * columns, height=height * rows, ink=ink)]
    for i, chart in enumerate(charts):
        row, column = divmod(i, columns)
        moved = f'<svg x="{column * width}" y="{row * height}" width="{width}" height="{height}" '
        parts.append(chart.replace("<svg ", moved, 1))
    return "\n".join([*parts, "</svg>"])


def escape(text: str) -> str:
    """A text made safe to stand between tags or in an attribute."""
    return escape_html(printable(text))


def opening(title: str, *, width: int, height: int, ink: str | None = None) -> str:
    """The tag that begins a drawing."""
    colour = f' color="{escape(ink)}"' if ink else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="{_FONT}" font-size="13"{colour}>'
    )


def text_at(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    """A text with its ``start``, ``middle`` or ``end`` (the ``anchor``) at a point."""
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
