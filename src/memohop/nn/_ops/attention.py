r"""The softmax of attention over the entries of each row, with its own backward pass.

Only one number per entry and head is ever held: the collected vectors go through
:func:`~memohop.nn._ops.products.weighted_product`. In GATv2 scores come from whole vectors of both
ends of an arc. Those exist only inside the operation, forwards and again backwards, for as many
heads and members at a time as stay within a bound, and for at least one head of one member. The GPU
kernel for large graphs never writes them down.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._operation import Operation, gradients, in_plain_backward, in_single, kernels_for
from memohop.nn._ops.pattern import Pattern
from memohop.nn._ops.products import (
    RowSoftmax,
    row_softmax,
    row_sums,
    softmax_backward,
    weighted_product,
)

AT_ONCE = {"cpu": 1 << 16, "cuda": 1 << 26}
"""How many numbers an operation holds at a time: on a CPU as many as fit into its cache."""

MANY_ENTRIES = 1 << 17  # with a vector of 128 channels for each, they exceed a GPU's cache


def attend(
    receive: Tensor,
    send: Tensor,
    pattern: Pattern,
    *,
    negative_slope: float,
    keep: Tensor | None = None,
) -> Tensor:
    r"""Attention weights :math:`\mathrm{softmax}_j\,\mathrm{LeakyReLU}(r_i + s_j)`.

    From :math:`r`, ``[heads, rows]``, and :math:`s`, ``[heads, columns]``, to a weight for each
    entry, ``[heads, entries]``. They add up to 1 within each row that keeps an entry: where
    ``keep``, ``[entries]``, is 0, the entry is left out.
    """
    if keep is not None:
        keep = keep.expand(len(receive), len(pattern))
    send = pattern.collect(send[..., None])[..., 0]
    weights, _ = in_single(_Attention.apply, receive, send, keep, negative_slope, pattern)
    return weights


class _Attention(Operation):
    """Weights ``[K, entries]`` from ``receive`` and ``send``, and signs for the backward pass."""

    tensors = 3

    @staticmethod
    def forward(
        receive: Tensor, send: Tensor, keep: Tensor | None, negative_slope: float, pattern: Pattern
    ) -> tuple[Tensor, Tensor]:
        scores = receive.index_select(1, pattern.row)
        scores.add_(send.index_select(1, pattern.col))
        negative = scores < 0
        scores = F.leaky_relu(scores, negative_slope, inplace=True)
        if keep is not None:
            scores.masked_fill_(keep == 0, -torch.inf)
        return RowSoftmax.forward(scores, pattern), negative

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, _, _, ctx.negative_slope, ctx.pattern = inputs
        ctx.save_for_backward(*output)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weights, negative = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        of_scores = softmax_backward(weights, grads[0], pattern)
        slope = torch.where(negative, weights.new_full((), ctx.negative_slope), 1.0)
        of_send = (slope * of_scores).index_select(-1, pattern.order)
        # Within a row these gradients add up to 0, so any constant may be subtracted from the
        # slopes. Subtracting the slope of the row's first entry makes the gradient of a row that
        # lies on one side of the kink exactly 0, not a rounding error that Adam would magnify.
        first = slope.index_select(-1, pattern.row_start)
        of_receive = row_sums((slope - first) * of_scores, pattern)
        return of_receive, row_sums(of_send, pattern.transpose), None, None, None


def attend_dynamically(
    receive: Tensor,
    send: Tensor,
    score: Tensor,
    pattern: Pattern,
    *,
    negative_slope: float,
    keep: Tensor | None = None,
    edge_map: Tensor | None = None,
    attributes: Tensor | None = None,
) -> Tensor:
    r"""Weights :math:`\mathrm{softmax}_j\,\mathbf{a}^\top\mathrm{LeakyReLU}(r_i + s_j)`.

    Like :func:`attend`, but :math:`r` and :math:`s` are vectors, ``[heads, rows, D]`` and
    ``[heads, columns, D]``, and so is :math:`\mathbf{a}`, ``[heads, D]``. With ``attributes``
    :math:`\mathbf{x}_{ij}`, ``[entries, channels]``, the sum has a third term
    :math:`\mathbf{x}_{ij}\mathbf{E}`, with :math:`\mathbf{E}` ``[heads, channels, D]``.
    """
    given = receive, pattern.collect(send), score, edge_map, negative_slope, pattern, attributes
    scores = in_single(_Scores.apply, *given)
    if keep is not None:
        scores = scores.masked_fill(keep == 0, -torch.inf)
    return row_softmax(scores, pattern)


class _Scores(Operation):
    """Scores ``[K, entries]`` from ``[K, rows, D]``, ``[K, columns, D]`` and ``[K, D]``.

    If entries have attributes, ``[entries, channels]``, also from a map ``[K, channels, D]``.
    """

    tensors = 4

    @staticmethod
    def forward(
        receive: Tensor,
        send: Tensor,
        score: Tensor,
        edge_map: Tensor | None,
        negative_slope: float,
        pattern: Pattern,
        attributes: Tensor | None,
    ) -> Tensor:
        if attributes is None and (kernels := _kernels(receive, pattern)) is not None:
            return kernels.dynamic_scores(receive, send, score, negative_slope, pattern)
        out = receive.new_empty(len(receive), len(pattern))
        for part in _parts(receive, pattern):
            arcs = _sums(part, receive, send, edge_map, pattern, attributes)
            arcs = F.leaky_relu_(arcs, negative_slope)
            torch.matmul(arcs, score[part, :, None], out=out[part, :, None])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.negative_slope, ctx.pattern, ctx.attributes = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tensors = grads[0], *ctx.saved_tensors
        kernels = _kernels(grads[0], ctx.pattern) if in_plain_backward() else None
        if kernels is not None and ctx.attributes is None:
            of_ends = kernels.dynamic_scores_backward(*tensors[:4], ctx.negative_slope, ctx.pattern)
            return *of_ends, *[None] * 4
        given = *tensors, ctx.negative_slope, ctx.pattern, ctx.attributes
        of_all = _ScoresBackward.apply(*given)
        return *of_all, *[None] * (7 - len(of_all))


class _ScoresBackward(Operation):
    r"""Gradients in both kinds of vectors, in the score, and in the map of attributes if any.

    With :math:`g` the gradient of the scores, :math:`z` the sum before the rectifier and
    :math:`p = [z > 0]`, the slope is :math:`s + (1 - s) p`, and the gradient of a sender is
    :math:`\mathbf{a} \odot (s \sum g + (1 - s) \sum g p)`. In a row the :math:`g` add up to 0,
    so a receiver's is :math:`(1 - s)\,\mathbf{a} \odot \sum g\,(p - p')` with :math:`p'` of the
    row's first entry. If all entries of a row lie on one side of the kink, this is exactly 0, not a
    rounding error that Adam would magnify. That of the map is
    :math:`\mathbf{a} \odot \sum \mathbf{x}\,(s g + (1 - s) g p)`.
    """

    tensors = 5

    @staticmethod
    def forward(
        grad: Tensor,
        receive: Tensor,
        send: Tensor,
        score: Tensor,
        edge_map: Tensor | None,
        negative_slope: float,
        pattern: Pattern,
        attributes: Tensor | None,
    ) -> tuple[Tensor, ...]:
        of_receive, of_send = torch.empty_like(receive), torch.empty_like(send)
        of_score = torch.empty_like(score)
        of_map = None if edge_map is None else torch.empty_like(edge_map)
        by_row, by_column = pattern.incidence
        swapped = grad.index_select(-1, pattern.order)
        for part in _parts(receive, pattern):
            arcs = _sums(part, receive, send, edge_map, pattern, attributes)
            positive = (arcs > 0).view(torch.int8)
            turned = positive - positive.index_select(1, pattern.row_start)
            of_receive[part] = weighted_product(grad[part], turned.to(grad.dtype), by_row)
            of_send[part] = weighted_product(swapped[part], positive.to(grad.dtype), by_column)
            if of_map is not None and attributes is not None:
                slopes = positive.to(grad.dtype).mul_(1 - negative_slope).add_(negative_slope)
                through = slopes.mul_(grad[part, :, None])
                of_map[part] = (attributes.t() @ through).mul_(score[part, None])
            rectified = F.leaky_relu_(arcs, negative_slope)
            torch.matmul(grad[part, None], rectified, out=of_score[part, None])
        sums = row_sums(swapped, pattern.transpose)[..., None]
        steep, flat = (1 - negative_slope) * score[:, None], negative_slope * score[:, None]
        of_ends = of_receive.mul_(steep), of_send.mul_(steep).addcmul_(sums, flat), of_score
        return of_ends if of_map is None else (*of_ends, of_map)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, ctx.negative_slope, ctx.pattern, ctx.attributes = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The second derivative, which holds the vectors of all arcs at once."""

        def scores(receive: Tensor, send: Tensor, score: Tensor, *maps: Tensor) -> tuple[Tensor]:
            pattern: Pattern = ctx.pattern
            arcs = receive.index_select(1, pattern.row) + send.index_select(1, pattern.col)
            for edge_map in maps:
                arcs = arcs + ctx.attributes @ edge_map
            rectified = F.leaky_relu(arcs, ctx.negative_slope)
            return ((rectified @ score[..., None]).squeeze(-1),)

        def first(grad: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
            return gradients(scores, tensors, (grad,))

        tensors = [tensor for tensor in ctx.saved_tensors if tensor is not None]
        of_all = gradients(first, tensors, grads)
        return *of_all, *[None] * (8 - len(of_all))


def _kernels(tensor: Tensor, pattern: Pattern) -> ModuleType | None:
    """If the vectors of all entries are too many for a GPU's cache, even in one network."""
    return kernels_for(tensor) if len(pattern) >= MANY_ENTRIES else None


def _sums(
    part: slice,
    receive: Tensor,
    send: Tensor,
    edge_map: Tensor | None,
    pattern: Pattern,
    attributes: Tensor | None,
) -> Tensor:
    """The sum of both ends' vectors, and of its attributes', for each entry: ``[K, entries, D]``.

    That is for some of the ``K``, a ``part``.
    """
    sums = receive[part].index_select(1, pattern.row)
    sums.add_(send[part].index_select(1, pattern.col))
    if edge_map is not None and attributes is not None:
        sums += attributes @ edge_map[part]
    return sums


def _parts(receive: Tensor, pattern: Pattern) -> Iterator[slice]:
    """How many of the ``K`` to take at a time."""
    each = max(1, len(pattern) * receive.shape[-1])
    step = max(1, AT_ONCE[receive.device.type] // each)
    return (slice(start, start + step) for start in range(0, len(receive), step))
