"""From the run store to one file of results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from operator import le

import msgspec

from memohop.errors import UsageError
from memohop.training.job import digest
from study.runs.cell import Cell
from study.runs.experiment import Experiment
from study.runs.results import NO_SCORE, Results, Row, Source, grouped
from study.runs.store import Store
from study.runs.stored import StoredCell
from study.runs.tuned import DIGITS, Drawn, Tried, Tuned, TunedCell

_DIGITS = 6  # of a score in results: enough to tell a hundred thousand test nodes apart


class _Sources(dict[str, Source]):
    """Where runs were made, with the digests of the datasets that they were made with."""

    def place(self, source: Source, dataset: str, data: str) -> int:
        """The place of a source, which made a run with data of that digest."""
        bare = msgspec.structs.replace(source, datasets={})
        key = digest(msgspec.to_builtins(bare))
        self.setdefault(key, bare).datasets[dataset] = data
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
        name = (cell.protocol, cell.dataset, cell.model, cell.axes)
        for member, setting in store.members_of(cell):
            run, source = store.run(member)
            row = Row(
                *name,
                setting,
                split=run.content["split"],
                seed=run.content["seed"],
                val=round(run.val, _DIGITS),
                test=round(run.test, _DIGITS),
                best_epoch=run.best_epoch,
                epochs=run.epochs,
                seconds=round(run.seconds, 3),
                source=sources.place(source, cell.dataset, run.data),
            )
            rows.append(row)
    return Results(experiment, tuple(sources.values()), tuple(rows))


def export_tuned(
    store: Store, experiment: Experiment, *, whole: bool = False, earlier: Tuned | None = None
) -> tuple[Tuned, list[Cell]]:
    """All searches of the experiment that the store has to the end, and the rungs it lacks.

    ``whole`` leaves out datasets of which a search is not at its end. Searches that the store has
    not to the end are taken from ``earlier`` results, if they are of the same settings.
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
        if whole and first.dataset in unfinished:
            continue
        rungs = [first]
        while after := rungs[-1].after(store):
            rungs.append(after)
        cell, before = None, known.get(name_of(first))
        if rungs[-1].is_last and store.has(rungs[-1]):
            cell = _climbed(rungs, store, sources)
        elif earlier and before and _fits(before, first):
            made = earlier.sources[before.source]
            place = sources.place(made, first.dataset, made.datasets[first.dataset])
            cell = msgspec.structs.replace(before, source=place)
        elif whole:
            unfinished[first.dataset] = None
        if cell is None:
            missing.append(rungs[-1])
        else:
            drawn[cell.space] = Drawn.of(first.drawn)
            cells.append(cell)
    cells = [cell for cell in cells if cell.dataset not in unfinished]
    spaces = {key: drawn[key] for key in dict.fromkeys(cell.space for cell in cells)}
    name = (experiment.id, protocol, tuple(sources.values()))
    return Tuned(*name, spaces, tuple(cells), tuple(unfinished)), missing


def _climbed(rungs: list[Cell], store: Store, sources: _Sources) -> TunedCell | None:
    """A search that is at its end; None if with other seeds the chosen setting diverges.

    A network counts on the first rung that it is on.
    """
    first, last = rungs[0], rungs[-1].runs
    everything = store.runs({run.id for run in chain(*(rung.runs for rung in rungs))})
    stored = {run.id: run for run, _ in everything}
    if min(min(stored[run.id].val, stored[run.id].test) for run in last) < 0:
        return None
    tried: list[Tried] = []
    counted: set[str] = set()
    for rung in rungs:
        new = [stored[key] for key in {run.id for run in rung.runs} - counted]
        counted |= {run.id for run in new}
        means = (NO_SCORE if math.isnan(val) else round(val, DIGITS) for val in rung.scores(store))
        epochs, seconds = sum(run.epochs for run in new), sum(run.seconds for run in new)
        tried.append(Tried(rung.tried, tuple(means), len(new), epochs, round(seconds, 3)))
    by_seed = grouped(last, lambda run: run.member.seed).values()

    def scores(part: str) -> tuple[tuple[float, ...], ...]:
        digits = {run.id: round(getattr(stored[run.id], part), DIGITS) for run in last}
        return tuple(tuple(digits[run.id] for run in runs) for runs in by_seed)

    run, source = store.run(last[0].id)
    place = sources.place(source, first.dataset, run.data)
    name = (first.dataset, first.model, first.variant, space_id(first))
    return TunedCell(*name, tuple(tried), scores("val"), scores("test"), place)


def space_id(cell: Cell) -> str:
    """What tells the settings of a search from those of others."""
    return digest(cell.drawn)[:12]


def name_of(cell: Cell | TunedCell) -> tuple[str, str, str]:
    """What tells a search from the others of its experiment: dataset, model and variant."""
    return cell.dataset, cell.model, digest(cell.variant if isinstance(cell, Cell) else cell.axes)


def _fits(cell: TunedCell, first: Cell) -> bool:
    """Whether a search is of these settings and rungs; of those that diverge, fewer are left."""
    assert first.halving is not None
    tried = [len(rung.settings) for rung in cell.rungs]
    wanted = [rung.settings for rung in first.halving.rungs]
    is_shaped = len(tried) == len(wanted) and all(map(le, tried, wanted)) and tried[0] == wanted[0]
    return is_shaped and cell.space == space_id(first)
