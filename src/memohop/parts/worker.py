"""One process of a run on a graph in blocks: it holds a block and trains with the others.

Every process runs the same, with a block of its own: alone with the whole graph as its only block,
under ``torchrun``, or started for it. It goes in steps of some epochs. After each of them the
latest state can be kept, and the run can go on from it with any number of processes.
"""

from __future__ import annotations

import math
import platform
import socket
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from memohop.data.prepared import open_prepared
from memohop.data.sparse_features import sharing
from memohop.errors import UsageError
from memohop.networks import NodeModel
from memohop.nn import Axis, Part, SparseFeatures, in_part
from memohop.parts.block import Block, BlockRows, Targets, mapped, rows_of
from memohop.parts.folder import read_block
from memohop.parts.graph import GraphPart
from memohop.parts.halo import Group, LabelledNodes
from memohop.ram import in_units, release_freed_ram
from memohop.training import Job, Member, Result
from memohop.training.device import (
    TooLittleError,
    available_bytes,
    find_device,
    held_bytes,
    is_gpu,
    members_at_once,
)
from memohop.training.population import Population
from memohop.training.task import Task
from memohop.version import __version__

EVERY = 10  # epochs of a step


class Share(NamedTuple):
    """What one process is given."""

    job: Job  # without its data
    block: Block | str  # or the folder of the prepared graph, of which it reads one
    targets: Targets
    snapshots: Mapping[int, Mapping[str, Tensor]]  # the latest, of each population that has one
    dtype: torch.dtype  # PyTorch's default type


class Step(NamedTuple):
    """What was reached after a step."""

    chunk: int  # the number of the population
    epochs: int  # that it has behind it
    snapshot: Mapping[str, Tensor]  # of it; the same in all processes, so the first one gives it
    size: int  # the members of a population


Steps = Generator[Step, bool, list[Result]]
"""Tells every step, hears whether it was enough, and returns the results."""


def train_share(share: Share, where: Mapping[str, Any]) -> Steps:
    """What a process does that was started for it, and joins others; the first returns results."""
    torch.set_default_dtype(share.dtype)
    group = Group.join(str(share.job.device), **where)
    results = yield from Worker(share, group).train(share.snapshots)
    group.leave()
    return results if group.rank == 0 else []


class Worker:
    """Holds a block and its part of the task, and trains together with the others of a group.

    The block has the number of the process; ``size`` members are trained at once, in a population.
    """

    def __init__(self, share: Share, group: Group) -> None:
        self.job, self.group = share.job, group
        block, targets = share.block, share.targets
        if isinstance(block, str):
            network = self.job.build()
            assert isinstance(network, NodeModel)
            graph = open_prepared(block, check=False)  # it was checked when the run began
            block = read_block(graph, network, group, features=self.job.features)
        agree(group, block.digest)
        device = find_device(self.job.device)
        self._check_size(block, device)
        inputs, self.part = inputs_of(block, group, device)
        own, nodes, y, masks = (
            value.to(device) for value in (block.nodes, targets.nodes, targets.y, targets.masks)
        )
        self.task = Task(inputs, y, masks, targets.objective, LabelledNodes(group, own, nodes))
        del block, share  # what was made of it is smaller
        release_freed_ram()
        with in_part(self.part):
            self.size = self.job.at_once or self._members_at_once(device)

    def train(self, snapshots: Mapping[int, Mapping[str, Tensor]]) -> Steps:
        """Train all populations, one after the other, from their snapshots if they have one.

        Once it was enough, later populations take one step.
        """
        results: list[Result] = []
        is_enough = False
        for chunk in range(math.ceil(len(self.job.members) / self.size)):
            population = self.population(chunk)
            if chunk in snapshots:
                population.restore(snapshots[chunk])
            done = False
            while not done:
                done = self.advance(population, 1 if is_enough else EVERY)
                snapshot = population.snapshot() if self.group.rank == 0 else {}
                is_enough |= bool((yield Step(chunk, int(population.epoch), snapshot, self.size)))
                done |= is_enough
            results += population.results(range(len(population.members)))
        return results

    def population(self, chunk: int) -> Population:
        """Some of the members, ready to be trained."""
        first = chunk * self.size
        return self._population(self.job.members[first : first + self.size])

    def advance(self, population: Population, epochs: int) -> bool:
        """Take up to so many steps; whether these are all."""

        def is_done() -> bool:
            return int(population.epoch) == self.job.epochs or not population.watch.running.any()

        with in_part(self.part):
            for _ in range(epochs):
                if is_done():
                    break
                population.step()
        return is_done()

    def _population(self, members: Sequence[Member]) -> Population:
        vectorised = True if len(self.job.members) > 1 else None
        return Population(self.task, replace(self.job, members=members), vectorised=vectorised)

    def _members_at_once(self, device: torch.device) -> int:
        """As many as the process with the least RAM can train."""
        try:
            size = members_at_once(self._population, self.job, device)
        except TooLittleError as error:
            raise UsageError(f"{error}; {self._would_do(error.need, error.budget)}") from None
        return min(self.group.gather(size))

    def _check_size(self, block: Block, device: torch.device) -> None:
        """Refuse a block that does not fit, before it is built."""
        if self.job.memory is None:
            hosts = self.group.gather(socket.gethostname())
            sharing = 1 if is_gpu(device) else hosts.count(socket.gethostname())
            budget = available_bytes(device) // sharing
        else:
            budget = self.job.memory - held_bytes(device)
        if block.bytes > budget:
            number, blocks = self.group.rank + 1, self.group.size
            raise UsageError(
                f"block {number} of {blocks}, with {len(block.nodes):,} nodes "
                f"and {block.arcs:,} arcs, takes about {in_units(block.bytes)} of RAM, and its "
                f"worker can use {in_units(max(budget, 0))}; {self._would_do(block.bytes, budget)}"
            )

    def _would_do(self, need: float, budget: float) -> str:
        if budget <= 0:
            return "give each worker more"
        enough = math.ceil(self.group.size * need / budget)
        return f"{enough} workers with as much RAM each would do"


def agree(group: Group, data: str) -> None:
    """Refuse to train together with other versions or other data."""
    facts = {
        "memohop": __version__,
        "PyTorch": torch.__version__,
        "Python": platform.python_version(),
        "the data": data[:16],
    }
    for number, others in enumerate(group.gather(facts)):
        for name, fact in facts.items():
            if others[name] != fact:
                worker = f"worker {number + 1} on {group.gather(socket.gethostname())[number]}"
                raise UsageError(
                    f"{worker} has {name} {others[name]}, and worker {group.rank + 1} has {fact}: "
                    "a run needs the same everywhere; install the same versions, and give all "
                    "workers the same files"
                )


def inputs_of(
    block: Block, group: Group, device: torch.device
) -> tuple[tuple[Any, Any], Part | None]:
    """What a network takes for a block, and the part of the whole graph that this is.

    A single process has all of it, and may use kernels that count rows from 0: no part.
    """

    def axis(rows: BlockRows | None) -> Axis:
        if rows is None:
            return Axis(torch.empty(0, dtype=torch.int64), 0)
        return Axis(rows.places.to(device), rows.total)

    x: Tensor | SparseFeatures
    if isinstance(block.x, BlockRows):
        x, stored = SparseFeatures(sharing(block.x.matrix).to(device)), axis(block.x)
    else:
        x, stored = block.x.to(device), axis(None)
    arcs = axis(next(iter(rows_of(block.graph)), None))
    nodes = Axis(block.nodes.to(device), block.starts[-1])
    part = Part(nodes, arcs, stored, group.total)
    graph = mapped(
        block.graph, BlockRows, lambda rows: GraphPart.of(rows, block.starts, group, device)
    )
    return (x, graph), part if group.size > 1 else None
