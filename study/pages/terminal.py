"""What commands show in a terminal: the contents of a store, a plan, speeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from study.pages.tables import Table, TableCell, number

if TYPE_CHECKING:
    from study.runs.cell import Cell
    from study.runs.stored import StoredCell
    from study.speed import Speed


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
    cells = (
        tuple(
            TableCell(value) if isinstance(value, str) else number(value, "")
            for value in row.values()
        )
        for row in rows
    )
    head = ("experiment", "protocol", "cells", "failed", "runs", "last finished")
    return Table(head, tuple(cells))


def failure_text(cell: StoredCell, *, whole: bool) -> str:
    """Why a cell failed: the last line of the traceback, or all of it."""
    assert cell.failure is not None
    axes = (f"{name}={value}" for name, value in cell.axes.items())
    name = " ".join((cell.experiment, cell.protocol, cell.dataset, cell.model, *axes))
    lines = cell.failure.strip().splitlines()
    return f"\n{name} failed:\n" + "\n".join(lines if whole else lines[-1:])


def plan_rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """What an experiment takes: for each cell its name, its networks, and their epochs at most.

    Of a ladder, all rungs count, and a network that two rungs share counts once.
    """
    rows = []
    for cell in cells:
        name = {"protocol": cell.protocol, "dataset": cell.dataset, "model": cell.model}
        networks, epochs = cell.size
        rows.append(name | cell.variant | {"networks": networks, "epochs": epochs})
    return rows


def plan_table(rows: list[dict[str, Any]]) -> Table:
    """These rows: a line for each protocol and dataset, and a sum."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["protocol"], row["dataset"]), []).append(row)
    lines = []
    for names, group in [*groups.items(), (("all", ""), rows)]:
        networks, epochs = (sum(row[name] for row in group) for name in ("networks", "epochs"))
        counts = (len(group), networks, networks / len(group), epochs)
        lines.append((*map(TableCell, names), *(number(count, ",.0f") for count in counts)))
    head = ("protocol", "dataset", "cells", "networks", "networks a cell", "epochs at most")
    return Table(head, tuple(lines))


def speed_table(speeds: Sequence[Speed]) -> Table:
    """A row for each dataset and model, and the geometric mean of each model's ratios."""
    rows = []
    for model, group in groupby(speeds, key=lambda speed: speed.model):
        of_model = list(group)
        rows += [
            (
                TableCell(speed.dataset),
                TableCell(model),
                number(speed.stock_ms),
                number(speed.ms, ".3f"),
                TableCell(f"{speed.ratio:.1f}x", value=speed.ratio),
                number(speed.peak_mb, ".0f"),
                TableCell("") if speed.floor_share is None else number(speed.floor_share, ".0%"),
            )
            for speed in of_model
        ]
        mean, none = geometric_mean(speed.ratio for speed in of_model), TableCell("")
        ratio = TableCell(f"{mean:.1f}x", value=mean)
        name = TableCell("geometric mean", strong=True)
        rows.append((name, TableCell(model), none, none, ratio, none, none))
    head = ("dataset", "model", "stock ms", "ms", "ratio", "peak MB", "floor")
    return Table(head, tuple(rows))
