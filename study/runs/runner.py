"""Runs what is missing of an experiment, population by population, and notes where it was made."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from memohop.data.check import MissingClassWarning
from memohop.errors import DataError
from memohop.jobs.executor import Executor, Lost, here
from memohop.jobs.named import execute, populations
from memohop.jobs.search import AskTell, drive
from memohop.ram import OutOfMemoryError
from memohop.training import Job, Result
from memohop.training.trainer import DivergedWarning
from memohop.version import __version__
from study import ROOT
from study.runs.cell import Cell, cost
from study.runs.results import Source
from study.runs.store import Claims, Store


@dataclass(frozen=True, eq=False)
class Batch:
    """Jobs that are trained as one population, and their cell, if it is known."""

    runs: tuple[Job, ...]
    cell: Cell | None = None


@dataclass(frozen=True)
class Attempt:
    """The end of a job, other than its loss: a result for each run, or a traceback."""

    results: tuple[Result, ...] = ()
    source: Source | None = None
    failure: str | None = None


@dataclass
class Tally:
    """How far a run of so many cells has come.

    Attributes:
        there: Those that were in the store before, or that another process has put there.
        given_up: Those that had failed before and were not to be tried again.
        done, failed: Those that were finished now, or have failed now.
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
    root: Path | None = None,
    device: str = "cpu",
    executor: Executor = here,
    **how: Any,
) -> Tally:
    """Train the cells that are missing, and write each population when it is trained.

    A cell is there when all of its populations are; if the work is interrupted before, those that
    were done are not trained again. The other arguments are those of :class:`CellSearch`.
    """
    with Claims(store) as claims:
        search = CellSearch(cells, store, claims, **how)
        train = partial(attempt, root=root, device=device)
        if executor is here:
            train = partial(train, show=search.show)
        drive(search, partial(executor, train))
    return search.tally


def attempt(
    batch: Batch,
    *,
    root: Path | None = None,
    device: str = "cpu",
    show: Callable[[Batch, float], None] = lambda batch, share: None,
) -> Attempt | Lost:
    """Train a batch; an error of the training is part of the attempt.

    Missing data is the user's to mend, and ends everything. In this process, ``show`` is called
    with the share that is done.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingClassWarning)  # the splits are as published
            warnings.simplefilter("ignore", DivergedWarning)  # the tally counts them
            results = execute(
                [replace(run, device=device) for run in batch.runs],
                root=root,
                progress=lambda done, total: show(batch, done / total),
            )
    except OutOfMemoryError as error:  # of this machine, with what else runs on it
        return Lost(str(error))
    except DataError:
        raise
    except Exception:
        return Attempt(failure=traceback.format_exc())
    return Attempt(tuple(results), source(device))


class CellSearch(AskTell[Batch]):
    """The cells that are missing, as batches; a cell is claimed when its first one is asked for.

    There may be more after the last one was given: the next rung of a ladder follows one that is
    complete, before any other cell, so that searches that have begun are finished first.

    Args:
        cells: Those that should be in the store in the end; of a ladder, those of the first rung.
        store: Where they are to be.
        claims: Those of this process on its cells.
        watcher: Called as ``watcher(tally, cell, share)`` with the share of all the work that is
            done, whenever a cell is finished and often in between.
        retry: Whether to try again what has failed before.
        limit: The most cells to train: the first of those that are missing.
        costly_first: Whether to begin with the cells that take longest and end with those that
            share all their runs with others; for executors that train several at once. Ladders keep
            their order, so that what is stopped half-way has whole datasets.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        store: Store,
        claims: Claims,
        *,
        watcher: Watcher = lambda tally, cell, share: None,
        retry: bool = False,
        limit: int | None = None,
        costly_first: bool = False,
    ) -> None:
        self.tally = Tally(cells=len(cells))
        self._store, self._claims, self._watcher, self._left = store, claims, watcher, limit
        self._ready: deque[Batch] = deque()
        self._unfinished: Counter[str] = Counter()  # batches, by cell
        pending = self._missing(cells, retry)[:limit]
        ladders = [cell for cell in pending if cell.halving]
        others = [cell for cell in pending if not cell.halving]
        if costly_first:  # of two cells that share runs, the larger one is to count them
            others.sort(key=lambda cell: cell.cost, reverse=True)
        work, counted = dict[str, float](), set[str]()
        for cell in others:  # a run that several share costs once
            new = [run for run in store.missing(cell.runs) if run.id not in counted]
            counted.update(run.id for run in new)
            work[cell.id] = cost(new)
        if costly_first:
            others.sort(key=lambda cell: work[cell.id], reverse=True)
        self._waiting: deque[Cell] = deque([*others, *ladders])
        self._finished, self._total = 0.0, sum(work.values())
        for cell in ladders:
            self._total += cell.cost - cost(cell.runs) + cost(store.missing(cell.runs))

    def ask(self) -> Batch | None:
        """The next batch."""
        while not self._ready:
            if not self._waiting or self._left == 0:
                return None
            self._open(self._waiting.popleft())
        return self._ready.popleft()

    def tell(self, batch: Batch, answer: Attempt | Lost) -> None:
        """Write what came of a batch; with the last one of its cell, the cell has ended too."""
        cell = batch.cell
        assert cell is not None
        if isinstance(answer, Lost):
            self.tally.lost[cell.name] = answer.reason
        elif answer.source is not None:
            self._store.write_runs(zip(batch.runs, answer.results, strict=True), answer.source)
            self.tally.diverged += sum(result.diverged for result in answer.results)
        else:
            self._store.write(cell, str(answer.failure))
            if cell not in self.tally.failed:
                self.tally.failed.append(cell)
        self._unfinished[cell.id] -= 1
        if not self._unfinished[cell.id]:
            self._close(cell)
        self.show(batch, 1.0)
        self._finished += cost(batch.runs)

    def show(self, batch: Batch, share: float) -> None:
        """Tell the watcher how far all the work is, with that share of a batch."""
        assert batch.cell is not None
        if self._total:
            done = self._finished + share * cost(batch.runs)
            self._watcher(self.tally, batch.cell, min(done / self._total, 1.0))

    def _missing(self, cells: Iterable[Cell], retry: bool) -> list[Cell]:
        """The cells that the store lacks, or has with other runs than those wanted now.

        Of a ladder whose first rungs are there, the one after them counts.
        """
        known, pending = self._store.cells(), []
        for cell in cells:
            wanted: Cell | None = cell
            while wanted is not None:
                there = known.get(wanted.id)
                if there is None or there.content != wanted.content or (retry and there.failure):
                    pending.append(wanted)
                    break
                self.tally.given_up += there.failure is not None
                self.tally.there += there.failure is None
                wanted = self._after(wanted)
        return pending

    def _after(self, cell: Cell) -> Cell | None:
        """The rung after a cell, if there is one; it counts among those asked for."""
        after = cell.after(self._store)
        self.tally.cells += after is not None
        return after

    def _open(self, cell: Cell) -> None:
        if not self._claims.take(cell.id):
            self.tally.elsewhere += 1
            return
        if self._left is not None:
            self._left -= 1
        groups = populations(self._store.missing(cell.runs))
        self._unfinished[cell.id] = len(groups)
        self._ready += [Batch(tuple(group), cell) for group in groups]
        if not groups:
            self._close(cell)

    def _close(self, cell: Cell) -> None:
        """Write the cell, if it is complete and another process has not."""
        if self._store.has(cell):
            self.tally.there += 1
        elif not self._store.missing(cell.runs):
            self._store.write(cell)
            self.tally.done += 1
        self._claims.drop(cell.id)
        if after := self._after(cell):
            self._waiting.appendleft(after)


_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy")


@cache
def source(device: str) -> Source:
    """The code and machine of this process, training on a device."""
    versions = {"memohop": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _PACKAGES}
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return Source(versions=versions, device=name, commit=commit())


def commit() -> str | None:
    """The commit of the checkout, marked if files were changed.

    The environment variable ``MEMOHOP_COMMIT`` names it for a copy without its history.
    """
    named = os.environ.get("MEMOHOP_COMMIT")
    if named or not (ROOT / ".git").exists():  # a copy, perhaps below someone else's checkout
        return named or None
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    with suppress(OSError, subprocess.SubprocessError):
        quiet = partial(subprocess.check_output, stderr=subprocess.DEVNULL, timeout=20)
        return str(quiet(command, cwd=ROOT, text=True)).strip()
    return None


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if model := re.search(r"^model name[^:]*:(.*)", lines, flags=re.MULTILINE):
            return model[1].strip()
    return platform.processor() or platform.machine()
