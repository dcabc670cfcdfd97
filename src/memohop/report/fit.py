"""The result of ``memohop fit``, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from memohop.report.terminal import plain_table
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    from memohop.fit import FitRecord

_WHY = {"trials": "", "time": " (no time for more)", "interrupted": " (interrupted)"}


def fit_table(record: FitRecord) -> Table:
    """What was kept, and below it each kind of model, the best by validation first."""
    metric = METRICS[record.metric]
    numbers = ("validation", "test", "behind", "95 % interval", "tried", "seconds")
    table = plain_table("model", numbers=numbers)
    ends = "" if record.interval is None else metric.ends_text(record.interval, signed=False)
    kept = ("kept", metric.text(record.val), metric.text(record.test), "", ends)
    table.add_row(*kept, style="bold")
    for row in record.families:
        gap = row.behind
        table.add_row(
            row.family,
            metric.text(row.val),
            "no time" if row.test is None else metric.text(row.test),
            "" if gap is None else metric.signed_text(gap.mean),
            "" if gap is None else metric.ends_text(gap),
            f"{row.tried}",
            f"{row.seconds:.1f}",
        )
    return table


def rare_text(record: FitRecord) -> str:
    """What the top of the ranking is worth, where one of two classes is to be found; or nothing."""
    rare = record.rare
    if rare is None:
        return ""
    positive = list(record.class_sizes)[record.positive]
    tops = ", ".join(
        f"{precision:.0%} of the top {top:.0%}"
        for top, precision in zip(rare.tops, rare.precision, strict=True)
    )
    share = f"{100 * rare.share:.2g}% of the labelled nodes"
    return (
        f"To find {positive}, {share}: of the test nodes by their probability, {tops} are "
        f"{positive}; by the F1 score, call a node so from a probability of {rare.threshold:.3f} "
        "on."
    )


def fit_remark(record: FitRecord) -> str:
    """How many settings were tried, and how long everything took."""
    return (
        f"{record.candidates} setting(s) of {len(record.families)} kind(s) of model in "
        f"{record.seconds:.0f} seconds{_WHY[record.stopped]}"
    )
