"""A cell of an experiment: the runs that validation chooses between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from memohop.data.datasets.registry import describe
from memohop.jobs.named import NamedGraph, Scalar, Settings, combinations
from memohop.training import Job
from memohop.training.job import digest


@dataclass(frozen=True)
class Cell:
    """One model on one dataset at one point of the axes, under one protocol.

    Attributes:
        axes: What the experiment varies, with the values of this cell.
        search: What validation chooses, and from which values.
        seeds: Seeds of each split and setting.
    """

    experiment: str
    protocol: str
    dataset: str
    model: str
    axes: dict[str, Scalar]
    settings: Settings
    search: dict[str, list[Scalar]]
    seeds: tuple[int, ...]

    @cached_property
    def id(self) -> str:
        """The digest of what names the cell in the experiment."""
        return digest([self.experiment, self.protocol, self.dataset, self.model, self.axes])

    @cached_property
    def runs(self) -> tuple[Job, ...]:
        """All settings, and for each of them all seeds and splits."""
        jobs: list[Job] = []
        for setting in combinations(self.search):
            job = self.settings.having(setting).job(self.dataset, self.model, setting)
            places = product(self.seeds, range(job.data.splits))
            jobs += [job.at(split, seed) for seed, split in places]
        return tuple(jobs)

    @cached_property
    def content(self) -> str:
        """The digest of its runs, which changes with the experiment file."""
        return digest([[run.id, run.setting] for run in self.runs])

    @property
    def name(self) -> str:
        """The name in messages."""
        axes = (f"{name}={value}" for name, value in self.axes.items())
        return " ".join((self.protocol, self.dataset, self.model, *axes))


def cost(jobs: Iterable[Job]) -> float:
    """What training takes, in arbitrary units: to estimate the time left."""
    return sum(job.epochs * epoch_cost(job.data) for job in jobs)


def epoch_cost(graph: NamedGraph) -> float:
    """What one epoch of one network takes, in the same units."""
    info = describe(graph.name)
    return info.nodes + info.arcs * (1 + graph.noise / 100)
