"""Scores of models on datasets: which are among the best, and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from memohop.data.datasets.registry import describe
from study.runs.results import Measured
from study.statistics.comparison import ALPHA, Comparison, against, against_the_best


class Board:
    """What the paper's table and the fair table have in common."""

    measured: Mapping[tuple[str, str], Measured]
    """The scores, by the names of model and dataset."""

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the models over the datasets that they share, if there are enough of both."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the datasets."""
        return tuple(dict.fromkeys(column for _, column in self.measured))

    @cached_property
    def ranks(self) -> dict[str, float]:
        """The average rank of each model that has one, the best first."""
        return self.comparison.by_model if self.comparison else {}

    @cached_property
    def scores(self) -> dict[str, dict[str, tuple[float, ...]]]:
        """By dataset and model the test score on each split, in percent.

        A model that was measured on other splits than most is left out; nothing is compared on a
        single split, or where most models do not share theirs.
        """
        by_column: dict[str, dict[str, Mapping[int, float]]] = {name: {} for name in self.columns}
        for (row, column), cell in self.measured.items():
            by_column[column][row] = cell.scores
        scores = {}
        for column, of_models in by_column.items():
            splits = [tuple(of_splits) for of_splits in of_models.values()]
            most = max(splits, key=splits.count)
            sound = len(most) > 1 and 2 * splits.count(most) > len(splits)
            scores[column] = {
                row: tuple(of_splits.values())
                for row, of_splits in of_models.items()
                if sound and tuple(of_splits) == most
            }
        return scores

    @cached_property
    def p_best(self) -> dict[tuple[str, str], float]:
        """The p-value of each cell's distance to the best mean of its dataset."""
        return {
            (row, column): p
            for column, scores in self.scores.items()
            if scores
            for row, p in against_the_best(scores, test_to_train=self._ratio(column)).items()
        }

    def among_the_best(self, row: str, column: str) -> bool:
        """Whether a score is the best of its dataset or not significantly worse."""
        return self.p_best.get((row, column), 0.0) >= ALPHA

    def leads(self, reference: str, column: str) -> dict[str, tuple[float, float]]:
        """The lead of a model over each other one on a dataset, in points, and its p-value."""
        scores = self.scores[column]
        if reference not in scores:
            return {}
        mean = self.measured[reference, column].mean
        return {
            row: (mean - self.measured[row, column].mean, p)
            for row, p in against(scores, reference, test_to_train=self._ratio(column)).items()
            if row != reference
        }

    def _ratio(self, column: str) -> float:
        return describe(column.split()[0]).test_to_train
