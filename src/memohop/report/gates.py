"""The gates of a network against local homophily, as a chart."""

from __future__ import annotations

from memohop.paper.gates import GateCurve
from memohop.report.palette import GATES
from memohop.report.svg import Axis, Series, line_chart, round_ticks


def gates_chart(curve: GateCurve) -> str:
    """The gates of a model on one dataset as an `<svg>` element."""
    centres = tuple((each.low + each.high) / 2 for each in curve.bins)
    series = [
        Series(
            label=label,
            colour=colour,
            symbol=symbol,
            x=centres,
            y=tuple(getattr(each, name) for each in curve.bins),
            spread=tuple(getattr(each, f"{name}_std") for each in curve.bins),
            titles=tuple(
                f"{label}, local homophily {each.low:g} to {each.high:g}: "
                f"{getattr(each, name):.2f} ({each.nodes} nodes)"
                for each in curve.bins
            ),
        )
        for name, label, (colour, symbol) in GATES
    ]
    return line_chart(
        series,
        title=f"Gates of {curve.model} on {curve.dataset} against local homophily",
        x=Axis("local homophily", 0, 1, round_ticks(0, 1, step=0.2)),
        y=Axis(
            f"{curve.dataset}, {curve.model}, λ {curve.lam:g} ({curve.protocol}): mean of the gate",
            0,
            1,
            round_ticks(0, 1, step=0.2),
        ),
        width=440,
        height=280,
    )
