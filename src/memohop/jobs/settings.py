"""The settings of a training, all of which an experiment file may decide."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memohop.data.arguments import whole_number
from memohop.data.datasets.fetch import known_digests
from memohop.data.datasets.registry import describe, is_folder
from memohop.data.noise import NoisePolicy
from memohop.errors import UsageError
from memohop.training import Member, Rules
from memohop.training.numbers import Numbers
from memohop.training.rules import DEFAULT_RULES

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
