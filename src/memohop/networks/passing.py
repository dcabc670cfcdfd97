"""The nodes of a forward pass, and the hook that reads it out.

The pass itself is :meth:`memohop.networks.MemoryNetwork.pass_messages`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from memohop.networks.linkx import AdjacencyLinear
from memohop.nn import MMP, Gates, Graph

Begin = Callable[[Any, slice, Tensor | None], tuple[Tensor, Tensor]]
"""From the features of some rows, these rows, and what they collect of the address, to the first
hidden state and memory."""

Update = Callable[..., tuple[Tensor, Tensor, Gates]]
"""One round, from ``(hidden, memory, *conv_args)`` to hidden state, memory and gates."""


class Address(AdjacencyLinear):
    r"""Learned rows of the adjacency matrix: :math:`\mathbf{A}\mathbf{R}`, not normalised."""

    def __init__(self, num_nodes: int, channels: int) -> None:
        super().__init__(num_nodes, channels, bias=False)

    def forward(self, graph: Graph) -> Tensor:
        """What each node collects, ``[N, channels]``."""
        return super().forward(graph.counts)


class Onlooker:
    """A hook that reads out a forward pass; this one does nothing."""

    def before_round(self, mmp: MMP) -> None:
        """Called before the memories of a round are sent."""

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Called with the gates of some nodes in this round, in ascending blocks."""


class AllNodes:
    """All nodes at once; the states after every round are kept, for the regulariser.

    Args:
        x: the features.
        graph: the graph that the convolutions take.
        beside: their other arguments, from the first hidden state.
    """

    def __init__(self, x: Any, graph: Any, beside: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
        self._x, self._graph, self._beside = x, graph, beside
        self.num_nodes = x.shape[0]
        self.pairs: list[tuple[Tensor, Tensor]] = []  # hidden state and memory after each round

    def start(self, begin: Begin, address: Address | None) -> None:
        """Hidden state and memory before the first round."""
        collected = None if address is None else address(self._graph)
        self.pairs = [begin(self._x, slice(0, self.num_nodes), collected)]

    def step(self, update: Update, watch: Onlooker) -> None:
        """One round."""
        beside = self._beside(self.pairs[0][0])
        hidden, memory, gates = update(*self.pairs[-1], self._graph, *beside)
        self.pairs.append((hidden, memory))
        watch.see_gates(slice(0, len(hidden)), gates)


class MeanGates(Onlooker):
    """The gates of every node in every round, as means over channels.

    Args:
        found: ``[rounds, N, 3]``, to be filled: kept, absorbed, passed on.
    """

    def __init__(self, means: Tensor) -> None:
        self.means, self._round = means, -1

    def before_round(self, mmp: MMP) -> None:
        """Start the next round."""
        self._round += 1

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Keep their means."""
        self.means[self._round, rows] = mean_gates(gates)


def mean_gates(gates: Gates) -> Tensor:
    """Kept, absorbed and passed on, ``[N, 3]``: means over channels."""
    return torch.stack([gate.mean(-1) for gate in gates], dim=-1)
