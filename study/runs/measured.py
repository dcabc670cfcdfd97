"""From the members of an experiment to the scores that tables and figures show."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from memohop.errors import DataError
from study.runs.results import Results, Row, choose


class MeanAndStd:
    """Mean and standard deviation of test scores in percent."""

    scores: Mapping[Any, float]

    @property
    def mean(self) -> float:
        """Mean test score."""
        return fmean(self.scores.values())

    @property
    def std(self) -> float | None:
        """Sample standard deviation of the test score (ddof=1); a single score has none."""
        return float(np.std([*self.scores.values()], ddof=1)) if len(self.scores) > 1 else None


@dataclass(frozen=True)
class Measured(MeanAndStd):
    """One model on one dataset, with the setting that validation chose; scores in percent.

    Attributes:
        axes: What the experiment varies.
        setting: What validation chose.
        val: Mean validation score of that setting over splits and seeds.
        scores: Its test score on each split, the mean over seeds.
        seeds: How many seeds each split has.
        runs: How many networks were trained for the choice.
        seconds: How long they took.
    """

    protocol: str
    dataset: str
    model: str
    axes: Mapping[str, Any]
    setting: Mapping[str, Any]
    val: float
    scores: Mapping[int, float]
    seeds: int
    runs: int
    seconds: float


def measured(results: Results) -> list[Measured]:
    """Each cell of the experiment, in its order, with the setting that validation chose.

    A cell that has diverged with each setting is left out: nothing can be chosen.
    """
    found = []
    for rows in results.cells().values():
        with suppress(DataError):
            found.append(_measured(rows))
    return found


def with_setting(results: Results, name: str, value: float) -> Results:
    """The rows that have this value of a setting, and those of models without that setting."""
    rows = tuple(row for row in results.rows if row.setting.get(name, value) == value)
    return Results(results.experiment, results.sources, rows)


def _measured(rows: list[Row]) -> Measured:
    chosen = choose(rows)
    by_split: dict[int, list[float]] = {}
    for row in chosen:
        by_split.setdefault(row.split, []).append(100 * row.test)
    return Measured(
        protocol=chosen[0].protocol,
        dataset=chosen[0].dataset,
        model=chosen[0].model,
        axes=chosen[0].axes,
        setting=chosen[0].setting,
        val=100 * fmean(row.val for row in chosen),
        scores={split: fmean(scores) for split, scores in sorted(by_split.items())},
        seeds=len({row.seed for row in chosen}),
        runs=len(rows),
        seconds=sum(row.seconds for row in rows),
    )
