r"""Probabilities for every node of a large graph: layer by layer, some rows at a time.

The graph product is linear, so that what a node receives can be collected before the weights are
applied: :math:`\mathbf{A}(\mathbf{C}\mathbf{W}) + \mathbf{b} =
(\mathbf{A}\mathbf{C})\mathbf{W} + \mathbf{b}`. What is collected takes the place of the memory,
some columns at a time, and the rest of a round is done some rows at a time: besides hidden state
and memory of all nodes there is nothing as large. No transpose of the graph is stored, which only
training needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.networks import MemoryNetwork
from memohop.nn import MMP

_ROWS = 1 << 13  # of a block: a few megabytes, which stay in the cache
_COLUMNS = 16  # of a block: a row of it is a cache line


def adjacency(
    edge_index: Tensor, num_nodes: int, *, direction: str, self_loops: str, norm: str
) -> sparse.csr_array:
    """The matrix of a :class:`memohop.Graph` with these policies, without its transpose."""
    source, target = edge_index.to(torch.int32).numpy()
    ones, shape = np.ones(len(source), dtype=np.float32), (num_nodes, num_nodes)
    matrix = sparse.csr_array((ones, (source, target)), shape=shape)
    if direction == "in":
        matrix = matrix.T.tocsr()
    elif direction != "out":
        matrix = matrix + matrix.T.tocsr()
    if direction == "undirected":
        matrix.data[:] = 1
    if self_loops != "keep":
        loops = sparse.diags_array(matrix.diagonal(), format="csr", dtype=np.float32)
        matrix = matrix - loops
        matrix.eliminate_zeros()
    if self_loops == "add":
        matrix = matrix + sparse.eye_array(num_nodes, format="csr", dtype=np.float32)
    if norm != "none":
        rows = matrix.sum(axis=1).clip(min=1)
        per_entry = np.repeat(rows, np.diff(matrix.indptr))
        if norm == "symmetric":
            per_entry = np.sqrt(per_entry * matrix.sum(axis=0)[matrix.indices])
        matrix.data /= per_entry
    return matrix


class ReadOut(NamedTuple):
    """What one network says of every node.

    Attributes:
        probabilities: `[nodes, classes]`.
        gates: `[rounds, nodes, 3]`: kept, absorbed, passed on (means over channels).
    """

    probabilities: Tensor
    gates: Tensor


def probabilities(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> NDArray[np.float32]:
    """The mean over networks of the probability of each class, `[nodes, classes]`.

    Args:
        networks: In evaluation mode, on graph convolutions, with the same options.
        x: Features, dense or sparse.
        edge_index: The arcs.
    """
    total = torch.zeros(x.shape[0], networks[0].classifier.out_features)
    for found in read_out(networks, x, edge_index):
        total += found.probabilities
    return (total / len(networks)).numpy()


def read_out(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> Iterator[ReadOut]:
    """What each network says, one after the other; arguments as for :func:`probabilities`."""
    matrix = as_tensor(adjacency(edge_index, x.shape[0], **networks[0].policies_in_force))
    state = State(x.shape[0], networks[0].input.out_channels)
    for network in networks:
        state.start(network, x)
        gates = torch.empty(len(network.rounds), x.shape[0], 3)
        for of_round, mmp in zip(gates, network.rounds, strict=True):
            assert isinstance(mmp, MMP)
            state.collect(matrix)
            state.update(mmp, of_round)
        yield ReadOut(state.decide(network), gates)


class State:
    """Hidden state and memory of all nodes, which is all that is as large as the graph is wide.

    One object serves several networks: memory that is freed and asked for anew leaves gaps.

    Args:
        nodes: How many there are.
        channels: How wide the networks are.
    """

    def __init__(self, nodes: int, channels: int) -> None:
        self.hidden = torch.empty(nodes, channels)
        # In blocks of columns: the product of one takes its place before the next is made.
        widths = (min(_COLUMNS, channels - start) for start in range(0, channels, _COLUMNS))
        self._memory = [torch.empty(nodes, width) for width in widths]

    @torch.no_grad()
    def start(self, network: MemoryNetwork, x: Tensor | sparse.csr_array) -> None:
        """Before the first round the memory is the hidden state."""
        for rows in self._blocks():
            self.hidden[rows] = F.relu(network.input(_dense(x[rows])))
            self._remember(rows, self.hidden[rows])

    def collect(self, matrix: Tensor) -> None:
        """What each node receives takes the place of the memory."""
        for block in self._memory:
            block.copy_(matrix @ block)

    @torch.no_grad()
    def update(self, mmp: MMP, gates: Tensor) -> None:
        """One round, from what was collected; the means of its gates go into `[nodes, 3]`."""
        for rows in self._blocks():
            self.hidden[rows], memory, of_round = mmp.step(
                self.hidden[rows], self.memory(rows), COLLECTED
            )
            self._remember(rows, memory)
            gates[rows] = torch.stack([gate.mean(-1) for gate in of_round], dim=-1)

    @torch.no_grad()
    def decide(self, network: MemoryNetwork) -> Tensor:
        """The probabilities, `[nodes, classes]`."""
        found = torch.empty(len(self.hidden), network.classifier.out_features)
        for rows in self._blocks():
            found[rows] = network.classifier(self.hidden[rows]).softmax(-1)
        return found

    def memory(self, rows: slice | Tensor) -> Tensor:
        """The memory of some nodes, or what they received; `[rows, channels]`."""
        return torch.cat([block[rows] for block in self._memory], dim=1)

    def _remember(self, rows: slice, memory: Tensor) -> None:
        for block, part in zip(self._memory, memory.split(_COLUMNS, dim=1), strict=True):
            block[rows] = part

    def _blocks(self) -> Iterator[slice]:
        nodes = len(self.hidden)
        return (slice(start, min(start + _ROWS, nodes)) for start in range(0, nodes, _ROWS))


class _Collected:
    """The graph of a convolution whose input has been collected already."""

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return hidden if bias is None else hidden + bias


COLLECTED = _Collected()


def as_tensor(matrix: sparse.csr_array) -> Tensor:
    """A sparse tensor that shares the memory of the matrix."""
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        torch.from_numpy(matrix.data),
        size=matrix.shape,
        check_invariants=False,
    )


def _dense(x: Any) -> Tensor:
    return torch.from_numpy(x.toarray()) if sparse.issparse(x) else x
