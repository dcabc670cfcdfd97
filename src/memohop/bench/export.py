"""From the run store to one file of results."""

from __future__ import annotations

from memohop.bench.cell import Cell
from memohop.bench.experiment import Experiment
from memohop.bench.results import Results
from memohop.bench.store import Store


def export(store: Store, experiment: Experiment) -> tuple[Results, list[Cell]]:
    """All members of the experiment that the store has, and the cells that it lacks.

    A cell that was trained by an older version of the experiment file counts as missing.
    """
    there: list[str] = []
    missing: list[Cell] = []
    for cell in experiment.cells():
        if store.has(cell):
            there.append(cell.id)
        else:
            missing.append(cell)
    return store.results(experiment.id, there), missing
