"""A layer of graph attention after its linear map, as one operation on a CPU.

Scores, softmax, both kinds of dropout, the weighted sums and the bias: as separate operations
they write and read a number per entry and head some ten times. Here nothing is kept per entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._ops.attention import attend
from memohop.nn._ops.masks import keep_masks
from memohop.nn._ops.operation import Operation, gradients
from memohop.nn._ops.pattern import Pattern, weighted_product
from memohop.nn.randomness import Draw

Places = tuple[int | None, int | None]


def attend_as_a_whole(
    mapped: Tensor,
    vectors: Tensor,
    pattern: Pattern,
    *,
    heads: int,
    negative_slope: float,
    keep: Tensor | None,
    draws: tuple[Draw | None, Draw | None],
    rates: tuple[Tensor, Tensor],
    kernel: Callable[..., Any],
) -> Tensor:
    r"""The concatenated heads of :class:`~memohop.nn.GraphAttention`: ``[N, C]``.

    Args:
        mapped: :math:`\mathbf{W}\mathbf{h}` of all nodes and heads, ``[N, C]``.
        vectors: ``[3, C]``, with all heads one after the other: the score vectors of
            receivers and of senders, and the bias.
        pattern: the entries (i, j).
        heads: the number of heads.
        negative_slope: slope of the leaky rectifier below 0.
        keep: ``[entries]``, 0 for entries to leave out.
        draws: the places of the masks of values and of weights; None for no dropout.
        rates: the two rates of dropout.
        kernel: the kernel that computes it.
    """
    drawn = draws[0] or draws[1]
    key = torch.zeros(2, dtype=torch.int32) if drawn is None else drawn.key
    places = [None if draw is None else draw.place for draw in draws]
    tensors = (mapped, vectors, key, *(rate.reshape(()) for rate in rates))
    kept = None if keep is None else (keep != 0)[None]
    constants = tuple(places), heads, negative_slope, pattern, kernel
    out, _, _ = _WholeAttention.apply(*(tensor[None] for tensor in tensors), kept, *constants)
    return out.squeeze(0)


class _WholeAttention(Operation):
    tensors = 6

    @staticmethod
    def forward(
        mapped: Tensor,
        vectors: Tensor,
        keys: Tensor,
        value_rates: Tensor,
        rates: Tensor,
        keep: Tensor | None,
        places: Places,
        heads: int,
        negative_slope: float,
        pattern: Pattern,
        kernel: Callable[..., tuple[Tensor, Tensor, Tensor]],
    ) -> tuple[Tensor, Tensor, Tensor]:
        drops = _drops(keys, (value_rates, rates), places)
        return kernel(pattern, mapped, vectors, keep, negative_slope, drops)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.places, ctx.heads, ctx.negative_slope, ctx.pattern, _ = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        mapped, vectors, keys, value_rates, rates, keep, *kept = ctx.saved_tensors
        drops = _drops(keys, (value_rates, rates), ctx.places)
        if (kernel := serve("whole_attention_backward", mapped)) is not None:
            given = ctx.pattern, mapped, vectors, keep, ctx.negative_slope, drops
            return *kernel(*given, kept, grads[0]), *[None] * 9

        def attended(mapped: Tensor, vectors: Tensor) -> tuple[Tensor]:
            constants = keep, drops, ctx.heads, ctx.negative_slope, ctx.pattern
            return (_plain(mapped, vectors, *constants),)

        return *gradients(attended, (mapped, vectors), grads[:1]), *[None] * 9


def _plain(
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    drops: tuple[Any, Any],
    heads: int,
    negative_slope: float,
    pattern: Pattern,
) -> Tensor:
    """The same from operations that can be differentiated again."""
    members = len(mapped)
    values = mapped.unflatten(-1, (heads, -1)).transpose(1, 2)
    receive, send, _ = vectors.unflatten(-1, (heads, -1))[:, :, :, None].unbind(1)
    of_receive, of_send = ((values * vector).sum(-1).flatten(0, 1) for vector in (receive, send))
    if keep is not None:
        keep = keep.repeat_interleave(heads, 0)
    weights = attend(of_receive, of_send, pattern, negative_slope=negative_slope, keep=keep)
    weights = weights.unflatten(0, (members, heads))
    values, weights = _masked(values, drops[0]), _masked(weights, drops[1])
    collected = weighted_product(weights.flatten(0, 1), values.flatten(0, 1), pattern)
    combined = collected.unflatten(0, (members, heads)).transpose(1, 2).flatten(2)
    return combined + vectors[:, 2, None]


def _masked(tensor: Tensor, drop: Any) -> Tensor:
    if drop is None:
        return tensor
    keys, rates, place = drop
    return tensor * keep_masks(keys, rates, place, tuple(tensor.shape[1:]), tensor.dtype)


def _drops(keys: Tensor, rates: tuple[Tensor, Tensor], places: Places) -> tuple[Any, Any]:
    """The arguments of both dropouts."""
    values, weights = (
        None if place is None else (keys, rate, place)
        for rate, place in zip(rates, places, strict=True)
    )
    return values, weights
