"""Table 1 as the paper printed it, measured scores beside it, and the paper's second claim.

The claim is that on homophilous graphs memory is comparable to what it is compared with. Comparable
is what is shown to be less than a point behind, by the lower one of two one-sided tests; to be
ahead by more is no objection. Each model is compared with its own backbone, plain and with the
other two plug-ins, and Holm's correction is for these three comparisons: a correction for more of
them would make it easier not to be significantly behind. Needs no PyTorch.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from memohop.errors import DataError, UsageError
from study.runs.results import Measured, grouped
from study.statistics.comparison import (
    ALPHA,
    Comparison,
    compare,
    corrected_p,
    non_inferiority_test,
)
from study.statistics.leaderboard import Board

# Cornell's column is of the faulty file, which has the features and labels of Texas; see ERRATA.md.
_OUR_NAMES = {"cornell": "cornell-legacy"}


@dataclass(frozen=True)
class Printed:
    """Mean and standard deviation over ten splits, in percent; some cells have no deviation.

    The source is ``ours``, ``rerun`` (by the paper's authors) or ``copied`` (from another paper).
    """

    mean: float
    std: float | None
    source: str


@cache
def printed_table1() -> dict[tuple[str, str], Printed]:
    """The cells by (model, dataset), in the order of the print."""
    cells = {}
    for row in _rows("printed_table1.csv"):
        std = float(row["std"]) if row["std"] else None
        key = row["model"], _OUR_NAMES.get(row["dataset"], row["dataset"])
        cells[key] = Printed(float(row["mean"]), std, row["source"])
    return cells


@cache
def printed_ranks() -> dict[str, float]:
    """The column of average ranks, by model."""
    return {row["model"]: float(row["rank"]) for row in _rows("printed_ranks.csv")}


def table1_models() -> list[str]:
    """The rows of Table 1, in the order of the print."""
    return list(printed_ranks())


def table1_datasets() -> list[str]:
    """The columns of Table 1, in the order of the print."""
    return list(dict.fromkeys(dataset for _, dataset in printed_table1()))


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))


@dataclass(frozen=True)
class Table1(Board):
    """All cells of one protocol, by model and dataset."""

    protocol: str
    measured: dict[tuple[str, str], Measured]

    @cached_property
    def models(self) -> list[str]:
        """The models, in the order of the paper, others after them."""
        return _in_order(table1_models(), (model for model, _ in self.measured))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The datasets, in the order of the paper, others after them."""
        return tuple(_in_order(table1_datasets(), (dataset for _, dataset in self.measured)))

    @cached_property
    def ranked(self) -> list[str]:
        """The paper's datasets that have a score of every model; ranks are over these."""
        return [
            dataset
            for dataset in table1_datasets()
            if all((model, dataset) in self.measured for model in self.models)
        ]

    def _flat(self, row: str, column: str) -> dict[str, Any]:
        key, cell = (row, column), self.measured[row, column]
        printed, (points, stds) = printed_table1().get(key), difference(cell)
        numbers: dict[str, Any] = {
            "mean": cell.mean,
            "std": cell.std,
            "printed_mean": printed and printed.mean,
            "printed_std": printed and printed.std,
            "difference": points,
            "difference_in_printed_stds": stds,
            "val": cell.val,
        }
        return {
            "dataset": cell.dataset,
            "model": cell.model,
            "protocol": cell.protocol,
            **{k: None if v is None else round(v, 4) for k, v in numbers.items()},
            "splits": len(cell.scores),
            "seeds": cell.seeds,
            "ddof": 1,
            "unit": "percent",
            "printed_source": printed and printed.source,
            "among_the_best": self.among_the_best(*key),
            "p_best": self.p_best.get(key),
            "average_rank": self.ranks.get(cell.model),
            **cell.axes,
            **cell.setting,
            "runs": cell.runs,
            "seconds": round(cell.seconds, 3),
        }


def tables_of(cells: Iterable[Measured], *, protocol: str | None = None) -> list[Table1]:
    """One table for each protocol of the cells, or for the given one alone."""
    groups = grouped(cells, lambda cell: cell.protocol)
    if protocol is not None:
        if protocol not in groups:
            raise UsageError(
                f"protocol {protocol!r} has no results; those with results: {', '.join(groups)}"
            )
        groups = {protocol: groups[protocol]}
    tables = []
    for name, group in groups.items():
        table = Table1(name, {(cell.model, cell.dataset): cell for cell in group})
        if len(table.measured) < len(group):
            raise DataError(
                f"the results have several cells for a model and a dataset under {name}, which "
                f"differ in {', '.join(group[0].axes)}; pass those of table1"
            )
        tables.append(table)
    return tables


def difference(cell: Measured) -> tuple[float | None, float | None]:
    """Measured less printed mean, in points and in printed standard deviations, if printed."""
    printed = printed_table1().get((cell.model, cell.dataset))
    if printed is None:
        return None, None
    points = cell.mean - printed.mean
    return points, points / printed.std if printed.std else None


@cache
def printed_comparison() -> Comparison:
    """The paper's own means, compared like the measured ones."""
    by_model = grouped(printed_table1(), itemgetter(0))  # all of them on the same datasets
    means = {m: [printed_table1()[key].mean for key in by_model[m]] for m in table1_models()}
    return compare(means)


def _in_order(first: list[str], names: Iterable[str]) -> list[str]:
    """The names without repetition: those of ``first`` in its order, then the others."""
    places = {name: place for place, name in enumerate(first)}
    return sorted(dict.fromkeys(names), key=lambda name: places.get(name, len(first)))


HOMOPHILOUS = ("citeseer", "pubmed", "cora")
_PLUG_INS = ("", "+jk", "+de")  # what a backbone has in place of memory
COMPARABLE = 1.0
"""To be less than so many points behind."""

Verdict = Literal["comparable", "behind", "open"]


@dataclass(frozen=True)
class Lead:
    """How many points memory is ahead of something else on the same backbone and graph.

    With the p-value of the corrected t-test, to both sides, and that of being behind by
    ``COMPARABLE`` or more.
    """

    points: float
    p: float
    p_comparable: float

    @property
    def verdict(self) -> Verdict:
        """Whether memory is shown to be comparable, or behind, or neither."""
        if self.p_comparable < ALPHA:
            return "comparable"
        return "behind" if self.p < ALPHA and self.points < 0 else "open"


def leads(table: Table1) -> dict[tuple[str, str, str], Lead]:
    """Those of all comparisons that were measured, by graph, backbone and the other plug-in."""
    of_all = {}
    for graph, backbone in product(HOMOPHILOUS, ("gcn", "gat")):
        scores = table.scores.get(graph, {})
        if not {backbone + plug_in for plug_in in (*_PLUG_INS, "+mmp")} <= scores.keys():
            continue
        own = np.array(scores[f"{backbone}+mmp"])
        differences = {other: (own - scores[backbone + other]).tolist() for other in _PLUG_INS}
        p = corrected_p(differences)
        p_comparable = corrected_p(differences, partial(non_inferiority_test, margin=COMPARABLE))
        for other, of_splits in differences.items():
            of_all[graph, backbone, other] = Lead(fmean(of_splits), p[other], p_comparable[other])
    return of_all


def comparable_on(of_all: Mapping[tuple[str, str, str], Lead]) -> list[str]:
    """The graphs on which memory is comparable to everything on every backbone."""
    verdicts = grouped(of_all, itemgetter(0))
    return [
        graph
        for graph, keys in verdicts.items()
        if [of_all[key].verdict for key in keys] == ["comparable"] * 2 * len(_PLUG_INS)
    ]
