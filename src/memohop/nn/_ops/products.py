r"""Products with sparse matrices whose values vary, and sums and softmax within their rows.

Values come in the order of a pattern's entries, with a leading axis of :math:`K` matrices that
share the pattern: the heads of an attention layer, the members of a population, or both.
Under ``vmap`` the members are folded into that axis: a population is one call, not many.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from memohop.nn._operation import Operation, in_single, kernels_for
from memohop.nn._ops.pattern import Pattern, multiply


def weighted_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """``K`` products at once: values ``[K, entries]``, dense ``[K, columns, D]``."""
    return in_single(_WeightedProduct.apply, values, pattern.collect(dense), pattern)


def inner(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The inner product of left's row i and right's row j for each entry (i, j).

    ``left`` is ``[K, rows, D]``, ``right`` is ``[K, columns, D]``, the result ``[K, entries]``:
    the gradient of :func:`weighted_product` with respect to its values.
    """
    return in_single(_Inner.apply, left, pattern.collect(right), pattern)


def _transposed_product(values: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """Products with the transposes, for a backward pass; values stay in the pattern's order."""
    swapped = values.index_select(-1, pattern.order)
    return weighted_product(swapped, grad, pattern.transpose)


class _WeightedProduct(Operation):
    tensors = 2

    @staticmethod
    def forward(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(dense)) is not None:
            return kernels.product(values, dense, pattern)
        out = dense.new_empty(len(dense), pattern.shape[0], dense.shape[-1])
        for k in range(len(dense)):
            multiply(pattern.csr(values[k]), dense[k], out[k], None)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, dense, ctx.pattern = inputs
        ctx.save_for_backward(values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        of_values = of_dense = None
        if ctx.needs_input_grad[0]:
            of_values = _Inner.apply(grads[0], dense, pattern)
        if ctx.needs_input_grad[1]:
            of_dense = _transposed_product(values, grads[0], pattern)
        return of_values, of_dense, None


class _Inner(Operation):
    tensors = 2

    @staticmethod
    def forward(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(left)) is not None:
            return kernels.inner(left, right, pattern)
        out = left.new_empty(len(left), len(pattern))
        empty = pattern.csr(left.new_zeros(len(pattern)))
        for k in range(len(out)):
            out[k] = torch.sparse.sampled_addmm(empty, left[k], right[k].t(), beta=0).values()
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        left, right, ctx.pattern = inputs
        ctx.save_for_backward(left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        of_left = _WeightedProduct.apply(grads[0], right, pattern)
        return of_left, _transposed_product(grads[0], left, pattern), None


def row_sums(values: Tensor, pattern: Pattern) -> Tensor:
    """Sums of values ``[K, entries]`` within rows: ``[K, rows]``."""
    return _RowSums.apply(values, pattern)


class _RowSums(Operation):
    tensors = 1

    @staticmethod
    def forward(values: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(values)) is not None:
            return kernels.row_sums(values, pattern)
        ones = values.new_ones(len(values), pattern.shape[1], 1)
        return _WeightedProduct.apply(values, ones, pattern)[..., 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(-1, ctx.pattern.row), None


def row_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """Softmax of scores ``[K, entries]`` within rows; rows with only -inf give 0."""
    return in_single(RowSoftmax.apply, scores, pattern)


class RowSoftmax(Operation):
    """:func:`row_softmax`."""

    tensors = 1

    @staticmethod
    def forward(scores: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(scores)) is not None:
            return kernels.row_softmax(scores, pattern)
        top = scores.new_full((len(scores), pattern.shape[0]), -torch.inf)
        row = pattern.row.long().expand_as(scores)  # older versions of PyTorch scatter by no other
        top = top.scatter_reduce(1, row, scores, "amax")
        weights = (scores - top.nan_to_num(neginf=0.0).index_select(1, pattern.row)).exp_()
        sums = row_sums(weights, pattern).clamp(min=torch.finfo(scores.dtype).tiny)
        return weights.div_(sums.index_select(1, pattern.row))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return softmax_backward(weights, grads[0], ctx.pattern), None


def softmax_backward(weights: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """The gradient in the scores, from the gradient in the weights."""
    weighted = weights * grad
    return weighted - weights * row_sums(weighted, pattern).index_select(-1, pattern.row)
