"""The settings that a search tries: first those of a fixed list, then variations of the best one.

A trial is a structure (options of the model) with numbers (learning rate and so on). The first
trials are the same for every graph: settings with good validation scores on published graphs of
different kinds (small and large, like and unlike neighbours, words and numbers as features), with
the same numbers for every model. Each later group of trials starts from the best trial so far: its
structure with at most one part changed, and numbers near its own. Trials come in groups because
those of one structure are trained as one population.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MODEL = "gcn+mmp"
"""The model that is kept."""

MODELS = (MODEL, "mlp", "gcn")
"""The kept model, and those that it is compared with at the same number of trials."""

GROUP = 3
"""How many trials share a structure, after the first ones."""

_WIDTHS = {f"{width}": {"hidden_channels": width} for width in (64, 128)}
_LAYERS = {f"{layers}": {"num_layers": layers} for layers in (1, 2, 3)}
_DIRECTIONS = {name: {"direction": name} for name in ("undirected", "out", "in")}
_MEANS = {
    "others": {"self_loops": "remove", "norm": "row"},
    "all": {"self_loops": "add", "norm": "row"},
    "symmetric": {"self_loops": "add", "norm": "symmetric"},
}
_ROUNDS = {
    "1": {"num_layers": 1, "message_norm": "none"},
    "2": {"num_layers": 2, "message_norm": "none"},
    "2 normalised": {"num_layers": 2, "message_norm": "layer"},
    "4 normalised": {"num_layers": 4, "message_norm": "layer"},
}
_GATES = {
    "layer": {"gate_sharing": "layer", "classifier_dropout": True},
    "shared": {"gate_sharing": "shared", "classifier_dropout": False},
}

Axes = Mapping[str, Mapping[str, Mapping[str, Any]]]

_AXES: dict[str, Axes] = {
    "mlp": {"layers": _LAYERS, "width": _WIDTHS},
    "gcn": {"direction": _DIRECTIONS, "mean": _MEANS, "layers": _LAYERS, "width": _WIDTHS},
    "gcn+mmp": {
        "direction": _DIRECTIONS,
        "mean": _MEANS,
        "rounds": _ROUNDS,
        "gates": _GATES,
        "width": _WIDTHS,
    },
}
# In the order of the axes above.
_FIRST: dict[str, tuple[tuple[str, ...], ...]] = {
    "mlp": (
        ("2", "64"),
        ("2", "128"),
        ("2", "64"),
        ("3", "64"),
        ("2", "64"),
        ("1", "64"),
        ("3", "128"),
    ),
    "gcn": (
        ("undirected", "symmetric", "2", "64"),
        ("out", "all", "2", "128"),
        ("undirected", "all", "2", "64"),
        ("out", "all", "3", "64"),
        ("undirected", "symmetric", "2", "128"),
        ("undirected", "others", "1", "64"),
        ("undirected", "all", "3", "128"),
    ),
    "gcn+mmp": (
        ("undirected", "others", "2", "layer", "64"),
        ("out", "others", "2", "layer", "128"),
        ("undirected", "others", "2", "layer", "64"),
        ("out", "others", "4 normalised", "layer", "64"),
        ("undirected", "all", "2", "shared", "64"),
        ("undirected", "symmetric", "1", "shared", "64"),
        ("undirected", "others", "2", "layer", "128"),
    ),
}
# The numbers of a member: some are drawn from a range, the others from a list.
_RANGES = {"lr": (0.001, 0.1), "weight_decay": (1e-6, 0.05)}
_LISTS = {
    "dropout": (0.0, 0.2, 0.3, 0.5, 0.7),
    "input_dropout": (0.0, 0.1, 0.3, 0.5, 0.8),
    "lam": (0.0, 0.0, 0.05, 0.2),
}
# In the order of both tables above.
_FIRST_NUMBERS = (
    (0.01, 1e-3, 0.5, 0.3, 0.0),
    (0.01, 0.01, 0.5, 0.5, 0.0),
    (0.02, 0.02, 0.7, 0.0, 0.2),
    (0.003, 0.002, 0.3, 0.3, 0.0),
    (0.003, 0.01, 0.5, 0.8, 0.0),
    (0.02, 0.005, 0.7, 0.1, 0.0),
    (0.005, 1e-4, 0.2, 0.0, 0.0),
)


@dataclass(frozen=True)
class Trial:
    """One setting to try."""

    structure: Mapping[str, str]  # the value chosen on each axis of the space, by name
    options: Mapping[str, Any]  # of the model, which follow from the structure
    numbers: Mapping[str, float]  # of a Member: learning rate, decay, dropout rates and lambda


class Space:
    """The settings of one model.

    Args:
        model: One of :data:`MODELS`.
        directed: Whether some arc of the graph has no opposite; otherwise all directions
            are the same and there is no choice between them.
        seed: Decides the variations.
    """

    def __init__(self, model: str, *, directed: bool, seed: int) -> None:
        self._axes, self._directed = _AXES[model], directed
        self._has_memory = model.endswith("+mmp")
        self._generator = np.random.default_rng([seed, MODELS.index(model)])
        self.first = [
            self._trial(
                dict(zip(self._axes, names, strict=True)),
                dict(zip((*_RANGES, *_LISTS), numbers, strict=True)),
            )
            for names, numbers in zip(_FIRST[model], _FIRST_NUMBERS, strict=True)
        ]

    def near(self, best: Trial, count: int) -> list[Trial]:
        """Trials of one structure, with at most one part changed, and with similar numbers."""
        structure = dict(best.structure)
        axis = str(self._generator.choice([*self._axes, "none", "none"]))
        if axis != "none":
            others = [name for name in self._axes[axis] if name != structure[axis]]
            structure[axis] = str(self._generator.choice(others))
        return [self._trial(structure, self._vary(best.numbers)) for _ in range(count)]

    def _trial(self, structure: Mapping[str, str], numbers: dict[str, float]) -> Trial:
        options: dict[str, Any] = {}
        for axis, name in structure.items():
            options |= self._axes[axis][name]
        if "direction" in options and not self._directed:
            options["direction"] = "undirected"
        return Trial(structure, options, numbers if self._has_memory else numbers | {"lam": 0.0})

    def _vary(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Multiply learning rate and decay by about two or a half; redraw some other numbers."""
        varied, draw = dict(numbers), self._generator
        for name, (low, high) in _RANGES.items():
            factor = np.exp(draw.normal(scale=0.6))
            varied[name] = float(np.clip(numbers[name] * factor, low, high))
        for name, values in _LISTS.items():
            if draw.random() < 0.4:
                varied[name] = float(draw.choice(values))
        return varied
