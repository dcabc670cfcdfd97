"""Writes small line charts: numbers in, one SVG element out, in plain Python.

Colours are any CSS colour. What has no colour of its own is drawn in `currentColor`, the colour of
the text around the chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html

from memohop.printable import printable

_SYMBOLS = {  # drawn round the origin; shapes tell the lines apart where colours do not
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.6-3.6h7.2v7.2h-7.2z",
    "triangle": "M0-4.8L4.6 3.4H-4.6z",
    "diamond": "M0-5.2L5.2 0L0 5.2L-5.2 0z",
}
_FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_LETTER, _LINE = 9.8, 15  # width of a bold letter and height of a line, in wide fonts


@dataclass(frozen=True)
class Series:
    """One line of a chart.

    Attributes:
        label: Its name, written beside its last point.
        colour: Any CSS colour.
        x: Where the points are, in rising order.
        y: What they show.
        titles: What a tooltip says of each point.
        spread: Half the height of the band round each point; empty for no band.
        symbol: `circle`, `square`, `triangle` or `diamond`.
        dashed: Whether the line is dashed.
    """

    label: str
    colour: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    titles: tuple[str, ...]
    spread: tuple[float, ...] = ()
    symbol: str = "circle"
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """What an axis is called, where it begins and ends, and where it has numbers."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]


@dataclass(frozen=True)
class VerticalMark:
    """A value on the horizontal axis that is marked, and the text above the mark."""

    x: float
    text: str


@dataclass(frozen=True)
class _Plot:
    """The rectangle of the lines, and the coordinates of numbers in it."""

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
    """A chart as one `<svg>` element, which is also a whole file.

    Args:
        series: The lines; a later one is drawn over an earlier one.
        title: What the chart shows, for people who cannot see it.
        x: The horizontal axis.
        y: The vertical axis.
        mark: A vertical line with a text above it.
        width: Width of the drawing; it scales to the space it is given.
        height: Height of the drawing.
        ink: Colour of axes and text; that of the text around the chart if None.
    """
    names = max(len(line.label) for line in series)
    plot = _Plot(x, y, left=40, right=width - names * _LETTER - 24, top=48, bottom=height - 46)
    parts = [
        opening(title, width=width, height=height, ink=ink),
        *_axes(plot),
        *(_mark(plot, mark) if mark else ()),
        *(_band(plot, line) for line in series if line.spread),
        *(part for line in series for part in _line(plot, line)),
        *_labels(plot, series),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(plot: _Plot) -> Iterable[str]:
    yield '<g fill="currentColor" stroke="none">'
    for tick in plot.y.ticks:
        y = plot.up(tick)
        yield (
            f'<path d="M{plot.left:.2f} {y:.2f}H{plot.right:.2f}" stroke="currentColor" '
            'stroke-opacity="0.2"/>'
        )
        yield text_at(plot.left - 7, y + 4.5, f"{tick:g}", anchor="end")
    for tick in plot.x.ticks:
        x = plot.across(tick)
        yield (
            f'<path d="M{x:.2f} {plot.bottom:.2f}v5" stroke="currentColor" stroke-opacity="0.6"/>'
        )
        yield text_at(x, plot.bottom + 19, f"{tick:g}", anchor="middle")
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
    """The band round a line, cut off where the axis ends."""
    points = list(zip(line.x, line.y, line.spread, strict=True))
    above = [(x, min(y + spread, plot.y.high)) for x, y, spread in points]
    below = [(x, max(y - spread, plot.y.low)) for x, y, spread in points]
    return (
        f'<path d="{plot.path(above + below[::-1])}z" style="fill:{escape(line.colour)}" '
        'fill-opacity="0.15"/>'
    )


def _line(plot: _Plot, line: Series) -> Iterable[str]:
    points = list(zip(line.x, line.y, strict=True))
    dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
    yield f'<g style="color:{escape(line.colour)}" fill="currentColor">'
    yield (
        f'<path d="{plot.path(points)}" fill="none" stroke="currentColor" stroke-width="2.2" '
        f'stroke-linejoin="round"{dashes}/>'
    )
    for (x, y), title in zip(points, line.titles, strict=True):
        # The circle cannot be seen; it makes the point easier to hit with a mouse.
        yield (
            f'<g class="point" transform="translate({plot.across(x):.2f} {plot.up(y):.2f})">'
            f'<path d="{_SYMBOLS[line.symbol]}"/><circle r="10" fill-opacity="0"/>'
            f"<title>{escape(title)}</title></g>"
        )
    yield "</g>"


def _labels(plot: _Plot, series: Sequence[Series]) -> Iterable[str]:
    """The names, beside the last points and never over one another."""
    ends = [plot.up(line.y[-1]) for line in series]
    order = sorted(range(len(series)), key=ends.__getitem__)
    heights = spread_out([ends[i] for i in order], gap=_LINE, high=plot.bottom)
    for i, height in zip(order, heights, strict=True):
        line, end = series[i], plot.across(series[i].x[-1])
        yield f'<g style="color:{escape(line.colour)}" fill="currentColor" font-weight="600">'
        yield (
            f'<path d="M{end + 7:.2f} {ends[i]:.2f}L{plot.right + 14:.2f} {height:.2f}" '
            'stroke="currentColor" stroke-opacity="0.5"/>'
        )
        yield text_at(plot.right + 18, height + 4.5, line.label)
        yield "</g>"


def spread_out(values: Sequence[float], *, gap: float, high: float) -> list[float]:
    """Rising values moved so that neighbours are `gap` apart and none is beyond `high`."""
    moved = list(values)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    limit = high
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], limit)
        limit = moved[i] - gap
    return moved


def round_ticks(low: float, high: float, *, step: float) -> tuple[float, ...]:
    """The multiples of `step` from `low` to `high`."""
    first, last = round(low / step), round(high / step)
    return tuple(round(i * step, 10) for i in range(first, last + 1))


def panels(charts: Sequence[str], *, title: str, columns: int, ink: str | None = None) -> str:
    """Charts of one size beside and below one another, as one `<svg>` element."""
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
    """A text between tags or in an attribute."""
    return escape_html(printable(text))


def opening(title: str, *, width: int, height: int, ink: str | None = None) -> str:
    """The tag that begins a drawing."""
    colour = f' color="{escape(ink)}"' if ink else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="{_FONT}" font-size="13"{colour}>'
    )


def text_at(x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
    """A text; `anchor` is the part of it at that point: `start`, `middle` or `end`."""
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'
