"""Products of one matrix with the stacks of all members, on a GPU, by PyTorch's own kernels.

Matrices that are more than a sixth full are multiplied with their zeros. ``h2gcn`` needs that: its
second neighbourhood has 31 % of all pairs of Squirrel, where a step takes 1.58 times as long
otherwise. The sparse product serves types that the Triton kernels do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from memohop.nn._ops.fixed_matrix import FixedMatrix


def full(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
    """With the zeros: one product per member, so rounding does not depend on the others."""
    return _plus(torch.bmm(matrix.full.expand(len(dense), -1, -1), dense), bias)


def sparse(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
    """Without the zeros: all members side by side."""
    return _plus(side_by_side(matrix.csr, dense), bias)


def side_by_side(matrix: Tensor, dense: Tensor) -> Tensor:
    """``K`` products with ``[K, columns, D]`` as a single one."""
    count, columns, width = dense.shape
    folded = dense.transpose(0, 1).reshape(columns, count * width)
    return (matrix @ folded).view(-1, count, width).transpose(0, 1)


def _plus(product: Tensor, bias: Tensor | None) -> Tensor:
    return product if bias is None else product.add_(bias[:, None])
