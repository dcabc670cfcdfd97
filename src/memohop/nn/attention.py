r"""The softmax of attention over the entries of each row, with its own backward pass.

Only one number per entry and head is ever held: the vectors that are collected go through
:func:`~memohop.nn.pattern.weighted_product`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn.operation import Operation, batch_first
from memohop.nn.pattern import Pattern


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
        negative_slope: of the leaky rectifier.
        keep: ``[entries]``, 0 for entries to leave out.

    Returns:
        ``[heads, entries]``, adding up to 1 within each row that keeps an entry.
    """
    scores = _Pair.apply(receive, send, pattern)
    scores = F.leaky_relu(scores, negative_slope)
    if keep is not None:
        scores = scores.masked_fill(keep == 0, -torch.inf)
    weights: Tensor = _RowSoftmax.apply(scores, pattern)
    return weights


class _Pair(Operation):
    """``receive[:, i] + send[:, j]`` for each entry; sums in the backward, in a fixed order."""

    @staticmethod
    def forward(receive: Tensor, send: Tensor, pattern: Pattern) -> Tensor:
        scores = receive.index_select(1, pattern.row)
        return scores.add_(send.index_select(1, pattern.col))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        pattern: Pattern = ctx.pattern
        swapped = grads[0].index_select(-1, pattern.order)
        return _RowSums.apply(grads[0], pattern), _RowSums.apply(swapped, pattern.transpose), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], receive: Tensor, send: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        receive = batch_first(receive, in_dims[0], info.batch_size)
        send = batch_first(send, in_dims[1], info.batch_size)
        scores: Tensor = _Pair.apply(receive.flatten(0, 1), send.flatten(0, 1), pattern)
        return scores.unflatten(0, receive.shape[:2]), 0


class _RowSums(Operation):
    @staticmethod
    def forward(values: Tensor, pattern: Pattern) -> Tensor:
        return pattern.row_sums(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pattern = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(-1, ctx.pattern.row), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], values: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        values = batch_first(values, in_dims[0], info.batch_size)
        sums = _RowSums.apply(values.flatten(0, 1), pattern)
        return sums.unflatten(0, values.shape[:2]), 0


class _RowSoftmax(Operation):
    """Softmax over the entries of each row; rows whose scores are all -inf give 0."""

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
        pattern: Pattern = ctx.pattern
        weighted = weights * grads[0]
        sums = _RowSums.apply(weighted, pattern)
        return weighted - weights * sums.index_select(-1, pattern.row), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], scores: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        scores = batch_first(scores, in_dims[0], info.batch_size)
        weights: Tensor = _RowSoftmax.apply(scores.flatten(0, 1), pattern)
        return weights.unflatten(0, scores.shape[:2]), 0
