"""Runs what is missing of an experiment, population by population."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from memohop.data.check import MissingClassWarning
from memohop.errors import DataError
from memohop.jobs.executor import Executor, Lost, Progress, here
from memohop.jobs.named import execute, populations
from memohop.jobs.search import drive
from memohop.ram import OutOfMemoryError
from memohop.training import Job, Result
from memohop.training.trainer import DivergedWarning
from study.runs.cell import Cell, cost
from study.runs.claims import Claims
from study.runs.halving import RungCell
from study.runs.provenance import source
from study.runs.results import Source
from study.runs.store import Store


@dataclass(frozen=True, eq=False)
class Batch:
    """A cell with jobs that it lacks, which are trained as one population."""

    cell: Cell
    runs: tuple[Job, ...]

    @property
    def id(self) -> str:
        """Different for every job: a run belongs to one population."""
        return self.runs[0].id


@dataclass(frozen=True)
class Attempt:
    """The end of a job, other than its loss.

    Attributes:
        results: One for each run of the job; none if the training failed.
        source: Where they were made.
        failure: The traceback, if the training failed.
    """

    results: tuple[Result, ...] = ()
    source: Source | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Resources:
    """What to train with: a local folder with the data files, and a device."""

    root: Path | None = None
    device: str = "cpu"


@dataclass
class Tally:
    """How far a run of cells has come.

    Attributes:
        cells: How many were asked for.
        there: Those that were in the store before, or that another process has put there.
        given_up: Those that had failed before and were not to be tried again.
        done: Those that were finished now.
        failed: Those that failed now.
        lost: By name, why a cell could not be finished; such cells are not in the store.
        elsewhere: Those that another process works on.
        diverged: How many networks have diverged now; they have no score and are never chosen.
    """

    cells: int = 0
    there: int = 0
    given_up: int = 0
    done: int = 0
    failed: list[Cell] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    elsewhere: int = 0
    diverged: int = 0


Watcher = Callable[[Tally, Cell, float], None]


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    resources: Resources,
    executor: Executor | None = None,
    retry: bool = False,
    limit: int | None = None,
    costly_first: bool = False,
    watcher: Watcher | None = None,
) -> Tally:
    """Train the cells that are missing, and write each population when it is trained.

    A cell is there when all of its populations are; if the work is interrupted before, those that
    were done are not trained again. After a rung of a ladder comes the next one, before any other
    cell, so that searches that have begun are finished first.

    Args:
        cells: Those that should be in the store in the end; of a ladder, those of the first rung.
        store: The store.
        resources: What to train with.
        executor: Who trains; this process by default.
        retry: Whether to try again what has failed before.
        limit: The most cells to train: the first of those that are missing.
        costly_first: Whether to begin with the cells that take longest and end with those that
            share all their runs with others; for executors that train several at once. Ladders keep
            their order, so that what is stopped half-way has whole datasets.
        watcher: Called as ``watcher(tally, cell, share)`` with the share of all the work that is
            done, whenever a cell is finished and often in between.
    """
    tally = Tally(cells=len(cells))
    pending = _plan(cells, store, retry, tally)[:limit]
    ladders = [cell for cell in pending if isinstance(cell, RungCell)]
    others = [cell for cell in pending if not isinstance(cell, RungCell)]
    if costly_first:  # of two cells that share runs, the larger one is to count them
        others.sort(key=lambda cell: cost(cell.runs), reverse=True)
    work = _work(others, store)
    if costly_first:
        others.sort(key=lambda cell: work[cell.id], reverse=True)
    of_ladders = sum(
        cell.cost_to_the_top - cost(cell.runs) + cost(store.missing(cell.runs)) for cell in ladders
    )
    total = sum(work.values()) + of_ladders

    def watch(job: Batch, share: float) -> None:
        if watcher is not None and total:
            done = search.finished + share * cost(job.runs)
            watcher(tally, job.cell, min(done / total, 1.0))

    with Claims(store) as claims:
        search = _Missing([*others, *ladders], store, claims, tally, limit)
        train = partial(attempt, resources=resources)

        def in_turn(jobs: Iterator[Batch]) -> Iterator[tuple[Batch, Attempt | Lost]]:
            for job, end in (executor or here)(train, jobs, watch):
                yield job, end
                watch(job, 0.0)

        drive(search, in_turn)
    return tally


def attempt(job: Batch, progress: Progress, *, resources: Resources) -> Attempt | Lost:
    """Train the runs of a job; an error of the training is part of the attempt.

    Missing data is the user's to mend, and ends everything.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingClassWarning)  # the splits are as published
            warnings.simplefilter("ignore", DivergedWarning)  # the tally counts them
            results = execute(
                [replace(run, device=resources.device) for run in job.runs],
                root=resources.root,
                progress=lambda done, total: progress(done / total),
            )
    except OutOfMemoryError as error:  # of this machine, with what else runs on it
        return Lost(str(error))
    except DataError:
        raise
    except Exception:
        return Attempt(failure=traceback.format_exc())
    return Attempt(tuple(results), source(resources.device))


def _plan(cells: Iterable[Cell], store: Store, retry: bool, tally: Tally) -> list[Cell]:
    """The cells that the store lacks, or has with other runs than those wanted now.

    Of a ladder whose first rungs are there, the one after them counts.
    """
    known, pending = store.cells(), []
    for cell in cells:
        wanted: Cell | None = cell
        while wanted is not None:
            found = known.get(wanted.id)
            if found is None or found.content != wanted.content or (retry and found.failure):
                pending.append(wanted)
                break
            if found.failure:
                tally.given_up += 1
                break
            tally.there += 1
            wanted = _after(wanted, store, tally)
    return pending


def _after(cell: Cell, store: Store, tally: Tally) -> Cell | None:
    """The rung after a cell, if there is one; it counts among those asked for."""
    after = cell.after(store) if isinstance(cell, RungCell) else None
    tally.cells += after is not None
    return after


def _work(pending: Sequence[Cell], store: Store) -> dict[str, float]:
    """The cost of each cell, by id; a run that several cells share costs once."""
    counted: set[str] = set()
    work = {}
    for cell in pending:
        new = [run for run in store.missing(cell.runs) if run.id not in counted]
        counted.update(run.id for run in new)
        work[cell.id] = cost(new)
    return work


class _Missing:
    """The search for what is missing: a cell is claimed when its first job is asked for.

    More cells may come after the last job was taken: the next rung follows one that is complete,
    before any other cell.
    """

    def __init__(
        self, pending: Iterable[Cell], store: Store, claims: Claims, tally: Tally, limit: int | None
    ) -> None:
        self._waiting, self._store, self._claims = deque(pending), store, claims
        self._tally, self._left = tally, limit
        self._ready: deque[Batch] = deque()
        self._unfinished: Counter[str] = Counter()  # jobs, by cell
        self.finished = 0.0  # the cost of all that has ended

    def ask(self) -> Batch | None:
        """See :class:`~memohop.jobs.search.AskTell`."""
        while not self._ready:
            if not self._waiting or self._left == 0:
                return None
            self._open(self._waiting.popleft())
        return self._ready.popleft()

    def tell(self, job: Batch, end: Attempt | Lost) -> None:
        """Write what came of a job; with the last one of its cell, the cell."""
        if isinstance(end, Lost):
            self._tally.lost[job.cell.name] = end.reason
        elif end.failure is None:
            assert end.source is not None
            self._store.write_runs(zip(job.runs, end.results, strict=True), end.source)
            self._tally.diverged += sum(result.diverged for result in end.results)
        else:  # perhaps not the first job of the cell that has failed
            self._store.write_failure(job.cell, end.failure)
            if job.cell not in self._tally.failed:
                self._tally.failed.append(job.cell)
        self.finished += cost(job.runs)
        self._unfinished[job.cell.id] -= 1
        if not self._unfinished[job.cell.id]:
            self._close(job.cell)

    def _open(self, cell: Cell) -> None:
        if not self._claims.take(cell.id):
            self._tally.elsewhere += 1
            return
        if self._left is not None:
            self._left -= 1
        if self._store.has(cell):
            self._tally.there += 1
            self._leave(cell)
            return
        groups = populations(self._store.missing(cell.runs))
        self._unfinished[cell.id] = len(groups)
        self._ready += [Batch(cell, tuple(group)) for group in groups]
        if not groups:
            self._close(cell)

    def _close(self, cell: Cell) -> None:
        """Write the cell, if it is complete."""
        if not self._store.missing(cell.runs):
            self._store.write(cell)
            self._tally.done += 1
        self._leave(cell)

    def _leave(self, cell: Cell) -> None:
        self._claims.drop(cell.id)
        if after := _after(cell, self._store, self._tally):
            self._waiting.appendleft(after)
