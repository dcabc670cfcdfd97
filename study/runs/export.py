"""From the run store to one file of results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import le

import msgspec

from memohop.errors import UsageError
from memohop.jobs.run import Scalar, digest
from study.runs.cell import Cell
from study.runs.experiment import Experiment
from study.runs.halving import RUNG, Halving, RungCell
from study.runs.results import NO_SCORE, Results, Source
from study.runs.store import Store
from study.runs.stored import StoredRun
from study.runs.tuned import DIGITS, Drawn, Tried, Tuned, TunedCell


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
    sources: dict[str, tuple[Source, dict[str, str]]] = {}  # with the digests of the datasets
    drawn: dict[str, Drawn] = {}
    found: list[TunedCell] = []
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
        if len(rungs) < len(first.halving.rungs) or not store.has(rungs[-1]):
            before = known.get(name_of(first))
            if earlier and before and before.space == space and _is_climbed(before, first.halving):
                made = earlier.sources[before.source]
                bare = msgspec.structs.replace(made, datasets={})
                key = digest(msgspec.to_builtins(bare))
                sources.setdefault(key, (bare, {}))[1][first.dataset] = made.datasets[first.dataset]
                drawn.setdefault(space, Drawn.of(first.drawn))
                index = list(sources).index(key)
                found.append(msgspec.structs.replace(before, source=index))
                continue
            missing.append(rungs[-1])
            if whole:
                unfinished[first.dataset] = None
            continue
        runs = {run.id: (run, source) for run, source in store.runs(_ids(rungs))}
        stored = {key: run for key, (run, _) in runs.items()}
        last = rungs[-1].runs
        if min(min(stored[run.id].val, stored[run.id].test) for run in last) < 0:
            missing.append(rungs[-1])  # with other seeds the chosen setting diverges
            continue
        run, source = runs[last[0].id]
        _, digests = sources.setdefault(run.source, (source, {}))
        files = run.content["data"]["files"]
        digests[first.dataset] = "" if None in files.values() else digest(files)
        drawn.setdefault(space, Drawn.of(first.drawn))
        found.append(
            TunedCell(
                dataset=first.dataset,
                model=first.model,
                axes=_axes(first),
                space=space,
                rungs=tuple(_tried(rungs, stored, store)),
                val=_scores(rungs[-1], stored, "val"),
                test=_scores(rungs[-1], stored, "test"),
                source=list(sources).index(run.source),
            )
        )
    cells = [cell for cell in found if cell.dataset not in unfinished]
    complete = (msgspec.structs.replace(one, datasets=names) for one, names in sources.values())
    name = (experiment.id, protocols[0], tuple(complete))
    spaces = {key: drawn[key] for key in dict.fromkeys(cell.space for cell in cells)}
    return Tuned(*name, spaces, tuple(cells), tuple(unfinished)), missing


def name_of(cell: Cell | TunedCell) -> tuple[str, str, str]:
    """What tells a search from the others of its experiment: dataset, model and variant."""
    return cell.dataset, cell.model, digest(_axes(cell))


def _axes(cell: Cell | TunedCell) -> dict[str, Scalar]:
    """Which variant it is, whatever its rung."""
    return {key: value for key, value in cell.axes.items() if key != RUNG}


def _is_climbed(cell: TunedCell, halving: Halving) -> bool:
    """Whether a search has the shape of the ladder; of settings that diverge, fewer are left."""
    tried = [len(rung.settings) for rung in cell.rungs]
    wanted = [rung.settings for rung in halving.rungs]
    return len(tried) == len(wanted) and all(map(le, tried, wanted)) and tried[0] == wanted[0]


def _ids(rungs: Iterable[RungCell]) -> list[str]:
    return list({run.id: None for rung in rungs for run in rung.runs})


def _tried(rungs: list[RungCell], stored: Mapping[str, StoredRun], store: Store) -> Iterator[Tried]:
    """What was tried on each rung; a network counts on the first rung that it is on."""
    counted: set[str] = set()
    for rung in rungs:
        ids = {run.id for run in rung.runs}
        new = [stored[key] for key in ids - counted]
        counted |= ids
        scores = (NO_SCORE if math.isnan(one) else round(one, DIGITS) for one in rung.scores(store))
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
    found: dict[int, list[float]] = {}
    for run in rung.runs:
        found.setdefault(run.seed, []).append(round(getattr(stored[run.id], name), DIGITS))
    return tuple(map(tuple, found.values()))
