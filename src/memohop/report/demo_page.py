"""The demo as one page that needs no network, and its curve as one drawing."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from memohop.demo import DemoCell, DemoResult
from memohop.report.environment import on_page, render
from memohop.report.palette import GATES, INK_FOR_ANY_BACKGROUND, look_of
from memohop.report.svg import Axis, Series, VerticalMark, line_chart, round_ticks

_X = Axis("homophily: share of neighbours of one's own class", 0, 1, round_ticks(0, 1, step=0.2))
_X_NARROW = Axis("homophily", 0, 1, round_ticks(0, 1, step=0.2))


def curve_svg(result: DemoResult) -> str:
    """Accuracy against homophily as a file of its own, legible on white and on dark."""
    return _accuracy_chart(result, _X, ink=INK_FOR_ANY_BACKGROUND) + "\n"


def demo_page(result: DemoResult) -> str:
    """The whole page as text; every number on it comes from `result`."""
    settings = result.settings
    rows = [
        (homophily, [result.cell(homophily, model) for model in settings.models])
        for homophily in settings.homophilies
    ]
    has_gates = any(cell.gates for cell in result.cells)
    return render(
        "demo.html",
        result=result,
        settings=settings,
        chance=1 / result.classes,
        rows=rows,
        first=rows[0][1],
        last=rows[-1][1],
        accuracy=_both_widths(_accuracy_chart, result),
        gates=_both_widths(_gates_chart, result) if has_gates else None,
    )


def _accuracy_chart(
    result: DemoResult, x: Axis, *, width: int = 720, height: int = 420, ink: str | None = None
) -> str:
    lowest = min(cell.mean - cell.std for cell in result.cells)
    low = max(0, int(lowest // 10) * 10)
    series = []
    for model in result.settings.models:
        cells = [cell for cell in result.cells if cell.model == model]
        colour, symbol = look_of(model)
        series.append(
            Series(
                label=model,
                colour=colour,
                x=tuple(cell.homophily for cell in cells),
                y=tuple(cell.mean for cell in cells),
                spread=tuple(cell.std for cell in cells),
                titles=tuple(_tooltip(cell) for cell in cells),
                symbol=symbol,
                dashed=model == "mlp",
            )
        )
    return line_chart(
        series,
        title="Test accuracy against homophily, one line for each model",
        x=x,
        y=Axis("test accuracy, %", low, 100, round_ticks(low, 100, step=10)),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
        ink=ink,
    )


def _gates_chart(result: DemoResult, x: Axis, *, width: int = 720, height: int = 320) -> str:
    cells = [cell for cell in result.cells if cell.gates is not None]
    series = []
    for name, label, (colour, symbol) in GATES:
        values = tuple(float(getattr(cell.gates, name)) for cell in cells)
        series.append(
            Series(
                label=label,
                colour=colour,
                x=tuple(cell.homophily for cell in cells),
                y=values,
                titles=tuple(
                    f"{label}, homophily {cell.homophily:g}: {value:.2f}"
                    for cell, value in zip(cells, values, strict=True)
                ),
                symbol=symbol,
            )
        )
    return line_chart(
        series,
        title="Mean of the three gates of gcn+mmp against homophily",
        x=x,
        y=Axis("mean of the gate", 0, 1, round_ticks(0, 1, step=0.2)),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
    )


def _both_widths(chart: Callable[..., str], result: DemoResult) -> dict[str, Markup]:
    """A drawing for screens and paper, and one for phones, whose text would shrink otherwise."""
    return {
        "wide": on_page(chart(result, _X), "wide"),
        "narrow": on_page(chart(result, _X_NARROW, width=360, height=340), "narrow"),
    }


def _tooltip(cell: DemoCell) -> str:
    return f"{cell.model}, homophily {cell.homophily:g}: {cell.mean:.1f} ± {cell.std:.1f} %"
