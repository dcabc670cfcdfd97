"""Training on a graph in blocks: one function that every process runs, with a block of its own.

The same function runs alone with the whole graph as its only block, under ``torchrun``, and in
processes that are started for it. It goes in steps of some epochs. After each of them the latest
state can be kept, and the run can go on from it with any number of processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from memohop.data.check import check
from memohop.data.prepared import open_prepared
from memohop.errors import UsageError
from memohop.parts.block import Cut, Targets, checked_network
from memohop.parts.checkpoints import Checkpoints
from memohop.parts.group import Group
from memohop.parts.partition import Partition, check_blocks
from memohop.parts.worker import Share, Worker
from memohop.ram import reporting_out_of_memory
from memohop.training import Enough, Job, Result
from memohop.training.task import in_default_type
from memohop.training.trainer import Progress, check_splits, warn_of_diverged

EVERY = 10  # epochs of a step


class Step(NamedTuple):
    """What was reached after a step.

    Attributes:
        chunk: the number of the population.
        epochs: how many it has behind it.
        snapshot: its state; the same in every process, and so given by the first one alone.
        size: the members of a population.
    """

    chunk: int
    epochs: int
    snapshot: Mapping[str, Tensor]
    size: int


Steps = Generator[Step, bool, list[Result]]
"""Tells every step, hears whether it was enough, and returns the results."""


def train_share(share: Share, where: Mapping[str, Any]) -> Steps:
    """What a process does that was started for it; the first one returns the results.

    Args:
        share: What it is given.
        where: How it joins the others, see :meth:`Group.join`.
    """
    torch.set_default_dtype(share.dtype)
    group = Group.join(str(share.job.device), **where)
    results = yield from train_block(share, group)
    group.leave()
    return results if group.rank == 0 else []


def train_block(share: Share, group: Group) -> Steps:
    """Train all populations of a job on a block, together with the processes of a group.

    Once it was enough, later populations take one step.
    """
    worker = Worker(share, group)
    results: list[Result] = []
    is_enough = False
    for chunk in range(worker.chunks):
        population = worker.population(chunk)
        if chunk in share.snapshots:
            population.restore(share.snapshots[chunk])
        done = False
        while not done:
            done = worker.advance(population, 1 if is_enough else EVERY)
            snapshot = population.snapshot() if group.rank == 0 else {}
            step = Step(chunk, int(population.epoch), snapshot, worker.size)
            is_enough |= bool((yield step))
            done |= is_enough
        results += population.results(range(len(population.members)))
    return results


class PartsRun:
    """Members to be trained on a graph in blocks.

    Args:
        job: the members, the data and so on. Of data whose ``folder`` is that of a prepared graph,
            each process reads a block by itself. Steps that communicate are not captured;
            ``states`` and ``recompute`` are refused: a graph in blocks is cut into more of them.
        blocks: one for each worker; their number for a prepared graph.
        checkpoints: the folder of the checkpoint, if there is one.
        progress: see :func:`memohop.train`.
    """

    def __init__(
        self,
        job: Job,
        blocks: Partition | int,
        checkpoints: Path | str | None = None,
        progress: Progress | None = None,
    ) -> None:
        if job.states is not None or job.recompute:
            given = "recompute=True" if job.states is None else f"states={job.states!r}"
            raise UsageError(f"{given} is for a whole graph on one device; give more workers")
        if not isinstance(job.model, str) and checkpoints is not None:
            raise UsageError("checkpoints need a model that is an id, not a function")
        data = job.data
        if isinstance(blocks, Partition):
            data = in_default_type(data)
            check(data)
        self.name = job.name
        self.job = replace(replace(job, data=data).sized(), data=None)
        with reporting_out_of_memory(f"cutting the graph for {self.name}", lower="the features"):
            network = checked_network(self.job.build())
            self.targets = Targets.of(data)
            if isinstance(blocks, Partition):
                self.size, self._folder = len(blocks), None
                self.cut = Cut(data, network, blocks, job.features)
                digest = self.cut.digest
            else:
                self.size, self._folder = check_blocks(blocks, len(data.y)), data.folder
                digest = open_prepared(data.folder, check=False).digest
        check_splits(job.members, self.targets.y, self.targets.masks, self.targets.objective)
        folder = None if checkpoints is None else Path(checkpoints)
        self.checkpoints = Checkpoints(_digest(self.job, digest, self.targets), folder)
        self._progress = progress

    def share(self, rank: int) -> Share:
        """What a process is given to start, or to go on from the latest checkpoint.

        Populations are as large as they were there.
        """
        job = replace(self.job, at_once=self.checkpoints.size)
        block = self._folder or self.cut[rank]
        snapshots, dtype = self.checkpoints.snapshots, torch.get_default_dtype()
        return Share(job, block, self.targets, snapshots, dtype)

    def keep(self, step: Step) -> bool:
        """Keep what was reached in a step, and report it; whether that is enough."""
        self.checkpoints.keep(step.chunk, step.snapshot, step.size)
        if self._progress is None:
            return False
        members, epochs = len(self.job.members), self.job.epochs
        before = step.chunk * step.size
        here = min(step.size, members - before)
        try:
            self._progress(before * epochs + here * step.epochs, members * epochs)
        except Enough:
            return True
        return False

    def in_group(self, group: Group) -> list[Result]:
        """Train as one of a group of processes; the first one writes the checkpoints."""
        kept = self.checkpoints
        kept.snapshots, kept.size = group.of_first((kept.snapshots, kept.size))
        steps, is_enough = train_block(self.share(group.rank), group), None
        while True:
            try:
                step = steps.send(is_enough)  # type: ignore[arg-type]  # None begins
            except StopIteration as end:
                results: list[Result] = end.value
                break
            is_enough = group.of_first(group.rank == 0 and self.keep(step))
        if group.rank == 0:
            self.warn(results)
        return results

    def warn(self, results: Sequence[Result]) -> None:
        """Count the members that diverged, if there are any."""
        warn_of_diverged(results, self.name)


def _digest(job: Job, data: str, targets: Targets) -> str:
    """Identifies what a run's result depends on."""
    content = replace(job, device="", memory=None, at_once=None, capture=True)
    digest = hashlib.sha256(f"{data} {content!r}".encode())
    for part in (targets.nodes, targets.y, targets.masks):
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()
