"""Networks over a prepared graph: the arcs stay on the disk, and are read block by block.

Only hidden state and memory of all nodes are in RAM, two numbers for each channel of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.adjacency import REVERSED, normalise, rows_of
from memohop.data.sparse_features import as_csr, is_sparse, sharing
from memohop.inference.blocks import Blocks, logits_of
from memohop.networks import MemoryNetwork
from memohop.networks.base import Features
from memohop.nn import SparseFeatures

if TYPE_CHECKING:
    from memohop.data.prepared import Prepared
    from memohop.data.tables.column import Matrix

_ROWS = 1 << 16  # of the adjacency matrix, that are in RAM at once


class DiskMatrix:
    """The matrix of a :class:`memohop.Graph` of a prepared graph, of which rows are read.

    Args:
        graph: The prepared graph.
        direction: As for :class:`memohop.Graph`, like the next two.
        self_loops: What becomes of the diagonal.
        norm: How rows are divided.
        unit: The number by which weights of arcs are divided; None if none count.
    """

    def __init__(
        self,
        graph: Prepared,
        *,
        direction: str,
        self_loops: str = "keep",
        norm: str = "none",
        unit: float | None = 1.0,
    ) -> None:
        self.nodes, self._unit = graph.nodes, unit
        self._graph, self._direction, self._self_loops = graph, direction, self_loops
        self._norm = norm

    def rows(self, nodes: slice) -> sparse.csr_array:
        """The rows of some nodes, ``[rows, nodes]``, in float32."""
        return normalise(self._counts(nodes), self._norm, lambda: self._column_sums)

    def __matmul__(self, hidden: Tensor) -> Tensor:
        """The product with ``[nodes, D]``, some rows at a time."""
        found = torch.empty_like(hidden)
        for nodes in self.blocks():
            found[nodes] = sharing(self.rows(nodes)) @ hidden
        return found

    def blocks(self) -> Iterator[slice]:
        """Slices of all nodes, in order."""
        return slices(self.nodes, _ROWS)

    @cached_property
    def sums(self) -> NDArray[np.float32]:
        """The sum of each row before it is normalised, ``[nodes]``."""
        return np.concatenate([self._counts(nodes).sum(axis=1) for nodes in self.blocks()])

    @property
    def _column_sums(self) -> NDArray[np.float32]:
        return self._turned.sums if self._direction in ("out", "in") else self.sums

    @cached_property
    def _turned(self) -> DiskMatrix:
        policies = {"direction": REVERSED[self._direction], "self_loops": self._self_loops}
        return DiskMatrix(self._graph, **policies, unit=self._unit)

    def _counts(self, nodes: slice) -> sparse.csr_array:
        """The rows before they are normalised."""
        ends = {"out": self._graph.out, "in": self._graph.into}
        return rows_of(
            lambda end: ends[end].matrix(nodes, self._unit),
            direction=self._direction,
            self_loops=self._self_loops,
            weighted=True,
            first=nodes.start,
        )


class DiskBlocks(Blocks):
    """All nodes of a prepared graph, for networks of graph convolutions in evaluation mode.

    Args:
        features: From a slice of nodes to their features, dense or sparse.
        matrix: The graph under the policies of the network.
        channels: The width of the network.
    """

    def __init__(
        self,
        features: Callable[[slice], Matrix],
        matrix: DiskMatrix,
        channels: int,
    ) -> None:
        self._read, self._matrix = features, matrix
        self._make_room(matrix.nodes, channels)

    def _features(self, rows: slice) -> Features:
        x = self._read(rows)
        if is_sparse(x):
            return SparseFeatures(as_csr(x, torch.float32))
        return torch.from_numpy(np.ascontiguousarray(x))


def logits_from_disk(
    network: MemoryNetwork,
    graph: Prepared,
    features: Callable[[slice], Matrix],
    unit: float | None = 1.0,
) -> Tensor:
    """The outputs of a network of graph convolutions for every node, ``[nodes, outputs]``.

    Args:
        network: In evaluation mode, without an address.
        graph: The prepared graph.
        features: From a slice of nodes to their features.
        unit: The number by which weights of arcs are divided; None if none count.
    """
    matrix = DiskMatrix(graph, **network.policies_in_force, unit=unit)
    return logits_of(network, DiskBlocks(features, matrix, network.input.out_channels))


def slices(nodes: int, rows: int) -> Iterator[slice]:
    """Slices of so many rows each."""
    return (slice(start, min(start + rows, nodes)) for start in range(0, nodes, rows))
