"""The demo as a table, as one page that needs no network, and its curve as one drawing."""

from __future__ import annotations

from rich.table import Table

from memohop.demo import DemoCell, DemoResult
from memohop.report.chart import Chart, ChartAxis, Dot, Series, VerticalMark
from memohop.report.environment import render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, marker_of
from memohop.report.terminal import plain_table

_HOMOPHILY = ChartAxis("homophily: share of neighbours of one's own class")


def demo_table(result: DemoResult) -> Table:
    """Test accuracy, a row for each graph and a column for each model."""
    table = plain_table("homophily", numbers=result.settings.models)
    for homophily in result.settings.homophilies:
        cells = [result.cell(homophily, model) for model in result.settings.models]
        table.add_row(f"{homophily:.2f}", *(f"{cell.mean:.1f} ± {cell.std:.1f}" for cell in cells))
    return table


def curve_svg(result: DemoResult) -> str:
    """Accuracy against homophily as a file of its own, legible on white and on dark."""
    return _accuracy_chart(result).svg(ink=INK_FOR_ANY_BACKGROUND) + "\n"


def demo_page(result: DemoResult) -> str:
    """The whole page as text; every number on it comes from ``result``."""
    has_gates = any(cell.gates for cell in result.cells)
    return render(
        "demo.html",
        result=result,
        settings=result.settings,
        chance=1 / result.classes,
        accuracy=_accuracy_chart(result).both_widths(wide=420, narrow=340),
        gates=_gates_chart(result).both_widths(wide=320, narrow=340) if has_gates else None,
    )


def _accuracy_chart(result: DemoResult) -> Chart:
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
    lowest = min(cell.mean - cell.std for cell in result.cells)
    y = ChartAxis("test accuracy, %", max(0, lowest // 10 * 10), 100, 10)
    title = "Test accuracy against homophily, one line for each model"
    return Chart(series, title, _HOMOPHILY, y, _mark(result))


def _gates_chart(result: DemoResult) -> Chart:
    def dot(cell: DemoCell, name: str, label: str) -> Dot:
        share = getattr(cell.gates, name)
        return Dot(cell.homophily, share, f"{label}, homophily {cell.homophily:g}: {share:.2f}")

    series = [
        Series(label, marker, [dot(cell, name, label) for cell in result.cells if cell.gates])
        for name, label, marker in GATES
    ]
    title = "Mean of the three gates of gcn+mmp against homophily"
    return Chart(series, title, _HOMOPHILY, ChartAxis("mean of the gate"), _mark(result))


def _mark(result: DemoResult) -> VerticalMark:
    return VerticalMark(1 / result.classes, "neighbours say nothing")
