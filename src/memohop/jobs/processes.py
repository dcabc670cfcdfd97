"""Several processes of this machine: a single small job leaves most of a GPU idle."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

import torch

from memohop.jobs.executor import Doer, Lost, Pool, Process
from memohop.ram import keep_freed_ram

_CONTEXT = multiprocessing.get_context("spawn")  # a process that uses a GPU cannot be forked
_DIED = Lost(
    "the process that had it died, in the end with no other beside it; most likely RAM ran out: "
    "close other programs, or take a machine with more RAM"
)


class Processes(Pool):
    """An executor with several processes, which end with this one, however it ends.

    Together they take as many threads as this process would take alone.

    Args:
        count: How many jobs run at the same time.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.size = count
        self._threads = max(1, torch.get_num_threads() // count)

    def start(self, work: Callable[..., Any]) -> Process:
        """A new process for some work."""
        return _Process(work, self._threads)

    def wait(self, processes: Sequence[_Process], seconds: float) -> Sequence[_Process]:
        """Those that have something to say, or have died."""
        ready = wait([process.connection for process in processes], seconds)
        return [process for process in processes if process.connection in ready]


class _Process(Process):
    """A process for one job at a time.

    It has a connection of its own, which ends when the process dies, even while it sends. The
    processes of a ``ProcessPoolExecutor`` share theirs: if one dies, all do, perhaps unnoticed.
    """

    def __init__(self, work: Callable[..., Any], threads: int) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, work, threads), daemon=True)
        with _ctrl_c_held_back():
            self._process.start()
        theirs.close()

    def ask(self, method: str, *given: Any) -> None:
        with suppress(ConnectionError):  # the process has died, which `take` will see
            self.connection.send((method, given))

    def take(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return _DIED

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """For processes started meanwhile: they inherit it, so that Ctrl-C reaches this one alone."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # the first start would start it, and let Ctrl-C in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, work: Callable[..., Any], threads: int) -> None:
    """What a process does: it works on jobs until it is ended, or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the mask is not inherited
    Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(threads)
    if hasattr(os, "nice"):
        os.nice(5)  # the parent goes first: all others wait for it to hand out the next job
    keep_freed_ram()
    doer = Doer(work)
    with suppress(EOFError, ConnectionError):
        connection.send(("127.0.0.1", free_port()))
        while True:
            method, given = connection.recv()
            try:
                connection.send(getattr(doer, method)(*given))
            except Exception as error:
                connection.send(error)


def free_port() -> int:
    """The number of a port that is free on this machine."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


def _end_with_the_parent() -> None:
    """Also in the middle of a job."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
