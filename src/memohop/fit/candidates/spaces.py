r"""The settings to try of each kind of model, proven ones first, and what networks cost.

They are listed in ``spaces.toml``. The first ones are the same for every graph. Some did well, by
validation, on published graphs of different kinds. Others come from ``python -m study bench
first-settings``, which derives them from the results of the fair table.

What a network costs is guessed. On a CPU, an epoch (a training step and an evaluation) of :math:`L`
layers of width :math:`D` takes about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or
:math:`10 L D N` if it does not see the graph, and holds about :math:`40 L D N` bytes of
activations; a graph takes about 200 bytes and a microsecond for each of its :math:`|E|` arcs. These
figures were measured on 100,000 nodes with 2,000,000 arcs and are good to a factor of two. With
:math:`C` classes, logits and what is derived from them take about :math:`32 C N` bytes more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import torch

from memohop.fit._candidate import Cost, Setting, kept_bytes
from memohop.fit._problem import Problem
from memohop.jobs.space import Choice, Space

_FEWEST = 50  # epochs of a network that is worth its time

TAUGHT: list[Setting] = msgspec.json.decode(
    Path(__file__).with_name("first_settings.json").read_bytes(), type=list[Setting]
)
"""What the fair table has taught: first settings of each model, the most useful ones first."""


@dataclass(frozen=True)
class NetworkSpace:
    """The settings of one model.

    Attributes:
        model: Its id.
        choices: The options to choose from.
        own: The first settings, apart from those that the fair table has taught.
        openers: How many of these differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    model: str
    choices: Mapping[str, Choice]
    own: Sequence[Setting]
    openers: int = 1
    directed_only: bool = False

    def first(self, *, directed: bool) -> list[Setting]:
        """The openers, what the fair table has taught, and the rest."""
        taught = [setting for setting in TAUGHT if setting.family == self.model]
        own, taught = (_for_graph(settings, directed) for settings in (self.own, taught))
        return own[: self.openers] + taught + own[self.openers :]


def _for_graph(settings: Sequence[Setting], directed: bool) -> list[Setting]:
    """The same settings; where directions do not matter, some of them are alike."""
    if directed:
        return list(settings)
    undirected = [
        replace(setting, options={**setting.options, "direction": "undirected"})
        if "direction" in setting.options
        else setting
        for setting in settings
    ]
    return [setting for i, setting in enumerate(undirected) if setting not in undirected[:i]]


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("spaces.toml").read_text("utf-8"))


@cache
def network_spaces() -> dict[str, NetworkSpace]:
    """The settings to try of each model of the registry."""
    return {
        model: NetworkSpace(
            model, **table | {"own": [Setting(model, **own) for own in table["own"]]}
        )
        for model, table in _tables()["networks"].items()
    }


def numbers_of(kind: str) -> Space:
    """What numbers are drawn from, those of ``networks``, of ``linear`` models or ``lightgbm``."""
    return msgspec.convert(_tables()["numbers"][kind], Space)


def first_numbers(kind: str) -> list[dict[str, float]]:
    """The numbers of the first ``linear`` models or of ``lightgbm``, the most promising first."""
    numbers: list[dict[str, float]] = _tables()["first"][kind]
    return numbers


def network_cost(problem: Problem, options: Mapping[str, Any], *, sees_graph: bool) -> Cost:
    """What a network takes: the seconds of a few dozen epochs on a CPU, and its RAM.

    Args:
        problem: The graph.
        options: The options of the network.
        sees_graph: Whether the network uses arcs.
    """
    hops, nodes, arcs = options.get("hops", 0), problem.nodes, problem.arcs.shape[1] * sees_graph
    # Each map of fsgnn takes its steps by itself, on two graphs.
    layers = hops * (hops + 1) if hops else options.get("num_layers", 1)
    channels, graphs = layers * options.get("hidden_channels", 1), 2 if hops else 1
    epoch = channels * (5e-9 * arcs + (3e-8 if sees_graph else 1e-8) * nodes)
    held = 200 * graphs * arcs + (40 * channels + 32 * problem.classes) * nodes
    seconds = 1e-6 * graphs * arcs + _FEWEST * epoch / torch.get_num_threads()
    return Cost(seconds, held + kept_bytes(problem))
