"""The GPU kernels as differentiable operations with ``vmap`` rules.

Every operation works on a leading axis of members; under ``vmap`` the members are that axis.
For one member the axis comes and goes by ``unsqueeze`` and ``squeeze``: the backward pass of an
index like ``[0]`` would fill a tensor with zeros and copy into it.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from memohop.nn.operation import Operation, batch_first
from memohop.nn.randomness import Draw, place_words

if TYPE_CHECKING:
    from memohop.nn.pattern import Pattern

kernels: ModuleType | None
try:
    from memohop.nn import kernels as kernels
except ImportError:  # no Triton: the plain computations serve
    kernels = None


def use_kernels(tensor: Tensor) -> bool:
    """Whether the kernels can take this tensor."""
    return kernels is not None and tensor.is_cuda and tensor.dtype == torch.float32


def dropped(values: Tensor, draw: Draw, rate: Tensor) -> Tensor:
    """Dropout in one pass, and in one pass backwards."""
    return _Dropped.apply(values[None], draw.key[None], rate.reshape(1), draw.place).squeeze(0)


def dropped_product(
    values: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    pattern: Pattern,
    draw: Draw,
    rate: Tensor,
) -> Tensor:
    """``drop(X) @ weight + bias`` for sparse ``X`` with constant values, in one pass."""
    if bias is None:
        bias = weight.new_zeros(weight.shape[-1])
    tensors = (weight[None], bias[None], draw.key[None], rate.reshape(1))
    return _DroppedProduct.apply(*tensors, draw.place, values, pattern).squeeze(0)


def gated_update(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    bias: Tensor,
    draws: tuple[Draw, Draw] | None,
    rate: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Eqs. (8)-(10) of the paper in one pass: hidden, memory and the gates ``[N, 3]``."""
    if draws is None:
        key, places = torch.zeros(2, dtype=torch.int32, device=hidden.device), None
    else:
        key, places = draws[0].key, (draws[0].place, draws[1].place)
    tensors = (hidden, message, weight, bias, key, rate.reshape(()))
    hidden, memory, gates = _GatedUpdate.apply(*(tensor[None] for tensor in tensors), places)
    return hidden.squeeze(0), memory.squeeze(0), gates.squeeze(0)


class _Dropped(Operation):
    @staticmethod
    def forward(values: Tensor, keys: Tensor, rates: Tensor, place: int) -> Tensor:
        assert kernels is not None
        return kernels.dropout(values, keys.contiguous(), rates.contiguous(), *place_words(place))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, keys, rates, ctx.place = inputs
        ctx.save_for_backward(keys, rates)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates = ctx.saved_tensors
        return _Dropped.apply(grads[0], keys, rates, ctx.place), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        values, keys, rates = _fold(info, in_dims, inputs[:3])
        return _Dropped.apply(values, keys, rates, inputs[3]).unsqueeze(1), 0


class _DroppedProduct(Operation):
    @staticmethod
    def forward(
        weight: Tensor,
        bias: Tensor,
        keys: Tensor,
        rates: Tensor,
        place: int,
        values: Tensor,
        pattern: Pattern,
    ) -> Tensor:
        drop = (keys.contiguous(), rates.contiguous(), *place_words(place))
        return pattern.product(values, weight, bias=bias, drop=drop)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, _, keys, rates, ctx.place, values, ctx.pattern = inputs
        ctx.save_for_backward(keys, rates, values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates, values = ctx.saved_tensors
        drop = (keys.contiguous(), rates.contiguous(), *place_words(ctx.place))
        grad = ctx.pattern.transposed_product(values, grads[0], drop=drop)
        return grad, grads[0].sum(1), None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        folded = _fold(info, in_dims, inputs[:4])
        return _DroppedProduct.apply(*folded, *inputs[4:]).unsqueeze(1), 0


class _GatedUpdate(Operation):
    @staticmethod
    def forward(
        hidden: Tensor,
        message: Tensor,
        weight: Tensor,
        bias: Tensor,
        keys: Tensor,
        rates: Tensor,
        places: tuple[int, int] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert kernels is not None
        return kernels.gated_update(
            hidden.contiguous(),
            message.contiguous(),
            weight.contiguous(),
            bias.contiguous(),
            _drop(keys, rates, places),
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        hidden, message, weight, _, keys, rates, ctx.places = inputs
        ctx.save_for_backward(hidden, message, weight, keys, rates, output[2])
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        assert kernels is not None
        hidden, message, weight, keys, rates, gates = ctx.saved_tensors
        found = kernels.gated_update_backward(
            hidden.contiguous(),
            message.contiguous(),
            weight.contiguous(),
            gates,
            grads[0],
            grads[1],
            _drop(keys, rates, ctx.places),
        )
        return *found, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        found = _GatedUpdate.apply(*_fold(info, in_dims, inputs[:6]), inputs[6])
        return tuple(part.unsqueeze(1) for part in found), (0, 0, 0)


def _drop(keys: Tensor, rates: Tensor, places: tuple[int, int] | None) -> Any:
    if places is None:
        return None
    first, second = places
    return keys.contiguous(), rates.contiguous(), place_words(first), place_words(second)


def _fold(info: Any, in_dims: tuple[int | None, ...], inputs: Any) -> list[Tensor]:
    """Members into the leading axis, of length one, that every operation has."""
    pairs = zip(inputs, in_dims, strict=False)
    return [batch_first(tensor, dim, info.batch_size).flatten(0, 1) for tensor, dim in pairs]
