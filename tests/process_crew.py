"""A crew of processes on this machine, for tests of graphs in parts: they start in no time.

The processes are forked from a server that has imported PyTorch already and has no threads.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import tempfile
from pathlib import Path

import torch

from memohop.errors import MemohopError
from memohop.parts.crew import LostError

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "memohop.pyg", "memohop.jobs.train"])


class ProcessCrew:
    """Workers in processes, that can be given one job after the other.

    Args:
        size: how many there are.
    """

    def __init__(self, size):
        self.folder = tempfile.TemporaryDirectory()
        meeting = (Path(self.folder.name) / "meeting").as_uri()
        self.pipes, self.processes = [], []
        for rank in range(size):
            here, there = _CONTEXT.Pipe()
            process = _CONTEXT.Process(target=_serve, args=(there, meeting, rank, size))
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def take_on(self, job, blocks, die_at=None):
        """Give them a job; the last one kills itself before its epoch ``die_at``."""
        doomed = [None] * (len(self.pipes) - 1) + [die_at]
        orders = [("work", job, block, at) for block, at in zip(blocks, doomed, strict=True)]
        self.size, self.chunks = self._answers(orders)[0]
        return self

    def start(self, chunk, snapshot=None):
        self._all("start", chunk, snapshot)

    def advance(self, epochs):
        return self._all("advance", epochs)[0]

    def snapshot(self):
        return self._all("snapshot")[0]

    def results(self):
        return self._all("results")[0]

    def every_result(self):
        return self._all("results")

    def sent(self):
        """The bytes that each has sent so far."""
        return self._all("sent")

    def dismiss(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.folder.cleanup()

    def _all(self, *order):
        return self._answers([order] * len(self.pipes))

    def _answers(self, orders):
        found = []
        for pipe, order in zip(self.pipes, orders, strict=True):
            try:
                pipe.send_bytes(pickle.dumps(order))
            except OSError:
                found.append(LostError("killed"))
        for pipe in self.pipes:
            try:
                found.append(pickle.loads(pipe.recv_bytes()))
            except (EOFError, OSError):
                found.append(LostError("killed"))
        for kind in (MemohopError, LostError, Exception):
            for answer in found:
                if isinstance(answer, kind):
                    raise answer
        return found


def _serve(pipe, meeting, rank, size):
    """A process: joins the others and does what it is told, until the pipe is closed."""
    from memohop.parts.group import Group
    from memohop.parts.worker import Worker

    torch.set_num_threads(1)
    group = Group.join("cpu", init_method=meeting, rank=rank, world_size=size)
    worker = die_at = None
    while True:
        try:
            name, *given = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            if name == "work":
                job, block, die_at = given
                torch.set_default_dtype(job.dtype)
                worker = Worker(job, block, group)
                answer = worker.size, worker.chunks
            elif name == "sent":
                answer = group.sent
            elif name == "advance":
                answer = _advance(worker, given[0], die_at)
            else:
                answer = getattr(worker, name)(*given)
        except Exception as error:
            answer = error
        pipe.send_bytes(pickle.dumps(answer))


def _advance(worker, epochs, die_at):
    answer = worker.advance(0)
    for _ in range(epochs):
        if answer[0] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = worker.advance(1)
    return answer


def under_torchrun(size, *arguments, **more):
    """What ``memohop.train`` returns in each of the processes that torchrun would start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pipes, processes = [], []
    for rank in range(size):
        here, there = _CONTEXT.Pipe()
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": size}
        given = there, where, pickle.dumps((arguments, more))
        processes.append(_CONTEXT.Process(target=_train, args=given))
        processes[-1].start()
        there.close()
        pipes.append(here)
    try:
        return [pickle.loads(pipe.recv_bytes()) for pipe in pipes]
    finally:
        for process in processes:
            process.join()


def _train(pipe, where, given):
    import memohop

    torch.set_num_threads(1)
    os.environ.update({name: str(value) for name, value in where.items()})
    arguments, more = pickle.loads(given)
    pipe.send_bytes(pickle.dumps(memohop.train(*arguments, **more)))
