r"""The softmax of attention over the entries of each row, with its own backward pass.

Only one number per entry and head is ever held: the collected vectors go through
:func:`~memohop.nn._ops.pattern.weighted_product`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._ops.operation import Operation, in_single
from memohop.nn._ops.pattern import Pattern


def attend(
    receive: Tensor,
    send: Tensor,
    pattern: Pattern,
    *,
    negative_slope: float,
    keep: Tensor | None = None,
) -> Tensor:
    r"""Attention weights :math:`\mathrm{softmax}_j\,\mathrm{LeakyReLU}(r_i + s_j)`.

    Args:
        receive: :math:`r`, ``[heads, rows]``.
        send: :math:`s`, ``[heads, columns]``.
        pattern: the entries (i, j).
        negative_slope: slope of the leaky rectifier below 0.
        keep: ``[entries]``, 0 for entries to leave out.

    Returns:
        ``[heads, entries]``, adding up to 1 within each row that keeps an entry.
    """
    if keep is not None:
        keep = keep.expand(len(receive), len(pattern))
    send = pattern.collect(send[..., None])[..., 0]
    weights, _ = in_single(_Attention.apply, receive, send, keep, negative_slope, pattern)
    return weights


class _Attention(Operation):
    """Weights ``[K, entries]`` from ``receive`` and ``send``, and signs for the backward pass.

    Kernels recompute the signs and leave them empty.
    """

    tensors = 3

    @staticmethod
    def forward(
        receive: Tensor, send: Tensor, keep: Tensor | None, negative_slope: float, pattern: Pattern
    ) -> tuple[Tensor, Tensor]:
        if (kernel := serve("attention", receive)) is not None:
            nothing = receive.new_empty(len(receive), 0, dtype=torch.bool)
            return kernel(receive, send, keep, negative_slope, pattern), nothing
        scores = receive.index_select(1, pattern.row)
        scores.add_(send.index_select(1, pattern.col))
        negative = scores < 0
        scores = F.leaky_relu(scores, negative_slope, inplace=True)
        if keep is not None:
            scores.masked_fill_(keep == 0, -torch.inf)
        return pattern.row_softmax(scores), negative

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        receive, send, _, ctx.negative_slope, ctx.pattern = inputs
        ctx.save_for_backward(receive, send, *output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        receive, send, weights, negative = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        if (kernel := serve("attention_backward", receive)) is not None:
            found = kernel(receive, send, weights, grads[0], ctx.negative_slope, pattern)
            return *found, None, None, None
        if negative.shape != weights.shape:
            sums = receive.index_select(-1, pattern.row) + send.index_select(-1, pattern.col)
            negative = sums < 0
        of_scores = _softmax_backward(weights, grads[0], pattern)
        slope = torch.where(negative, weights.new_full((), ctx.negative_slope), 1.0)
        of_send = (slope * of_scores).index_select(-1, pattern.order)
        # Within a row these gradients add up to 0, so any constant may be subtracted from the
        # slopes. Subtracting the slope of the row's first entry makes the gradient of a row that
        # lies on one side of the kink exactly 0, not a rounding error that Adam would magnify.
        first = slope.index_select(-1, pattern.row_start)
        of_receive = _RowSums.apply((slope - first) * of_scores, pattern)
        return of_receive, _RowSums.apply(of_send, pattern.transpose), None, None, None


def row_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """Softmax of scores ``[heads, entries]`` within rows; rows with only -inf give 0."""
    return in_single(_RowSoftmax.apply, scores, pattern)


class _RowSoftmax(Operation):
    tensors = 1

    @staticmethod
    def forward(scores: Tensor, pattern: Pattern) -> Tensor:
        return pattern.row_softmax(scores)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return _softmax_backward(weights, grads[0], ctx.pattern), None


def _softmax_backward(weights: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """The gradient in the scores, from the gradient in the weights."""
    if (kernel := serve("row_softmax_backward", weights)) is not None:
        return kernel(weights, grad, pattern)
    weighted = weights * grad
    sums = _RowSums.apply(weighted, pattern).index_select(-1, pattern.row)
    return weighted - weights * sums


def row_sums(values: Tensor, pattern: Pattern) -> Tensor:
    """Sums of values ``[heads, entries]`` within rows, ``[heads, rows]``."""
    return _RowSums.apply(values, pattern)


class _RowSums(Operation):
    tensors = 1

    @staticmethod
    def forward(values: Tensor, pattern: Pattern) -> Tensor:
        return pattern.row_sums(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(-1, ctx.pattern.row), None
