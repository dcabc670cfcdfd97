r"""Sparse products with large operands on a CPU, one part of the operand after the other.

A product collects from rows that lie all over its operand. Where that is larger than a cache and
much is collected, it is quicker to go through blocks :math:`b` of its rows, which a cache holds:

.. math::
    \mathbf{A}\mathbf{H} = \sum_b \mathbf{A}_b\mathbf{H}_b

with the columns :math:`\mathbf{A}_b` of the matrix that belong to the block. ``h2gcn`` on PubMed
needs it: a step takes 1.7 times as long without.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from memohop.nn._ops.fixed_matrix import FixedMatrix
    from memohop.nn._ops.pattern import Pattern

_BLOCK = 1 << 17  # numbers of the operand in a block


class ColumnBlocks:
    """A matrix's entries, in blocks of columns.

    Args:
        row: the row of each entry, in ascending order.
        col: the column of each entry.
        shape: rows and columns of the matrix.
        width: of the operands.
        order: where values come in another order than the entries, the index of each entry's.
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
            columns_in_block = (col[entries] - first).to(torch.int32)
            size = rows, min(height, columns - first)
            self._parts.append((slice(start, end), pointers, columns_in_block, size))

    def matrices(self, values: Tensor) -> list[Tensor]:
        """The blocks as sparse tensors, from values ``[entries]``."""
        ordered = values.index_select(0, self._order)
        return [
            torch.sparse_csr_tensor(
                pointers, columns_in_block, ordered[entries], size=size, check_invariants=False
            )
            for entries, pointers, columns_in_block, size in self._parts
        ]


def fixed_product(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
    """``K`` products with constant values; a bias ``[K, D]`` is added to every row."""
    pattern, width = matrix.pattern, dense.shape[-1]
    if width not in matrix.made:
        blocks = ColumnBlocks(pattern.row, pattern.col, pattern.shape, width)
        matrix.made[width] = blocks.matrices(matrix.values)
    out = dense.new_empty(len(dense), pattern.shape[0], width)
    for one, product in zip(dense, out, strict=True):
        product_by_blocks(matrix.made[width], one, product)
    return out if bias is None else out.add_(bias[:, None])


def weighted_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """``K`` products with values ``[K, entries]``."""
    return _weighted(values, dense, pattern, None)


def weighted_product_backward(values: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """The same with the transposes; the values stay in the order of the pattern."""
    return _weighted(values, grad, pattern.transpose, pattern.order)


def _weighted(values: Tensor, dense: Tensor, pattern: Pattern, order: Tensor | None) -> Tensor:
    key = dense.shape[-1], order is None
    if key not in pattern.made:
        pattern.made[key] = ColumnBlocks(pattern.row, pattern.col, pattern.shape, key[0], order)
    out = dense.new_empty(len(dense), pattern.shape[0], dense.shape[-1])
    for one, operand, product in zip(values, dense, out, strict=True):
        product_by_blocks(pattern.made[key].matrices(one), operand, product)
    return out


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
