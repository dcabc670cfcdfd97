"""Trains in several processes of this machine: one small cell leaves most of a GPU idle."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread

import torch

from memohop.allocator import keep_freed_ram
from memohop.bench.runner import Attempt, Engine, Inner, Job, Place, attempt
from memohop.errors import DataError

_CONTEXT = multiprocessing.get_context("spawn")  # what uses a GPU cannot be forked
_TRIES = 3
_DIED = (
    f"the process that trained it died {_TRIES} times, after the first time with no other beside "
    "it; most likely memory ran out: close other programs, or take a machine with more memory"
)


def pool_engine(processes: int) -> Engine:
    """An engine for :func:`memohop.bench.runner.run_cells`.

    The processes train and the driver alone writes the store. A job whose process died is tried
    again when the others are done, with the machine to itself; after three deaths it is given
    back as lost. The processes end with the driver, however that ends. Together they take as many
    threads as the driver would take alone.

    Args:
        processes: How many jobs run at the same time.
    """

    def engine(jobs: Iterator[Job], place: Place, inner: Inner) -> Iterator[tuple[Job, Attempt]]:
        threads = max(1, torch.get_num_threads() // processes)
        with ExitStack() as at_the_end:

            def new_worker() -> _Worker:
                worker = _Worker(place, threads)
                at_the_end.callback(worker.end)
                return worker

            yield from _train(processes, jobs, new_worker)

    return engine


def _train(
    processes: int, jobs: Iterator[Job], new_worker: Callable[[], _Worker]
) -> Iterator[tuple[Job, Attempt]]:
    """Keeps all processes busy, and gives what comes back in the order in which it comes."""
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
        deaths[job.cell.id] += 1
        if deaths[job.cell.id] < _TRIES:
            lost.append(job)
        else:
            yield job, Attempt(lost=_DIED)


class _Worker:
    """A process for one job at a time.

    It has a connection of its own, which ends when it dies, even while it sends. The processes of
    a `ProcessPoolExecutor` share theirs: the death of one is that of all, and may go unnoticed.

    Args:
        place: Where it trains.
        threads: How many it may use.
    """

    def __init__(self, place: Place, threads: int) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, place, threads), daemon=True)
        with _ctrl_c_held_back():
            self._process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        with suppress(ConnectionError):  # it has died since, which `take` will see
            self.connection.send(job)

    def take(self) -> Attempt | None:
        """What came of the job, or None if the process died of it."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            return None
        if isinstance(answer, DataError):
            raise answer
        return answer

    def end(self) -> None:
        """Kill the process at once, even in the middle of its work."""
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """A process that is started inherits this: from its first moment Ctrl-C is for the driver."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # or the first start would start it, which lets Ctrl-C in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, place: Place, threads: int) -> None:
    """What a process does: it trains jobs until the driver ends it, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for where it is not inherited
    Thread(target=_end_with_the_driver, daemon=True).start()
    torch.set_num_threads(threads)
    keep_freed_ram()
    with suppress(EOFError, ConnectionError):
        while True:
            job = connection.recv()
            try:
                connection.send(attempt(job, place))
            except DataError as error:
                connection.send(error)


def _end_with_the_driver() -> None:
    """Also in the middle of a job."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)
