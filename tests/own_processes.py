"""Processes of this machine for tests of graphs in parts: they start in no time.

They are forked from a server that has imported PyTorch already and has no threads.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch

from memohop.data.prepared import Neighbours
from memohop.fit.on_blocks import predict_block
from memohop.jobs import processes
from memohop.jobs.processes import Processes, free_port
from memohop.parts.halo import Group
from memohop.parts.worker import Worker, train_share

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "memohop.pyg", "memohop.jobs.train"])


@contextmanager
def quickly():
    """Processes of an executor are forked too, with one thread each."""
    before = processes._CONTEXT, processes._serve
    processes._CONTEXT, processes._serve = _CONTEXT, _serve
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        processes._CONTEXT, processes._serve = before
        torch.set_num_threads(threads)


_serve_politely = processes._serve


def _serve(*given):
    """They do not give way to all other processes, such as other tests."""
    os.nice = lambda by: None
    _serve_politely(*given)


@contextmanager
def quick_processes(size, work):
    """Processes that do some work together, for one job after the other."""
    pool = Processes(size)
    with quickly(), pool.opened():
        yield partial(pool, work, together=size)


def train_in_all(share, where, count=None):
    """As ``train_share``, but the results are those of every process, or come with its count."""
    torch.set_default_dtype(share.dtype)
    group = Group.join("cpu", **where)
    results = yield from Worker(share, group).train(share.snapshots)
    every = group.gather(results) if count is None else (results, group.gather(count()))
    group.leave()
    return every


def counting_arcs():
    """Counts the different arcs that this process reads from a prepared graph from now on."""
    read, matrix = {}, Neighbours.matrix

    def counted(rows, nodes, unit=1.0):
        every = np.zeros(len(rows.indptr) - 1, dtype=bool)
        _, seen = read.setdefault(rows.indices.ctypes.data, (rows, every))  # of a direction
        seen[nodes] = True
        return matrix(rows, nodes, unit)

    Neighbours.matrix = counted
    return lambda: sum(int(np.diff(rows.indptr)[seen].sum()) for rows, seen in read.values())


def train_and_count(share, where):
    """As ``train_share``; and how many arcs each process has read from a prepared graph."""
    return (yield from train_in_all(share, where, counting_arcs()))


def predict_and_count(task, where):
    """How many arcs each process has read from a prepared graph to predict it."""
    count, group = counting_arcs(), Group.join("cpu", **where)
    predict_block(task, group)
    counts = group.gather(count())
    group.leave()
    return counts


class Mortal:
    """Trains as ``train_share`` does; the last process kills itself after some epochs."""

    def __init__(self, die_at):
        self.die_at = die_at

    def __call__(self, share, where):
        steps, reply = train_share(share, where), None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                return end.value
            is_last = where["rank"] == where["world_size"] - 1
            if is_last and step.epochs - 10 <= self.die_at < step.epochs:
                os.kill(os.getpid(), signal.SIGKILL)
            reply = yield step


def under_torchrun(size, *arguments, **more):
    """What ``memohop.train`` returns in each of the processes that torchrun would start."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": size}
    given = pickle.dumps((arguments, more))
    with ProcessPoolExecutor(size, mp_context=_CONTEXT) as pool:
        jobs = [pool.submit(_train, where | {"RANK": rank}, given) for rank in range(size)]
        return [pickle.loads(job.result()) for job in jobs]


def _train(where, given):
    import memohop

    torch.set_num_threads(1)
    os.environ.update({name: str(value) for name, value in where.items()})
    arguments, more = pickle.loads(given)
    return pickle.dumps(memohop.train(*arguments, **more))  # tensors by value, not by shared memory
