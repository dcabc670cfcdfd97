"""The demo as a table, as one page that needs no network, and its curve as one drawing."""

from __future__ import annotations

from functools import partial

from rich.table import Table

from memohop.demo import DemoResult
from memohop.report.chart import Axis, Dot, Series, VerticalMark, draw_chart
from memohop.report.environment import both_widths, render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, look_of
from memohop.report.terminal import plain_table


def demo_table(result: DemoResult) -> Table:
    """Test accuracy, a row for each graph and a column for each model."""
    table = plain_table("homophily", numbers=result.settings.models)
    for homophily in result.settings.homophilies:
        cells = [result.cell(homophily, model) for model in result.settings.models]
        table.add_row(f"{homophily:.2f}", *(f"{cell.mean:.1f} ± {cell.std:.1f}" for cell in cells))
    return table


def curve_svg(result: DemoResult) -> str:
    """Accuracy against homophily as a file of its own, legible on white and on dark."""
    return _accuracy_chart(result, 720, 420, ink=INK_FOR_ANY_BACKGROUND) + "\n"


def demo_page(result: DemoResult) -> str:
    """The whole page as text; every number on it comes from ``result``."""
    settings = result.settings
    rows = [
        (homophily, [result.cell(homophily, model) for model in settings.models])
        for homophily in settings.homophilies
    ]
    gates = partial(_gates_chart, result)
    return render(
        "demo.html",
        result=result,
        settings=settings,
        chance=1 / result.classes,
        rows=rows,
        first=rows[0][1],
        last=rows[-1][1],
        accuracy=both_widths(partial(_accuracy_chart, result), wide=420, narrow=340),
        gates=both_widths(gates, wide=320, narrow=340)
        if any(c.gates for c in result.cells)
        else None,
    )


def _accuracy_chart(result: DemoResult, width: int, height: int, ink: str | None = None) -> str:
    lowest = min(cell.mean - cell.std for cell in result.cells)
    series = []
    for model in result.settings.models:
        dots = [
            Dot(
                cell.homophily,
                cell.mean,
                f"{model}, homophily {cell.homophily:g}: {cell.mean:.1f} ± {cell.std:.1f} %",
                cell.std,
            )
            for cell in result.cells
            if cell.model == model
        ]
        series.append(Series(model, look_of(model), dots, dashed=model == "mlp"))
    return draw_chart(
        series,
        title="Test accuracy against homophily, one line for each model",
        x=_homophily_axis(width),
        y=Axis("test accuracy, %", max(0, lowest // 10 * 10), 100, 10),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
        ink=ink,
    )


def _gates_chart(result: DemoResult, width: int, height: int) -> str:
    series = []
    for name, label, look in GATES:
        points = [
            (cell.homophily, getattr(cell.gates, name)) for cell in result.cells if cell.gates
        ]
        dots = [Dot(x, y, f"{label}, homophily {x:g}: {y:.2f}") for x, y in points]
        series.append(Series(label, look, dots))
    return draw_chart(
        series,
        title="Mean of the three gates of gcn+mmp against homophily",
        x=_homophily_axis(width),
        y=Axis("mean of the gate"),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
    )


def _homophily_axis(width: int) -> Axis:
    meaning = ": share of neighbours of one's own class" if width > 400 else ""
    return Axis(f"homophily{meaning}")
