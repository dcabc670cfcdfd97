r"""Matrices with constant values, and the product with them: :math:`\mathbf{A}\mathbf{H}`."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from memohop.nn._backends.torch.column_blocks import collects_from_afar, product_by_blocks
from memohop.nn._ops.fused import cpu_table_kernels, use_kernels
from memohop.nn._ops.operation import Operation, batch_first
from memohop.nn._ops.pattern import Pattern, multiply

if TYPE_CHECKING:
    from memohop.nn._backends.numba.table_kernels import PackedMatrix

_CROWDED = 1 / 6  # share of entries above which a GPU is quicker with the zeros than without
_CROWDED_ON_CPU = 1 / 4
_CROWDED_FOR_TABLES = 1 / 6  # the same for a CPU that adds up several entries at once ...
_LARGE_FOR_TABLES = 1 << 20  # ... if there are so many, with the zeros
_SIDE_BY_SIDE = 64  # columns up to which a CPU multiplies several narrow matrices as one


class FixedMatrix:
    """A pattern with constant values, and its transpose.

    An object and not a tuple, since ``vmap`` looks into tuples and cannot handle sparse tensors.

    Args:
        pattern: where the values are.
        values: ``[entries]``.
        factors: where each value is a product of a number of its row and one of its column,
            these numbers.
    """

    def __init__(
        self, pattern: Pattern, values: Tensor, factors: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self._fill(pattern, values, factors)
        self.transpose = FixedMatrix.__new__(FixedMatrix)
        turned = None if factors is None else (factors[1], factors[0])
        self.transpose._fill(pattern.transpose, values[pattern.order], turned)
        self.transpose.transpose = self

    def _fill(
        self, pattern: Pattern, values: Tensor, factors: tuple[Tensor, Tensor] | None
    ) -> None:
        self.pattern, self.values, self.csr = pattern, values, pattern.csr(values)
        self._column_blocks: dict[int, list[Tensor]] = {}
        self._factors = factors

    @cached_property
    def crowded(self) -> bool:
        """Whether so few entries are zero that it is quicker not to leave them out."""
        share = _CROWDED if self.values.is_cuda else _CROWDED_ON_CPU
        return len(self.pattern) > share * math.prod(self.pattern.shape)

    @cached_property
    def packed(self) -> PackedMatrix | None:
        """What a CPU multiplies in its place, where it is crowded and large and has factors."""
        size = math.prod(self.pattern.shape)
        few = size < _LARGE_FOR_TABLES or len(self.pattern) <= _CROWDED_FOR_TABLES * size
        if self._factors is None or few or (served := cpu_table_kernels(self.values)) is None:
            return None
        return served.PackedMatrix(*self.pattern.csr_indices, *self._factors)

    @cached_property
    def full(self) -> Tensor:
        """The matrix with its zeros."""
        return self.csr.to_dense()

    def column_blocks(self, width: int) -> list[Tensor]:
        """The matrix in blocks of columns, for operands of this width."""
        if width not in self._column_blocks:
            blocks = self.pattern.column_blocks(width).matrices(self.values)
            self._column_blocks[width] = blocks
        return self._column_blocks[width]


def fixed_product(dense: Tensor, matrix: FixedMatrix, bias: Tensor | None = None) -> Tensor:
    """``K`` products with constant values: dense ``[K, columns, D]`` to ``[K, rows, D]``.

    A bias ``[K, D]`` is added to every row.
    """
    return _FixedProduct.apply(dense, bias, matrix)


def _side_by_side(matrix: Tensor, dense: Tensor, bias: Tensor | None) -> Tensor:
    """``K`` products with one matrix as a single one, ``K`` times as wide."""
    count, columns, width = dense.shape
    folded = dense.transpose(0, 1).reshape(columns, count * width)
    out = (matrix @ folded).view(-1, count, width).transpose(0, 1)
    return out if bias is None else out.add_(bias[:, None])


class _FixedProduct(Operation):
    @staticmethod
    def forward(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
        count, _, width = dense.shape
        if dense.is_cuda and matrix.crowded:
            out = torch.bmm(matrix.full.expand(count, -1, -1), dense)
            return out if bias is None else out.add_(bias[:, None])
        if use_kernels(dense):
            return matrix.pattern.product(matrix.values, dense, bias=bias)
        if matrix.packed is not None and dense.dtype == torch.float32:
            return matrix.packed.product(dense, bias)
        if matrix.crowded:
            return _side_by_side(matrix.full, dense, bias)
        if dense.is_cuda:
            return _side_by_side(matrix.csr, dense, bias)
        out = dense.new_empty(count, matrix.csr.shape[0], width)
        several = _SIDE_BY_SIDE // max(width, 1)
        if several > 1 and count > 1:  # a row of few columns is over before it has begun
            for start in range(0, count, several):
                part = slice(start, start + several)
                out[part] = _side_by_side(
                    matrix.csr, dense[part], bias if bias is None else bias[part]
                )
            return out
        if collects_from_afar(dense, matrix.pattern.shape[0], len(matrix.pattern)):
            blocks = matrix.column_blocks(width)
            for k in range(count):
                product_by_blocks(blocks, dense[k], out[k])
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

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        dense: Tensor,
        bias: Tensor | None,
        matrix: FixedMatrix,
    ) -> tuple[Tensor, int]:
        dense = batch_first(dense, in_dims[0], info.batch_size)
        if bias is not None:
            bias = batch_first(bias, in_dims[1], info.batch_size).flatten(0, 1)
        out = fixed_product(dense.flatten(0, 1), matrix, bias)
        return out.unflatten(0, dense.shape[:2]), 0
