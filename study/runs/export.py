"""From the run store to one file of results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from operator import le

import msgspec

from memohop.errors import UsageError
from memohop.training.job import digest
from study.runs.cell import Cell, Halving
from study.runs.experiment import Experiment
from study.runs.results import NO_SCORE, Results, Row, Source
from study.runs.store import Store
from study.runs.stored import StoredCell
from study.runs.tuned import DIGITS, Drawn, Tried, Tuned, TunedCell

_DIGITS = 6  # of a score in results: enough to tell a hundred thousand test nodes apart


class _Sources(dict[str, Source]):
    """Where runs were made, with the digests of the datasets that they were made with."""

    def place(self, key: str, source: Source, dataset: str, data: str) -> int:
        """The place of a source, which made a run with data of that digest."""
        known = self.setdefault(key, msgspec.structs.replace(source, datasets={}))
        known.datasets[dataset] = data
        return [*self].index(key)


def export(store: Store, experiment: Experiment) -> tuple[Results, list[Cell]]:
    """All members of the experiment that the store has, and the cells that it lacks.

    A cell that was trained by an older version of the experiment file counts as missing.
    """
    there, cells = store.cells(), list(experiment.cells())
    missing = [cell for cell in cells if not store.has(cell)]
    lacking = {cell.id for cell in missing}
    complete = (there[cell.id] for cell in cells if cell.id not in lacking)
    return results_of(store, experiment.id, complete), missing


def results_of(store: Store, experiment: str, cells: Iterable[StoredCell]) -> Results:
    """The members of cells, one row for each; a cell that has failed has none."""
    rows: list[Row] = []
    sources = _Sources()
    for cell in cells:
        for member, setting in store.members_of(cell):
            run, source = store.run(member)
            row = Row(
                protocol=cell.protocol,
                dataset=cell.dataset,
                model=cell.model,
                axes=cell.axes,
                setting=setting,
                split=run.content["split"],
                seed=run.content["seed"],
                val=round(run.val, _DIGITS),
                test=round(run.test, _DIGITS),
                best_epoch=run.best_epoch,
                epochs=run.epochs,
                seconds=round(run.seconds, 3),
                source=sources.place(run.source, source, cell.dataset, run.data),
            )
            rows.append(row)
    return Results(experiment, tuple(sources.values()), tuple(rows))


def export_tuned(
    store: Store, experiment: Experiment, *, whole: bool = False, earlier: Tuned | None = None
) -> tuple[Tuned, list[Cell]]:
    """All searches of the experiment that the store has to the end, and the rungs it lacks.

    Args:
        store: The store.
        experiment: The experiment.
        whole: Whether to leave out datasets of which a search is not at its end.
        earlier: Results from which to take searches that the store has not to the end, if they
            are of the same settings.
    """
    (protocol, *others) = experiment.protocols
    if others or not experiment.halving(protocol):
        raise UsageError(
            f"{experiment.id} has the protocols {', '.join(experiment.protocols)}; a search by "
            "halving is exported from an experiment with one protocol"
        )
    sources, drawn = _Sources(), dict[str, Drawn]()
    cells: list[TunedCell] = []
    missing: list[Cell] = []
    unfinished: dict[str, None] = {}
    known = {name_of(cell): cell for cell in earlier.cells} if earlier else {}
    for first in experiment.cells():
        assert first.halving is not None
        if whole and first.dataset in unfinished:
            continue
        rungs = [first]
        while after := rungs[-1].after(store):
            rungs.append(after)
        space = digest(first.drawn)[:12]
        cell, before = None, known.get(name_of(first))
        if rungs[-1].is_last and store.has(rungs[-1]):
            cell = _climbed(rungs, space, store, sources)
        elif earlier and before and before.space == space and _fits(before, first.halving):
            made = earlier.sources[before.source]
            bare = msgspec.structs.replace(made, datasets={})
            key, data = digest(msgspec.to_builtins(bare)), made.datasets[first.dataset]
            place = sources.place(key, bare, first.dataset, data)
            cell = msgspec.structs.replace(before, source=place)
        elif whole:
            unfinished[first.dataset] = None
        if cell is None:
            missing.append(rungs[-1])
            continue
        drawn[space] = Drawn.of(first.drawn)
        cells.append(cell)
    cells = [cell for cell in cells if cell.dataset not in unfinished]
    spaces = {key: drawn[key] for key in dict.fromkeys(cell.space for cell in cells)}
    name = (experiment.id, protocol, tuple(sources.values()))
    return Tuned(*name, spaces, tuple(cells), tuple(unfinished)), missing


def _climbed(rungs: list[Cell], space: str, store: Store, sources: _Sources) -> TunedCell | None:
    """A search that is at its end; None if with other seeds the chosen setting diverges.

    A network counts on the first rung that it is on.
    """
    first, last = rungs[0], rungs[-1].runs
    stored = {run.id: run for run, _ in store.runs({run.id for rung in rungs for run in rung.runs})}
    if min(min(stored[run.id].val, stored[run.id].test) for run in last) < 0:
        return None
    tried: list[Tried] = []
    counted: set[str] = set()
    for rung in rungs:
        ids = {run.id for run in rung.runs}
        new = [stored[key] for key in ids - counted]
        counted |= ids
        means = (NO_SCORE if math.isnan(val) else round(val, DIGITS) for val in rung.scores(store))
        epochs, seconds = sum(run.epochs for run in new), sum(run.seconds for run in new)
        tried.append(Tried(rung.tried, tuple(means), len(new), epochs, round(seconds, 3)))
    by_seed = [[*runs] for _, runs in groupby(last, key=lambda run: run.member.seed)]
    val, test = (
        tuple(
            tuple(round(getattr(stored[run.id], name), DIGITS) for run in runs) for runs in by_seed
        )
        for name in ("val", "test")
    )
    run, source = store.run(last[0].id)
    place = sources.place(run.source, source, first.dataset, run.data)
    return TunedCell(
        first.dataset, first.model, first.variant, space, tuple(tried), val, test, place
    )


def name_of(cell: Cell | TunedCell) -> tuple[str, str, str]:
    """What tells a search from the others of its experiment: dataset, model and variant."""
    return cell.dataset, cell.model, digest(cell.variant if isinstance(cell, Cell) else cell.axes)


def _fits(cell: TunedCell, halving: Halving) -> bool:
    """Whether a search has the shape of the ladder; of settings that diverge, fewer are left."""
    tried = [len(rung.settings) for rung in cell.rungs]
    wanted = [rung.settings for rung in halving.rungs]
    return len(tried) == len(wanted) and all(map(le, tried, wanted)) and tried[0] == wanted[0]
