"""A page on a fitted portfolio: what was kept, how good it is, and what decides in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.environment import render
from memohop.report.palette import Marker
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    from memohop.explain import FitExplanation
    from memohop.explain.node import NeighbourEffect, NodeReasons
    from memohop.fit import Feature, FitRecord, Reliability
    from memohop.training.metrics import Interval

T = TypeVar("T")

_COLUMNS = 20
_REASONS = 12
_NOTABLE = 1.05  # a factor of odds
_SOURCES = {
    "own": "its own columns",
    "edges": "what its edges are like",
    "one hop": "the columns of its neighbours",
    "two hops": "the columns two hops away",
    "least": "the least values among its neighbours",
    "greatest": "the greatest values among its neighbours",
    "spread": "how much the columns of its neighbours vary",
    "degree": "how many neighbours it has",
    "structure": "what the structure of the graph says of it",
    "labels": "the labels of its neighbours",
    "values": "the labels of nodes with the same values",
    "rows": "who its neighbours are",
    "position": "where it is in the graph",
    "network": "columns in networks, its own and its neighbours'",
}
_SPREAD = {
    "least": "the least among",
    "greatest": "the greatest among",
    "spread": "standard deviation over",
}
_KINDS = {
    "own": "the node\N{RIGHT SINGLE QUOTATION MARK}s own value",
    "one_hop": "mean or range over neighbours",
    "two_hops": "mean over two hops",
    "network": "own and neighbours\N{RIGHT SINGLE QUOTATION MARK} values in networks",
}
_QUESTIONS = {
    "graph": ("What does the graph add?", "over the columns alone"),
    "memory": ("What does memory add?", "over the best without it"),
}
_ENDS = {
    "trials": "all settings were tried",
    "time": "the time was up",
    "interrupted": "it was interrupted",
}


def fit_page(explained: FitExplanation) -> str:
    """The whole page as text."""
    report, node, columns = explained.report, explained.node, explained.columns
    bins = report.reliability
    return render(
        "fit.html",
        report=report,
        parts=explained.parts,
        gates=explained.gates,
        gates_weight=explained.gates_weight,
        node=node,
        metric=METRICS[report.metric],
        ends=_ENDS,
        questions=_QUESTIONS,
        in_a_line=_in_a_line,
        families_widest=_widest(row.behind for row in report.families),
        answers_widest=_widest(answer.gain for answer in report.answers),
        reliability=_reliability(bins).both_widths(wide=380, narrow=320) if bins else None,
        off=sum(group.nodes * abs(group.said - group.right) for group in bins)
        / (sum(group.nodes for group in bins) or 1),
        shift=_shift(report),
        sources=[(_SOURCES[name], share) for name, share in explained.sources.items()],
        columns=columns[:_COLUMNS],
        kinds=_KINDS,
        shown_kinds=[
            kind for kind in _KINDS if any(getattr(column, kind) > 0 for column in columns)
        ],
        left_out=max(0, len(columns) - _COLUMNS),
        reasons=node and _reasons(node),
        neighbours=node and _neighbours(node),
    )


def _shift(report: FitRecord) -> dict[str, Any] | None:
    """The classes between which calibration changed the odds most; None if it hardly did."""
    by_class = sorted(zip(report.calibration.shifts, report.class_sizes, strict=False))
    if not by_class or (factor := math.exp(by_class[-1][0] - by_class[0][0])) < _NOTABLE:
        return None
    return {"to": by_class[-1][1], "away": by_class[0][1], "factor": factor}


def _in_a_line(setting: Any) -> str:
    """Options and numbers of a setting."""
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{value:.3g}' if isinstance(value, float) else value}"
        for name, value in {**setting.options, **setting.numbers}.items()
    )


def _widest(gaps: Iterable[Interval | None]) -> float:
    """The end that is farthest from 0, of intervals that say something."""
    said = [gap for gap in gaps if gap is not None and not gap.says_nothing]
    return max((abs(end) for gap in said for end in (gap.low, gap.high)), default=1) or 1


def _reliability(bins: Sequence[Reliability]) -> Chart:
    ideal = [Dot(0, 0, ""), Dot(1, 1, "")]
    dots = [
        Dot(
            group.said,
            group.right,
            f"{group.nodes} nodes: probability {group.said:.2f}, right {group.right:.2f}",
        )
        for group in bins
    ]
    return Chart(
        [
            Series("ideal", Marker("grey", "diamond"), ideal, dashed=True),
            Series("found", Marker("blue", "circle"), dots),
        ],
        title="Share of right predictions against their probability",
        x=ChartAxis("probability of the predicted class"),
        y=ChartAxis("share that was right"),
    )


def _reasons(node: NodeReasons) -> list[tuple[str, float, float]]:
    """The name of each feature, what it adds, and the length of its bar."""
    reasons = list(node.reasons.items())
    named = [(_words(feature), value) for feature, value in reasons[:_REASONS]]
    if rest := reasons[_REASONS:]:
        named.append((f"{len(rest)} more features", sum(value for _, value in rest)))
    return _with_bars(named)


def _words(feature: Feature) -> str:
    source, name = feature
    if source in ("own", "edges", "degree", "structure"):
        return name
    if source in _SPREAD:
        return f"{name}, {_SPREAD[source]} its neighbours"
    if source == "labels":
        return f"labels of its neighbours, {name} away"
    if source == "values":
        return f"labels of nodes with the same {name}"
    if source == "around":
        return f"{name}, of the nodes around it"
    if source == "rows":
        return f"being a neighbour of {name}, or not"
    if source == "position":
        return f"position in the graph, coordinate {name}"
    return f"{name}, mean over {'its neighbours' if source == 'one hop' else 'two hops'}"


def _neighbours(node: NodeReasons) -> list[tuple[NeighbourEffect, float, float]]:
    """Each neighbour, what is drawn for it, and the length of its bar."""
    shown = node.neighbours[:_COLUMNS]
    return _with_bars([(row, row.effect if node.tried else row.memory) for row in shown])


def _with_bars(rows: Sequence[tuple[T, float]]) -> list[tuple[T, float, float]]:
    """Rows with the lengths of their bars, of which the longest is 1; NaN has none."""
    sizes = [0.0 if math.isnan(value) else abs(value) for _, value in rows]
    most = max(sizes, default=0) or 1
    return [(*row, size / most) for row, size in zip(rows, sizes, strict=True)]
