r"""Sparse products with large operands on a CPU, one part of the operand after the other.

A product collects from rows that lie all over its operand. Where that is larger than a cache and
much is collected, it is quicker to go through blocks :math:`b` of its rows, which a cache holds:

.. math::
    \mathbf{A}\mathbf{H} = \sum_b \mathbf{A}_b\mathbf{H}_b

with the columns :math:`\mathbf{A}_b` of the matrix that belong to the block.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_BLOCK = 1 << 17  # numbers of the operand in a block
_IN_CACHE = 1 << 20  # numbers of which a CPU finds a row quickly
_PER_ROW = 4  # entries in a row of a block that are worth going through the rows once more


class ColumnBlocks:
    """The places of a matrix's entries, in blocks of columns.

    Args:
        row: the row of each entry, in ascending order.
        col: the column of each entry.
        shape: rows and columns of the matrix.
        width: of the operands.
        order: where values come in another order than the entries, the place of each entry's.
    """

    def __init__(
        self,
        row: Tensor,
        col: Tensor,
        shape: tuple[int, int],
        width: int,
        order: Tensor | None = None,
    ) -> None:
        rows, columns = shape
        height = _height(width)
        block = col // height
        by_block = torch.argsort(block, stable=True)
        self._order = by_block if order is None else order[by_block]
        ends = torch.bincount(block, minlength=-(-columns // height)).cumsum(0).tolist()
        self._parts = []
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            entries, first = by_block[start:end], number * height
            counts = torch.bincount(row[entries], minlength=rows)
            pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
            places = (col[entries] - first).to(torch.int32)
            size = rows, min(height, columns - first)
            self._parts.append((slice(start, end), pointers, places, size))

    def matrices(self, values: Tensor) -> list[Tensor]:
        """The blocks as sparse tensors, from values ``[entries]``."""
        ordered = values.index_select(0, self._order)
        return [
            torch.sparse_csr_tensor(
                pointers, places, ordered[entries], size=size, check_invariants=False
            )
            for entries, pointers, places, size in self._parts
        ]


def collects_from_afar(dense: Tensor, rows: int, entries: int) -> bool:
    """Whether blocks pay for operands ``[K, columns, D]`` and a matrix of so many rows."""
    _, columns, width = dense.shape
    if not dense.is_cpu or columns * width <= _IN_CACHE:
        return False
    return entries > _PER_ROW * rows * (columns / _height(width))


def product_by_blocks(matrices: Iterable[Tensor], dense: Tensor, out: Tensor) -> None:
    """The sum of the products of the blocks and of the rows ``[columns, D]`` they belong to."""
    first = 0
    for matrix in matrices:
        rows = dense[first : first + matrix.shape[1]]
        torch.addmm(out, matrix, rows, beta=float(first > 0), out=out)
        first += matrix.shape[1]


def _height(width: int) -> int:
    """How many rows of this width make a block."""
    return max(1, _BLOCK // max(width, 1))
