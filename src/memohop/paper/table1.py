"""Table 1: what was measured beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from memohop.bench.measured import Measured
from memohop.bench.statistics import ALPHA, Comparison, against, against_the_best, compare
from memohop.errors import DataError, UsageError
from memohop.paper.printed import Printed, printed_table1, table1_datasets, table1_models


@dataclass(frozen=True)
class Entry:
    """One cell of the table, in percent.

    Attributes:
        cell: What was measured.
        printed: What the paper has there; None where it has nothing.
        p_best: How likely its distance to the best mean of its dataset is by chance
            (`against_the_best`); None where that cannot be told.
    """

    cell: Measured
    printed: Printed | None
    p_best: float | None

    @property
    def among_the_best(self) -> bool:
        """Whether it is the best of its dataset, or no worse as far as one can tell."""
        return self.p_best is not None and self.p_best >= ALPHA

    @property
    def difference(self) -> float | None:
        """Measured less printed, in points."""
        return self.cell.mean - self.printed.mean if self.printed else None

    @property
    def difference_in_stds(self) -> float | None:
        """The same in printed standard deviations."""
        if self.difference is None or self.printed is None or not self.printed.std:
            return None
        return self.difference / self.printed.std

    def row(self, rank: float | None) -> dict[str, Any]:
        """A flat object for JSON and CSV."""
        cell, printed = self.cell, self.printed
        numbers: dict[str, float | None] = {
            "mean": cell.mean,
            "std": cell.std,
            "printed_mean": printed.mean if printed else None,
            "printed_std": printed.std if printed else None,
            "difference": self.difference,
            "difference_in_printed_stds": self.difference_in_stds,
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
            "printed_source": printed.source if printed else None,
            "among_the_best": self.among_the_best,
            "p_best": self.p_best,
            "average_rank": rank,
            **cell.axes,
            **cell.setting,
            "runs": cell.runs,
            "seconds": round(cell.seconds, 3),
        }


@dataclass(frozen=True)
class Table1:
    """All cells of one protocol.

    Attributes:
        protocol: Its name.
        models: The rows, in the order of the paper, others after them.
        datasets: The columns, in the order of the paper, others after them.
        entries: What is there, by model and dataset.
        ranked: The paper's datasets that have a score of every model; ranks are over these.
        comparison: Of the models over those; None with fewer than three models or two datasets.
    """

    protocol: str
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    entries: dict[tuple[str, str], Entry]
    ranked: tuple[str, ...]
    comparison: Comparison | None

    @property
    def ranks(self) -> dict[str, float]:
        """The average rank of each model; empty where there is no comparison."""
        return ranks_of(self.comparison) if self.comparison else {}

    def column(self, dataset: str) -> dict[str, tuple[float, ...]]:
        """The scores of each model on a dataset, split by split.

        Empty where the models do not share two splits or more.
        """
        cells = [entry.cell for (_, name), entry in self.entries.items() if name == dataset]
        return _paired(cells)

    def against(self, reference: str, dataset: str) -> dict[str, tuple[float, float]]:
        """How far a model is ahead of each other one on a dataset: points, and their p-value."""
        scores = self.column(dataset)
        if reference not in scores:
            return {}
        mean = self.entries[reference, dataset].cell.mean
        return {
            model: (mean - self.entries[model, dataset].cell.mean, p)
            for model, p in against(scores, reference).items()
            if model != reference
        }

    def rows(self) -> list[dict[str, Any]]:
        """Flat objects for JSON and CSV, model by model."""
        return [
            self.entries[model, dataset].row(self.ranks.get(model))
            for model in self.models
            for dataset in self.datasets
            if (model, dataset) in self.entries
        ]


def table1(cells: Iterable[Measured], *, protocol: str | None = None) -> list[Table1]:
    """One table for each protocol, or for the one that is asked for.

    Args:
        cells: Of the experiment `table1`.
        protocol: The only protocol to look at; all of them if None.
    """
    groups: dict[str, list[Measured]] = {}
    for cell in cells:
        groups.setdefault(cell.protocol, []).append(cell)
    if protocol is not None:
        if protocol not in groups:
            raise UsageError(
                f"protocol {protocol!r} has no results; those with results: {', '.join(groups)}"
            )
        groups = {protocol: groups[protocol]}
    return [_table(name, group) for name, group in groups.items()]


def ranks_of(found: Comparison) -> dict[str, float]:
    """The average rank of each model, the best first."""
    return dict(zip(found.models, found.ranks, strict=True))


@cache
def printed_comparison() -> Comparison:
    """The paper's own means, compared as the measured ones are."""
    return compare(
        {
            model: [printed_table1()[model, dataset].mean for dataset in table1_datasets()]
            for model in table1_models()
        }
    )


def _table(protocol: str, group: list[Measured]) -> Table1:
    found = {(cell.model, cell.dataset): cell for cell in group}
    if len(found) < len(group):
        raise DataError(
            f"the results have several cells for a model and a dataset under {protocol}, which "
            f"differ in {', '.join(group[0].axes)}; pass those of table1"
        )
    models = _in_order(table1_models(), [cell.model for cell in group])
    datasets = _in_order(table1_datasets(), [cell.dataset for cell in group])
    entries = {}
    for dataset in datasets:
        column = [found[model, dataset] for model in models if (model, dataset) in found]
        scores = _paired(column)
        p_best = against_the_best(scores) if scores else {}
        for cell in column:
            key = cell.model, dataset
            entries[key] = Entry(cell, printed_table1().get(key), p_best.get(cell.model))
    ranked = [
        dataset
        for dataset in table1_datasets()
        if all((model, dataset) in found for model in models)
    ]
    enough = len(models) > 2 and len(ranked) > 1
    means = {model: [found[model, dataset].mean for dataset in ranked] for model in models}
    return Table1(
        protocol,
        models=tuple(models),
        datasets=tuple(datasets),
        entries=entries,
        ranked=tuple(ranked),
        comparison=compare(means) if enough else None,
    )


def _paired(cells: list[Measured]) -> dict[str, tuple[float, ...]]:
    """The scores of each model, where all have the same splits and these are two or more."""
    splits = {tuple(cell.scores) for cell in cells}
    if len(splits) != 1 or len(next(iter(splits))) < 2:
        return {}
    return {cell.model: tuple(cell.scores.values()) for cell in cells}


def _in_order(first: list[str], names: list[str]) -> list[str]:
    """The names without repetition: those of `first` in its order, then the others."""
    there = dict.fromkeys(names)
    return [name for name in first if name in there] + [name for name in there if name not in first]
