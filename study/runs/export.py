"""From the run store to one file of results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import le

import msgspec

from memohop.errors import UsageError
from memohop.jobs.named import Scalar
from memohop.training.job import digest
from study.runs.cell import RUNG, Cell, Halving, RungCell
from study.runs.experiment import Experiment
from study.runs.results import NO_SCORE, Results, Row, Source
from study.runs.store import Store
from study.runs.stored import StoredCell, StoredRun
from study.runs.tuned import DIGITS, Drawn, Tried, Tuned, TunedCell

_DIGITS = 6  # of a score in results: enough to tell a hundred thousand test nodes apart


class _Sources:
    """Where runs were made, with the digests of the datasets that they were made with."""

    def __init__(self) -> None:
        self._made: dict[str, Source] = {}
        self._digests: dict[str, dict[str, str]] = {}

    def index(self, key: str, source: Source, dataset: str, data: str) -> int:
        """The place of a source, which made a run with data of that digest."""
        self._made.setdefault(key, source)
        self._digests.setdefault(key, {})[dataset] = data
        return list(self._made).index(key)

    def all(self) -> tuple[Source, ...]:
        """All of them."""
        return tuple(
            msgspec.structs.replace(source, datasets=self._digests[key])
            for key, source in self._made.items()
        )


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
                source=sources.index(run.source, source, cell.dataset, run.data),
            )
            rows.append(row)
    return Results(experiment, sources.all(), tuple(rows))


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
    protocols = [name for name in experiment.protocols if experiment.halving(name)]
    if len(experiment.protocols) != 1 or len(protocols) != 1:
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
        assert isinstance(first, RungCell)
        if whole and first.dataset in unfinished:
            continue
        rungs = [first]
        while after := rungs[-1].after(store):
            rungs.append(after)
        space = digest(first.drawn)[:12]
        cell, before = None, known.get(name_of(first))
        if len(rungs) == len(first.halving.rungs) and store.has(rungs[-1]):
            cell = _climbed(rungs, space, store, sources)
        elif earlier and before and before.space == space and _fits(before, first.halving):
            made = earlier.sources[before.source]
            bare = msgspec.structs.replace(made, datasets={})
            key, data = digest(msgspec.to_builtins(bare)), made.datasets[first.dataset]
            place = sources.index(key, bare, first.dataset, data)
            cell = msgspec.structs.replace(before, source=place)
        elif whole:
            unfinished[first.dataset] = None
        if cell is None:
            missing.append(rungs[-1])
            continue
        drawn.setdefault(space, Drawn.of(first.drawn))
        cells.append(cell)
    cells = [cell for cell in cells if cell.dataset not in unfinished]
    spaces = {key: drawn[key] for key in dict.fromkeys(cell.space for cell in cells)}
    name = (experiment.id, protocols[0], sources.all())
    return Tuned(*name, spaces, tuple(cells), tuple(unfinished)), missing


def _climbed(
    rungs: list[RungCell], space: str, store: Store, sources: _Sources
) -> TunedCell | None:
    """A search that is at its end; None if with other seeds the chosen setting diverges."""
    first, last = rungs[0], rungs[-1].runs
    ids = {run.id: None for rung in rungs for run in rung.runs}
    stored = {run.id: (run, source) for run, source in store.runs(ids)}
    runs = {key: run for key, (run, _) in stored.items()}
    if min(min(runs[run.id].val, runs[run.id].test) for run in last) < 0:
        return None
    run, source = stored[last[0].id]
    return TunedCell(
        dataset=first.dataset,
        model=first.model,
        axes=_axes(first),
        space=space,
        rungs=tuple(_tried(rungs, runs, store)),
        val=_scores(rungs[-1], runs, "val"),
        test=_scores(rungs[-1], runs, "test"),
        source=sources.index(run.source, source, first.dataset, run.data),
    )


def name_of(cell: Cell | TunedCell) -> tuple[str, str, str]:
    """What tells a search from the others of its experiment: dataset, model and variant."""
    return cell.dataset, cell.model, digest(_axes(cell))


def _axes(cell: Cell | TunedCell) -> dict[str, Scalar]:
    """Which variant it is, whatever its rung."""
    return {key: value for key, value in cell.axes.items() if key != RUNG}


def _fits(cell: TunedCell, halving: Halving) -> bool:
    """Whether a search has the shape of the ladder; of settings that diverge, fewer are left."""
    tried = [len(rung.settings) for rung in cell.rungs]
    wanted = [rung.settings for rung in halving.rungs]
    return len(tried) == len(wanted) and all(map(le, tried, wanted)) and tried[0] == wanted[0]


def _tried(rungs: list[RungCell], stored: Mapping[str, StoredRun], store: Store) -> Iterator[Tried]:
    """What was tried on each rung; a network counts on the first rung that it is on."""
    counted: set[str] = set()
    for rung in rungs:
        ids = {run.id for run in rung.runs}
        new = [stored[key] for key in ids - counted]
        counted |= ids
        scores = (NO_SCORE if math.isnan(val) else round(val, DIGITS) for val in rung.scores(store))
        yield Tried(
            rung.tried,
            tuple(scores),
            networks=len(new),
            epochs=sum(run.epochs for run in new),
            seconds=round(sum(run.seconds for run in new), 3),
        )


def _scores(
    rung: RungCell, stored: Mapping[str, StoredRun], name: str
) -> tuple[tuple[float, ...], ...]:
    """The scores of the last rung: for each seed one on each split."""
    by_seed: dict[int, list[float]] = {}
    for run in rung.runs:
        by_seed.setdefault(run.member.seed, []).append(round(getattr(stored[run.id], name), DIGITS))
    return tuple(map(tuple, by_seed.values()))
