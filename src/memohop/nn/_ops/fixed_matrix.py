r"""Matrices with constant values, and the product with them: :math:`\mathbf{A}\mathbf{H}`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._kernels.torch.side_by_side import side_by_side
from memohop.nn._ops.operation import Operation, in_single
from memohop.nn._ops.pattern import Pattern, multiply

_SIDE_BY_SIDE = 64  # up to this many columns, narrow matrices are multiplied as one


class _Values:
    """What a :class:`FixedMatrix` holds of one matrix: of itself or of its transpose."""

    def __init__(
        self, pattern: Pattern, values: Tensor, factors: tuple[Tensor, Tensor] | None
    ) -> None:
        self.pattern, self.values = pattern, values.contiguous()
        self.csr = pattern.csr(self.values)
        self.factors = factors
        self.share = len(pattern) / max(1, math.prod(pattern.shape))  # of stored entries
        self.made: dict[Any, Any] = {}  # other forms of the matrix that kernels keep


class FixedMatrix(_Values):
    """A pattern with constant values, and its transpose.

    It is an object, not a tuple: ``vmap`` looks into tuples and cannot handle sparse tensors. The
    transpose is made on each request, as that of a :class:`Pattern`.

    Args:
        pattern: the positions of the values.
        values: ``[entries]``.
        factors: if each value is the product of a number of its row and one of its column,
            these numbers.
        turned: the values in the order of the transpose's entries, if they are known.
    """

    def __init__(
        self,
        pattern: Pattern,
        values: Tensor,
        factors: tuple[Tensor, Tensor] | None = None,
        turned: Tensor | None = None,
    ) -> None:
        swapped = None if factors is None else (factors[1], factors[0])
        if turned is None:
            turned = values.index_select(0, pattern.order32)
        self._hold(_Values(pattern, values, factors), _Values(pattern.transpose, turned, swapped))

    def _hold(self, own: _Values, turned: _Values) -> None:
        vars(self).update(vars(own))
        self._own, self._turned = own, turned

    @property
    def transpose(self) -> FixedMatrix:
        """The transposed matrix."""
        matrix = FixedMatrix.__new__(FixedMatrix)
        matrix._hold(self._turned, self._own)
        return matrix

    @property
    def full(self) -> Tensor:
        """The matrix with its zeros."""
        if "full" not in self.made:
            self.made["full"] = self.csr.to_dense()
        return self.made["full"]


def fixed_product(dense: Tensor, matrix: FixedMatrix, bias: Tensor | None = None) -> Tensor:
    """``K`` products with constant values: dense ``[K, columns, D]`` to ``[K, rows, D]``.

    A bias ``[K, D]`` is added to every row. Operands may be of bfloat16 beside float32 values.
    """
    dense = matrix.pattern.collect(dense)
    if dense.dtype == torch.bfloat16 and serve("fixed_product", dense, matrix) is None:
        return in_single(_FixedProduct.apply, dense, bias, matrix)
    return _FixedProduct.apply(dense, bias, matrix)


class _FixedProduct(Operation):
    tensors = 2

    @staticmethod
    def forward(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
        if (kernel := serve("fixed_product", dense, matrix)) is not None:
            return kernel(dense, bias, matrix)
        count, _, width = dense.shape
        out = dense.new_empty(count, matrix.csr.shape[0], width)
        several = _SIDE_BY_SIDE // max(width, 1)
        if several > 1 and count > 1:  # the overhead of a row of few columns outweighs its work
            for start in range(0, count, several):
                part = slice(start, start + several)
                out[part] = side_by_side(matrix.csr, dense[part])
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
