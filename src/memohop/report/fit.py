"""The result of `memohop fit`, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from memohop.intervals import Interval
    from memohop.own.report import FitReport

_WHY = {
    "trials": "",
    "time": " (no time for more)",
    "interrupted": " (interrupted)",
}


def fit_table(report: FitReport) -> Table:
    """A row for each model, the one that is kept first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    for name in ("validation", "test", "ahead of it"):
        table.add_column(name, justify="right")
    table.add_column("95 % interval", justify="right")
    for score in report.scores:
        gap = report.differences.get(score.model)
        table.add_row(
            score.model,
            f"{100 * score.val:.1f}",
            f"{100 * score.mean:.1f} ± {100 * score.std:.1f}",
            "" if gap is None else f"{100 * gap.mean:+.1f}",
            "" if gap is None else _ends(gap),
            style="bold" if gap is None else None,
        )
    if report.epochs_cut:
        asked = report.epochs + report.epochs_cut
        table.caption = f"{report.epochs} of {asked} epochs: time was short"
        table.caption_justify = "left"
    return table


def _ends(gap: Interval) -> str:
    return (
        "too few splits" if gap.says_nothing else f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
    )


def fit_remark(report: FitReport) -> str:
    """How many settings were tried, and how long that took."""
    return (
        f"{report.trials} setting(s) of each model in {report.seconds:.0f} seconds"
        f"{_WHY[report.stopped]}"
    )
