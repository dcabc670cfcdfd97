"""The table of speeds, and the figure of how the time of a step grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import geometric_mean

from rich.table import Table

from memohop.report.chart import Axis, Dot, Series, draw_chart
from memohop.report.palette import Look
from memohop.report.terminal import plain_table
from study.speed.measure import Growth, Speed

_LOOKS = {
    "members": Look("blue", "circle"),
    "arcs": Look("orange", "square"),
    "width": Look("green", "triangle"),
}


def speed_table(rows: Sequence[Speed]) -> Table:
    """A row for each dataset and model, and the geometric mean of each model's ratios."""
    table = plain_table("dataset", numbers=())
    table.add_column("model")
    for name in ("stock ms", "ms", "ratio", "peak MB", "floor"):
        table.add_column(name, justify="right")
    for model, group in groupby(rows, key=lambda row: row.model):
        listed = list(group)
        for row in listed:
            table.add_row(
                row.dataset,
                model,
                f"{row.stock_ms:.2f}",
                f"{row.ms:.3f}",
                f"{row.ratio:.1f}x",
                f"{row.peak_mb:.0f}",
                "" if row.floor_share is None else f"{row.floor_share:.0%}",
            )
        mean = geometric_mean(row.ratio for row in listed)
        table.add_row("geometric mean", model, "", "", f"{mean:.1f}x", style="bold")
    return table


def growth_chart(points: Sequence[Growth]) -> str:
    """Doublings of a step's time against doublings of members, arcs or width, as SVG."""
    lines = []
    for axis, group in groupby(points, key=lambda point: point.axis):
        listed = list(group)
        dots = [
            Dot(
                math.log2(point.value / listed[0].value),
                math.log2(point.step_ms / listed[0].step_ms),
                f"{point.value} {axis}: {point.step_ms:.2f} ms",
            )
            for point in listed
        ]
        lines.append(Series(axis, _LOOKS[axis], dots))
    dots = [dot for line in lines for dot in line.dots]
    widest = math.ceil(max(dot.x for dot in dots))
    highest = max(1, math.ceil(max(dot.y for dot in dots)))
    lowest = min(0, math.floor(min(dot.y for dot in dots)))
    return draw_chart(
        lines,
        title="How the time of a step grows with members, arcs and width",
        x=Axis("doublings of the quantity", 0, widest, 1),
        y=Axis("doublings of the time", lowest, highest, 1),
    )
