"""Dropout with a tensor as its rate and a mask that can come from a counter."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn._operation import Operation, kernels_for
from memohop.nn._randomness import Draw, Place, keep_masks, next_draw, place_words


class Dropout(nn.Module):
    r"""Zeroes each element with probability ``rate`` and scales the rest by ``1 / (1 - rate)``.

    On its own it draws from PyTorch's generator, like :class:`torch.nn.Dropout`. Inside
    :func:`memohop.nn.randomness`, as in the trainer, the mask is a function of seed,
    epoch and position alone. The rate is a buffer, so each member of a population can have its
    own.

    Args:
        rate: the probability of a zero, at least 0 and below 1.
        role: the name of the rate in a :class:`memohop.Member`: ``"hidden"``, ``"input"``,
            ``"value"``, ``"attention"``, ``"edge"`` or ``"propagation"``.

    Example:
        >>> import torch
        >>> from memohop.nn import Dropout
        >>> Dropout(0.5).eval()(torch.ones(3))
        tensor([1., 1., 1.])
    """

    rate: Tensor

    def __init__(self, rate: float = 0.5, *, role: str = "hidden") -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise UsageError(f"a dropout rate is at least 0 and below 1, not {rate}")
        self.role = role
        self.active = rate > 0
        self.register_buffer("rate", torch.tensor(float(rate)))

    def set_rates(self, rates: Tensor) -> None:
        """Announce the rates of all members, so that all-zero rates cost nothing."""
        self.active = bool((rates > 0).any())

    def draw(self) -> Draw | None:
        """Take the next place; None if nothing is dropped, or outside a stream."""
        draw = next_draw(self.role) if self.training else None
        return draw if self.active else None

    def mask(self, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        """The mask, scaled, with the type and device of ``like``; None if nothing is dropped."""
        if (draw := self.draw()) is not None:
            rate = self.rate.reshape(1)
            return keep_masks(draw.key[None], rate, draw.place, shape, like.dtype).squeeze(0)
        if self.training and self.active:  # no stream: draw from PyTorch's generator
            return F.dropout(like.new_ones(shape), float(self.rate))
        return None

    def forward(self, values: Tensor) -> Tensor:
        """``values`` with some elements dropped; unchanged in evaluation mode."""
        return self.drop(values, self.draw())

    def drop(self, values: Tensor, draw: Draw | None) -> Tensor:
        """The same with the result of :meth:`draw`."""
        if draw is not None:
            return dropped(values, draw, self.rate)
        return F.dropout(values, float(self.rate)) if self.training and self.active else values

    def extra_repr(self) -> str:
        """The rate and its role."""
        return f"rate={float(self.rate):g}, role={self.role}"


def dropped(values: Tensor, draw: Draw, rate: Tensor) -> Tensor:
    """Dropout with a mask that a key and a place determine."""
    members, keys, rates = values[None], draw.key[None], rate.reshape(1)
    if draw.place.part is None and kernels_for(values) is not None:
        return _Dropped.apply(members, keys, rates, draw.place).squeeze(0)
    masks = keep_masks(keys, rates, draw.place, tuple(values.shape), rates.dtype)
    return (members * masks).to(values.dtype).squeeze(0)


class _Dropped(Operation):
    """Dropout of ``[B, ...]`` in one pass, each member with its own key and rate."""

    tensors = 3

    @staticmethod
    def forward(values: Tensor, keys: Tensor, rates: Tensor, place: Place) -> Tensor:
        kernels, words = kernels_for(values), place_words(place.number)
        assert kernels is not None
        return kernels.dropout(values, keys.contiguous(), rates.contiguous(), *words)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, keys, rates, ctx.place = inputs
        ctx.save_for_backward(keys, rates)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates = ctx.saved_tensors
        return _Dropped.apply(grads[0], keys, rates, ctx.place), *[None] * 3
