"""Table 1: measured scores beside the printed ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from memohop.errors import DataError, UsageError
from study.paper.printed import printed_table1, table1_datasets, table1_models
from study.runs.measured import Measured
from study.statistics.comparison import ALPHA, Comparison, against, against_the_best, compare


@dataclass(frozen=True)
class Table1:
    """All cells of one protocol.

    Attributes:
        models, datasets: Rows and columns, in the order of the paper, others after them.
        cells: The measured scores, by model and dataset.
        ranked: The paper's datasets that have a score of every model; ranks are over these.
        comparison: Of the models over those; None with fewer than three models or two datasets.
    """

    protocol: str
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: dict[tuple[str, str], Measured]
    ranked: tuple[str, ...]
    comparison: Comparison | None

    @cached_property
    def p_best(self) -> dict[tuple[str, str], float]:
        """The p-value of the distance to the best mean of the dataset, where it can be computed."""
        columns = {dataset: self.column(dataset) for dataset in self.datasets}
        return {
            (model, dataset): p
            for dataset, scores in columns.items()
            if scores
            for model, p in against_the_best(scores).items()
        }

    @property
    def ranks(self) -> dict[str, float]:
        """The average rank of each model; empty without a comparison."""
        return ranks_of(self.comparison) if self.comparison else {}

    def column(self, dataset: str) -> dict[str, tuple[float, ...]]:
        """The scores of each model; empty unless all have the same splits, two or more."""
        keys = [(model, dataset) for model in self.models]
        cells = [self.cells[key] for key in keys if key in self.cells]
        splits = {tuple(cell.scores) for cell in cells}
        if len(splits) != 1 or len(next(iter(splits))) < 2:
            return {}
        return {cell.model: tuple(cell.scores.values()) for cell in cells}

    def among_the_best(self, model: str, dataset: str) -> bool:
        """Whether a cell is the best of its dataset or not significantly worse."""
        return self.p_best.get((model, dataset), 0.0) >= ALPHA

    def against(self, reference: str, dataset: str) -> dict[str, tuple[float, float]]:
        """The lead of a model over each other one on a dataset, in points, and its p-value."""
        scores = self.column(dataset)
        if reference not in scores:
            return {}
        mean = self.cells[reference, dataset].mean
        return {
            model: (mean - self.cells[model, dataset].mean, p)
            for model, p in against(scores, reference).items()
            if model != reference
        }

    def rows(self) -> list[dict[str, Any]]:
        """Flat objects for JSON and CSV, model by model."""
        return [
            self._row(self.cells[model, dataset])
            for model in self.models
            for dataset in self.datasets
            if (model, dataset) in self.cells
        ]

    def _row(self, cell: Measured) -> dict[str, Any]:
        key = cell.model, cell.dataset
        printed, (points, stds) = printed_table1().get(key), difference(cell)
        numbers: dict[str, float | None] = {
            "mean": cell.mean,
            "std": cell.std,
            "printed_mean": printed.mean if printed else None,
            "printed_std": printed.std if printed else None,
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
            "printed_source": printed.source if printed else None,
            "among_the_best": self.among_the_best(*key),
            "p_best": self.p_best.get(key),
            "average_rank": self.ranks.get(cell.model),
            **cell.axes,
            **cell.setting,
            "runs": cell.runs,
            "seconds": round(cell.seconds, 3),
        }


def table1(cells: Iterable[Measured], *, protocol: str | None = None) -> list[Table1]:
    """One table for each protocol of the cells, or for the given one alone."""
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


def difference(cell: Measured) -> tuple[float | None, float | None]:
    """Measured less printed mean, in points and in printed standard deviations, if printed."""
    printed = printed_table1().get((cell.model, cell.dataset))
    if printed is None:
        return None, None
    points = cell.mean - printed.mean
    return points, points / printed.std if printed.std else None


def ranks_of(found: Comparison) -> dict[str, float]:
    """The average rank of each model, the best first."""
    return dict(zip(found.models, found.ranks, strict=True))


@cache
def printed_comparison() -> Comparison:
    """The paper's own means, compared like the measured ones."""
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
        cells=found,
        ranked=tuple(ranked),
        comparison=compare(means) if enough else None,
    )


def _in_order(first: list[str], names: list[str]) -> list[str]:
    """The names without repetition: those of ``first`` in its order, then the others."""
    return [name for name in dict.fromkeys((*first, *names)) if name in names]
