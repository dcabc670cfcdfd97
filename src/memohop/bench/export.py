"""From the run store to one file of results."""

from __future__ import annotations

import msgspec

from memohop.bench.cell import Cell
from memohop.bench.experiment import Experiment
from memohop.bench.results import Results, Row, Source
from memohop.bench.settings import digest
from memohop.bench.store import Store
from memohop.bench.stored import pack_score

_DIGITS = 6  # of a score: a hundred thousand test nodes can be told apart


def export(store: Store, experiment: Experiment) -> tuple[Results, list[Cell]]:
    """All members of the experiment that the store has, and the cells that it has not.

    A cell that was trained by an older version of the experiment file counts as missing.
    """
    known = store.cells()
    rows: list[Row] = []
    missing: list[Cell] = []
    sources: list[Source] = []
    digests: list[dict[str, str]] = []
    for cell in experiment.cells():
        found = known.get(cell.id)
        if found is None or found.failure is not None or found.content != cell.content:
            missing.append(cell)
            continue
        for run in store.members(cell.id):
            if run.source not in sources:
                sources.append(run.source)
                digests.append({})
            place = sources.index(run.source)
            digests[place][cell.dataset] = digest(run.content["data"]["files"])
            rows.append(
                Row(
                    protocol=cell.protocol,
                    dataset=cell.dataset,
                    model=cell.model,
                    axes=cell.axes,
                    setting=run.setting,
                    split=run.content["split"],
                    seed=run.content["seed"],
                    val=round(pack_score(run.val), _DIGITS),
                    test=round(pack_score(run.test), _DIGITS),
                    best_epoch=run.best_epoch,
                    epochs=run.epochs,
                    seconds=round(run.seconds, 3),
                    source=place,
                )
            )
    complete = tuple(
        msgspec.structs.replace(source, datasets=found)
        for source, found in zip(sources, digests, strict=True)
    )
    return Results(experiment.id, complete, tuple(rows)), missing
