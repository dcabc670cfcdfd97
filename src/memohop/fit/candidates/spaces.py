r"""The settings to try of each network, proven ones first, and what they cost.

The first ones are the same for every graph. Some did well, by validation, on published graphs of
different kinds. Others come from ``python -m study bench first-settings``, which derives them from
the results of the fair table. For each dataset there are also those that the other datasets alone
give: no dataset may be judged by a search whose start has seen it.

What a network costs is guessed. On a CPU, an epoch (a training step and an evaluation) of :math:`L`
layers of width :math:`D` takes about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or
:math:`10 L D N` if it does not see the graph, and holds about :math:`40 L D N` bytes of
activations; a graph takes about 200 bytes and a microsecond for each of its :math:`|E|` arcs. These
figures were measured on 100,000 nodes with 2,000,000 arcs and are good to a factor of two. With
:math:`C` classes, logits and what is derived from them take about :math:`32 C N` bytes more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import torch

from memohop.fit._candidate import Cost, kept_bytes
from memohop.fit._problem import Problem
from memohop.jobs.space import Choice, Range, Space

Settings = tuple["Learned", ...]

_FEWEST = 50  # epochs of a network that is worth its time

_unseen: ContextVar[str | None] = ContextVar("unseen", default=None)


class Learned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting: options of the model, and the numbers of a member."""

    options: dict[str, bool | int | float | str]
    numbers: dict[str, float]

    @property
    def undirected(self) -> Learned:
        """The same for a graph without directions."""
        options = self.options
        if "direction" in options:
            options = options | {"direction": "undirected"}
        return Learned(options, self.numbers)


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

    def of(self, model: str) -> Settings:
        """The settings of a model, without what an :func:`unseen` dataset has taught."""
        dataset = _unseen.get()
        known = self.every if dataset is None else self.without.get(dataset, self.every)
        return known.get(model, ())


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


NUMBERS: Space = {
    "lr": Range(0.001, 0.1),
    "weight_decay": Range(1e-6, 0.05),
    "dropout": [0.0, 0.2, 0.3, 0.5, 0.7],
    "input_dropout": [0.0, 0.1, 0.3, 0.5, 0.8],
    "lam": [0.0, 0.0, 0.05, 0.2],
}
"""The numbers of a member; the last one is for models with memory."""


class NetworkSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one model.

    Attributes:
        choices: The options to choose from.
        own: The first settings, apart from those that the fair table has taught.
        openers: How many of these differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    choices: dict[str, Choice]
    own: Settings
    openers: int = 1
    directed_only: bool = False

    def first(self, model: str, *, directed: bool) -> list[Learned]:
        """The openers, what the fair table has taught, and the rest.

        In an undirected graph, directions do not matter, and some settings are the same.
        """

        def alike(settings: Settings) -> list[Learned]:
            return [
                setting
                for i, setting in enumerate(settings)
                if directed or setting.undirected not in [s.undirected for s in settings[:i]]
            ]

        own = alike(self.own)
        first = own[: self.openers] + alike(packaged().of(model)) + own[self.openers :]
        return first if directed else [setting.undirected for setting in first]


SPACES: dict[str, NetworkSpace] = msgspec.toml.decode(
    Path(__file__).with_name("spaces.toml").read_bytes(), type=dict[str, NetworkSpace]
)
"""The settings to try of each model of the registry."""


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
