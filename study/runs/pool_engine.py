"""Trains in several processes of this machine: a single small cell leaves most of a GPU idle."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread

import torch

from memohop.allocator import keep_freed_ram
from memohop.errors import DataError
from study.runs.runner import Attempt, Attempts, Engine, Inner, Job, Resources, attempt

_CONTEXT = multiprocessing.get_context("spawn")  # a process that uses a GPU cannot be forked
_TRIES = 3
_DIED = (
    f"the process that trained it died {_TRIES} times, after the first time with no other beside "
    "it; most likely RAM ran out: close other programs, or take a machine with more RAM"
)


def pool_engine(processes: int) -> Engine:
    """An engine for :func:`study.runs.runner.run_cells`.

    The processes train, and the driver alone writes the store. A job whose process died is tried
    again after the others, with the machine to itself; after three deaths it counts as lost. The
    processes end with the driver, however that ends. Together they take as many threads as the
    driver would take alone.

    Args:
        processes: How many jobs run at the same time.
    """

    def engine(jobs: Iterator[Job], resources: Resources, inner: Inner) -> Attempts:
        threads = max(1, torch.get_num_threads() // processes)
        workers: list[_Worker] = []

        def new_worker() -> _Worker:
            workers.append(_Worker(resources, threads))
            return workers[-1]

        try:
            yield from _train(processes, jobs, new_worker)
        finally:
            for worker in workers:
                worker.end()

    return engine


def _train(processes: int, jobs: Iterator[Job], new_worker: Callable[[], _Worker]) -> Attempts:
    """Keeps all processes busy, and gives their attempts as they come."""
    idle: list[_Worker] = []
    running: dict[_Worker, Job] = {}
    lost, deaths = deque[Job](), Counter[str]()

    def start(job: Job) -> None:
        worker = idle.pop() if idle else new_worker()
        worker.give(job)
        running[worker] = job

    while True:
        for job in islice(jobs, processes - len(running)):
            start(job)
        if lost and not running:
            start(lost.popleft())
        if not running:
            return
        ready = wait([worker.connection for worker in running])
        worker = next(worker for worker in running if worker.connection in ready)
        job, found = running.pop(worker), worker.take()
        if found is not None:
            idle.append(worker)
            yield job, found
            continue
        deaths[job.id] += 1
        if deaths[job.id] < _TRIES:
            lost.append(job)
        else:
            yield job, Attempt(lost=_DIED)


class _Worker:
    """A process for one job at a time.

    It has a connection of its own, which ends when the process dies, even while it sends. The
    processes of a ``ProcessPoolExecutor`` share theirs: if one dies, all do, perhaps unnoticed.
    """

    def __init__(self, resources: Resources, threads: int) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, resources, threads), daemon=True
        )
        with _ctrl_c_held_back():
            self._process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        with suppress(ConnectionError):  # the process has died, which `take` will see
            self.connection.send(job)

    def take(self) -> Attempt | None:
        """The attempt, or None if the process died."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            return None
        if isinstance(answer, DataError):
            raise answer
        return answer

    def end(self) -> None:
        """Kill the process, even in the middle of its work."""
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """For processes started meanwhile: they inherit it, so that Ctrl-C reaches the driver alone."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # the first start would start it, and let Ctrl-C in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, resources: Resources, threads: int) -> None:
    """The work of a process: it trains jobs until the driver ends it, or ends itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the mask is not inherited
    Thread(target=_end_with_the_driver, daemon=True).start()
    torch.set_num_threads(threads)
    if hasattr(os, "nice"):
        os.nice(5)  # the driver goes first: all others wait for it to hand out the next job
    keep_freed_ram()
    with suppress(EOFError, ConnectionError):
        while True:
            job = connection.recv()
            try:
                connection.send(attempt(job, resources))
            except DataError as error:
                connection.send(error)


def _end_with_the_driver() -> None:
    """Also in the middle of a job."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)
