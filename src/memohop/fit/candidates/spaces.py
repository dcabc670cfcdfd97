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
from typing import Any

import msgspec

from memohop.fit._candidate import Setting
from memohop.jobs.space import Choice, Space
from memohop.networks.registry import entry

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class NetworkSpace:
    """The settings of one model.

    Attributes:
        choices: The options to choose from.
        own: The first settings, apart from those that the fair table has taught.
        of_edges: Those for graphs whose arcs have attributes; the first that can be is an opener.
        openers: How many of the others differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    choices: Mapping[str, Choice]
    own: Sequence[Setting]
    of_edges: Sequence[Setting] = ()
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
        model: NetworkSpace(
            **table
            | {
                name: [Setting(model, **given) for given in table[name]]
                for name in ("own", "of_edges")
                if name in table
            }
        )
        for model, table in tables["networks"].items()
    }
    numbers = msgspec.convert(tables["numbers"], dict[str, Space])
    return Listed(numbers, tables["first"], networks)


def in_time(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a network where nodes have times.

    A node collects by the arcs that lead out of it, see :meth:`Inputs.as_received`. The symmetric
    norm would divide by how many collect from a neighbour, later ones too, so it is that of rows.
    """
    known, changed = entry(model).options(), dict(options)
    if "direction" in known:
        changed["direction"] = "out"
    if {**known, **changed}.get("norm") == "symmetric":
        changed["norm"] = "row"
    return changed


def space_in_time(model: str, space: Space) -> Space:
    """What options are drawn from where nodes have times."""
    kept: Space = {}
    for name, values in space.items():
        if isinstance(values, list):
            tables = [value if isinstance(value, dict) else {} for value in values]
            values = [
                value
                for value, table in zip(values, tables, strict=True)
                if table.get("norm") != "symmetric"
            ]
        kept[name] = values
    return {**kept, **{name: [value] for name, value in in_time(model, {}).items()}}


@cache
def taught() -> list[Setting]:
    """What the fair table has taught: first settings of each model, the most useful ones first."""
    stored = (_FOLDER / "first_settings.json").read_bytes()
    return msgspec.json.decode(stored, type=list[Setting])
