"""The gates of a network against local homophily, as a chart."""

from __future__ import annotations

from memohop.report.chart import Axis, Dot, Series, draw_chart
from memohop.report.palette import GATES
from study.paper.gates import GateCurve


def gates_chart(curve: GateCurve) -> str:
    """The gates of a model on one dataset as an ``<svg>`` element."""
    series = [
        Series(
            label,
            look,
            [
                Dot(
                    (each.low + each.high) / 2,
                    getattr(each, name),
                    f"{label}, local homophily {each.low:g} to {each.high:g}: "
                    f"{getattr(each, name):.2f} ({each.nodes} nodes)",
                    getattr(each, f"{name}_std"),
                )
                for each in curve.bins
            ],
        )
        for name, label, look in GATES
    ]
    about = f"{curve.dataset}, {curve.model}, λ {curve.lam:g} ({curve.protocol})"
    return draw_chart(
        series,
        title=f"Gates of {curve.model} on {curve.dataset} against local homophily",
        x=Axis("local homophily"),
        y=Axis(f"{about}: mean of the gate"),
        width=440,
        height=280,
    )
