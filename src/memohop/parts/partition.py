"""Which nodes go together into a block, and how many arcs run between blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_arcs
from memohop.errors import UsageError, check_choice, whole_number

METHODS = ("contiguous", "metis")
_OF_A_NODE = 4  # the work of a node, in arcs


@dataclass(frozen=True)
class Partition:
    """Nodes in blocks.

    Nodes are numbered anew, block after block, and in their old order within a block.
    """

    method: str
    order: Tensor  # the old number of each node, int64
    starts: tuple[int, ...]  # the new number at which each block starts, and the number of nodes
    cut: int  # arcs with their ends in two blocks
    arcs: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def nodes(self, block: int) -> Tensor:
        """The old numbers of a block's nodes, in ascending order."""
        return self.order[self.starts[block] : self.starts[block + 1]]

    def __str__(self) -> str:
        share = self.cut / max(self.arcs, 1)
        return f"{self.method} blocks cut {self.cut:,} of {self.arcs:,} arcs ({share:.1%})"


def partition(
    edge_index: Tensor, num_nodes: int, blocks: int, *, method: str = "contiguous"
) -> Partition:
    """Cut the nodes into blocks of about equal work.

    Args:
        edge_index: ``[2, arcs]``.
        num_nodes: number of nodes.
        blocks: number of blocks, at most that of the nodes.
        method: ``"contiguous"`` for blocks of consecutive nodes, or ``"metis"`` for blocks between
            which few arcs run, found by METIS (``pip install 'memohop[metis]'``).
    """
    check_choice("partition", method, METHODS)
    blocks = check_blocks(blocks, num_nodes)
    check_arcs(edge_index, num_nodes)
    edge_index = edge_index.cpu()
    if method == "metis" and blocks > 1:
        owner = _by_metis(edge_index, num_nodes, blocks)
    else:
        owner = _contiguous(edge_index, num_nodes, blocks)
    sizes = torch.bincount(owner, minlength=blocks)
    cut = int((owner[edge_index[0]] != owner[edge_index[1]]).sum())
    return Partition(
        method,
        torch.argsort(owner, stable=True),
        (0, *sizes.cumsum(0).tolist()),
        cut,
        edge_index.shape[1],
    )


def check_blocks(blocks: int, num_nodes: int) -> int:
    """Refuse a number of blocks that cannot be right."""
    blocks = whole_number("workers", blocks, least=1)
    if blocks > num_nodes:
        raise UsageError(
            f"workers={blocks}, but the graph has {num_nodes} nodes and each worker needs one; "
            f"give at most {num_nodes}"
        )
    return blocks


def _contiguous(edge_index: Tensor, num_nodes: int, blocks: int) -> Tensor:
    """The block of each node, ascending; each block has a node."""
    ends = torch.bincount(edge_index.flatten(), minlength=num_nodes)
    starts = torch.tensor(even_starts(ends, blocks)[:-1])
    return torch.searchsorted(starts, torch.arange(num_nodes), right=True) - 1


def even_starts(ends: Tensor, blocks: int) -> tuple[int, ...]:
    """Where blocks of consecutive nodes and about equal work start, and the number of nodes.

    Args:
        ends: how many arcs begin or end at each node.
        blocks: number of blocks, each of which has a node.
    """
    work, nodes = ends + 2 * _OF_A_NODE, len(ends)
    middle = work.cumsum(0) - work // 2
    shares = torch.arange(blocks) * int(work.sum()) // blocks
    starts = torch.searchsorted(middle, shares).tolist()
    for block in range(1, blocks):  # a node with most of the arcs must not leave a block empty
        least, most = starts[block - 1] + 1, nodes - blocks + block
        starts[block] = min(max(starts[block], least), most)
    return (*starts, nodes)


def _by_metis(edge_index: Tensor, num_nodes: int, blocks: int) -> Tensor:
    try:
        import pymetis
    except ImportError as error:
        raise UsageError(
            "cut=metis, but pymetis is not installed here: pip install 'memohop[metis]', or "
            "give cut=contiguous"
        ) from error
    row, col = edge_index.numpy()
    ones = np.ones(2 * len(row), dtype=np.int8)
    ends = np.concatenate([row, col]), np.concatenate([col, row])
    matrix = sparse.csr_array((ones, ends), shape=(num_nodes, num_nodes))
    matrix = matrix - sparse.diags_array(matrix.diagonal(), format="csr", dtype=np.int8)
    matrix.eliminate_zeros()
    work = np.diff(matrix.indptr) + _OF_A_NODE
    _, owner = pymetis.part_graph(
        blocks, pymetis.CSRAdjacency(matrix.indptr, matrix.indices), vweights=work.tolist()
    )
    owners = torch.tensor(owner)
    if (torch.bincount(owners, minlength=blocks) == 0).any():  # of few nodes METIS may leave one
        return _contiguous(edge_index, num_nodes, blocks)
    return owners
