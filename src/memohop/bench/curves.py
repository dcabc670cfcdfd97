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

    def against_the_first(self) -> list[tuple[float, float]]:
        """How far each further point is from the first, in points, and the p-value of that.

        p-values of the corrected resampled t-test after Holm's correction for the number of points.
        """
        first = self.points[0].scores
        differences = [
            [score - first[key] for key, score in point.scores.items()] for point in self.points[1:]
        ]
        p = holm([corrected_t_test(each) if len(each) > 1 else 1.0 for each in differences])
        return [(fmean(each), value) for each, value in zip(differences, p, strict=True)]


def curves(cells: Iterable[Measured], along: str) -> list[Curve]:
    """The cells that differ in the axis `along` alone, as curves; draws of the noise are pooled."""
    groups: dict[tuple[Any, ...], dict[float, dict[tuple[int, int], float]]] = {}
    for cell in cells:
        if along not in cell.axes:
            raise DataError(
                f"the results of {cell.model} on {cell.dataset} have no axis {along!r}; pass those "
                "of the experiment that varies it"
            )
        rest = {k: v for k, v in cell.axes.items() if k not in (along, _REPEATED)}
        key = (cell.protocol, cell.dataset, cell.model, tuple(sorted(rest.items())))
        scores = groups.setdefault(key, {}).setdefault(cell.axes[along], {})
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
