"""Scores along an axis of an experiment: what the figures draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from memohop.bench.measured import Measured, sample_std
from memohop.bench.statistics import corrected_t_test, holm
from memohop.errors import DataError

_REPEATED = "draw"  # an axis that only repeats: another draw of the same noise


@dataclass(frozen=True)
class Point:
    """One place on a curve, in percent.

    Attributes:
        x: The value of the axis that the curve follows.
        scores: Test scores, by the draw of the noise and the split.
    """

    x: float
    scores: Mapping[tuple[int, int], float]

    @property
    def mean(self) -> float:
        """Mean test score over draws and splits."""
        return fmean(self.scores.values())

    @property
    def std(self) -> float | None:
        """Sample standard deviation over draws and splits (ddof=1); a single score has none."""
        return sample_std(self.scores.values())


@dataclass(frozen=True)
class Curve:
    """One model on one dataset along an axis of the experiment.

    Attributes:
        protocol: How it was trained and chosen.
        dataset: Its id.
        model: Its id.
        axes: The other axes of the experiment.
        points: By rising `x`.
    """

    protocol: str
    dataset: str
    model: str
    axes: Mapping[str, Any]
    points: tuple[Point, ...]

    def against(self, x: float) -> dict[float, tuple[float, float]]:
        """How far each further point is from that at `x`, in points, and the p-value of that.

        p-values of the corrected resampled t-test after Holm's correction for the number of points.
        A point counts by the draws and splits that it shares with that at `x`.
        """
        first = next((point.scores for point in self.points if point.x == x), {})
        shared = {
            point.x: [score - first[key] for key, score in point.scores.items() if key in first]
            for point in self.points
            if point.x > x
        }
        found = {further: each for further, each in shared.items() if each}
        p = holm([corrected_t_test(each) if len(each) > 1 else 1.0 for each in found.values()])
        return {
            further: (fmean(each), value)
            for (further, each), value in zip(found.items(), p, strict=True)
        }


def curves(cells: Iterable[Measured], along: str) -> list[Curve]:
    """The cells that differ in the axis `along` alone, as curves; draws of the noise are pooled."""
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
                f"the results of {cell.model} on {cell.dataset} have {along}={x!r}, which is no "
                "number from 0; write them anew with memohop store export"
            )
        rest = {k: v for k, v in cell.axes.items() if k not in (along, _REPEATED)}
        key = (cell.protocol, cell.dataset, cell.model, tuple(sorted(rest.items())))
        scores = groups.setdefault(key, {}).setdefault(x, {})
        draw = cell.axes.get(_REPEATED, 0)
        scores |= {(draw, split): score for split, score in cell.scores.items()}
    return [
        Curve(
            protocol,
            dataset,
            model,
            axes=dict(axes),
            points=tuple(Point(x, scores) for x, scores in sorted(by_x.items())),
        )
        for (protocol, dataset, model, axes), by_x in groups.items()
    ]
