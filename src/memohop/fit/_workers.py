"""Who fits candidates: this process, with the threads that are free, or workers of a Ray cluster.

An operation on several threads waits for the slowest of them, and on a machine with other work one
of them is often not running at all: two threads that share two cores with others may take ten times
as long for a step of a network as one. Each worker has a copy of the problem, if that fits.
"""

from __future__ import annotations

import pickle
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import psutil
import torch

from memohop.errors import whole_number
from memohop.fit._candidate import Family, Fits, Look, Setting
from memohop.fit._problem import Problem
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._on_curve import OnCurve, fit_on_curve
from memohop.fit.candidates._view_family import ViewFamily, ViewModel
from memohop.jobs.executor import Lost, Pool, here
from memohop.jobs.ray_workers import RayWorkers, import_ray
from memohop.jobs.train import fits_each, whole_bytes
from memohop.ram import in_units, release_freed_ram
from memohop.training import Enough

Execute = Callable[[Look, Iterator["FitJob"]], Iterable[tuple["FitJob", tuple[Fits, float] | Lost]]]
"""Does jobs, looking now and then: their results, and the seconds that each took."""

_LATE = 2.0  # seconds over its time after which what a worker does is given up
_APART = 2.0  # seconds, at least, between two looks at the machine


@dataclass(frozen=True, eq=False)
class FitJob:
    """What is to be fitted: settings of a kind with the same options, within some seconds."""

    family: str
    settings: Sequence[Setting]
    splits: Sequence[int]
    seconds: float


@dataclass(frozen=True)
class _Fitter:
    """The work on jobs; workers send models without their views, which are there already."""

    problem: Problem
    families: Mapping[str, Family]

    def fit(self, look: Look, job: FitJob) -> tuple[Fits, float]:
        """The results of a job, and the seconds that it took."""
        begin = clock.monotonic()

        def look_at_time() -> None:
            look()
            if clock.monotonic() > begin + job.seconds:
                raise Enough

        family = self.families[job.family]
        fits = fit_on_curve(family, self.problem, job.settings, job.splits, look=look_at_time)
        release_freed_ram()  # each kind needs blocks of other sizes, which would add up
        return fits, clock.monotonic() - begin

    def __call__(self, job: FitJob) -> bytes:
        fits, seconds = self.fit(lambda: None, job)
        if isinstance(self.families[job.family], ViewFamily):
            fits = _with_view(fits, None)
        return pickle.dumps((fits, seconds))  # as arrays that Ray passes on cannot be written to

    def received(self, job: FitJob, packed: bytes) -> tuple[Fits, float]:
        """What a worker has sent, with the view of this process."""
        (fits, seconds), family = pickle.loads(packed), self.families[job.family]
        if isinstance(family, ViewFamily):
            fits = _with_view(fits, family.view(self.problem, job.settings[0].without_target))
        return fits, seconds


def _with_view(fits: Fits, view: Any) -> Fits:
    """The same fits of models that have this view."""
    return [
        {split: replace(fit, part=_seeing(fit.part, view)) for split, fit in of_setting.items()}
        for of_setting in fits
    ]


def _seeing(part: Any, view: Any) -> Any:
    """The same model with this view."""
    if isinstance(part, OnCurve):
        return replace(part, model=_seeing(part.model, view))
    return replace(cast(ViewModel, part), view=view)


@contextmanager
def executing(
    workers: Workers | None, problem: Problem, families: Mapping[str, Family]
) -> Iterator[Execute]:
    """Who does jobs: workers, or without them this process."""
    fitter = _Fitter(problem, families)
    if workers is None:
        yield lambda look, jobs: here(partial(fitter.fit, look), jobs)
        return
    for family in families.values():  # so that the copies have the views
        if isinstance(family, ViewFamily):
            for setting in family.first(problem):
                family.view(problem, setting)

    def seconds(job: FitJob) -> float:
        return job.seconds + _LATE

    def execute(look: Look, jobs: Iterator[FitJob]) -> Iterator[tuple[FitJob, Any]]:
        for job, answer in workers.pool(fitter, jobs, seconds=seconds, look=look):
            lost = isinstance(answer, Lost)
            yield job, answer if lost else fitter.received(job, answer)

    try:
        yield execute
    finally:
        workers.pool.end()  # its processes have the problem


@dataclass(frozen=True)
class Workers:
    """Workers of a cluster, each on a core or a GPU of its own.

    Attributes:
        pool: Their processes.
        count: How many there are.
        say: Called with a sentence on what they share, and why.
    """

    pool: Pool
    count: int
    say: Callable[[str], None] = lambda sentence: None

    def share_search(self, problem: Problem, memory: int | None) -> bool:
        """Whether they share the search, as the graph fits each of them, and not the graph.

        ``memory`` is the most bytes that each of them may hold; by default its share of what is
        free.
        """
        whole = whole_bytes(problem.x, problem.arcs.shape[1])
        fits = fits_each(whole, self.count, memory)
        size = f"it takes about {in_units(whole)} in training"
        if fits:
            self.say(
                f"{self.count} workers share the search, each with the whole graph: {size}, and "
                "each of them has that much"
            )
        else:
            self.say(
                f"{self.count} workers share the graph, each with a block: {size}, more than "
                "any of them has; of networks that use the graph, only those with memory are tried"
            )
        return fits

    def in_parts(self, families: Sequence[Family]) -> list[Family]:
        """The same kinds of model, of which networks are trained on a graph in blocks."""
        return [
            replace(family, in_parts=self.count)
            if isinstance(family, NetworkFamily) and family.sees_graph
            else family
            for family in families
        ]


@contextmanager
def ray_workers(
    workers: int,
    address: str | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Workers]:
    """Workers of a Ray cluster, for ``fit`` of a ``GraphClassifier`` or ``GraphRegressor``.

    They share the search if the graph fits each of them: each fits other candidates. Otherwise
    they share the graph: all of them train one candidate after the other, each on a block.

    Args:
        workers: How many.
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
        device: What networks are trained on, ``cpu`` or ``cuda``.
        say: Called with a sentence on what they share, and why.
    """
    workers = whole_number("workers", workers, least=1)
    import_ray(f"workers={workers}", "leave them out")
    pool = RayWorkers(address, device, "fit again", count=workers)
    with pool.opened():  # at once, and not when the first job is given
        yield Workers(pool, workers, say)


class Threads:
    """The threads of PyTorch, and so of all models, adapted to the load of the machine."""

    def __init__(self) -> None:
        self._most, self._seen = torch.get_num_threads(), clock.monotonic()
        self._shares = psutil.cpu_percent, psutil.Process().cpu_percent
        self._of_others()  # which tell the time since they were last called

    def adapt(self) -> None:
        """Take one for each core that others have not used since the last time, at least one."""
        if clock.monotonic() < self._seen + _APART:
            return
        self._seen, idle = clock.monotonic(), (psutil.cpu_count() or 1) - self._of_others()
        torch.set_num_threads(int(np.clip(round(idle), 1, self._most)))

    def _of_others(self) -> float:
        """How many cores others have used."""
        machine, own = (share() / 100 for share in self._shares)
        return float(machine * (psutil.cpu_count() or 1) - own)


@contextmanager
def restoring_threads() -> Iterator[None]:
    """A block, or a decorated function, after which PyTorch has the threads that it had before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
