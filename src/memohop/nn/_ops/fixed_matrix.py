r"""Matrices with constant values, and the product with them: :math:`\mathbf{A}\mathbf{H}`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from memohop.nn._operation import Operation, in_single, kernels_for
from memohop.nn._ops.pattern import Pattern, made_once, multiply

_SIDE_BY_SIDE = 64  # up to this many columns, narrow matrices are multiplied as one


class FixedMatrix:
    """A pattern with constant values, and its transpose.

    It is an object, not a tuple: ``vmap`` looks into tuples and cannot handle sparse tensors. Like
    a :class:`Pattern` it holds its transpose, but not the other way round.

    Args:
        pattern: the positions of the values.
        values: ``[entries]``.
        turned: the values in the order of the transpose's entries, if they are known.
    """

    def __init__(self, pattern: Pattern, values: Tensor, turned: Tensor | None = None) -> None:
        self.pattern, self.values = pattern, values.contiguous()
        self._turned = values.index_select(0, pattern.order) if turned is None else turned

    @cached_property
    def transpose(self) -> FixedMatrix:
        """The transposed matrix."""
        return FixedMatrix(self.pattern.transpose, self._turned, self.values)

    @made_once
    def csr(self) -> Tensor:
        """A sparse tensor of the same arrays."""
        return self.pattern.csr(self.values)


def fixed_product(dense: Tensor, matrix: FixedMatrix, bias: Tensor | None = None) -> Tensor:
    """``K`` products with constant values: dense ``[K, columns, D]`` to ``[K, rows, D]``.

    A bias ``[K, D]`` is added to every row. Operands may be of bfloat16 beside float32 values.
    """
    dense = matrix.pattern.collect(dense)
    if dense.dtype == torch.bfloat16 and kernels_for(dense) is None:
        return in_single(_FixedProduct.apply, dense, bias, matrix)
    return _FixedProduct.apply(dense, bias, matrix)


class _FixedProduct(Operation):
    tensors = 2

    @staticmethod
    def forward(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
        if (kernels := kernels_for(dense)) is not None:
            return kernels.product(matrix.values, dense, matrix.pattern, bias=bias)
        count, _, width = dense.shape
        out = dense.new_empty(count, matrix.pattern.shape[0], width)
        several = _SIDE_BY_SIDE // max(width, 1)
        if several > 1 and count > 1:  # the overhead of a row of few columns outweighs its work
            for start in range(0, count, several):
                part = slice(start, start + several)
                out[part] = _side_by_side(matrix.csr, dense[part])
            return out if bias is None else out.add_(bias[:, None])
        for k in range(count):  # one at a time stays in the cache
            multiply(matrix.csr, dense[k], out[k], None if bias is None else bias[k])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, bias, ctx.matrix = inputs
        ctx.has_bias = bias is not None

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        bias = grads[0].sum(1) if ctx.has_bias else None
        return fixed_product(grads[0], ctx.matrix.transpose), bias, None


def _side_by_side(matrix: Tensor, dense: Tensor) -> Tensor:
    """``K`` products with ``[K, columns, D]`` as a single one."""
    count, columns, width = dense.shape
    folded = dense.transpose(0, 1).reshape(columns, count * width)
    return (matrix @ folded).view(-1, count, width).transpose(0, 1)
