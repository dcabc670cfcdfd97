"""First settings that a search over published graphs has taught.

They come from ``python -m study bench first-settings``, which derives them from the results of the
fair table. For each dataset there are also those that the other datasets alone give: no dataset may
be judged by a search whose start has seen it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

Settings = tuple["Learned", ...]

_unseen: ContextVar[str | None] = ContextVar("unseen", default=None)


class Learned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting: options of the model, and the numbers of a member."""

    options: dict[str, bool | int | float | str]
    numbers: dict[str, float]


class FirstSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For each model the settings to begin with, the most useful one first.

    Attributes:
        experiment: The experiment that they come from.
        every: Those that all datasets give.
        without: By dataset, those that the other datasets give.
    """

    experiment: str
    every: dict[str, Settings]
    without: dict[str, dict[str, Settings]] = {}

    def of(self, model: str, *, directed: bool) -> list[tuple[dict[str, Any], Mapping[str, float]]]:
        """The settings of a model, without what an :func:`unseen` dataset has taught.

        Args:
            model: The id of the model.
            directed: Whether the graph is; in an undirected one, directions do not matter.
        """
        dataset = _unseen.get()
        found = self.every if dataset is None else self.without.get(dataset, self.every)
        settings: list[tuple[dict[str, Any], Mapping[str, float]]] = []
        for one in found.get(model, ()):
            options: dict[str, Any] = dict(one.options)
            if not directed and "direction" in options:
                options["direction"] = "undirected"
            settings.append((options, one.numbers))
        return settings


@contextmanager
def unseen(dataset: str) -> Iterator[None]:
    """Searches inside begin with settings that a dataset has not taught, to be judged on it."""
    before = _unseen.set(dataset)
    try:
        yield
    finally:
        _unseen.reset(before)


@cache
def packaged() -> FirstSettings:
    """Those that come with the package."""
    path = Path(__file__).with_name("first_settings.json")
    return msgspec.json.decode(path.read_bytes(), type=FirstSettings)
