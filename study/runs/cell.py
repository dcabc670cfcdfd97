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
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from memohop.data.datasets.registry import describe
from memohop.jobs.named import NamedGraph, Scalar, Settings, combinations
from memohop.jobs.space import Drawn
from memohop.training import Job
from memohop.training.job import digest

if TYPE_CHECKING:
    from study.runs.store import Store


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

    @property
    def variant(self) -> dict[str, Scalar]:
        """The axes, without the rung of a ladder."""
        return {name: value for name, value in self.axes.items() if name != RUNG}

    @cached_property
    def runs(self) -> tuple[Job, ...]:
        """All settings, and for each of them all seeds and splits."""
        return self._runs(self.settings, combinations(self.search), self.seeds, self.splits)

    def _runs(
        self,
        settings: Settings,
        tried: Iterable[dict[str, Scalar]],
        seeds: Iterable[int],
        splits: int,
    ) -> tuple[Job, ...]:
        jobs: list[Job] = []
        for setting in tried:
            job = settings.having(setting).job(self.dataset, self.model, setting)
            jobs += [job.at(split, seed) for seed, split in product(seeds, range(splits))]
        return tuple(jobs)

    @property
    def splits(self) -> int:
        """How many splits the data has."""
        return self.settings.graph(self.dataset).splits

    @property
    def size(self) -> tuple[int, int]:
        """How many networks it takes, and how many epochs these together at most."""
        return len(self.runs), sum(run.epochs for run in self.runs)

    def after(self, store: Store) -> Cell | None:
        """The cell that follows from the results of this one, if there is one."""
        return None

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


_Count = Annotated[int, Meta(ge=1, le=10_000)]
RUNG = "rung"
"""The axis of a cell that tells its rungs apart, counted from 1."""


class Rung(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of the ladder.

    Attributes:
        settings: How many settings are left.
        splits: On how many splits they are trained, counted from the first; fewer where the data
            has fewer.
        epochs: The share of the epochs that they get.
        seeds: With how many seeds.
    """

    settings: _Count
    splits: _Count
    epochs: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seeds: _Count = 1


class Halving(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ladder of a protocol.

    Attributes:
        structures: Among how many structures the settings of the first rung are divided.
        rungs: From the first one, with the most settings, to the last one, with a single setting.
        seed: Decides the draws.
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

    def epochs(self, splits: int, epochs: int, *, start: int = 0) -> int:
        """The most epochs that the networks of all rungs from ``start`` on take together."""
        trained = zip(self.rungs, self.trainings(splits), strict=True)
        return sum(count * share_of(epochs, rung) for rung, count in [*trained][start:])


def share_of(epochs: int, rung: Rung) -> int:
    """The epochs of a rung."""
    return max(1, round(epochs * rung.epochs))


@dataclass(frozen=True, kw_only=True)
class RungCell(Cell):
    """One rung of one model on one dataset; which one, its axes say.

    Attributes:
        drawn: All settings of the first rung; a setting is known by its place among them.
        tried: The places of those of this rung.
        halving: The ladder.
    """

    drawn: Drawn
    tried: tuple[int, ...]
    halving: Halving

    @property
    def number(self) -> int:
        """Which rung it is, from 0."""
        return int(self.axes[RUNG]) - 1

    @property
    def rung(self) -> Rung:
        """The shape of this rung."""
        return self.halving.rungs[self.number]

    @cached_property
    def runs(self) -> tuple[Job, ...]:
        """All settings, and for each of them all seeds and splits of the rung."""
        rung = self.rung
        settings = self.settings.having({"epochs": share_of(self.settings.epochs, rung)})
        tried = (self.drawn[place] for place in self.tried)
        return self._runs(settings, tried, range(rung.seeds), min(rung.splits, self.splits))

    @property
    def size(self) -> tuple[int, int]:
        """That of the whole ladder; a network that two rungs share counts once."""
        networks = sum(self.halving.trainings(self.splits))
        return networks, self.halving.epochs(self.splits, self.settings.epochs)

    @property
    def cost_to_the_top(self) -> float:
        """What the ladder takes from here on, in the units of :func:`cost`."""
        epochs = self.halving.epochs(self.splits, self.settings.epochs, start=self.number)
        return epochs * epoch_cost(self.settings.graph(self.dataset))

    def scores(self, store: Store) -> list[float]:
        """The mean validation score of each setting of this rung; NaN if a network diverged."""
        vals = {run.id: run.val for run, _ in store.runs(run.id for run in self.runs)}
        each = len(self.runs) // len(self.tried)
        scores = [vals[run.id] for run in self.runs]
        groups = (scores[i : i + each] for i in range(0, len(scores), each))
        return [fmean(group) if min(group) >= 0 else math.nan for group in groups]

    def after(self, store: Store) -> RungCell | None:
        """The next rung, if this one is complete, is not the last one and leaves a choice."""
        if self.number + 1 == len(self.halving.rungs) or not store.has(self):
            return None
        count = self.halving.rungs[self.number + 1].settings
        best = best_places(dict(zip(self.tried, self.scores(store), strict=True)), count)
        return replace(self, tried=best, axes=self.axes | {RUNG: self.number + 2}) if best else None


def best_places(scores: Mapping[int, float], count: int) -> tuple[int, ...]:
    """The places of the best settings, the best first and the first among equals."""
    sound = [place for place, score in scores.items() if not math.isnan(score)]
    return tuple(sorted(sound, key=lambda place: -scores[place])[:count])
