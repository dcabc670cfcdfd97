"""Training on a graph in blocks: one function that every process runs, with a block of its own.

The same function runs alone with the whole graph as its only block, under ``torchrun``, and in
processes that are started for it. It goes in steps of some epochs. After each of them the latest
state can be kept, and the run can go on from it with any number of processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from memohop.data.check import check
from memohop.errors import UsageError
from memohop.parts.block import Block, Cut
from memohop.parts.checkpoints import Checkpoints
from memohop.parts.folder import FolderBlock, FolderCut
from memohop.parts.group import Group
from memohop.parts.partition import Partition
from memohop.parts.worker import Job, Worker
from memohop.ram import reporting_out_of_memory
from memohop.training.member import Member, Result
from memohop.training.objective import objective_of
from memohop.training.population import build_seeded
from memohop.training.rules import DEFAULT_RULES, Rules
from memohop.training.task import in_default_type
from memohop.training.trainer import (
    Enough,
    Progress,
    check_arguments,
    check_splits,
    warn_of_diverged,
)

if TYPE_CHECKING:
    from memohop.pyg import Data

EVERY = 10  # epochs of a step


class Seat(Protocol):
    """The place of a process among those of a run; see :class:`memohop.jobs.executor.Seat`."""

    @property
    def rank(self) -> int:
        """Its number."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def meeting(self) -> str:
        """Where they meet."""


class Share(NamedTuple):
    """What one process is given.

    Attributes:
        job: what is to be trained.
        block: its block, or where it finds it.
        snapshots: the latest state of each population that has one.
    """

    job: Job
    block: Block | FolderBlock
    snapshots: Mapping[int, Mapping[str, Tensor]]


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


def train_share(share: Share, seat: Seat) -> Steps:
    """What a process does that was started for it; the first one returns the results."""
    torch.set_default_dtype(share.job.dtype)
    where = {"init_method": seat.meeting, "rank": seat.rank, "world_size": seat.size}
    group = Group.join(share.job.device, **where)
    results = yield from train_block(share, group)
    group.leave()
    return results if group.rank == 0 else []


def train_block(share: Share, group: Group) -> Steps:
    """Train all populations of a job on a block, together with the processes of a group.

    Once it was enough, later populations take one step.
    """
    worker = Worker(share.job, share.block.made(build_seeded(share.job.build, 0), group), group)
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
        data, model, members, options, epochs, patience, rules, device, memory, features,
            keep_models, cross_fit, progress: see :func:`memohop.training.train`. Of data whose
            ``folder`` is that of a prepared graph, each process reads a block by itself.
        blocks: one for each worker; their number for a prepared graph.
        checkpoints: the folder of the checkpoint, if there is one.
        capture: plays no part: steps that communicate are not captured.
        states, recompute: refused: a graph in blocks is cut into more of them instead.
    """

    def __init__(
        self,
        data: Data,
        model: str | Callable[[], nn.Module],
        members: Sequence[Member],
        blocks: Partition | int,
        checkpoints: Path | str | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        epochs: int = 500,
        patience: int | None = None,
        rules: Rules = DEFAULT_RULES,
        device: torch.device | str = "cpu",
        memory: int | None = None,
        features: str = "auto",
        keep_models: bool = False,
        cross_fit: bool = False,
        capture: bool = True,
        states: str | None = None,
        recompute: bool = False,
        progress: Progress | None = None,
    ) -> None:
        if states is not None or recompute:
            given = "recompute=True" if states is None else f"states={states!r}"
            raise UsageError(f"{given} is for a whole graph on one device; give more workers")
        epochs, patience, memory = check_arguments(model, members, epochs, patience, memory)
        if isinstance(blocks, Partition):
            data = in_default_type(data)
            check(data)
        self.name = model if isinstance(model, str) else "the module"
        options = dict(options or {})
        if isinstance(model, str):
            outputs = objective_of(data).outputs(data.y)
            nodes, channels = data.x.shape
            options |= {"in_channels": channels, "out_channels": outputs, "num_nodes": nodes}
        elif checkpoints is not None or options:
            given = "checkpoints" if checkpoints is not None else "options"
            raise UsageError(f"{given} need a model that is an id, not a function")
        self.job = Job(
            model=model,
            options=options,
            members=list(members),
            epochs=epochs,
            patience=patience,
            rules=rules,
            keep_models=keep_models,
            cross_fit=cross_fit,
            device=str(device),
            memory=memory,
        )
        self.cut: Cut | FolderCut
        with reporting_out_of_memory(f"cutting the graph for {self.name}", lower="the features"):
            network = build_seeded(self.job.build, seed=0)
            if isinstance(blocks, Partition):
                self.cut = Cut(data, network, blocks, features)
            else:
                self.cut = FolderCut(data, network, blocks, features)
        targets = self.cut.targets
        check_splits(members, targets.y, targets.masks, targets.objective)
        folder = None if checkpoints is None else Path(checkpoints)
        self.checkpoints = Checkpoints(_digest(self.job, self.cut.digest), folder)
        self._progress = progress

    def share(self, rank: int) -> Share:
        """What a process is given to start, or to go on from the latest checkpoint.

        Populations are as large as they were there.
        """
        job = replace(self.job, at_once=self.checkpoints.size)
        return Share(job, self.cut[rank], self.checkpoints.snapshots)

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


def _digest(job: Job, data: str) -> str:
    """Identifies what a run's result depends on."""
    content = replace(job, device="", memory=None, at_once=None)
    return hashlib.sha256(f"{data} {content!r}".encode()).hexdigest()
