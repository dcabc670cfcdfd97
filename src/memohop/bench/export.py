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
    known = store.cells()
    there: list[str] = []
    missing: list[Cell] = []
    for cell in experiment.cells():
        found = known.get(cell.id)
        if found is None or found.failure is not None or found.content != cell.content:
            missing.append(cell)
        else:
            there.append(cell.id)
    return store.results(experiment.id, there), missing
