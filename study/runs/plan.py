"""What an experiment takes, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from study.runs.cell import Cell
from study.runs.halving import RUNG, RungCell


def plan_rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """One flat object for each cell: its name, its networks, and the most epochs they take.

    Of a ladder, all rungs count, and a network that two rungs share counts once.
    """
    rows = []
    for cell in cells:
        if isinstance(cell, RungCell):
            splits = cell.settings.splits(cell.dataset)
            networks = sum(cell.halving.trainings(splits))
            epochs = cell.halving.epochs(splits, cell.settings.epochs)
        else:
            networks = len(cell.runs)
            epochs = sum(run.recipe.settings.epochs for run in cell.runs)
        name = {"protocol": cell.protocol, "dataset": cell.dataset, "model": cell.model}
        axes = {name: value for name, value in cell.axes.items() if name != RUNG}
        rows.append(name | axes | {"networks": networks, "epochs": epochs})
    return rows
