r"""Probabilities for every node of a large graph: layer by layer, some rows at a time.

The graph product is linear, so that what a node receives can be collected before the weights are
applied: :math:`\mathbf{A}(\mathbf{C}\mathbf{W}) + \mathbf{b} =
(\mathbf{A}\mathbf{C})\mathbf{W} + \mathbf{b}`. A layer of a block of rows then needs the memory of
all nodes, which is there, and nothing else that is as large. No transpose of the graph is stored,
which only training needs: a million nodes with ten million arcs take well under 4 GB.
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

_ROWS = 1 << 15  # of a block: a few megabytes, which stay in the cache


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
    matrix = adjacency(edge_index, x.shape[0], **networks[0].policies_in_force)
    for network in networks:
        yield _read_out(network, x, matrix)


@torch.no_grad()
def _read_out(
    network: MemoryNetwork, x: Tensor | sparse.csr_array, matrix: sparse.csr_array
) -> ReadOut:
    nodes = x.shape[0]
    hidden = torch.empty(nodes, network.input.out_channels)
    for rows in _blocks(nodes):
        hidden[rows] = F.relu(network.input(_dense(x[rows])))
    memory, after = hidden.clone(), torch.empty_like(hidden)
    gates = torch.empty(len(network.rounds), nodes, 3)
    for place, mmp in enumerate(network.rounds):
        assert isinstance(mmp, MMP)
        for rows in _blocks(nodes):
            received = _rows_of(matrix, rows) @ memory
            hidden[rows], after[rows], of_round = mmp.step(hidden[rows], received, COLLECTED)
            gates[place, rows] = torch.stack([gate.mean(-1) for gate in of_round], dim=-1)
        memory, after = after, memory
    found = torch.empty(nodes, network.classifier.out_features)
    for rows in _blocks(nodes):
        found[rows] = network.classifier(hidden[rows]).softmax(-1)
    return ReadOut(found, gates)


class _Collected:
    """The graph of a convolution whose input has been collected already."""

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return hidden if bias is None else hidden + bias


COLLECTED = _Collected()


def _blocks(nodes: int) -> Iterator[slice]:
    return (slice(start, min(start + _ROWS, nodes)) for start in range(0, nodes, _ROWS))


def _rows_of(matrix: sparse.csr_array, rows: slice) -> Tensor:
    """Some rows as a sparse tensor that shares the memory of the matrix."""
    pointers = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(pointers[0], pointers[-1])
    return torch.sparse_csr_tensor(
        torch.from_numpy(pointers - pointers[0]),
        torch.from_numpy(matrix.indices[entries]),
        torch.from_numpy(matrix.data[entries]),
        size=(rows.stop - rows.start, matrix.shape[1]),
        check_invariants=False,
    )


def _dense(x: Any) -> Tensor:
    return torch.from_numpy(x.toarray()) if sparse.issparse(x) else x
