r"""Attention with scores from whole vectors of both ends of an arc, as in GATv2.

One number per entry and head is kept. The vectors per arc that lead to it exist only inside the
operation, forwards and again backwards, for as many heads and members at a time as stay within a
bound, and for at least one head of one member. A kernel for large graphs never writes them down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._kernels.table import AT_ONCE, serve
from memohop.nn._ops.attention import row_softmax
from memohop.nn._ops.operation import Operation, gradients, in_single
from memohop.nn._ops.pattern import Pattern, weighted_product


def attend_dynamically(
    receive: Tensor,
    send: Tensor,
    score: Tensor,
    pattern: Pattern,
    *,
    negative_slope: float,
    keep: Tensor | None = None,
) -> Tensor:
    r"""Weights :math:`\mathrm{softmax}_j\,\mathbf{a}^\top\mathrm{LeakyReLU}(r_i + s_j)`.

    Args:
        receive: the vectors :math:`r`, ``[heads, rows, D]``.
        send: the vectors :math:`s`, ``[heads, columns, D]``.
        score: :math:`\mathbf{a}`, ``[heads, D]``.
        pattern: the entries (i, j).
        negative_slope: slope of the leaky rectifier below 0.
        keep: ``[entries]``, 0 for entries to leave out.

    Returns:
        ``[heads, entries]``, adding up to 1 within each row that keeps an entry.
    """
    given = receive, pattern.collect(send), score, negative_slope, pattern
    scores = in_single(_Scores.apply, *given)
    if keep is not None:
        scores = scores.masked_fill(keep == 0, -torch.inf)
    return row_softmax(scores, pattern)


class _Scores(Operation):
    """Scores ``[K, entries]`` from ``[K, rows, D]``, ``[K, columns, D]`` and ``[K, D]``."""

    tensors = 3

    @staticmethod
    def forward(
        receive: Tensor, send: Tensor, score: Tensor, negative_slope: float, pattern: Pattern
    ) -> Tensor:
        if (kernel := serve("dynamic_scores", receive, pattern)) is not None:
            return kernel(receive, send, score, negative_slope, pattern)
        out = receive.new_empty(len(receive), len(pattern))
        for part in _parts(receive, pattern):
            arcs = F.leaky_relu_(_sums(receive[part], send[part], pattern), negative_slope)
            torch.matmul(arcs, score[part, :, None], out=out[part, :, None])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.negative_slope, ctx.pattern = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        given = grads[0], *ctx.saved_tensors, ctx.negative_slope, ctx.pattern
        kernel = serve("dynamic_scores_backward", grads[0], ctx.pattern)
        return *(kernel or _ScoresBackward.apply)(*given), None, None


class _ScoresBackward(Operation):
    r"""Gradients in both kinds of vectors and in the score.

    With :math:`g` the gradient of the scores, :math:`z` the sum before the rectifier and
    :math:`p = [z > 0]`, the slope is :math:`s + (1 - s) p`, and the gradient of a sender is
    :math:`\mathbf{a} \odot (s \sum g + (1 - s) \sum g p)`. In a row the :math:`g` add up to 0,
    so a receiver's is :math:`(1 - s)\,\mathbf{a} \odot \sum g\,(p - p')` with :math:`p'` of the
    row's first entry. If all entries of a row lie on one side of the kink, this is exactly 0, not a
    rounding error that Adam would magnify.
    """

    tensors = 4

    @staticmethod
    def forward(
        grad: Tensor,
        receive: Tensor,
        send: Tensor,
        score: Tensor,
        negative_slope: float,
        pattern: Pattern,
    ) -> tuple[Tensor, Tensor, Tensor]:
        of_receive, of_send = torch.empty_like(receive), torch.empty_like(send)
        of_score = torch.empty_like(score)
        by_row, by_column = pattern.incidence
        swapped = grad.index_select(-1, pattern.order)
        for part in _parts(receive, pattern):
            arcs = _sums(receive[part], send[part], pattern)
            positive = (arcs > 0).view(torch.int8)
            turned = positive - positive.index_select(1, pattern.row_start)
            of_receive[part] = weighted_product(grad[part], turned.to(grad.dtype), by_row)
            of_send[part] = weighted_product(swapped[part], positive.to(grad.dtype), by_column)
            rectified = F.leaky_relu_(arcs, negative_slope)
            torch.matmul(grad[part, None], rectified, out=of_score[part, None])
        sums = pattern.transpose.row_sums(swapped)[..., None]
        steep, flat = (1 - negative_slope) * score[:, None], negative_slope * score[:, None]
        return of_receive.mul_(steep), of_send.mul_(steep).addcmul_(sums, flat), of_score

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, ctx.negative_slope, ctx.pattern = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The second derivative, which holds the vectors of all arcs at once."""

        def scores(receive: Tensor, send: Tensor, score: Tensor) -> tuple[Tensor]:
            pattern: Pattern = ctx.pattern
            arcs = receive.index_select(1, pattern.row) + send.index_select(1, pattern.col)
            rectified = F.leaky_relu(arcs, ctx.negative_slope)
            return ((rectified @ score[..., None]).squeeze(-1),)

        def first(grad: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
            return gradients(scores, tensors, (grad,))

        return *gradients(first, ctx.saved_tensors, grads), None, None


def _sums(receive: Tensor, send: Tensor, pattern: Pattern) -> Tensor:
    """The sum of both ends' vectors for each entry: ``[K, entries, D]``."""
    return receive.index_select(1, pattern.row).add_(send.index_select(1, pattern.col))


def _parts(receive: Tensor, pattern: Pattern) -> Iterator[slice]:
    """How many of the ``K`` to take at a time."""
    each = max(1, len(pattern) * receive.shape[-1])
    step = max(1, AT_ONCE[receive.device.type] // each)
    return (slice(start, start + step) for start in range(0, len(receive), step))
