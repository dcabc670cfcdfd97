"""The fair table: all models on all datasets, which differences are more than noise, and ranks."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from memohop.data.datasets.registry import describe
from study.runs.results import Measured
from study.runs.tuned import Tuned
from study.statistics.board import Board
from study.statistics.comparison import Comparison, compare

Kind = Literal["no graph", "backbone", "plug-in", "memory", "rival"]
KINDS: tuple[Kind, ...] = ("no graph", "backbone", "plug-in", "memory", "rival")
"""The kinds of models: ``memory`` is every ``+mmp`` model."""

BACKBONES = ("gcn", "gat", "sage", "gin", "gatv2", "dir-gcn", "gcnii")
_EQUAL = 4  # digits of a mean score in percent: what differs beyond them was rounded differently
_ENOUGH = 0.9  # of the models must have a score on a dataset for it to count in ranks

Side = Literal["plain memory", "with memory", "without"]
"""Models with memory alone, with it and perhaps labels or rows as inputs too, and without it."""


def kind_of(model: str) -> Kind:
    """The kind of a model, by its id."""
    if model == "mlp":
        return "no graph"
    backbone, _, plug_in = model.partition("+")
    if plug_in == "mmp":
        return "memory"
    if plug_in:
        return "plug-in"
    return "backbone" if backbone in BACKBONES else "rival"


def family_of(dataset: str) -> str:
    """The kind of a dataset."""
    if dataset in ("squirrel", "chameleon", "squirrel-filtered", "chameleon-filtered"):
        return "wikipedia"
    families = {"geom-gcn": "web", "planetoid": "citations", "platonov": "platonov"}
    family = families.get(describe(dataset).family, "synthetic")
    return "actors" if dataset == "actor" else family


class Leaderboard(Board):
    """All cells, on data without a flaw or on data with one.

    Args:
        tuned: The results that it is made of.
        flawed: Whether it is about the data with a flaw.

    Attributes:
        cells: The cells, by the names of model and dataset.
        of_row, of_column: A cell of each model and dataset, for what all its cells have in common.
    """

    def __init__(self, tuned: Tuned, *, flawed: bool = False) -> None:
        self.tuned, self.flawed = tuned, flawed
        self.cells = {
            (cell.row, cell.column): cell
            for cell in tuned.cells
            if describe(cell.dataset).flawed == flawed
        }
        self.measured = {key: tuned.measured(cell) for key, cell in self.cells.items()}
        self.of_row = {row: cell for (row, _), cell in self.cells.items()}
        self.of_column = {column: cell for (_, column), cell in self.cells.items()}

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The names of the models, those of the best average rank first."""
        last = len(self.of_row) + 1
        return tuple(sorted(self.of_row, key=lambda row: self.ranks.get(row, last)))

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The datasets on which nine tenths of the models have a score; ranks are over these."""
        count = len(self.of_row)
        return tuple(
            column
            for column in self.columns
            if sum((row, column) in self.cells for row in self.of_row) >= _ENOUGH * count
        )

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the models with a score on all those; None without three models or two datasets.

        Nor is there one on data with a flaw: it would say nothing.
        """
        complete = [
            row for row in self.of_row if all((row, column) in self.cells for column in self.ranked)
        ]
        if self.flawed or len(complete) < 3 or len(self.ranked) < 2:
            return None
        return compare(
            {
                row: [round(self.measured[row, column].mean, _EQUAL) for column in self.ranked]
                for row in complete
            }
        )

    def is_best(self, row: str, column: str) -> bool:
        """Whether all other models are significantly worse on a dataset."""
        best = [name for name in self.of_row if self.among_the_best(name, column)]
        return best == [row] and len(self.scores[column]) > 1

    def networks(self, row: str) -> int:
        """How many networks the searches of a model trained, on all datasets."""
        return sum(cell.networks for (name, _), cell in self.cells.items() if name == row)

    def seconds(self, row: str) -> float:
        """How long they took."""
        return sum(cell.seconds for (name, _), cell in self.cells.items() if name == row)

    def mean(self, row: str) -> float | None:
        """The mean score of a model over the ranked datasets, if it has all of them."""
        if row not in self.ranks:
            return None
        return sum(self.measured[row, column].mean for column in self.ranked) / len(self.ranked)

    def models(self, side: Side) -> list[str]:
        """The models with memory, with memory alone, or without."""
        return [
            row
            for row, cell in self.of_row.items()
            if (kind_of(cell.model) == "memory") == (side != "without")
            and (side != "plain memory" or row == cell.model)
        ]

    def best(self, column: str, side: Side) -> Measured | None:
        """Of those models, the first one with the best validation score on a dataset."""
        cells = (self.measured.get((row, column)) for row in self.models(side))
        return max(filter(None, cells), key=lambda cell: round(cell.val, _EQUAL), default=None)

    def flat(self) -> list[dict[str, Any]]:
        """Flat objects for JSON and CSV, model by model."""
        return [
            self._flat(row, column)
            for row in self.rows
            for column in self.columns
            if (row, column) in self.cells
        ]

    def _flat(self, row: str, column: str) -> dict[str, Any]:
        cell, measured = self.cells[row, column], self.measured[row, column]
        setting = {k: value for k, value in measured.setting.items() if k not in cell.axes}
        return {
            "dataset": cell.dataset,
            "model": cell.model,
            "protocol": measured.protocol,
            **cell.axes,
            "kind": kind_of(cell.model),
            "takes_labels": cell.takes_labels,
            "flawed_data": self.flawed,
            "mean": round(measured.mean, 4),
            "std": None if measured.std is None else round(measured.std, 4),
            "val": round(measured.val, 4),
            "splits": len(measured.scores),
            "seeds": measured.seeds,
            "ddof": 1,
            "unit": "percent",
            "metric": describe(cell.dataset).metric,
            "p_best": self.p_best.get((row, column)),
            "among_the_best": self.among_the_best(row, column),
            "is_best": self.is_best(row, column),
            "average_rank": self.ranks.get(row),
            "networks": cell.networks,
            "seconds": round(cell.seconds, 3),
            **setting,
        }
