"""The result of ``memohop fit``, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from memohop.report.terminal import plain_table

if TYPE_CHECKING:
    from memohop.own.report import FitReport

_WHY = {"trials": "", "time": " (no time for more)", "interrupted": " (interrupted)"}


def fit_table(report: FitReport) -> Table:
    """A row for each model, first the one that is kept."""
    table = plain_table("model", numbers=("validation", "test", "ahead of it", "95 % interval"))
    for score in report.scores:
        gap = report.differences.get(score.model)
        lead, ends = "", ""
        if gap is not None:
            lead, ends = f"{100 * gap.mean:+.1f}", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
        if gap is not None and gap.says_nothing:
            ends = "too few splits"
        table.add_row(
            score.model,
            f"{100 * score.val:.1f}",
            f"{100 * score.mean:.1f} ± {100 * score.std:.1f}",
            lead,
            ends,
            style="bold" if gap is None else None,
        )
    if report.epochs_cut:
        asked = report.epochs + report.epochs_cut
        table.caption = f"{report.epochs} of {asked} epochs: time was short"
        table.caption_justify = "left"
    return table


def fit_remark(report: FitReport) -> str:
    """How many settings were tried, and how long that took."""
    return (
        f"{report.trials} setting(s) of each model in {report.seconds:.0f} seconds"
        f"{_WHY[report.stopped]}"
    )
