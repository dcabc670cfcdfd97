"""A cell of an experiment: the runs that validation chooses between.

In a search by successive halving many settings get a short training, and the best of them longer
ones. Each rung of the ladder is a cell of its own, stored when it is complete, and the settings of
the next one follow from its validation scores. A search that was killed therefore goes on where it
stopped, and a run that two rungs share is trained once. Test scores play no part in any choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from operator import mul
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from memohop.data.datasets.registry import describe
from memohop.jobs.named import NamedGraph, Scalar, Settings
from memohop.jobs.space import DrawnSettings, Space, draw
from memohop.training import Job
from memohop.training.job import digest

if TYPE_CHECKING:
    from study.runs.store import Store

_Count = Annotated[int, Meta(ge=1, le=10_000)]
RUNG = "rung"
"""The axis of a cell that tells its rungs apart, counted from 1."""


class Rung(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of the ladder: how many settings are left, and how they are trained.

    On so many splits, counted from the first (fewer where the data has fewer), with so many seeds,
    for this share of the epochs.
    """

    settings: _Count
    splits: _Count
    epochs: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seeds: _Count = 1

    def share_of(self, epochs: int) -> int:
        """The epochs that each network gets here."""
        return max(1, round(epochs * self.epochs))


class Halving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ladder of a protocol, from the rung with the most settings to that with a single one.

    The settings of the first rung are divided among so many structures; ``seed`` decides the draws.
    """

    structures: _Count
    rungs: Annotated[tuple[Rung, ...], Meta(min_length=1)]
    seed: int = 0

    def __post_init__(self) -> None:
        counts = [rung.settings for rung in self.rungs]
        if counts[0] % self.structures:
            raise ValueError(
                f"{counts[0]} settings cannot be divided among {self.structures} structures"
            )
        if counts[-1] != 1 or any(after > before for before, after in pairwise(counts)):
            raise ValueError(f"settings must fall from rung to rung, down to 1, not {counts}")

    def draw(self, space: Space) -> DrawnSettings:
        """The settings of the first rung."""
        each = self.rungs[0].settings // self.structures
        return draw(space, structures=self.structures, each=each, seed=self.seed)

    def trainings(self, splits: int) -> list[int]:
        """How many networks each rung trains that none before it has, given the data's splits."""
        seen: set[tuple[float, int, int, int]] = set()
        counts = []
        for rung in self.rungs:  # as if the best were always the first ones
            splits_of_rung = range(min(rung.splits, splits))
            wanted = {
                *product([rung.epochs], range(rung.settings), splits_of_rung, range(rung.seeds))
            }
            counts.append(len(wanted - seen))
            seen |= wanted
        return counts


@dataclass(frozen=True)
class Cell:
    """One model on one dataset at one point of the axes, under one protocol.

    Attributes:
        axes: What the experiment varies, with the values of this cell.
        settings: Those that its runs share.
        drawn: The settings that validation chooses between, on the first rung of a ladder.
        tried: The places of those of this cell.
        halving: The ladder of which it is a rung, if it is one; which one, the axes say.
    """

    experiment: str
    protocol: str
    dataset: str
    model: str
    axes: dict[str, Scalar]
    settings: Settings
    drawn: DrawnSettings
    tried: tuple[int, ...]
    seeds: tuple[int, ...]
    halving: Halving | None = None

    @cached_property
    def id(self) -> str:
        """The digest of what names the cell in the experiment."""
        return digest([self.experiment, self.protocol, self.dataset, self.model, self.axes])

    @property
    def variant(self) -> dict[str, Scalar]:
        """The axes, without the rung of a ladder."""
        return {name: value for name, value in self.axes.items() if name != RUNG}

    @property
    def name(self) -> str:
        """The name in messages."""
        return cell_name(self.protocol, self.dataset, self.model, self.axes)

    @property
    def splits(self) -> int:
        """How many splits the data has."""
        return self.settings.graph(self.dataset).splits

    @property
    def number(self) -> int:
        """Which rung it is, from 0."""
        return int(self.axes.get(RUNG, 1)) - 1

    @cached_property
    def runs(self) -> tuple[Job, ...]:
        """All settings, and for each of them all seeds and splits."""
        settings, seeds, splits = self.settings, self.seeds, self.splits
        if self.halving:
            rung = self.halving.rungs[self.number]
            settings = settings.having({"epochs": rung.share_of(settings.epochs)})
            seeds, splits = tuple(range(rung.seeds)), min(rung.splits, splits)
        jobs: list[Job] = []
        for setting in (self.drawn[place] for place in self.tried):
            job = settings.having(setting).job(self.dataset, self.model, setting)
            jobs += [job.at(split, seed) for seed, split in product(seeds, range(splits))]
        return tuple(jobs)

    @cached_property
    def content(self) -> str:
        """The digest of its runs, which changes with the experiment file."""
        return digest([[run.id, run.setting] for run in self.runs])

    @property
    def size(self) -> tuple[int, int]:
        """How many networks it takes, up to the last rung, and how many epochs these at most."""
        if self.halving is None:
            return len(self.runs), sum(run.epochs for run in self.runs)
        rungs = self.halving.rungs[self.number :]
        networks = self.halving.trainings(self.splits)[self.number :]
        epochs = [rung.share_of(self.settings.epochs) for rung in rungs]
        return sum(networks), sum(map(mul, networks, epochs))

    @property
    def cost(self) -> float:
        """What that takes, in the units of :func:`cost`."""
        return self.size[1] * epoch_cost(self.settings.graph(self.dataset))

    def scores(self, store: Store) -> list[float]:
        """The mean validation score of each of its settings; NaN if a network diverged."""
        vals = {run.id: run.val for run, _ in store.runs(run.id for run in self.runs)}
        each = len(self.runs) // len(self.tried)
        scores = [vals[run.id] for run in self.runs]
        groups = (scores[i : i + each] for i in range(0, len(scores), each))
        return [fmean(group) if min(group) >= 0 else math.nan for group in groups]

    def after(self, store: Store) -> Cell | None:
        """The next rung, if this one is complete, is not the last one and leaves a choice."""
        if self.is_last or not store.has(self):
            return None
        assert self.halving is not None
        count = self.halving.rungs[self.number + 1].settings
        best = best_places(dict(zip(self.tried, self.scores(store), strict=True)), count)
        return self.on_rung(self.number + 1, best) if best else None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows from its results."""
        return self.halving is None or self.number + 1 == len(self.halving.rungs)

    def on_rung(self, number: int, tried: tuple[int, ...]) -> Cell:
        """Another rung of the same ladder, counted from 0, with these settings."""
        return replace(self, tried=tried, axes=self.axes | {RUNG: number + 1})


def cell_name(protocol: str, dataset: str, model: str, axes: Mapping[str, Scalar]) -> str:
    """The name of a cell in messages."""
    return " ".join((protocol, dataset, model, *(f"{name}={axes[name]}" for name in axes)))


def best_places(scores: Mapping[int, float], count: int) -> tuple[int, ...]:
    """The places of the best settings, the best first and the first among equals."""
    sound = [place for place, score in scores.items() if not math.isnan(score)]
    return tuple(sorted(sound, key=lambda place: -scores[place])[:count])


def cost(jobs: Iterable[Job]) -> float:
    """What training takes, in arbitrary units: to estimate the time left."""
    return sum(job.epochs * epoch_cost(job.data) for job in jobs)


def epoch_cost(graph: NamedGraph) -> float:
    """What one epoch of one network takes, in the same units."""
    info = describe(graph.name)
    return info.nodes + info.arcs * (1 + graph.noise / 100)
