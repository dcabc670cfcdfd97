r"""Products with the transpose of a matrix that has many more rows than columns, on a CPU.

Such a product collects, for each of few columns, from rows that lie all over a large operand. With
blocks :math:`b` of rows that a cache holds it collects from one after the other:

.. math::
    \mathbf{X}^\top\mathbf{G} = \sum_b \mathbf{X}_b^\top\mathbf{G}_b
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_BLOCK = 1 << 17  # numbers of the operand in a block
_IN_CACHE = 1 << 20  # numbers of which a CPU finds a row quickly


class RowBlocks:
    """The places of a matrix's entries, block by block, each block transposed.

    Args:
        row: the row of each entry.
        col: the column of each entry.
        shape: rows and columns of the matrix.
        height: how many rows make a block.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int], height: int) -> None:
        rows, columns = shape
        block = row // height
        self._order = torch.argsort(block * columns + col, stable=True)
        ends = torch.bincount(block, minlength=-(-rows // height)).cumsum(0).tolist()
        self._parts = []
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            entries, first = self._order[start:end], number * height
            counts = torch.bincount(col[entries], minlength=columns)
            pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
            places = (row[entries] - first).to(torch.int32)
            size = columns, min(height, rows - first)
            self._parts.append((slice(start, end), pointers, places, size))

    def matrices(self, values: Tensor) -> list[Tensor]:
        """The transposed blocks as sparse tensors, from values ``[entries]``."""
        ordered = values.index_select(0, self._order)
        return [
            torch.sparse_csr_tensor(
                pointers, places, ordered[entries], size=size, check_invariants=False
            )
            for entries, pointers, places, size in self._parts
        ]


def collects_from_afar(dense: Tensor, shape: tuple[int, int]) -> bool:
    """Whether ``[K, rows, D]`` is large and the matrix of this shape has few columns."""
    rows, columns = shape
    return dense.is_cpu and dense[0].numel() > _IN_CACHE and 8 * columns < rows


def block_height(width: int) -> int:
    """How many rows of this width make a block."""
    return max(1, _BLOCK // max(width, 1))


def product_by_blocks(matrices: Iterable[Tensor], dense: Tensor, out: Tensor) -> None:
    """The sum of the products of transposed blocks and of the rows ``[rows, D]`` they stand for."""
    first = 0
    for matrix in matrices:
        rows = dense[first : first + matrix.shape[1]]
        torch.addmm(out, matrix, rows, beta=float(first > 0), out=out)
        first += matrix.shape[1]
