r"""Sparse products with large operands on a CPU, one block of the operand after the other.

A product collects rows from all over its operand. If the operand is larger than a cache and
much is collected, it is quicker to go through blocks :math:`b` of its rows that fit into a cache:

.. math::
    \mathbf{A}\mathbf{H} = \sum_b \mathbf{A}_b\mathbf{H}_b

with the columns :math:`\mathbf{A}_b` of the matrix that belong to the block. ``h2gcn`` on PubMed
needs it: without it a step takes 1.7 times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from memohop.nn._ops.fixed_matrix import FixedMatrix

_BLOCK = 1 << 17  # numbers of the operand in a block


def fixed_product(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
    """``K`` products with constant values; a bias ``[K, D]`` is added to every row."""
    width = dense.shape[-1]
    if width not in matrix.made:
        matrix.made[width] = column_blocks(matrix, width)
    out = dense.new_empty(len(dense), matrix.pattern.shape[0], width)
    for one, product in zip(dense, out, strict=True):
        product_by_blocks(matrix.made[width], one, product)
    return out if bias is None else out.add_(bias[:, None])


def column_blocks(matrix: FixedMatrix, width: int) -> list[Tensor]:
    """The matrix in blocks of columns, for operands of this width."""
    row, col, (rows, columns) = matrix.pattern.row, matrix.pattern.col, matrix.pattern.shape
    height = max(1, _BLOCK // max(width, 1))
    block = col // height
    order = torch.argsort(block, stable=True)
    ends = torch.bincount(block, minlength=-(-columns // height)).cumsum(0).tolist()
    found = []
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        entries, first = order[start:end], number * height
        counts = torch.bincount(row[entries], minlength=rows)
        pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
        inside = (col[entries] - first).to(torch.int32)
        size = rows, min(height, columns - first)
        part = matrix.values.index_select(0, entries)
        found.append(
            torch.sparse_csr_tensor(pointers, inside, part, size=size, check_invariants=False)
        )
    return found


def product_by_blocks(matrices: Iterable[Tensor], dense: Tensor, out: Tensor) -> None:
    """The sum of the products of the blocks with their rows ``[columns, D]``."""
    first = 0
    for matrix in matrices:
        rows = dense[first : first + matrix.shape[1]]
        torch.addmm(out, matrix, rows, beta=float(first > 0), out=out)
        first += matrix.shape[1]
