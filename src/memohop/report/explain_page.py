"""A page on the gates of a fitted model and on what decided one node; it needs no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memohop.report.environment import both_widths, render
from memohop.report.palette import GATES, RIGHT
from memohop.report.svg import Axis, Dot, Series, line_chart

if TYPE_CHECKING:
    from memohop.explain import GateReadout, NodeExplanation
    from memohop.explain.gates import Group
    from memohop.own.report import FitReport

LEAST = 5
"""Groups with fewer nodes are not drawn: their means say little."""
_SHOWN_NEIGHBOURS = 20
_SHOWN_NODES = 8


def explain_page(report: FitReport, gates: GateReadout, node: NodeExplanation) -> str:
    """The whole page as text: how the model was made, the gates of all nodes, and one node."""
    by_homophily = gates.by_homophily()
    drawn = [group for group in by_homophily if group.nodes >= LEAST]
    return render(
        "explain.html",
        report=report,
        overall=gates.overall(),
        by_correctness=[group for group in gates.by_correctness() if group.nodes],
        by_homophily=by_homophily,
        charts=both_widths(partial(_chart, drawn), wide=340, narrow=320) if drawn[1:] else None,
        least=LEAST,
        by_degree=gates.by_degree(),
        node=node,
        shares=_shares(node),
        extremes=_extremes(gates),
    )


def _chart(groups: Sequence[Group], width: int, height: int) -> str:
    series = []
    for name, label, look in (*GATES, RIGHT):
        points = [(group, getattr(group, name)) for group in groups]
        dots = [
            Dot(
                group.middle,
                value,
                f"{label}, like neighbours {group.name}: {value:.2f} ({group.nodes} nodes)",
            )
            for group, value in points
            if not math.isnan(value)
        ]
        if dots:
            series.append(Series(label, look, dots, dashed=name == "right"))
    return line_chart(
        series,
        title="Gates and share of right answers against local homophily",
        x=Axis("share of like neighbours"),
        y=Axis("mean"),
        width=width,
        height=height,
    )


def _shares(node: NodeExplanation) -> list[dict[str, Any]]:
    """Rows of the table of shares of the margin, with the length of each bar."""
    shown, rest = node.neighbours[:_SHOWN_NEIGHBOURS], node.neighbours[_SHOWN_NEIGHBOURS:]
    rows = [_row("its own features", node.own)]
    rows += [_row(one.id, one.share, is_node=True, label=one.label) for one in shown]
    if rest:
        rows.append(_row(f"{len(rest)} more nodes", sum(one.share for one in rest)))
    rows.append(_row("constant (biases)", node.constant))
    most = max(abs(row["share"]) for row in rows) or 1
    return [row | {"part": abs(row["share"]) / most} for row in rows]


def _row(name: Any, share: float, *, is_node: bool = False, label: Any = None) -> dict[str, Any]:
    return {"name": name, "share": share, "is_node": is_node, "label": label}


def _extremes(gates: GateReadout) -> dict[str, list[dict[str, object]]]:
    """The nodes that listened most and least."""
    order = gates.listeners()
    chosen = {"most": order[:_SHOWN_NODES], "least": order[::-1][:_SHOWN_NODES]}

    def name(code: int) -> object:
        return None if code < 0 else gates.classes[code]

    return {
        title: [
            {
                "id": gates.ids[index],
                "label": name(gates.label[index]),
                "predicted": name(gates.predicted[index]),
                "absorbed": gates.absorbed[index],
                "degree": gates.degree[index],
            }
            for index in indices
        ]
        for title, indices in chosen.items()
    }
