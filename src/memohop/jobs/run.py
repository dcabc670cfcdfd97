"""One network to train, and what names it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

from memohop.data.datasets.fetch import known_digests
from memohop.data.datasets.latent import published_file
from memohop.jobs.settings import Scalar, Settings, digest
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


def combinations(values: dict[str, list[Scalar]]) -> list[dict[str, Scalar]]:
    """One value of each name, in all ways; the last name changes fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
