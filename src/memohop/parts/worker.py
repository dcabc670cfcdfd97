"""One process of a run on a graph in blocks: it holds a block and trains with the others."""

from __future__ import annotations

import math
import platform
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from memohop.data.sparse_features import csr_tensor
from memohop.errors import UsageError
from memohop.nn import Axis, SparseFeatures, in_part
from memohop.parts.block import Block, StoredRows, mapped, rows_of
from memohop.parts.folder import FolderBlock
from memohop.parts.graph import GraphPart, Rows
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
from memohop.training.population import Population, build_seeded
from memohop.training.task import Task
from memohop.version import __version__


class Worker:
    """Holds a block and its part of the task, and takes steps together with the others.

    Args:
        job: what is to be trained, without its data.
        given: this process's block, or where it finds it.
        group: the processes; ``group.rank`` is the number of the block.

    Attributes:
        size: how many members are trained at once, in a population.
        chunks: how many populations there are.
    """

    def __init__(self, job: Job, given: Block | FolderBlock, group: Group) -> None:
        self.job, self.group = job, group
        block = given.made(build_seeded(job.build, seed=0), group)
        agree(group, block.digest)
        device = find_device(job.device)
        self._check_size(block, device)
        self.task, self.part = _task(block, group, device)
        del block  # what was made of it is smaller
        release_freed_ram()
        with self._in_part():
            self.size = job.at_once or self._members_at_once(device)
        self.chunks = math.ceil(len(job.members) / self.size)

    def population(self, chunk: int) -> Population:
        """Some of the members, ready to be trained."""
        first = chunk * self.size
        return self._population(self.job.members[first : first + self.size])

    def advance(self, population: Population, epochs: int) -> bool:
        """Take up to so many steps; whether these are all."""

        def is_done() -> bool:
            return int(population.epoch) == self.job.epochs or not population.watch.running.any()

        with self._in_part():
            for _ in range(epochs):
                if is_done():
                    break
                population.step()
        return is_done()

    def _in_part(self) -> AbstractContextManager[None]:
        """One process alone has the whole graph, and may use kernels that count rows from 0."""
        return nullcontext() if self.group.size == 1 else in_part(self.part)

    def _population(self, members: Sequence[Member]) -> Population:
        vectorised = True if len(self.job.members) > 1 else None
        return Population(self.task, replace(self.job, members=members), vectorised=vectorised)

    def _members_at_once(self, device: torch.device) -> int:
        """As many as the process with the least RAM can train."""

        def steps(members: Sequence[Member], count: int) -> None:
            population = self._population(members)
            for _ in range(min(count, self.job.epochs)):
                population.step()

        try:
            size = members_at_once(
                steps,
                self.job.members,
                memory=self.job.memory,
                for_results=0,
                epochs=self.job.epochs,
                device=device,
            )
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
    given: Tensor | StoredRows,
    graph: Any,
    nodes: Tensor,
    starts: tuple[int, ...],
    group: Group,
    device: torch.device,
) -> tuple[tuple[Any, Any], BlockPart]:
    """What a network takes for a block, and the part that this is of the whole graph.

    Args:
        given: the features of its nodes.
        graph: what the network's ``prepare`` gives, with :class:`Rows` instead of graphs.
        nodes: the numbers of its nodes in the data.
        starts: the number at which each block starts, and the number of nodes.
        group: the processes that have the others.
        device: the device to compute on.
    """
    x: Tensor | SparseFeatures
    stored = arcs = Axis(torch.empty(0, dtype=torch.int64), 0)
    if isinstance(given, StoredRows):
        stored = Axis(given.stored.to(device), given.total)
        shape = (len(nodes), given.channels)
        csr = csr_tensor(given.pointers, given.columns, given.values, shape)
        x = SparseFeatures(csr.to(device))
    else:
        x = given.to(device)
    if rows := rows_of(graph):
        arcs = Axis(rows[0].entry.to(device), rows[0].entries)
    part = BlockPart(group, Axis(nodes.to(device), starts[-1]), arcs, stored)
    return (x, mapped(graph, Rows, lambda rows: GraphPart(rows, starts, group, device))), part


def _task(block: Block, group: Group, device: torch.device) -> tuple[Task, BlockPart]:
    inputs, part = inputs_of(block.x, block.graph, block.nodes, block.starts, group, device)
    targets, (labelled, at) = block.targets, block.targets.among(block.nodes)
    count, dtype = len(block.nodes), torch.get_default_dtype()
    task = Task(
        inputs,
        targets.y.to(device),
        targets.masks.to(device, dtype),
        targets.objective,
        LabelledNodes(group, labelled.to(device), at.to(device), count, len(targets.y)),
    )
    return task, part
