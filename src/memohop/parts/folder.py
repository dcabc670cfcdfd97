"""Blocks of a prepared graph: each process maps the folder, and reads its own rows of it alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from memohop.data.adjacency import rows_of as rows_under
from memohop.data.prepared import open_prepared
from memohop.data.sparse_features import is_sparse
from memohop.networks import NodeModel
from memohop.parts.block import (
    Block,
    RowsOfMatrix,
    StoredRows,
    Targets,
    check_network,
    mapped,
    rows_for,
)
from memohop.parts.graph import Rows
from memohop.parts.group import Group
from memohop.parts.partition import check_blocks, even_starts
from memohop.training.task import SPARSE_BELOW

if TYPE_CHECKING:
    from memohop.data.prepared import Prepared
    from memohop.pyg import Data


@dataclass(frozen=True)
class FolderBlock:
    """A block that is still in its folder.

    Attributes:
        folder: that of the prepared graph.
        number, blocks: which block it is, and how many there are.
        targets: of all blocks.
        features: ``"sparse"``, ``"dense"`` or ``"auto"``.
    """

    folder: str
    number: int
    blocks: int
    targets: Targets
    features: str

    def made(self, network: nn.Module, group: Group) -> Block:
        """Read it, with the processes that read the others."""
        assert isinstance(network, NodeModel)
        graph = open_prepared(self.folder, check=False)  # which was checked when it was cut
        starts = starts_of(graph, self.blocks)
        nodes = slice(*starts[self.number : self.number + 2])
        return Block(
            number=self.number,
            starts=starts,
            nodes=torch.arange(nodes.start, nodes.stop),
            x=stored_as(graph.features_of(nodes), self.features, group, graph.nodes),
            graph=graphs_of(graph, nodes, network, group, num_nodes=graph.nodes),
            targets=self.targets,
            digest=graph.digest,
        )


class FolderCut:
    """The blocks of a prepared graph, of which the arcs are not read here.

    Args:
        data: targets and masks, and the folder.
        network: any network of those to be trained.
        blocks: how many there are.
        features: ``"sparse"``, ``"dense"`` or ``"auto"``.
    """

    def __init__(self, data: Data, network: nn.Module, blocks: int, features: str = "auto") -> None:
        check_network(network)
        self.blocks, self._folder, self._features = blocks, data.folder, features
        self.targets = Targets.of(data)
        check_blocks(blocks, len(data.y))
        digest = hashlib.sha256(open_prepared(data.folder, check=False).digest.encode())
        for part in (self.targets.nodes, self.targets.y, self.targets.masks):
            digest.update(part.numpy().tobytes())
        self.digest = digest.hexdigest()

    def __len__(self) -> int:
        return self.blocks

    def __getitem__(self, number: int) -> FolderBlock:
        return FolderBlock(self._folder, number, self.blocks, self.targets, self._features)


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

    Args:
        graph: The prepared graph.
        nodes: Whose rows; only of a slice can the diagonal be changed.
        direction: As for :class:`memohop.Graph`, like the next.
        self_loops: What becomes of the diagonal.
        unit: The number by which weights of arcs are divided; None if none count.
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


def as_rows(matrix: sparse.csr_array, group: Group, policies: dict[str, str]) -> Rows:
    """The same as a block has them; those of the blocks before come first."""
    counts = group.gather(matrix.nnz)
    before = sum(counts[: group.rank])
    per_row = torch.from_numpy(np.diff(matrix.indptr)).long()
    small = torch.int32 if sum(counts) < 2**31 else torch.int64
    return Rows(
        row=torch.arange(matrix.shape[0], dtype=torch.int32).repeat_interleave(per_row),
        col=torch.from_numpy(matrix.indices),
        weight=torch.from_numpy(matrix.data),
        entry=torch.arange(before, before + matrix.nnz, dtype=small),
        entries=sum(counts),
        **policies,
    )


def graphs_of(
    graph: Prepared,
    nodes: slice,
    network: NodeModel,
    group: Group,
    *,
    num_nodes: int,
    unit: float | None = 1.0,
) -> Any:
    """What the network's ``prepare`` gives, with the rows of some nodes instead of graphs.

    Args:
        graph: The prepared graph.
        nodes: Whose rows.
        network: The network.
        group: The processes that have the rows of the others.
        num_nodes: The number of nodes that the network was built for.
        unit: The number by which weights of arcs are divided; None if none count.
    """
    read = partial(matrix_rows, graph, unit=unit)
    asked = rows_for(network, num_nodes, nodes, read)
    return mapped(asked, RowsOfMatrix, lambda rows: as_rows(rows.matrix, group, rows.policies))


def stored_as(x: Any, features: str, group: Group, nodes: int) -> Tensor | StoredRows:
    """The features of a block's nodes, stored as those of all ``nodes`` would be.

    Args:
        x: A tensor, an array or a matrix of SciPy.
        features: ``"sparse"``, ``"dense"`` or ``"auto"`` to decide by density.
        group: The processes that have the other blocks.
        nodes: The number of nodes of the whole graph.
    """
    x = x.numpy() if isinstance(x, Tensor) else x
    dtype, width = torch.get_default_dtype(), x.shape[1]
    filled = x.nnz if is_sparse(x) else np.count_nonzero(x)
    share = sum(group.gather(int(filled))) / (nodes * width)
    thin = features == "auto" and (is_sparse(x) or share < SPARSE_BELOW)
    if features != "sparse" and not thin:
        dense = x.toarray() if is_sparse(x) else np.ascontiguousarray(x)
        return torch.from_numpy(dense).to(dtype)
    stored = sparse.csr_array(x)
    counts = group.gather(stored.nnz)
    before = sum(counts[: group.rank])
    return StoredRows(
        torch.from_numpy(stored.indptr).long(),
        torch.from_numpy(stored.indices),
        torch.from_numpy(stored.data).to(dtype),
        torch.arange(before, before + stored.nnz),
        sum(counts),
        width,
    )
