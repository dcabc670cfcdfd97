"""Scores along an axis of an experiment: what the figures draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import starmap
from statistics import fmean
from typing import Any

from memohop.errors import DataError
from study.runs.results import MeanAndStd, Measured
from study.statistics.comparison import corrected_p

_REPEATED = "draw"  # an axis that only repeats: another draw of the same noise


@dataclass(frozen=True)
class Point(MeanAndStd):
    """A value of the axis, and the test scores there, by the draw of the noise and the split."""

    x: float
    scores: Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Curve:
    """One model on one dataset along an axis of the experiment; ``axes`` has the other axes."""

    protocol: str
    dataset: str
    model: str
    axes: Mapping[str, Any]
    points: tuple[Point, ...]

    def against(self, x: float) -> dict[float, tuple[float, float]]:
        """The difference of each later point to the one at ``x``, and its p-value.

        p-values of the corrected resampled t-test after Holm's correction for the number of points,
        over the draws and splits that a point shares with the one at ``x``.
        """
        first = next((point.scores for point in self.points if point.x == x), {})
        differences = {
            point.x: [point.scores[key] - first[key] for key in shared]
            for point in self.points
            if point.x > x and (shared := [key for key in point.scores if key in first])
        }
        p = corrected_p(differences)
        return {later: (fmean(each), p[later]) for later, each in differences.items()}


def curves(cells: Iterable[Measured], along: str) -> list[Curve]:
    """One curve for cells that differ only in the axis ``along``; draws of noise are pooled."""
    groups: dict[tuple[Any, ...], dict[float, dict[tuple[int, int], float]]] = {}
    for cell in cells:
        if along not in cell.axes:
            raise DataError(
                f"the results of {cell.model} on {cell.dataset} have no axis {along!r}; pass those "
                "of the experiment that varies it"
            )
        x = cell.axes[along]
        if isinstance(x, (bool, str)) or x < 0:
            raise DataError(
                f"the results of {cell.model} on {cell.dataset} have {along}={x!r}, which is not a "
                "number from 0; write them anew with python -m study store export"
            )
        rest = {k: v for k, v in cell.axes.items() if k not in (along, _REPEATED)}
        key = (cell.protocol, cell.dataset, cell.model, tuple(sorted(rest.items())))
        scores = groups.setdefault(key, {}).setdefault(x, {})
        draw = cell.axes.get(_REPEATED, 0)
        scores |= {(draw, split): score for split, score in cell.scores.items()}
    return [
        Curve(protocol, dataset, model, dict(axes), tuple(starmap(Point, sorted(by_x.items()))))
        for (protocol, dataset, model, axes), by_x in groups.items()
    ]
