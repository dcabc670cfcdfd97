"""A cell of an experiment: the runs that validation chooses between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

from memohop.bench.settings import Scalar, Settings, digest
from memohop.data.datasets.fetch import known_digests
from memohop.data.datasets.latent import published_file
from memohop.data.datasets.registry import describe
from memohop.training import Member
from memohop.training.numbers import RATES


@dataclass(frozen=True)
class Recipe:
    """How a model is trained on a dataset, apart from split and seed."""

    dataset: str
    model: str
    settings: Settings

    @cached_property
    def content(self) -> dict[str, Any]:
        """Everything that results depend on, apart from rounding by machines and versions.

        Defaults are spelled out, so that the content stays the same when a default changes. An
        option that came later is part of it only where it makes a difference.
        """
        from memohop.networks.registry import entry

        settings, network = self.settings, entry(self.model).network
        data = settings.data_key(self.dataset)
        if not network.looks_at_graph:
            data.pop("noise", None)
        options = entry(self.model).options() | settings.options
        for name, as_before in network.added_options.items():
            if options[name] == as_before:
                del options[name]
        neighbours = published_file(self.dataset)
        if options.get("embedding") == "auto" and neighbours and not settings.noise:
            data["files"][neighbours] = known_digests()[neighbours]
        numbers = settings.numbers
        for name in RATES:
            default = options.pop(name, None)
            if numbers[name] is None:
                numbers[name] = default
        return {
            "data": data,
            "model": self.model,
            "options": options,
            "rules": asdict(settings.rules),
            "epochs": settings.epochs,
            "patience": settings.patience,
            **numbers,
        }

    @cached_property
    def id(self) -> str:
        """The digest of the content."""
        return digest(self.content)


@dataclass(frozen=True)
class Run:
    """One network to train; validation chooses between the values in ``setting``."""

    recipe: Recipe
    setting: dict[str, Scalar]
    split: int
    seed: int

    @cached_property
    def id(self) -> str:
        """The digest of the content: equal runs of two experiments are trained once."""
        return digest([self.recipe.id, self.split, self.seed])

    @property
    def content(self) -> dict[str, Any]:
        """All that one needs to repeat the run."""
        return self.recipe.content | {"split": self.split, "seed": self.seed}

    @property
    def member(self) -> Member:
        """The run as a member of a population."""
        return self.recipe.settings.member(split=self.split, seed=self.seed)


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
    def runs(self) -> tuple[Run, ...]:
        """All settings, and for each of them all seeds and splits."""
        found = []
        for setting in combinations(self.search):
            recipe = Recipe(self.dataset, self.model, self.settings.having(setting))
            splits = range(recipe.settings.splits(self.dataset))
            found += [
                Run(recipe, setting, split, seed) for seed, split in product(self.seeds, splits)
            ]
        return tuple(found)

    @cached_property
    def content(self) -> str:
        """The digest of its runs, which changes with the experiment file."""
        return digest([[run.id, run.setting] for run in self.runs])

    @property
    def name(self) -> str:
        """The name in messages."""
        axes = (f"{name}={value}" for name, value in self.axes.items())
        return " ".join((self.protocol, self.dataset, self.model, *axes))


def combinations(values: dict[str, list[Scalar]]) -> list[dict[str, Scalar]]:
    """One value of each name, in all ways; the last name changes fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def cost(runs: Iterable[Run]) -> float:
    """What training takes, in arbitrary units: to estimate the time left."""
    recipes = (run.recipe for run in runs)
    return sum(
        recipe.settings.epochs * epoch_cost(recipe.dataset, recipe.settings) for recipe in recipes
    )


def epoch_cost(dataset: str, settings: Settings) -> float:
    """What one epoch of one network takes, in the same units."""
    info = describe(dataset)
    return info.nodes + info.arcs * (1 + settings.noise / 100)
