"""The result of a fit: networks that can be rebuilt from options and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from memohop.networks import MemoryNetwork, build
from memohop.own.space import MODEL


@dataclass(frozen=True, eq=False)
class OwnModel:
    """The networks of the chosen setting, one for each split; their probabilities are averaged.

    Each network was trained on other nodes, so together they have seen every label.
    """

    features: int  # their number
    classes: int  # their number
    options: Mapping[str, Any]  # of gcn+mmp
    states: tuple[Mapping[str, Tensor], ...]  # parameters and buffers of each network

    def networks(self) -> list[MemoryNetwork]:
        """The networks, in evaluation mode."""
        found = []
        for state in self.states:
            network = build(MODEL, self.features, self.classes, **self.options)
            assert isinstance(network, MemoryNetwork)
            network.load_state_dict(dict(state))
            found.append(network.eval())
        return found
