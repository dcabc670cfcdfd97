"""One process of a run on a graph in blocks: it holds a block and trains with the others."""

from __future__ import annotations

import math
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from memohop.data.prepared import open_prepared
from memohop.data.sparse_features import sharing
from memohop.errors import UsageError
from memohop.networks import NodeModel
from memohop.nn import Axis, SparseFeatures
from memohop.parts.block import Block, BlockRows, Targets, mapped, rows_of
from memohop.parts.folder import read_block
from memohop.parts.graph import GraphPart
from memohop.parts.group import Group
from memohop.parts.halo import BlockPart, LabelledNodes
from memohop.ram import in_units, release_freed_ram
from memohop.training import Job, Member
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


class Share(NamedTuple):
    """What one process is given.

    Attributes:
        job: what is to be trained, without its data.
        block: its block, or the folder of the prepared graph, of which it reads one.
        targets: those of all blocks.
        snapshots: the latest state of each population that has one.
        dtype: PyTorch's default type.
    """

    job: Job
    block: Block | str
    targets: Targets
    snapshots: Mapping[int, Mapping[str, Tensor]]
    dtype: torch.dtype


class Worker:
    """Holds a block and its part of the task, and takes steps together with the others.

    Args:
        share: what this process is given.
        group: the processes; ``group.rank`` is the number of the block.

    Attributes:
        size: how many members are trained at once, in a population.
        chunks: how many populations there are.
    """

    def __init__(self, share: Share, group: Group) -> None:
        self.job, self.group, block = share.job, group, share.block
        if isinstance(block, str):
            network = self.job.build()
            assert isinstance(network, NodeModel)
            graph = open_prepared(block, check=False)  # it was checked when the run began
            block = read_block(graph, network, group, features=self.job.features)
        agree(group, block.digest)
        device = find_device(self.job.device)
        self._check_size(block, device)
        self.task, self.part = _task(block, share.targets, group, device)
        del block, share  # what was made of it is smaller
        release_freed_ram()
        with self.part.entered():
            self.size = self.job.at_once or self._members_at_once(device)
        self.chunks = math.ceil(len(self.job.members) / self.size)

    def population(self, chunk: int) -> Population:
        """Some of the members, ready to be trained."""
        first = chunk * self.size
        return self._population(self.job.members[first : first + self.size])

    def advance(self, population: Population, epochs: int) -> bool:
        """Take up to so many steps; whether these are all."""

        def is_done() -> bool:
            return int(population.epoch) == self.job.epochs or not population.watch.running.any()

        with self.part.entered():
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
            raise UsageError(
                f"block {block.number + 1} of {self.group.size}, with {len(block.nodes):,} nodes "
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
) -> tuple[tuple[Any, Any], BlockPart]:
    """What a network takes for a block, and the part that this is of the whole graph."""

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
    part = BlockPart(group, Axis(block.nodes.to(device), block.starts[-1]), arcs, stored)
    graph = mapped(
        block.graph, BlockRows, lambda rows: GraphPart.of(rows, block.starts, group, device)
    )
    return (x, graph), part


def _task(
    block: Block, targets: Targets, group: Group, device: torch.device
) -> tuple[Task, BlockPart]:
    inputs, part = inputs_of(block, group, device)
    (labelled, at), dtype = targets.among(block.nodes), torch.get_default_dtype()
    task = Task(
        inputs,
        targets.y.to(device),
        targets.masks.to(device, dtype),
        targets.objective,
        LabelledNodes(group, labelled.to(device), at.to(device), len(block.nodes), len(targets.y)),
    )
    return task, part
