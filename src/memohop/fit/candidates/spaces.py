"""The settings to try of each network: proven ones first, then changes of the best.

A setting is a structure (options of the model) with numbers (learning rate and so on). The first
ones are the same for every graph: they did well, by validation, on published graphs of different
kinds. After them, each group of settings starts from the best one so far: its structure with at
most one part changed, and numbers near its own. Settings come in groups because those of one
structure are trained as one population.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Axis = Mapping[str, Mapping[str, Any]]
"""Options by the name of a choice; a choice may set several of them."""

WIDTHS: Axis = {f"{width}": {"hidden_channels": width} for width in (64, 128, 256)}
DIRECTIONS: Axis = {name: {"direction": name} for name in ("undirected", "out", "in")}
MEANS: Axis = {
    "others": {"self_loops": "remove", "norm": "row"},
    "all": {"self_loops": "add", "norm": "row"},
    "symmetric": {"self_loops": "add", "norm": "symmetric"},
}
LABELS: Axis = {name: {"labels": name} for name in ("none", "memory")}
ADDRESSES: Axis = {name: {"address": name} for name in ("none", "rows")}
ROUNDS: Axis = {
    "1": {"num_layers": 1, "message_norm": "none"},
    "2": {"num_layers": 2, "message_norm": "none"},
    "2 normalised": {"num_layers": 2, "message_norm": "layer"},
    "4 normalised": {"num_layers": 4, "message_norm": "layer"},
}
GATES: Axis = {
    "layer": {"gate_sharing": "layer", "classifier_dropout": True},
    "shared": {"gate_sharing": "shared", "classifier_dropout": False},
}
READOUTS: Axis = {name: {"readout": name} for name in ("jumping", "last")}

RANGES = {"lr": (0.001, 0.1), "weight_decay": (1e-6, 0.05)}
"""The numbers of a member that are drawn from a range,"""
LISTS = {
    "dropout": (0.0, 0.2, 0.3, 0.5, 0.7),
    "input_dropout": (0.0, 0.1, 0.3, 0.5, 0.8),
    "lam": (0.0, 0.0, 0.05, 0.2),
}
"""and those that are drawn from a list."""


def _numbers(*values: float) -> dict[str, float]:
    return dict(zip((*RANGES, *LISTS), values, strict=True))


@dataclass(frozen=True)
class Space:
    """The settings of one model.

    Attributes:
        axes: The options to choose from, by the name of the choice.
        starts: For each of the first settings, the names of the choices, in the order of the
            axes, and the numbers.
        openers: How many of these differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    axes: Mapping[str, Axis]
    starts: tuple[tuple[tuple[str, ...], Mapping[str, float]], ...]
    openers: int = 1
    directed_only: bool = False

    def first(self, *, directed: bool) -> list[tuple[dict[str, Any], Mapping[str, float]]]:
        """The first settings, without repeats; in an undirected graph, directions do not matter."""
        found: list[tuple[dict[str, Any], Mapping[str, float]]] = []
        for names, numbers in self.starts:
            chosen = dict(zip(self.axes, names, strict=True))
            if not directed and "direction" in chosen:
                chosen["direction"] = "undirected"
            one = self._options(chosen), numbers
            if one not in found:
                found.append(one)
        return found

    def changed(
        self, options: Mapping[str, Any], generator: np.random.Generator, *, directed: bool
    ) -> dict[str, Any]:
        """Options with at most one choice changed."""
        axes = [name for name in self.axes if directed or name != "direction"]
        axis = str(generator.choice([*axes, "none", "none"]))
        if axis == "none":
            return dict(options)
        others = [one for one in self.axes[axis].values() if not one.items() <= options.items()]
        return {**options, **others[generator.integers(len(others))]}

    def _options(self, chosen: Mapping[str, str]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for axis, name in chosen.items():
            options |= self.axes[axis][name]
        return options


def near_numbers(numbers: Mapping[str, float], generator: np.random.Generator) -> dict[str, float]:
    """Multiply learning rate and decay by a factor of about two; redraw other numbers at times."""
    changed = dict(numbers)
    for name, (low, high) in RANGES.items():
        factor = np.exp(generator.normal(scale=0.6))
        changed[name] = float(np.clip(numbers[name] * factor, low, high))
    for name, values in LISTS.items():
        if generator.random() < 0.4:
            changed[name] = float(generator.choice(values))
    return changed


def _layers(*counts: int) -> Axis:
    return {f"{count}": {"num_layers": count} for count in counts}


_USUAL = _numbers(0.01, 5e-4, 0.5, 0.3, 0.0)
_NOT_DROPPED = _numbers(0.01, 1e-6, 0.0, 0.0, 0.0)
_RESIDUAL = Space(
    {"direction": DIRECTIONS, "layers": _layers(1, 2, 4, 8), "width": WIDTHS},
    (
        (("undirected", "2", "64"), _numbers(0.01, 5e-4, 0.5, 0.0, 0.0)),
        (("undirected", "8", "64"), _numbers(0.003, 0.0, 0.2, 0.0, 0.0)),
        (("out", "2", "128"), _numbers(0.01, 0.005, 0.5, 0.5, 0.0)),
        (("undirected", "4", "128"), _numbers(0.003, 1e-4, 0.3, 0.2, 0.0)),
    ),
    openers=2,
)

SPACES: dict[str, Space] = {
    "mlp": Space(
        {"layers": _layers(1, 2, 3), "width": WIDTHS},
        (
            (("2", "64"), _numbers(0.01, 1e-3, 0.5, 0.3, 0.0)),
            (("2", "128"), _numbers(0.01, 0.01, 0.5, 0.5, 0.0)),
            (("3", "128"), _numbers(0.005, 1e-4, 0.2, 0.0, 0.0)),
        ),
    ),
    "sage-res": _RESIDUAL,
    "gcn-res": _RESIDUAL,
    "dir-gcn": Space(
        {"layers": _layers(1, 2, 3, 5), "width": WIDTHS},
        (
            (("3", "64"), _numbers(0.01, 1e-4, 0.5, 0.0, 0.0)),
            (("2", "128"), _numbers(0.005, 0.001, 0.3, 0.3, 0.0)),
        ),
        directed_only=True,
    ),
    "linkx": Space(
        {
            "direction": DIRECTIONS,
            "edge": {f"{count}": {"edge_layers": count} for count in (1, 2)},
            "node": {f"{count}": {"node_layers": count} for count in (1, 2)},
            "layers": _layers(1, 2, 3),
            "width": WIDTHS,
        },
        (
            (("undirected", "1", "1", "2", "64"), _numbers(0.01, 1e-3, 0.5, 0.0, 0.0)),
            (("out", "1", "1", "1", "128"), _numbers(0.01, 0.01, 0.5, 0.3, 0.0)),
        ),
    ),
    "fsgnn": Space(
        {
            "direction": DIRECTIONS,
            "hops": {f"{count}": {"hops": count} for count in (2, 3)},
            "width": WIDTHS,
        },
        (
            (("undirected", "2", "64"), _numbers(0.01, 5e-4, 0.5, 0.0, 0.0)),
            (("out", "3", "64"), _numbers(0.01, 0.005, 0.5, 0.3, 0.0)),
        ),
    ),
    "gcn+mmp": Space(
        {
            "direction": DIRECTIONS,
            "mean": MEANS,
            "rounds": ROUNDS,
            "gates": GATES,
            "readout": READOUTS,
            "width": WIDTHS,
            "labels": LABELS,
            "address": ADDRESSES,
        },
        tuple(
            ((direction, "others", rounds, "layer", "jumping", "64", labels, address), numbers)
            for direction, rounds, labels, address, numbers in (
                ("out", "2 normalised", "memory", "none", _USUAL),
                ("undirected", "2 normalised", "memory", "rows", _USUAL),
                ("undirected", "2 normalised", "memory", "none", _USUAL),
                ("undirected", "2 normalised", "none", "none", _USUAL),
                ("undirected", "2 normalised", "none", "rows", _USUAL),
                ("undirected", "4 normalised", "memory", "none", _NOT_DROPPED),
                ("out", "2 normalised", "none", "rows", _numbers(0.01, 5e-4, 0.5, 0.5, 0.0)),
            )
        ),
        openers=6,
    ),
}
"""The settings to try of each model of the registry."""
