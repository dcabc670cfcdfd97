"""The critical-difference diagram: average ranks on a line, bars over ranks that may be equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from memohop.report.svg import escape, opening, text_at
from study.statistics.comparison import Comparison

_ROW, _BAR = 19, 9  # height of a name and of a bar
_LETTER = 0.64  # width of a letter over the size of the font, in wide fonts
_NARROW = 500  # drawings below this width have smaller letters
_LEAST = 60  # the width of an axis between names on both sides; with less, all are on the left


def rank_diagram(found: Comparison, *, title: str, width: int = 720, ink: str | None = None) -> str:
    """The diagram as one ``<svg>`` element, which is also a whole file; the best is on the left.

    The better half of the names is on the left of the axis and the other half on the right, if
    there is room. The bars join models between which the comparison finds no difference. The line
    above the axis is as long as Nemenyi's critical difference.

    Args:
        found: What to draw.
        title: What the diagram shows, for people who cannot see it.
        width: Width of the drawing; it scales to the space it is given.
        ink: Colour of lines and text; that of the text around the diagram if None.
    """
    size = 13 if width >= _NARROW else 11
    side = (max(len(name) for name in found.models) + 5) * _LETTER * size + 10
    both = width - 2 * side >= _LEAST
    right = side if both else 2.0 * size
    lowest, highest = math.floor(min(found.ranks)), math.ceil(max(found.ranks))
    # Ranks may be equal, and names long.
    scale = max(1, width - side - right) / max(1, highest - lowest)

    def across(rank: float) -> float:
        return side + (rank - lowest) * scale

    left = math.ceil(len(found.models) / 2) if both else len(found.models)
    axis = 58
    names = axis + 16 + _BAR * len(found.cliques)
    height = names + _ROW * left + 8
    parts = [
        opening(title, width=width, height=height, ink=ink),
        f'<g fill="currentColor" stroke="none" font-size="{size}">',
        *_ruler(found.critical_difference * scale, side, width, size),
        *_axis(range(lowest, highest + 1, math.ceil(2 * size / scale)), across, axis, highest),
    ]
    for i, (model, rank) in enumerate(zip(found.models, found.ranks, strict=True)):
        # On the left the best is on top, on the right the worst.
        on_left = i < left
        row = i if on_left else len(found.models) - 1 - i
        y, edge = names + _ROW * row + 8, side - 6 if on_left else width - side + 6
        parts.append(
            f'<path d="M{across(rank):.2f} {axis}V{y:.2f}H{edge:.2f}" fill="none" '
            'stroke="currentColor" stroke-opacity="0.55"/>'
        )
        label = f"{model} {rank:.2f}" if on_left else f"{rank:.2f} {model}"
        anchor, at = ("end", edge - 4) if on_left else ("start", edge + 4)
        parts.append(text_at(at, y + 4.5, label, anchor=anchor))
    for i, clique in enumerate(found.cliques):
        ends = [across(found.ranks[found.models.index(name)]) for name in (clique[0], clique[-1])]
        parts.append(
            f'<path class="clique" d="M{ends[0] - 4:.2f} {axis + 12 + _BAR * i}H{ends[1] + 4:.2f}" '
            f'stroke="currentColor" stroke-width="4.5"><title>{escape(", ".join(clique))}</title>'
            "</path>"
        )
    return "\n".join([*parts, "</g>", "</svg>"])


def _ruler(length: float, side: float, width: int, size: int) -> Iterator[str]:
    """The critical difference; it may be longer than the axis but not than the drawing."""
    start = max(4.0, min(side, width - 4 - length))
    yield (
        f'<path d="M{start:.2f} 20v8m0-4h{min(length, width - 8):.2f}m0-4v8" fill="none" '
        'stroke="currentColor"/>'
    )
    text = "critical difference (Nemenyi)"
    yield text_at(min(start, width - 4 - len(text) * _LETTER * size), 13, text)


def _axis(ranks: range, across: Callable[[float], float], y: float, highest: int) -> Iterator[str]:
    yield f'<path d="M{across(ranks[0]):.2f} {y}H{across(highest):.2f}" stroke="currentColor"/>'
    for rank in ranks:
        yield f'<path d="M{across(rank):.2f} {y - 5}v5" stroke="currentColor"/>'
        yield text_at(across(rank), y - 9, str(rank), anchor="middle")
