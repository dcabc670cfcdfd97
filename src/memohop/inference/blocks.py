r"""All nodes of a large graph, for rounds that go over blocks of rows.

The graph product is linear, so the memories can be collected before the weights are applied:
:math:`\mathbf{A}(\mathbf{C}\mathbf{W}) + \mathbf{b} = (\mathbf{A}\mathbf{C})\mathbf{W} +
\mathbf{b}`. The result overwrites the memory in blocks of columns, and the rest of a round goes
over blocks of rows: only hidden state and memory are held for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from memohop.networks.passing import Embed, Update, Watch

_ROWS = 1 << 13  # of a block: a few megabytes, which fit into the cache
_COLUMNS = 16  # of a block: a row of it is a cache line


class Blocks:
    """All nodes, for networks of graph convolutions in evaluation mode.

    One object serves several networks: freeing and making tensors of this size fragments the RAM.
    Gradients are not tracked.

    Args:
        x: features, dense or sparse.
        matrix: the result of :func:`memohop.nn.graph.adjacency`, or rows and columns of it.
        channels: width of the networks.
    """

    def __init__(
        self, x: Tensor | sparse.csr_array, matrix: sparse.csr_array, channels: int
    ) -> None:
        nodes = x.shape[0]
        self._x, self._matrix = x, _as_tensor(matrix)
        self.hidden = torch.empty(nodes, channels)
        # In blocks of columns: the product of each overwrites it before the next is computed.
        widths = (min(_COLUMNS, channels - start) for start in range(0, channels, _COLUMNS))
        self._memory = [torch.empty(nodes, width) for width in widths]

    @torch.no_grad()
    def start(self, embed: Embed) -> None:
        """Before the first round the memory is the hidden state."""
        for rows in self.rows():
            self.hidden[rows] = embed(_dense(self._x[rows]))
            self._remember(rows, self.hidden[rows])

    @torch.no_grad()
    def step(self, update: Update, watch: Watch) -> None:
        """One round: the collected memories overwrite the memory, then the gates act."""
        for block in self._memory:
            block.copy_(self._matrix @ block)
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
        nodes = len(self.hidden)
        return (slice(start, min(start + _ROWS, nodes)) for start in range(0, nodes, _ROWS))

    def _remember(self, rows: slice, memory: Tensor) -> None:
        for block, part in zip(self._memory, memory.split(_COLUMNS, dim=1), strict=True):
            block[rows] = part


class _Collected:
    """The graph of a convolution on input that is collected already."""

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        return hidden if bias is None else hidden + bias


_COLLECTED = _Collected()


def _as_tensor(matrix: sparse.csr_array) -> Tensor:
    """A sparse tensor that shares the arrays of the matrix."""
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        torch.from_numpy(matrix.data),
        size=matrix.shape,
        check_invariants=False,
    )


def _dense(x: Any) -> Tensor:
    return torch.from_numpy(x.toarray()) if sparse.issparse(x) else x
