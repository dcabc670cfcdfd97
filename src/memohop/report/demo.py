"""The demo as a table, as one page that needs no network, and its curve as one drawing."""

from __future__ import annotations

from functools import partial

from rich.table import Table

from memohop.demo import DemoCell, DemoResult
from memohop.report.chart import ChartAxis, Dot, Series, VerticalMark, draw_chart
from memohop.report.environment import both_widths, render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, marker_of
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
    has_gates = any(cell.gates for cell in result.cells)
    return render(
        "demo.html",
        result=result,
        settings=result.settings,
        chance=1 / result.classes,
        accuracy=both_widths(partial(_accuracy_chart, result), wide=420, narrow=340),
        gates=both_widths(partial(_gates_chart, result), wide=320, narrow=340)
        if has_gates
        else None,
    )


def _accuracy_chart(result: DemoResult, width: int, height: int, ink: str | None = None) -> str:
    def dot(cell: DemoCell) -> Dot:
        score = f"{cell.mean:.1f} ± {cell.std:.1f} %"
        title = f"{cell.model}, homophily {cell.homophily:g}: {score}"
        return Dot(cell.homophily, cell.mean, title, cell.std)

    series = [
        Series(
            model,
            marker_of(model),
            [dot(cell) for cell in result.cells if cell.model == model],
            dashed=model == "mlp",
        )
        for model in result.settings.models
    ]
    title = "Test accuracy against homophily, one line for each model"
    lowest = min(cell.mean - cell.std for cell in result.cells)
    y = ChartAxis("test accuracy, %", max(0, lowest // 10 * 10), 100, 10)
    return _chart(result, series, title, y, width, height, ink)


def _gates_chart(result: DemoResult, width: int, height: int) -> str:
    def dot(cell: DemoCell, name: str, label: str) -> Dot:
        share = getattr(cell.gates, name)
        return Dot(cell.homophily, share, f"{label}, homophily {cell.homophily:g}: {share:.2f}")

    series = [
        Series(label, marker, [dot(cell, name, label) for cell in result.cells if cell.gates])
        for name, label, marker in GATES
    ]
    title = "Mean of the three gates of gcn+mmp against homophily"
    return _chart(result, series, title, ChartAxis("mean of the gate"), width, height)


def _chart(
    result: DemoResult,
    series: list[Series],
    title: str,
    y: ChartAxis,
    width: int,
    height: int,
    ink: str | None = None,
) -> str:
    meaning = ": share of neighbours of one's own class" if width > 400 else ""
    return draw_chart(
        series,
        title=title,
        x=ChartAxis(f"homophily{meaning}"),
        y=y,
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
        ink=ink,
    )
