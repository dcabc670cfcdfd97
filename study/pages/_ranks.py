"""The critical-difference diagram: average ranks on a line, bars over ranks that may be equal."""

from __future__ import annotations

import math
from typing import Any

from memohop.report.environment import render
from study.statistics.comparison import Comparison

_ROW, _BAR = 19, 9  # height of a name and of a bar
_LETTER = 0.64  # width of a letter over the size of the font, in wide fonts
_NARROW = 500  # drawings below this width have smaller letters
_LEAST = 60  # the width of an axis between names on both sides; with less, all are on the left


def rank_diagram(
    comparison: Comparison, *, title: str, width: int = 720, ink: str | None = None
) -> str:
    """The diagram as one ``<svg>`` element, which is also a whole file; the best is on the left.

    The better half of the names is on the left of the axis and the other half on the right, if
    there is room. The bars join models between which the comparison finds no difference. The line
    above the axis is as long as Nemenyi's critical difference.

    Args:
        comparison: What to draw.
        title: What the diagram shows, for people who cannot see it.
        width: Width of the drawing; it scales to the space it is given.
        ink: Colour of lines and text; that of the text around the diagram if None.
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
    return render(
        "ranks.svg",
        package="study.pages",
        title=title,
        width=width,
        height=height,
        ink=ink,
        size=size,
        ruler=_ruler(comparison.critical_difference * scale, side, width, size),
        ticks=range(lowest, highest + 1, math.ceil(2 * size / scale)),
        highest=highest,
        axis=axis,
        across=across,
        names=rows,
        bars=bars,
    )


def _ruler(length: float, side: float, width: int, size: int) -> dict[str, Any]:
    """The critical difference; it may be longer than the axis but not than the drawing."""
    start = max(4.0, min(side, width - 4 - length))
    words = "critical difference (Nemenyi)"
    return {
        "start": start,
        "length": min(length, width - 8),
        "words": words,
        "words_at": min(start, width - 4 - len(words) * _LETTER * size),
    }
