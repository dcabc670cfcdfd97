"""The nodes of a forward pass, and the hook that reads it out.

The pass itself is :meth:`memohop.networks.MemoryNetwork.pass_messages`. Training computes all nodes
at once, :class:`AllNodes`; prediction goes block by block, :class:`memohop.inference.Blocks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from memohop.nn.mmp import MMP, Gates

Embed = Callable[[Any], Tensor]
"""From features to hidden state."""

Update = Callable[..., tuple[Tensor, Tensor, Gates]]
"""One round, from ``(hidden, memory, *conv_args)`` to hidden state, memory and gates."""


class Watch:
    """A hook that reads out a forward pass; this one does nothing."""

    def before_round(self, mmp: MMP) -> None:
        """Called before the memories of a round are sent."""

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Called with the gates of some nodes in this round, in ascending blocks."""


class Nodes(Protocol):
    """Hidden state and memory of all nodes, at once or block by block."""

    def start(self, embed: Embed) -> None:
        """Before the first round the memory is the hidden state."""

    def step(self, update: Update, watch: Watch) -> None:
        """One round."""


class AllNodes:
    """All nodes at once; the states after every round are kept, for the regulariser.

    Args:
        x: the features.
        graph: the graph that the convolutions take.
        beside: their other arguments, from the first hidden state.
    """

    def __init__(self, x: Any, graph: Any, beside: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
        self._x, self._graph, self._beside = x, graph, beside
        self.pairs: list[tuple[Tensor, Tensor]] = []  # hidden state and memory after each round

    def start(self, embed: Embed) -> None:
        """Before the first round the memory is the hidden state."""
        hidden = embed(self._x)
        self.pairs = [(hidden, hidden)]

    def step(self, update: Update, watch: Watch) -> None:
        """One round."""
        beside = self._beside(self.pairs[0][0])
        hidden, memory, gates = update(*self.pairs[-1], self._graph, *beside)
        self.pairs.append((hidden, memory))
        watch.see_gates(slice(0, len(hidden)), gates)


class MeanGates(Watch):
    """The gates of every node in every round, as means over channels.

    Args:
        found: ``[rounds, N, 3]``, to be filled: kept, absorbed, passed on.
    """

    def __init__(self, found: Tensor) -> None:
        self.found, self._round = found, -1

    def before_round(self, mmp: MMP) -> None:
        """Start the next round."""
        self._round += 1

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Keep their means."""
        self.found[self._round, rows] = mean_gates(gates)


def mean_gates(gates: Gates) -> Tensor:
    """Kept, absorbed and passed on, ``[N, 3]``: means over channels."""
    return torch.stack([gate.mean(-1) for gate in gates], dim=-1)
