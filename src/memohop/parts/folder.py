"""Blocks of a prepared graph: each process maps the folder, and reads its own rows of it alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import rows_of as rows_under
from memohop.data.sparse_features import is_sparse
from memohop.networks import NodeModel
from memohop.parts.block import Block, BlockRows, RowsOfMatrix, mapped, rows_for
from memohop.parts.halo import Group
from memohop.parts.partition import even_starts
from memohop.training.task import are_stored_sparse

if TYPE_CHECKING:
    from memohop.data.prepared import Prepared


def read_block(
    graph: Prepared,
    network: NodeModel,
    group: Group,
    *,
    x: Any = None,
    features: str = "auto",
    num_nodes: int | None = None,
    unit: float | None = 1.0,
) -> Block:
    """The block of this process, read beside the processes of the group that read the others.

    Args:
        graph: The prepared graph.
        network: Any of the networks that take the block.
        group: The processes.
        x: The features of the block's nodes, a tensor; by default those of the graph.
        features: ``"sparse"``, ``"dense"`` or ``"auto"``.
        num_nodes: That the network was built for; by default as many as the graph has.
        unit: See :func:`matrix_rows`.
    """
    starts = starts_of(graph, group.size)
    nodes = slice(*starts[group.rank : group.rank + 2])
    read = partial(matrix_rows, graph, unit=unit)
    asked = rows_for(network, num_nodes or graph.nodes, nodes, read)
    return Block(
        starts=starts,
        nodes=torch.arange(nodes.start, nodes.stop),
        x=stored_as(graph.features_of(nodes) if x is None else x, features, group, graph.nodes),
        graph=mapped(asked, RowsOfMatrix, lambda rows: as_rows(rows.matrix, group, rows.policies)),
        digest=graph.digest,
    )


def starts_of(graph: Prepared, blocks: int) -> tuple[int, ...]:
    """Where blocks of about equal work start, and the number of nodes."""
    ends = np.diff(graph.out.indptr) + np.diff(graph.into.indptr)
    return even_starts(torch.from_numpy(ends), blocks)


def matrix_rows(
    graph: Prepared,
    nodes: slice | NDArray[np.int64],
    *,
    direction: str,
    self_loops: str,
    unit: float | None = 1.0,
) -> sparse.csr_array:
    """Rows of the matrix of a :class:`memohop.Graph`, before they are normalised.

    Only of a slice can the diagonal be changed. Weights of arcs are divided by ``unit``; if it is
    None, none count.
    """
    if direction == "undirected" and not graph.directed:
        direction = "out"  # which has both ways already
    ends = {"out": graph.out, "in": graph.into}
    return rows_under(
        lambda end: ends[end].matrix(nodes, unit),
        direction=direction,
        self_loops=self_loops,
        weighted=graph.out.weights is not None and unit is not None,
        first=nodes.start if isinstance(nodes, slice) else 0,
    )


def as_rows(
    matrix: sparse.csr_array, group: Group, policies: Mapping[str, str] | None = None
) -> BlockRows:
    """The rows that this process has of a matrix; those of the processes before come first."""
    counts = group.gather(matrix.nnz)
    before, total = sum(counts[: group.rank]), sum(counts)
    small = torch.int32 if total < 2**31 else torch.int64
    places = torch.arange(before, before + matrix.nnz, dtype=small)
    return BlockRows(matrix, places, total, policies or {})


def stored_as(x: Any, features: str, group: Group, nodes: int) -> Tensor | BlockRows:
    """The features of a block's nodes, stored as those of all ``nodes`` of the graph would be.

    They are a tensor, an array or a matrix of SciPy.
    """
    x = x.numpy() if isinstance(x, Tensor) else x
    dtype = torch.get_default_dtype()
    filled = x.nnz if is_sparse(x) else np.count_nonzero(x)
    density = sum(group.gather(int(filled))) / (nodes * x.shape[1])
    if not are_stored_sparse(x, features, density):
        dense = x.toarray() if is_sparse(x) else np.ascontiguousarray(x)
        return torch.from_numpy(dense).to(dtype)
    stored = sparse.csr_array(x)
    stored.data = torch.from_numpy(stored.data).to(dtype).numpy()
    return as_rows(stored, group)
