"""The dropout masks of :mod:`memohop.nn.randomness` as an operation with a ``vmap`` rule."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from memohop.nn._ops.operation import Operation
from memohop.nn.randomness import Draw, Place, draw_masks


def scaled_keep_mask(
    draw: Draw, shape: tuple[int, ...], rate: Tensor, dtype: torch.dtype
) -> Tensor:
    """Zeros with probability ``rate``, else ``1 / (1 - rate)``."""
    return keep_masks(draw.key[None], rate.reshape(1), draw.place, shape, dtype).squeeze(0)


def keep_masks(
    keys: Tensor, rates: Tensor, place: Place, shape: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    """The same for members, ``[B, *shape]``, each with its own key and rate."""
    if not torch._C._are_functorch_transforms_active():
        return draw_masks(keys, rates, (place,), shape, dtype)[0]
    return _KeepMasks.apply(keys, rates, place, shape, dtype)


class _KeepMasks(Operation):
    """:func:`draw_masks` as an operation that can be mapped; it works in place and cannot."""

    tensors = 2

    @staticmethod
    def forward(
        keys: Tensor, rates: Tensor, place: Place, shape: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        return draw_masks(keys, rates, (place,), shape, dtype)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        return None, None, None, None, None
