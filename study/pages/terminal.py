"""What the commands show in a terminal: the contents of a store, a plan, speeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from rich.table import Table

from memohop.report.terminal import plain_table
from study.runs.halving import RUNG, RungCell

if TYPE_CHECKING:
    from study.runs.cell import Cell
    from study.runs.stored import StoredCell
    from study.speed.measure import Speed


def _table(*names: str, numbers: Iterable[str]) -> Table:
    """An empty table: columns of names, then columns of numbers."""
    table = plain_table(names[0], numbers=())
    for name in names[1:]:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def store_rows(cells: Iterable[StoredCell]) -> list[dict[str, Any]]:
    """The contents of a store: one flat object for each experiment and protocol."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        name = {"experiment": cell.experiment, "protocol": cell.protocol}
        new = name | {"cells": 0, "failed": 0, "runs": 0, "finished": ""}
        row = rows.setdefault((cell.experiment, cell.protocol), new)
        row["cells"] += cell.failure is None
        row["failed"] += cell.failure is not None
        row["runs"] += cell.runs
        row["finished"] = max(row["finished"], cell.finished)
    return list(rows.values())


def store_table(rows: list[dict[str, Any]]) -> Table:
    """These rows as a table."""
    table = _table("experiment", "protocol", numbers=("cells", "failed", "runs"))
    table.add_column("last finished")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    return table


def failure_text(cell: StoredCell, *, whole: bool) -> str:
    """Why a cell failed: the last line of the traceback, or all of it."""
    assert cell.failure is not None
    axes = (f"{name}={value}" for name, value in cell.axes.items())
    name = " ".join((cell.experiment, cell.protocol, cell.dataset, cell.model, *axes))
    lines = cell.failure.strip().splitlines()
    return f"{name} failed:\n" + "\n".join(lines if whole else lines[-1:])


def plan_rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """What an experiment takes: for each cell its name, its networks, and their epochs at most.

    Of a ladder, all rungs count, and a network that two rungs share counts once.
    """
    rows = []
    for cell in cells:
        if isinstance(cell, RungCell):
            splits = cell.settings.graph(cell.dataset).splits
            networks = sum(cell.halving.trainings(splits))
            epochs = cell.halving.epochs(splits, cell.settings.epochs)
        else:
            networks = len(cell.runs)
            epochs = sum(run.epochs for run in cell.runs)
        name = {"protocol": cell.protocol, "dataset": cell.dataset, "model": cell.model}
        axes = {name: value for name, value in cell.axes.items() if name != RUNG}
        rows.append(name | axes | {"networks": networks, "epochs": epochs})
    return rows


def plan_table(rows: list[dict[str, Any]]) -> Table:
    """These rows: a line for each protocol and dataset, and a sum."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        for key in ((row["protocol"], row["dataset"]), ("all", "")):
            total = sums.setdefault(key, [0, 0, 0])
            for place, amount in enumerate((1, row["networks"], row["epochs"])):
                total[place] += amount
    counts = ("cells", "networks", "networks a cell", "epochs at most")
    table = _table("protocol", "dataset", numbers=counts)
    for key, (cells, networks, epochs) in sorted(
        sums.items(), key=lambda pair: pair[0][0] == "all"
    ):
        figures = (cells, networks, networks / cells, epochs)
        table.add_row(*key, *(f"{value:,.0f}" for value in figures))
    return table


def speed_table(speeds: Sequence[Speed]) -> Table:
    """A row for each dataset and model, and the geometric mean of each model's ratios."""
    numbers = ("stock ms", "ms", "ratio", "peak MB", "floor")
    table = _table("dataset", "model", numbers=numbers)
    for model, group in groupby(speeds, key=lambda speed: speed.model):
        of_model = list(group)
        for speed in of_model:
            table.add_row(
                speed.dataset,
                model,
                f"{speed.stock_ms:.2f}",
                f"{speed.ms:.3f}",
                f"{speed.ratio:.1f}x",
                f"{speed.peak_mb:.0f}",
                "" if speed.floor_share is None else f"{speed.floor_share:.0%}",
            )
        mean = geometric_mean(speed.ratio for speed in of_model)
        table.add_row("geometric mean", model, "", "", f"{mean:.1f}x", style="bold")
    return table
