"""Several maps of sparse features side by side, computed only for the rows that are wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._ops.operation import Operation, batch_first
from memohop.nn._ops.pattern import Pattern, weighted_product


class Pairs:
    """Pairs (row, part): the rows that are wanted of each part.

    It is an object, not a tuple, since ``vmap`` looks into tuples.

    Args:
        row: the row of each pair.
        part: the part of each pair; pairs of one part should follow each other.
        parts: how many parts there are.
    """

    def __init__(self, row: Tensor, part: Tensor, parts: int) -> None:
        self.row, self.part, self.parts = row.to(torch.int32), part.to(torch.int32), parts
        self.index = row * parts + part


def pair_product(
    values: Tensor,
    dense: Tensor,
    pattern: Pattern,
    pairs: Pairs,
    kernel: Callable[..., Tensor],
) -> Tensor:
    """``K`` products, computed by a kernel for some rows of each part only.

    From values ``[K, entries]``, or ``[1, entries]`` for all, and dense
    ``[K, columns, parts * D]`` to ``[K, pairs, D]``. Gradients reach ``dense`` alone.
    """
    return _PairProduct.apply(values, dense, pattern, pairs, kernel)


class _PairProduct(Operation):
    @staticmethod
    def forward(
        values: Tensor,
        dense: Tensor,
        pattern: Pattern,
        pairs: Pairs,
        kernel: Callable[..., Tensor],
    ) -> Tensor:
        return kernel(values, dense, pattern, pairs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, _, ctx.pattern, ctx.pairs, _ = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        pairs: Pairs = ctx.pairs
        if (kernel := serve("pair_product_backward", grads[0])) is not None:
            return None, kernel(values, grads[0], pattern, pairs), None, None, None
        count, _, width = grads[0].shape
        every = grads[0].new_zeros(count, pattern.shape[0] * pairs.parts, width)
        every = every.index_copy(1, pairs.index, grads[0]).unflatten(1, (-1, pairs.parts))
        turned = values.expand(count, -1).index_select(-1, pattern.order)
        return None, weighted_product(turned, every.flatten(2), pattern.transpose), *[None] * 3

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        values: Tensor,
        dense: Tensor,
        pattern: Pattern,
        pairs: Pairs,
        kernel: Callable[..., Tensor],
    ) -> tuple[Tensor, int]:
        dense = batch_first(dense, in_dims[1], info.batch_size)
        if in_dims[0] is not None:
            values = values.movedim(in_dims[0], 0).expand(-1, dense.shape[1], -1).flatten(0, 1)
        out = pair_product(values, dense.flatten(0, 1), pattern, pairs, kernel)
        return out.unflatten(0, dense.shape[:2]), 0
