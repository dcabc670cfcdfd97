"""The contents of a run store, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table

from study.runs.stored import StoredCell


def summary(cells: Iterable[StoredCell]) -> list[dict[str, Any]]:
    """One flat object for each experiment and protocol."""
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
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("experiment", "protocol"):
        table.add_column(name, no_wrap=True)
    for name in ("cells", "failed", "runs"):
        table.add_column(name, justify="right")
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


def plan_table(rows: list[dict[str, Any]]) -> Table:
    """What a run of an experiment would train: a line for each protocol and dataset, and a sum."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        for key in ((row["protocol"], row["dataset"]), ("all", "")):
            found = sums.setdefault(key, [0, 0, 0])
            for place, amount in enumerate((1, row["networks"], row["epochs"])):
                found[place] += amount
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("protocol", "dataset"):
        table.add_column(name, no_wrap=True)
    for name in ("cells", "networks", "networks a cell", "epochs at most"):
        table.add_column(name, justify="right")
    for key, (cells, networks, epochs) in sorted(sums.items(), key=lambda one: one[0][0] == "all"):
        figures = (cells, networks, networks / cells, epochs)
        table.add_row(*key, *(f"{value:,.0f}" for value in figures))
    return table
