"""How far one is ahead of another on hidden nodes, and on average over graphs.

On each graph the rival that has the best score there counts, and each rival by itself. Its lead, or
that of ``fit``, has a standard error, by drawing the hidden nodes again with replacement. Leads of
several draws of one graph are averaged. Over graphs there are two means, and both are printed: with
each graph counting alike, where one with five positive nodes may decide alone, and, as in a
meta-analysis, with each graph weighted by the inverse of its squared standard error, where the
largest graphs decide. Graphs with fewer than five hidden nodes of one of two classes are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 1000
_FEWEST = 5  # hidden nodes of a class
_WIDTH = 1.96  # of a 95 % interval, in standard errors

Score = Callable[[np.ndarray, np.ndarray], float]
"""From outputs and truth of some nodes."""


@dataclass(frozen=True)
class Lead:
    """Percent by which one is ahead of another, and the same for resampled nodes."""

    percent: float
    resampled: np.ndarray

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.resampled.std(ddof=1))

    @property
    def p_value(self) -> float:
        """Of both sides."""
        tails = [float(np.mean(side)) for side in (self.resampled <= 0, self.resampled >= 0)]
        return min(2 * min(tails), 1.0)

    def text(self, judged: bool) -> str:
        """With interval and p-value, or without."""
        if not judged:
            return f"{self.percent:+.2f} (not judged)"
        low, high = np.percentile(self.resampled, [2.5, 97.5])
        return f"{self.percent:+.2f} ({low:+.1f} to {high:+.1f}) p={self.p_value:.3f}"


def lead(score: Score, truth: np.ndarray, outputs: np.ndarray, others: np.ndarray) -> Lead:
    """The lead of ``outputs`` over ``others``; classes that a resample lacks make it drawn anew."""
    draw = np.random.default_rng(0)
    resampled: list[float] = []
    is_class = truth.dtype.kind == "i"
    while len(resampled) < _RESAMPLES:
        rows = draw.integers(len(truth), size=len(truth))
        if is_class and len(np.unique(truth[rows])) < 2:
            continue
        resampled.append(
            100 * (score(outputs[rows], truth[rows]) - score(others[rows], truth[rows]))
        )
    percent = 100 * (score(outputs, truth) - score(others, truth))
    return Lead(percent, np.array(resampled))


def is_judged(truth: np.ndarray) -> bool:
    """Whether enough nodes of both classes are hidden; more classes are judged by accuracy."""
    hidden = np.unique(truth, return_counts=True)[1]
    return truth.dtype.kind != "i" or len(hidden) > 2 or int(hidden.min()) >= _FEWEST


def average(leads: dict[str, list[Lead]], rival: str) -> list[str]:
    """Lines for the two means over graphs, from the leads over a rival in each draw."""
    if not leads:
        return []
    percent = np.array([np.mean([draw.percent for draw in draws]) for draws in leads.values()])
    error = np.array(
        [np.sqrt(sum(draw.error**2 for draw in draws)) / len(draws) for draws in leads.values()]
    )
    precision = 1 / error**2
    ways = {
        "each counting alike": np.full(len(percent), 1 / len(percent)),
        "each weighted by how precisely it is known": precision / precision.sum(),
    }
    lines = []
    for name, weights in ways.items():
        mean, half = weights @ percent, _WIDTH * np.sqrt(weights**2 @ error**2)
        interval = f"({mean - half:+.2f} to {mean + half:+.2f})"
        lines.append(f"fit ahead of {rival} by {mean:+.2f} {interval}, {name}: {', '.join(leads)}")
    return lines
