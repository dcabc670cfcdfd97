"""One network to train: its settings, and what names it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from itertools import product
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memohop.data.datasets.fetch import known_digests, published_file
from memohop.data.datasets.registry import describe, is_folder
from memohop.data.noise import NoisePolicy
from memohop.errors import UsageError, whole_number
from memohop.training import Member, Rules
from memohop.training.numbers import RATES, Numbers
from memohop.training.rules import DEFAULT_RULES


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


Scalar = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Settings(Numbers):
    """Data, model options, rules and numbers of one training.

    Attributes:
        features: ``raw`` as published, ``row`` or ``scaled``; see :func:`memohop.load`.
        split: ``published``; ``public``, ``random`` or ``class-wise`` as in :func:`memohop.load`.
        data: Further options of :func:`memohop.load`.
        noise: Arcs to add, in percent; see :mod:`memohop.data.noise`.
        draw: Seed of the noise.
        epochs: The most epochs.
        patience: See ``Rules.stop``; never by default.
        options: Options of the model.
        rules: Optimiser, schedule, stop, and which epoch counts.
        lr, weight_decay, lam, dropout, input_dropout: See :mod:`memohop.training.numbers`.
    """

    features: Literal["raw", "row", "scaled"] = "raw"
    split: Literal["published", "public", "random", "class-wise"] = "published"
    data: dict[str, Any] = field(default_factory=dict)
    noise: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    draw: Annotated[int, Meta(ge=0)] = 0
    noise_policy: NoisePolicy = "undirected"
    epochs: Annotated[int, Meta(ge=1, le=10**9)] = 500
    patience: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    rules: Rules = DEFAULT_RULES

    def __post_init__(self) -> None:
        for name in ("features", "split", "root", "progress", "name"):
            if name in self.data:
                raise UsageError(f"data cannot hold {name}, which is no option")

    @classmethod
    @cache
    def names(cls) -> list[str]:
        """What can be set."""
        return [one.name for one in fields(cls)]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Settings:
        """The settings that a table of an experiment file gives."""
        for name in raw:
            if name not in cls.names():
                raise UsageError(f"Object contains unknown field `{name}`")
        return msgspec.convert(raw, cls)

    def having(self, values: Mapping[str, Any]) -> Settings:
        """The same with other values of its attributes, or else of options of the model."""
        raw = msgspec.to_builtins(self)
        for name, value in values.items():
            (raw if name in self.names() else raw["options"])[name] = value
        try:
            return msgspec.convert(raw, Settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"{error} of the settings") from error

    def member(self, *, split: int, seed: int) -> Member:
        """A member of a population with these settings."""
        return Member(split=split, seed=seed, **self.numbers)

    def splits(self, dataset: str) -> int:
        """How many splits the data has."""
        if self.split == "public":
            return 1
        default = describe(dataset).splits if self.split == "published" else 10
        return whole_number("data.splits", self.data.get("splits", default), least=1)

    def data_key(self, dataset: str) -> dict[str, Any]:
        """Everything the data depends on, with the digests of its files, None where unknown."""
        files: dict[str, str | None]
        if is_folder(dataset):
            from memohop.data.prepared import open_prepared

            files = {dataset: open_prepared(dataset, check=False).digest}
        else:
            files = {path: known_digests().get(path) for path in describe(dataset).files}
        key: dict[str, Any] = {
            "dataset": dataset,
            "files": files,
            "features": self.features,
            "split": self.split,
            "options": self.data,
        }
        if self.noise:
            key["noise"] = [self.noise_policy, self.noise, self.draw]
        return key


def digest(content: Any) -> str:
    """A short name for some content that JSON can hold; equal content has equal names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
