"""A graph with its features and labels, cut into blocks of nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from memohop.data.arcs import adjacency
from memohop.data.sparse_features import as_csr, as_matrix
from memohop.errors import UsageError
from memohop.networks import NodeModel
from memohop.networks.h2gcn import TwoSteps
from memohop.nn import Graph
from memohop.parts.partition import Partition
from memohop.training.objective import Objective, objective_of
from memohop.training.task import are_stored_sparse, make_masks

if TYPE_CHECKING:
    from memohop.pyg import Data

ReadRows = Callable[..., sparse.csr_array]
"""From nodes, a slice or an array, with ``direction`` and ``self_loops``, to rows of the matrix."""

_CHUNK = 1 << 12  # rows of a second neighbourhood that are made at a time
_PER_ENTRY = 100  # bytes of an entry of a graph: rows, columns and their orders, both ways


@dataclass(frozen=True)
class BlockRows:
    """The rows of a matrix that a block holds: of a graph, or of sparse features."""

    matrix: sparse.csr_array  # all columns, in ascending order; of a graph, before normalisation
    places: Tensor  # where each entry stands among those of the whole matrix
    total: int  # entries of the whole matrix
    policies: Mapping[str, str] = field(default_factory=dict)  # of a graph

    @property
    def row(self) -> Tensor:
        """The row of each entry, counted within the block."""
        per_row = torch.from_numpy(np.diff(self.matrix.indptr)).long()
        return torch.arange(len(per_row), dtype=torch.int32).repeat_interleave(per_row)


@dataclass(frozen=True)
class Targets:
    """What is to be learned, by all blocks together."""

    nodes: Tensor  # the numbers of the labelled nodes in the data
    y: Tensor  # their targets
    masks: Tensor  # [splits, 3, labelled]
    objective: Objective

    @classmethod
    def of(cls, data: Data) -> Targets:
        """Those of data with targets and masks."""
        objective = objective_of(data)
        masks, y = make_masks(data), objective.targets(data.y)
        wanted = masks.amax((0, 1)) > 0
        wanted[y.argmax()] = True  # the number of classes is counted from the highest one
        nodes = wanted.nonzero().flatten()
        return cls(nodes, y[nodes], masks[..., nodes], objective)


@dataclass(frozen=True)
class Block:
    """All that a process needs of the graph."""

    starts: tuple[int, ...]  # the number at which each block starts, and the number of nodes
    nodes: Tensor  # the numbers of its nodes in the data
    x: Tensor | BlockRows  # their features
    graph: Any  # what the network's `prepare` gives, with BlockRows instead of graphs
    digest: str  # of the data from which it was cut

    @property
    def arcs(self) -> int:
        """The entries of its graphs."""
        return sum(rows.matrix.nnz for rows in rows_of(self.graph))

    @property
    def bytes(self) -> int:
        """About how much RAM the graphs and the features take in training."""
        if isinstance(self.x, BlockRows):
            return _PER_ENTRY * (self.arcs + self.x.matrix.nnz)
        return _PER_ENTRY * self.arcs + self.x.nbytes


class Cut:
    """Makes the blocks of data in RAM, one at a time.

    Args:
        data: the data, checked and with features of PyTorch's default type.
        network: any network of those to be trained: its ``prepare`` makes the graph.
        partition: which nodes go together.
        features: ``"sparse"``, ``"dense"`` or ``"auto"``.
    """

    def __init__(
        self, data: Data, network: NodeModel, partition: Partition, features: str = "auto"
    ) -> None:
        self.partition, self.digest = partition, digest_of(data)
        weights, count = data.get("edge_weight"), data.num_nodes

        @cache
        def matrix(**policies: str) -> sparse.csr_array:
            return adjacency(data.edge_index, count, weights=weights, **policies)

        self.graph = rows_for(
            network, count, slice(0, count), lambda nodes, **policies: matrix(**policies)[nodes]
        )
        is_stored_sparse = are_stored_sparse(data.x, features)
        self.x = as_matrix(data.x, data.x.dtype) if is_stored_sparse else data.x.to_dense()

    def __getitem__(self, number: int) -> Block:
        nodes, is_metis = self.partition.nodes(number), self.partition.method == "metis"
        order = self.partition.order.numpy() if is_metis else None
        return Block(
            starts=self.partition.starts,
            nodes=nodes,
            x=self.x[nodes] if isinstance(self.x, Tensor) else _some_rows(self.x, nodes),
            graph=mapped(
                self.graph,
                RowsOfMatrix,
                lambda whole: _some_rows(whole.matrix, nodes, order, whole.policies),
            ),
            digest=self.digest,
        )


class RowsOfMatrix(NamedTuple):
    """Rows of a graph's matrix before normalisation, and the graph's policies."""

    matrix: sparse.csr_array
    policies: dict[str, str]


def rows_for(network: NodeModel, num_nodes: int, nodes: slice, read: ReadRows) -> Any:
    """What the network's ``prepare`` gives, with :class:`RowsOfMatrix` instead of graphs.

    A :class:`Graph` takes ten times the RAM of its matrix. So a graph without arcs, of as many
    nodes as the network was built for, shows what the network asks for; ``read`` reads it.
    """
    near: dict[str, str] = {}

    def rows(asked: Graph | TwoSteps) -> RowsOfMatrix:
        graph = asked.graph if isinstance(asked, TwoSteps) else asked
        policies = {name: getattr(graph, name) for name in ("direction", "self_loops", "norm")}
        if isinstance(asked, TwoSteps):
            return RowsOfMatrix(_second(nodes, partial(read, **near)), policies)
        near.update(direction=graph.direction, self_loops=graph.self_loops)
        return RowsOfMatrix(read(nodes, **near), policies)

    if network.edges is not None:
        raise UsageError(
            "this network learns from attributes of arcs, and a graph in parts has none: train "
            "or predict it on a graph in RAM, or build it with edges='none'"
        )
    no_arcs = torch.empty(2, 0, dtype=torch.int64)
    return mapped(network.prepare(no_arcs, num_nodes), (Graph, TwoSteps), rows)


def _second(nodes: slice, near: ReadRows) -> sparse.csr_array:
    """Rows of the second neighbourhood, a 1 for each node that is exactly two steps away."""
    parts = []
    for first in range(nodes.start, nodes.stop, _CHUNK):
        first_step = near(slice(first, min(first + _CHUNK, nodes.stop))) > 0
        reached = np.unique(first_step.indices)
        last_step = near(reached, self_loops="keep") > 0  # which reach no other nodes
        paths = first_step[:, reached].astype(np.int32) @ last_step.astype(np.int32)
        own = sparse.eye_array(*first_step.shape, k=first, dtype=bool, format="csr")
        parts.append(((paths > 0) > first_step + own).astype(np.float32))
    second = sparse.vstack(parts, format="csr")
    second.sort_indices()
    return second


def mapped(graph: Any, kind: Any, function: Callable[[Any], Any]) -> Any:
    """What a network takes as its graph, with a function applied to the graphs in it."""
    if isinstance(graph, kind):
        return function(graph)
    if isinstance(graph, tuple):
        parts = [mapped(part, kind, function) for part in graph]
        return type(graph)(*parts) if hasattr(graph, "_fields") else tuple(parts)
    return graph


def rows_of(graph: Any) -> list[BlockRows]:
    """The graphs in what a network takes."""
    rows: list[BlockRows] = []
    mapped(graph, BlockRows, rows.append)
    return rows


def checked_network(network: nn.Module) -> NodeModel:
    """The network, unless it needs more of other nodes than their states."""
    name = type(network).__name__
    if not isinstance(network, NodeModel):
        reason = "only networks of this library take a graph in parts"
    elif network.per_node:
        reason = f"it has weights for each node ({', '.join(network.per_node)})"
    elif type(network).prepare_data is not NodeModel.prepare_data:
        reason = "its graph is made from more than the arcs"
    else:
        return network
    raise UsageError(
        f"{name} cannot be trained on a graph in parts: {reason}; leave out workers, or take "
        "another model, such as gcn+mmp"
    )


def digest_of(data: Data) -> str:
    """Identifies features, targets, arcs, their weights and masks."""
    digest = hashlib.sha256()
    names = ("x", "y", "edge_index", "edge_weight", "train_mask", "val_mask", "test_mask")
    for name in names:
        value = data[name] if name in data else torch.empty(0)
        if value.layout != torch.strided:
            value = as_csr(value, value.dtype)
            parts = [value.crow_indices(), value.col_indices(), value.values()]
        else:
            parts = [value]
        for part in parts:
            digest.update(f"{name} {part.dtype} {tuple(part.shape)}".encode())
            digest.update(part.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return digest.hexdigest()


def _some_rows(
    matrix: sparse.csr_array,
    nodes: Tensor,
    columns: NDArray[np.int64] | None = None,
    policies: Mapping[str, str] | None = None,
) -> BlockRows:
    """The rows of some nodes; ``columns``, if given, are the old numbers in their new order."""
    rows = matrix[nodes.numpy()]
    before = matrix.indptr[nodes] - rows.indptr[:-1]  # entries that are not among these
    rows.data = np.repeat(before, np.diff(rows.indptr)) + np.arange(rows.nnz)
    if columns is not None:
        rows = rows[:, columns]
        rows.sort_indices()
    places, rows.data = rows.data, matrix.data[rows.data]
    return BlockRows(rows, torch.from_numpy(places), matrix.nnz, policies or {})
