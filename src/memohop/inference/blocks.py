r"""All nodes of a large graph, for rounds that go over blocks of rows.

The graph product is linear, so the memories can be collected before the weights are applied:
:math:`\mathbf{A}(\mathbf{C}\mathbf{W}) + \mathbf{b} = (\mathbf{A}\mathbf{C})\mathbf{W} +
\mathbf{b}`. The result overwrites the memory in blocks of columns, and the rest of a round goes
over blocks of rows: only hidden state and memory are held for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from scipy import sparse
from torch import Tensor

from memohop.data.adjacency import adjacency
from memohop.data.sparse_features import as_csr, as_matrix, is_sparse, sharing, stored_values
from memohop.networks import MemoryNetwork
from memohop.networks.base import Features
from memohop.networks.passing import Address, Begin, Update, Watch
from memohop.nn import MMP, SparseFeatures

_ROWS = 1 << 13  # of a block: a few megabytes, which fit into the cache
_COLUMNS = 16  # of a block: a row of it is a cache line


class Multiplies(Protocol):
    """A matrix, in RAM or not."""

    def __matmul__(self, hidden: Tensor, /) -> Tensor:
        """The product with ``[nodes, D]``."""


class Blocks:
    """All nodes, for networks of graph convolutions in evaluation mode.

    Gradients are not tracked.

    Args:
        x: features, dense or sparse.
        matrix: the result of :func:`memohop.nn.graph.adjacency`, or rows and columns of it.
        channels: width of the networks.
        counts: the matrix before it was normalised, for networks with an address.
    """

    def __init__(
        self,
        x: Tensor | sparse.csr_array,
        matrix: sparse.csr_array,
        channels: int,
        counts: sparse.csr_array | None = None,
    ) -> None:
        self._x = as_matrix(x, stored_values(x).dtype) if is_sparse(x) else x
        self._matrix: Multiplies = sharing(matrix)
        self._counts = None if counts is None else sharing(counts)
        self._make_room(x.shape[0], channels)

    def _make_room(self, nodes: int, channels: int) -> None:
        self.num_nodes = nodes
        self.hidden = torch.empty(nodes, channels)
        # In blocks of columns: the product of each overwrites it before the next is computed.
        widths = (min(_COLUMNS, channels - start) for start in range(0, channels, _COLUMNS))
        self._memory = [torch.empty(nodes, width) for width in widths]

    @torch.no_grad()
    def start(self, begin: Begin, address: Address | None) -> None:
        """Hidden state and memory before the first round; an address is collected like these."""
        if address is not None:
            assert self._counts is not None
            self._remember(slice(0, self.num_nodes), address.weight)
            self._collect(self._counts)
        for rows in self.rows():
            collected = None if address is None else self.memory(rows)
            self.hidden[rows], memory = begin(self._features(rows), rows, collected)
            self._remember(rows, memory)

    @torch.no_grad()
    def step(self, update: Update, watch: Watch) -> None:
        """One round: the collected memories overwrite the memory, then the gates act."""
        self._collect(self._matrix)
        for rows in self.rows():
            received = self.memory(rows)
            self.hidden[rows], memory, gates = update(self.hidden[rows], received, _COLLECTED)
            if memory.shape == received.shape:  # empty after the last round, which needs none
                self._remember(rows, memory)
            watch.see_gates(rows, gates)

    def memory(self, rows: slice | Tensor) -> Tensor:
        """The memory of some nodes, ``[rows, channels]``."""
        return torch.cat([block[rows] for block in self._memory], dim=1)

    def rows(self) -> Iterator[slice]:
        """The blocks of rows, in order."""
        nodes = self.num_nodes
        return (slice(start, min(start + _ROWS, nodes)) for start in range(0, nodes, _ROWS))

    def _collect(self, matrix: Multiplies) -> None:
        for block in self._memory:
            block.copy_(matrix @ block)

    def _features(self, rows: slice) -> Features:
        x = self._x[rows]
        return SparseFeatures(as_csr(x, stored_values(x).dtype)) if is_sparse(x) else x

    def _remember(self, rows: slice, memory: Tensor) -> None:
        for block, part in zip(self._memory, memory.split(_COLUMNS, dim=1), strict=True):
            block[rows] = part


class _Collected:
    """The graph of a convolution on input that is collected already."""

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return hidden if bias is None else hidden + bias


_COLLECTED = _Collected()


def block_logits(
    network: MemoryNetwork,
    x: Tensor | sparse.csr_array,
    edge_index: Tensor,
    weights: Tensor | None = None,
) -> Tensor:
    """The logits, ``[nodes, outputs]``, computed block by block.

    Args:
        network: A network of graph convolutions, in evaluation mode.
        x: Features, dense or sparse.
        edge_index: The arcs.
        weights: Of the arcs; by default all count alike.
    """
    count = x.shape[0]
    matrix = adjacency(edge_index, count, weights=weights, **network.policies_in_force)
    width, counts = network.input.out_channels, network.counts(edge_index, count, weights)
    return logits_of(network, Blocks(x, matrix, width, counts))


@torch.no_grad()
def logits_of(network: MemoryNetwork, nodes: Blocks) -> Tensor:
    """The logits of a network in evaluation mode, ``[nodes, outputs]``."""
    classifier = _Classifier(network, nodes)
    network.pass_messages(nodes, classifier)
    classifier.read()
    return classifier.logits


class _Classifier(Watch):
    """Adds up the logits, since the states that ``readout="jumping"`` reads are not kept."""

    def __init__(self, network: MemoryNetwork, nodes: Blocks) -> None:
        weight, bias = network.classifier.weight, network.classifier.bias
        self.logits, self._nodes = bias.repeat(nodes.num_nodes, 1), nodes
        self._reads_all = network.readout == "jumping"
        parts = len(network.rounds) + 1 if self._reads_all else 1
        self._weights = iter(weight.T.chunk(parts))  # for the state after each round

    def before_round(self, mmp: MMP) -> None:
        if self._reads_all:
            self.read()

    def read(self) -> None:
        """Add the share of the present hidden state."""
        weight = next(self._weights)
        for rows in self._nodes.rows():
            self.logits[rows] += self._nodes.hidden[rows] @ weight
