"""A run on a graph in parts, from the data to the results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from memohop.data.check import check
from memohop.errors import UsageError
from memohop.parts.block import Cut
from memohop.parts.checkpoints import Checkpoints
from memohop.parts.crew import Crew, with_crew, work
from memohop.parts.group import Group
from memohop.parts.partition import Partition
from memohop.parts.ray_crew import RayCrew
from memohop.parts.worker import Job, Worker
from memohop.ram import reporting_out_of_memory
from memohop.training.member import Member, Result
from memohop.training.objective import objective_of
from memohop.training.population import build_seeded
from memohop.training.rules import DEFAULT_RULES, Rules
from memohop.training.task import in_default_type
from memohop.training.trainer import Progress, check_arguments, check_splits, warn_of_diverged

if TYPE_CHECKING:
    from memohop.pyg import Data


class PartsRun:
    """Members to be trained on a graph in blocks.

    Args:
        data, model, members, options, epochs, patience, rules, device, memory, features,
            keep_models, cross_fit, progress: see :func:`memohop.training.train`.
        partition: the blocks, one for each worker.
        checkpoints: the folder of the checkpoint, if there is one.
        capture: plays no part: steps that communicate are not captured.
        states, recompute: refused: a graph in blocks is cut into more of them instead.
    """

    def __init__(
        self,
        data: Data,
        model: str | Callable[[], nn.Module],
        members: Sequence[Member],
        partition: Partition,
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
        with reporting_out_of_memory(f"cutting the graph for {self.name}", lower="the features"):
            self.cut = Cut(data, build_seeded(self.job.build, seed=0), partition, features)
        check_splits(members, self.cut.y, self.cut.masks, objective_of(data))
        folder = None if checkpoints is None else Path(checkpoints)
        self.checkpoints = Checkpoints(_digest(self.job, self.cut.digest), folder)
        self._progress = progress

    def on_ray(self, ray: Any) -> list[Result]:
        """Train with actors of a cluster, and with new ones after the loss of a worker."""
        blocks = [ray.put(self.cut[number]) for number in range(len(self.cut))]
        results = self.with_crews(lambda: RayCrew(ray, self.job_now(), blocks))
        warn_of_diverged(results, self.name)
        return results

    def with_crews(self, hire: Callable[[], Crew]) -> list[Result]:
        """Train with a crew, and with another one after the loss of a worker."""
        return with_crew(hire, self._work, lambda: self.checkpoints.done)

    def in_group(self, group: Group) -> list[Result]:
        """Train as one of a group of processes; the first one writes the checkpoints."""
        kept = self.checkpoints
        if group.rank > 0:
            kept.file, self._progress = None, None
        kept.snapshots, kept.size = group.of_first((kept.snapshots, kept.size))
        results = self._work(Worker(self.job_now(), self.cut[group.rank], group))
        if group.rank == 0:
            warn_of_diverged(results, self.name)
        return results

    def job_now(self) -> Job:
        """The job, with populations as large as they were in the checkpoint."""
        return replace(self.job, at_once=self.checkpoints.size)

    def _work(self, crew: Crew) -> list[Result]:
        members, epochs = len(self.job.members), self.job.epochs

        def report(chunk: int, done: int) -> None:
            if self._progress is not None:
                before = chunk * crew.size
                here = min(crew.size, members - before)
                self._progress(before * epochs + here * done, members * epochs)

        return work(crew, self.checkpoints, report)


def _digest(job: Job, data: str) -> str:
    """Identifies what a run's result depends on."""
    content = replace(job, device="", memory=None, at_once=None)
    return hashlib.sha256(f"{data} {content!r}".encode()).hexdigest()
