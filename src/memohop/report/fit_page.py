"""A page on a fitted portfolio: what was kept, how good it is, and what decides in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from memohop.report.environment import on_page, render
from memohop.report.palette import HUES, Look
from memohop.report.svg import Axis, Dot, Series, line_chart
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    from memohop.explain import FitExplanation
    from memohop.explain.fit import ColumnShare
    from memohop.explain.fit_node import NodeReasons, Reason
    from memohop.fit.calibration import Reliability
    from memohop.fit.record import FitRecord
    from memohop.intervals import Interval

_COLUMNS = 20
_REASONS = 12
_NOTABLE = 1.05  # a factor of odds
_SOURCES = {
    "own": "its own columns",
    "one hop": "the columns of its neighbours",
    "two hops": "the columns two hops away",
    "degree": "how many neighbours it has",
    "labels": "the labels of its neighbours",
    "rows": "who its neighbours are",
    "position": "where it is in the graph",
    "network": "columns in networks, its own and its neighbours'",
}
_KEYS = {
    "own": "the node\N{RIGHT SINGLE QUOTATION MARK}s own value",
    "one_hop": "mean over neighbours",
    "two_hops": "mean over two hops",
    "network": "own and neighbours\N{RIGHT SINGLE QUOTATION MARK} values in networks",
}
_ENDS = {
    "trials": "all settings were tried",
    "time": "the time was up",
    "interrupted": "it was interrupted",
}


def fit_page(found: FitExplanation) -> str:
    """The whole page as text."""
    report = found.report
    return render(
        "fit.html",
        report=report,
        metric=METRICS[report.metric],
        ends=_ENDS,
        parts=[
            {
                "family": one.setting.family,
                "weight": one.weight,
                "setting": _setting(one.setting),
                "leading": ", ".join(one.leading),
            }
            for one in found.parts
        ],
        scores=_scores(report),
        answers=_answers(report),
        reliability=_charts(report.reliability),
        off=_off(report.reliability),
        shift=_shift(report),
        sources=[(_SOURCES[name], share) for name, share in found.sources.items()],
        columns=_columns(found.columns),
        keys={
            kind.replace("_", "-"): words
            for kind, words in _KEYS.items()
            if any(getattr(one, kind) > 0 for one in found.columns)
        },
        left_out=max(0, len(found.columns) - _COLUMNS),
        gates=found.gates,
        gates_weight=found.gates_weight,
        node=found.node,
        reasons=None if found.node is None else _reasons(found.node),
        neighbours=None if found.node is None else _neighbours(found.node),
    )


def _shift(report: FitRecord) -> dict[str, Any] | None:
    """The classes between which calibration changed the odds most; None if it hardly did."""
    by_class = sorted(zip(report.shifts, report.class_sizes, strict=False))
    if not by_class or (factor := math.exp(by_class[-1][0] - by_class[0][0])) < _NOTABLE:
        return None
    return {"to": by_class[-1][1], "away": by_class[0][1], "factor": factor}


def _setting(part: Any) -> str:
    """Options and numbers in one line."""
    pairs: Mapping[str, Any] = {**part.options, **part.numbers}
    texts = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in pairs.values()]
    names = [name.replace("_", " ") for name in pairs]
    return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))


def _scores(report: FitRecord) -> list[dict[str, Any]]:
    """A row for each kind of model, with its distance from what was kept on a common scale."""
    metric, gaps = METRICS[report.metric], [one.behind for one in report.families]
    widest = _widest(gap for gap in gaps if gap is not None)
    kept = {part.family for part in report.kept}
    return [
        {
            "family": one.family,
            "kept": one.family in kept,
            "val": metric.text(one.val),
            "test": None if one.test is None else metric.text(one.test),
            "gap": None if gap is None else _gap(report, gap),
            "range": None if gap is None else _range(gap, widest),
            "tried": one.tried,
            "seconds": one.seconds,
        }
        for one, gap in zip(report.families, gaps, strict=True)
    ]


def _answers(report: FitRecord) -> list[dict[str, Any]]:
    questions = {"graph": "What does the graph add?", "memory": "What does memory add?"}
    against = {"graph": "over the columns alone", "memory": "over the best without it"}
    widest = _widest(answer.gain for answer in report.answers)
    return [
        {
            "question": questions[one.question],
            "gain": _gap(report, one.gain),
            "against": against[one.question],
            "better": one.better,
            "than": one.than,
            "sure": "it helps"
            if one.gain.above_zero
            else "it does harm"
            if one.gain.below_zero
            else "too close to say",
            "stopped": one.behind if one.short_of_time else None,
            "range": _range(one.gain, widest),
        }
        for one in report.answers
    ]


def _gap(report: FitRecord, gap: Interval) -> dict[str, str]:
    text = METRICS[report.metric].gap_text
    signed = [("+" if value > 0 else "") + text(value) for value in (gap.mean, gap.low, gap.high)]
    mean, low, high = (one.replace("-", "\N{MINUS SIGN}") for one in signed)
    return {"mean": mean, "interval": "too few to tell" if gap.says_nothing else f"{low} to {high}"}


def _widest(gaps: Iterable[Interval]) -> float:
    """The end that is farthest from 0, of intervals that say something."""
    ends = [abs(end) for gap in gaps if not gap.says_nothing for end in (gap.low, gap.high)]
    return max(ends, default=1) or 1


def _range(gap: Interval, widest: float) -> dict[str, str] | None:
    """Where an interval begins and ends and its middle, from 0 to 1, with 0 in the middle.

    None for one that says nothing.
    """
    if gap.says_nothing:
        return None
    ends = {"low": gap.low, "high": gap.high, "mean": gap.mean}
    return {name: f"{min(1, max(0, 0.5 + value / widest / 2)):.4f}" for name, value in ends.items()}


def _charts(bins: Sequence[Reliability]) -> dict[str, Markup] | None:
    """A drawing for screens and paper, and one for phones, whose text would shrink otherwise."""
    if not bins:
        return None
    sizes = {"wide": (720, 380), "narrow": (360, 320)}
    return {name: on_page(_chart(bins, *size), name) for name, size in sizes.items()}


def _chart(bins: Sequence[Reliability], width: int, height: int) -> str:
    ideal = [Dot(0, 0, ""), Dot(1, 1, "")]
    found = [
        Dot(
            one.said,
            one.right,
            f"{one.nodes} nodes: probability {one.said:.2f}, right {one.right:.2f}",
        )
        for one in bins
    ]
    return line_chart(
        [
            Series("ideal", Look(HUES["grey"], "diamond"), ideal, dashed=True),
            Series("found", Look(HUES["blue"], "circle"), found),
        ],
        title="Share of right predictions against their probability",
        x=Axis("probability of the predicted class"),
        y=Axis("share that was right"),
        width=width,
        height=height,
    )


def _off(bins: Sequence[Reliability]) -> float:
    """How far probabilities and shares are apart on average, over nodes."""
    nodes = sum(one.nodes for one in bins) or 1
    return sum(one.nodes * abs(one.said - one.right) for one in bins) / nodes


def _columns(columns: Sequence[ColumnShare]) -> list[dict[str, Any]]:
    shown = columns[:_COLUMNS]
    most = max((one.share for one in shown), default=0) or 1
    return [
        {
            "name": one.name,
            "leading": "" if one.leading == one.name else one.leading,
            "share": one.share,
            "parts": [(kind.replace("_", "-"), getattr(one, kind) / most) for kind in _KEYS],
        }
        for one in shown
    ]


def _reasons(node: NodeReasons) -> list[dict[str, Any]]:
    shown, rest = node.reasons[:_REASONS], node.reasons[_REASONS:]
    rows = [{"name": _words(one), "value": one.value} for one in shown]
    if rest:
        total = sum(one.value for one in rest)
        rows.append({"name": f"{len(rest)} more features", "value": total})
    return _with_bars(rows, "value")


def _words(reason: Reason) -> str:
    source, name = reason.feature
    if source in ("own", "degree"):
        return name
    if source == "labels":
        return f"labels of its neighbours, {name} away"
    if source == "around":
        return f"{name}, of the nodes around it"
    if source == "rows":
        return f"being a neighbour of {name}, or not"
    if source == "position":
        return f"position in the graph, coordinate {name}"
    return f"{name}, mean over {'its neighbours' if source == 'one hop' else 'two hops'}"


def _neighbours(node: NodeReasons) -> list[dict[str, Any]]:
    rows = [
        {"id": one.id, "label": one.label, "effect": one.effect, "memory": one.memory}
        for one in node.neighbours[:_COLUMNS]
    ]
    return _with_bars(rows, "effect" if node.tried else "memory")


def _with_bars(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows with the length of each bar."""
    sizes = [0.0 if row[name] != row[name] else abs(row[name]) for row in rows]  # NaN has none
    most = max(sizes, default=0) or 1
    return [row | {"part": size / most} for row, size in zip(rows, sizes, strict=True)]
