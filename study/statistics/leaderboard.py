"""Boards of scores, with ranks and those among the best; and the board of the fair table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal

from memohop.data.datasets.registry import describe
from study.runs.results import Measured
from study.runs.tuned import Tuned
from study.statistics.comparison import ALPHA, Comparison, against, compare

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
    if dataset.startswith(("squirrel", "chameleon")):
        return "wikipedia"
    families = {"geom-gcn": "web", "planetoid": "citations", "platonov": "platonov"}
    return "actors" if dataset == "actor" else families.get(describe(dataset).family, "synthetic")


class Board:
    """What the paper's table and the fair table have in common."""

    measured: Mapping[tuple[str, str], Measured]
    """The scores, by the names of model and dataset."""

    @cached_property
    def ranked(self) -> Sequence[str]:
        """The datasets that ranks are over."""
        raise NotImplementedError

    @cached_property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(dict.fromkeys(row for row, _ in self.measured))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the datasets."""
        return tuple(dict.fromkeys(column for _, column in self.measured))

    @property
    def rows(self) -> Sequence[str]:
        """The names of the models, in the order of the table."""
        return self.models

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the models with a score on all these; None without three models and two datasets."""
        means = {
            model: [round(self.measured[model, column].mean, _EQUAL) for column in self.ranked]
            for model in self.models
            if all((model, column) in self.measured for column in self.ranked)
        }
        return compare(means) if len(means) >= 3 and len(self.ranked) >= 2 else None

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
        scores = {}
        for column in self.columns:
            cells = {row: c for (row, name), c in self.measured.items() if name == column}
            splits = [tuple(cell.scores) for cell in cells.values()]
            most = max(splits, key=splits.count)
            sound = len(most) > 1 and 2 * splits.count(most) > len(splits)
            scores[column] = {
                row: tuple(cell.scores.values())
                for row, cell in cells.items()
                if sound and tuple(cell.scores) == most
            }
        return scores

    @cached_property
    def p_best(self) -> dict[tuple[str, str], float]:
        """The p-value of each cell's distance to the best mean of its dataset."""
        return {
            (row, column): p
            for column, scores in self.scores.items()
            if scores
            for row, p in against(scores, test_to_train=self._ratio(column)).items()
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

    def flat(self) -> list[dict[str, Any]]:
        """Flat objects for JSON and CSV, model by model."""
        keys = product(self.rows, self.columns)
        return [self._flat(*key) for key in keys if key in self.measured]

    def _flat(self, row: str, column: str) -> dict[str, Any]:
        raise NotImplementedError

    def _ratio(self, column: str) -> float:
        return describe(column.split()[0]).test_to_train


class Leaderboard(Board):
    """All cells, on data without a flaw or on data with one.

    Attributes:
        cells: By the names of model and dataset.
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
        """The datasets on which nine tenths of the models have a score; none on flawed data.

        Ranks on these would say nothing.
        """
        if self.flawed:
            return ()
        with_score = Counter(column for _, column in self.cells)
        least = _ENOUGH * len(self.models)
        return tuple(column for column in self.columns if with_score[column] >= least)

    def is_best(self, row: str, column: str) -> bool:
        """Whether all other models are significantly worse on a dataset."""
        best = [name for name in self.of_row if self.among_the_best(name, column)]
        return best == [row] and len(self.scores[column]) > 1

    def networks(self, row: str) -> int:
        """How many networks the searches of a model trained, on all datasets."""
        return sum(self.cells[key].networks for key in self.cells if key[0] == row)

    def seconds(self, row: str) -> float:
        """How long they took."""
        return sum(self.cells[key].seconds for key in self.cells if key[0] == row)

    def mean(self, row: str) -> float | None:
        """The mean score of a model over the ranked datasets, if it has all of them."""
        if row not in self.ranks:
            return None
        return sum(self.measured[row, column].mean for column in self.ranked) / len(self.ranked)

    def of_side(self, side: Side) -> list[str]:
        """The models with memory, with memory alone, or without."""
        return [
            row
            for row, cell in self.of_row.items()
            if (kind_of(cell.model) == "memory") == (side != "without")
            and (side != "plain memory" or row == cell.model)
        ]

    def best(self, column: str, side: Side) -> Measured | None:
        """Of those models, the first one with the best validation score on a dataset."""
        cells = (self.measured.get((row, column)) for row in self.of_side(side))
        return max(filter(None, cells), key=lambda cell: round(cell.val, _EQUAL), default=None)

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


@dataclass(frozen=True)
class Published:
    """A figure in percent, the method that it is of, and where it stands."""

    points: float
    method: str
    source: str


_CSNN = ("CSNN", "arXiv 2507.00647, Tables 1 and 2")
_GREAD = ("GREAD", "arXiv 2211.14208, the best of its variants")
_TABPFN_GN = ("TabPFN-GN", "arXiv 2512.08798, its splits inferred from its authors' other code")

PUBLISHED: Mapping[str, Published] = {
    "texas": Published(89.73, *_GREAD),
    "wisconsin": Published(90.00, *_CSNN),
    "actor": Published(38.03, *_CSNN),
    "cora": Published(88.57, *_GREAD),
    "citeseer": Published(78.02, "Geom-GCN", "run again in arXiv 2102.06462, Table 1"),
    "pubmed": Published(90.30, "GCNII*", "arXiv 2007.02133"),
    "squirrel-filtered": Published(46.66, *_TABPFN_GN),
    "chameleon-filtered": Published(49.11, *_TABPFN_GN),
    "minesweeper": Published(99.07, *_CSNN),
    "tolokers": Published(85.91, "Polynormer-r", "arXiv 2403.01232, Table 2"),
}
"""The best figures that others have published on the splits of the fair table, by dataset.

They are the best that we know, not the best that there are; figures of which the splits could not
be found out are left out. Those of CSNN were read in its paper, the others in lists of the papers'
results or in tables of later papers.
"""
