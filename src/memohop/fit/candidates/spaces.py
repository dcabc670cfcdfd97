"""The settings to try of each kind of model, proven ones first, as ``spaces.toml`` lists them.

The first ones are the same for every graph. Some did well, by validation, on published graphs of
different kinds. Others come from ``python -m study bench first-settings``, which derives them from
the results of the fair table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from memohop.fit._candidate import Setting
from memohop.jobs.space import Choice, Space

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class NetworkSpace:
    """The settings of one model.

    Attributes:
        choices: The options to choose from.
        own: The first settings, apart from those that the fair table has taught.
        openers: How many of these differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    choices: Mapping[str, Choice]
    own: Sequence[Setting]
    openers: int = 1
    directed_only: bool = False


@dataclass(frozen=True)
class Listed:
    """What ``spaces.toml`` lists."""

    numbers: Mapping[str, Space]  # of ``networks``, and of what learns from features
    first: Mapping[str, Sequence[Mapping[str, float]]]  # the first numbers of the latter
    networks: Mapping[str, NetworkSpace]  # by the id of the registry


@cache
def listed() -> Listed:
    """What there is to try, read when a search first asks."""
    tables = tomllib.loads((_FOLDER / "spaces.toml").read_text("utf-8"))
    networks = {
        model: NetworkSpace(**table | {"own": [Setting(model, **own) for own in table["own"]]})
        for model, table in tables["networks"].items()
    }
    numbers = msgspec.convert(tables["numbers"], dict[str, Space])
    return Listed(numbers, tables["first"], networks)


@cache
def taught() -> list[Setting]:
    """What the fair table has taught: first settings of each model, the most useful ones first."""
    stored = (_FOLDER / "first_settings.json").read_bytes()
    return msgspec.json.decode(stored, type=list[Setting])
