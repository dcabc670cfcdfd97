"""Dropout, and the product with dropped sparse features, in one pass each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._ops.masks import keep_masks
from memohop.nn._ops.operation import Operation
from memohop.nn.randomness import Draw, Place, place_words

if TYPE_CHECKING:
    from memohop.nn._ops.pattern import Pattern


def dropped(values: Tensor, draw: Draw, rate: Tensor) -> Tensor:
    """Dropout with a mask that a key and a place determine."""
    return dropped_members(values[None], draw.key[None], rate.reshape(1), draw.place).squeeze(0)


def dropped_members(values: Tensor, keys: Tensor, rates: Tensor, place: Place) -> Tensor:
    """Dropout of ``[K, ...]``, each member with its own key and rate, all at one place."""
    if isinstance(place, int) and (kernel := serve("dropout", values)) is not None:
        return _Dropped.apply(values, keys, rates, place, kernel)
    masks = keep_masks(keys, rates, place, tuple(values.shape[1:]), rates.dtype)
    return (values * masks).to(values.dtype)


def dropped_product(
    values: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    pattern: Pattern,
    draw: Draw,
    rate: Tensor,
    kernel: Callable[..., Tensor],
) -> Tensor:
    """``drop(X) @ weight + bias`` for sparse ``X`` with constant values, in one pass."""
    if bias is None:
        bias = weight.new_zeros(weight.shape[-1])
    tensors = (weight[None], bias[None], draw.key[None], rate.reshape(1))
    return _DroppedProduct.apply(*tensors, draw.place, values, pattern, False, kernel).squeeze(0)


class _Dropped(Operation):
    tensors = 3

    @staticmethod
    def forward(
        values: Tensor, keys: Tensor, rates: Tensor, place: int, kernel: Callable[..., Tensor]
    ) -> Tensor:
        return kernel(values, keys.contiguous(), rates.contiguous(), *place_words(place))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, keys, rates, ctx.place, ctx.kernel = inputs
        ctx.save_for_backward(keys, rates)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates = ctx.saved_tensors
        return _Dropped.apply(grads[0], keys, rates, ctx.place, ctx.kernel), *[None] * 4


class _DroppedProduct(Operation):
    """``drop(X) @ dense + bias``, or ``drop(X).T @ dense``, its gradient."""

    tensors = 4

    @staticmethod
    def forward(
        dense: Tensor,
        bias: Tensor | None,
        keys: Tensor,
        rates: Tensor,
        place: int,
        values: Tensor,
        pattern: Pattern,
        transposed: bool,
        kernel: Callable[..., Tensor],
    ) -> Tensor:
        drop = (keys.contiguous(), rates.contiguous(), *place_words(place))
        return kernel(values, dense, bias, pattern, drop, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, bias, keys, rates, ctx.place, values, ctx.pattern, ctx.transposed, ctx.kernel = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(keys, rates, values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates, values = ctx.saved_tensors
        turned = (ctx.place, values, ctx.pattern, not ctx.transposed, ctx.kernel)
        of_dense = _DroppedProduct.apply(grads[0], None, keys, rates, *turned)
        return of_dense, grads[0].sum(1) if ctx.has_bias else None, *[None] * 7
