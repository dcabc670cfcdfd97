"""From a job to results: the loop of the training, from top to bottom."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from memohop.data.check import check
from memohop.errors import MemohopWarning, UsageError
from memohop.networks import NodeModel
from memohop.ram import is_out_of_memory, release_freed_ram, reporting_out_of_memory
from memohop.training.device import captured, find_device, is_gpu, members_at_once, wait_for
from memohop.training.job import Enough, Job
from memohop.training.member import Member, Result
from memohop.training.objective import Objective
from memohop.training.population import Population
from memohop.training.task import Task, in_default_type, make_task

Progress = Callable[[int, int], None]

_LOOK_EVERY = 10  # epochs between two checks for members that have stopped
_LOOK_EVERY_ON_GPU = 50  # a check waits for the device
_CAPTURE = 8_000_000  # what a new capture takes, in nodes of an epoch of a member
_COMPACT_AT = 0.25  # share of stopped members at which continuing without them may pay off
_LONG = 0.25  # seconds after which the progress is reported, however few epochs they were


class AloneWarning(MemohopWarning):
    """A module cannot be vectorised, so it is trained one member at a time."""


class DivergedWarning(MemohopWarning):
    """Members had a loss or an output that is not finite; they have no scores."""


def train(job: Job, progress: Progress | None = None) -> list[Result]:
    """Train the members of a job in this process; see :func:`memohop.train`."""
    device = find_device(job.device)
    with reporting_out_of_memory("reading the features", lower="the number of features"):
        data = in_default_type(job.data)
        check(data)
    with reporting_out_of_memory(f"building {job.name}", lower="hidden_channels or num_layers"):
        job = replace(job, data=data).sized()
        network = job.build()
        check_thrift(job, network)
        task = make_task(job, network)
    check_splits(job.members, task.y, task.masks, task.objective)
    with reporting_out_of_memory(
        f"training {job.name} for {job.epochs} epochs",
        lower="hidden_channels, num_layers or epochs",
    ):
        results = _Training(job, task, device, progress).all(network)
    warn_of_diverged(results, job.name)
    return results


def check_thrift(job: Job, network: nn.Module) -> None:
    """Refuse ways to take fewer bytes that a network does not have."""
    ours = isinstance(network, NodeModel)
    if job.recompute and not (ours and network.recomputes is not None):
        raise UsageError(
            f"recompute=True is for networks with memory, such as gcn+mmp, not for {job.name}; "
            "leave it out"
        )
    if job.states is not None and not ours:
        raise UsageError(
            f"states={job.states!r} is for networks of this library, not for {job.name}; "
            "leave it out"
        )


def check_splits(members: Sequence[Member], y: Tensor, masks: Tensor, objective: Objective) -> None:
    """Refuse members whose split does not exist, and splits that cannot be scored."""
    for member in members:
        if member.split >= len(masks):
            raise UsageError(f"split={member.split}, but the data has {len(masks)} split(s)")
    objective.check(y, masks, {member.split for member in members})


def warn_of_diverged(results: Sequence[Result], name: str) -> None:
    """Count the members that diverged, if there are any."""
    if diverged := sum(result.diverged for result in results):
        warnings.warn(
            f"{diverged} of {len(results)} members of {name} diverged: a loss or an output was "
            "not finite, and they have no scores; give a lower lr, or features of a smaller scale",
            DivergedWarning,
            stacklevel=3,
        )


@dataclass
class _Training:
    """What all chunks of a job share."""

    job: Job
    task: Task
    device: torch.device
    progress: Progress | None
    done: int = 0
    is_enough: bool = False
    vectorised: bool | None = None

    def all(self, network: nn.Module) -> list[Result]:
        """Train all members, chunk by chunk."""
        members, memory = self.job.members, self.job.memory
        together = isinstance(network, NodeModel) or self._can_be_vectorised(members[0])
        if len(members) > 1:  # a member that is left alone in a chunk computes as the others do
            self.vectorised = together
        kept = sum(value.numel() * value.element_size() for value in network.parameters())
        alone = self.job.recompute or not together
        plan = partial(
            members_at_once,
            self._population,
            self.job,
            self.device,
            for_results=len(members) * kept if self.job.keep_models else 0,
            most=1 if alone else self.job.at_once,
        )
        # A GPU tells at the first step whether all fit, which takes less time than measuring one.
        unplanned = not alone and memory is self.job.at_once is None and is_gpu(self.device)
        size = len(members) if unplanned else plan()
        results: list[Result] = []
        while len(results) < len(members):
            if memory is not None:
                release_freed_ram()
            if self.is_enough:
                return results + [_untrained(member) for member in members[len(results) :]]
            done = self.done
            try:
                results += self._chunk(members[len(results) : len(results) + size])
                continue
            except (MemoryError, RuntimeError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            size, self.done = plan() if unplanned else size // 2, done
            unplanned = False
        return results

    def _chunk(self, members: Sequence[Member]) -> list[Result]:
        """Train some members to the end."""
        population, epochs = self._population(members), self.job.epochs
        step = self._stepper(population)
        on_gpu = is_gpu(self.device)
        look_every = _LOOK_EVERY_ON_GPU if on_gpu else _LOOK_EVERY
        left = list(range(len(members)))  # the position in the chunk of each member that is left
        results: dict[int, Result] = {}
        looked = time.monotonic()
        for epoch in range(epochs):
            step()
            self.done += len(left)
            regular = epoch % look_every == 0
            if not regular and time.monotonic() < looked + _LONG and epoch + 1 < epochs:
                continue
            wait_for(self.device)
            looked = time.monotonic()
            running = population.watch.running.cpu()
            stopped = (~running).nonzero().flatten().tolist()
            to_come = epochs - epoch - 1
            saved = len(stopped) * to_come * self.task.y.numel()
            pays_off = len(stopped) >= _COMPACT_AT * len(left) and saved > _CAPTURE * on_gpu
            # Never by the clock: some networks round differently in other company.
            if len(stopped) == len(left) or (regular and pays_off):
                ended = population.results(stopped)
                results |= {left[i]: r for i, r in zip(stopped, ended, strict=True)}
                self.done += len(stopped) * to_come
                index = running.nonzero().flatten()
                left = [left[i] for i in index.tolist()]
                if left:
                    population.select(index.to(self.device))
                    step = self._stepper(population)
            self._report()
            if self.is_enough or not left:
                break
        results |= dict(zip(left, population.results(range(len(left))), strict=True))
        return [results[i] for i in range(len(members))]

    def _report(self) -> None:
        if self.progress is not None and not self.is_enough:
            try:
                self.progress(self.done, self.job.epochs * len(self.job.members))
            except Enough:
                self.is_enough = True

    def _population(self, members: Sequence[Member]) -> Population:
        job = replace(self.job, members=members)
        return Population(self.task, job, vectorised=self.vectorised)

    def _stepper(self, population: Population) -> Callable[[], None]:
        if self.job.capture and population.is_ours:
            return captured(population.step, self.device)
        return population.step

    def _can_be_vectorised(self, member: Member) -> bool:
        """Whether a module that is not ours can be trained as a population, found by trying."""
        population = self._population([member, member])
        before = {name: value.clone() for name, value in population.buffers.items()}
        obstacle = None
        try:
            population.step()
        except UsageError:
            raise
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            obstacle = str(error).strip().splitlines()[0]
        for name, value in population.buffers.items():
            if obstacle is None and not torch.equal(value, before[name]):
                # vmap's running variances are not torch's
                obstacle = f"it changes its buffer {name} while training"
        if obstacle is not None:
            warnings.warn(
                f"this module cannot be vectorised, so its members are trained one at a time "
                f"({obstacle})",
                AloneWarning,
                stacklevel=4,
            )
        return obstacle is None


def _untrained(member: Member) -> Result:
    """The result of a member whose turn never came."""
    none, nothing = math.nan, np.empty(0, dtype=np.float32)
    return Result(member, -1, 0, none, none, none, nothing, nothing)
