"""Dropout and a linear map to few columns, such as the decision, in one pass on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor

from memohop.nn._ops.fused import (
    cpu_kernels,
    cpu_kernels_backward,
    dropped_members,
    fold_members,
    numba_kernels,
    unfold_members,
)
from memohop.nn._ops.operation import Operation
from memohop.nn.randomness import place_words

if TYPE_CHECKING:
    from memohop.nn.dropout import Dropout

_FEW = 16  # columns up to which one pass is quicker than dropout and a product


def dropped_linear(
    values: Tensor, dropout: Dropout, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    r""":math:`\mathrm{drop}(\mathbf{H})\mathbf{W}^\top + \mathbf{b}`.

    Args:
        values: ``[N, D]``.
        dropout: what drops out.
        weight: ``[C, D]``.
        bias: ``[C]``.
    """
    few = len(weight) <= _FEW and values.shape[-1] % 2 == 0  # a hash decides two columns
    served = few and dropout.active and cpu_kernels(values[None]) is not None
    draw = dropout.draw() if served else None
    if draw is None:
        return F.linear(dropout(values), weight, bias)
    tensors = (values[None], weight[None], draw.key[None], dropout.rate.reshape(1))
    product = _DroppedLinear.apply(*tensors, draw.place).squeeze(0)
    return product if bias is None else product + bias


class _DroppedLinear(Operation):
    @staticmethod
    def forward(values: Tensor, weight: Tensor, keys: Tensor, rates: Tensor, place: int) -> Tensor:
        served = numba_kernels()
        assert served is not None
        return served.dropped_linear(values, weight, keys, rates, *place_words(place))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.place = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, weight, keys, rates = ctx.saved_tensors
        if (served := cpu_kernels_backward(values)) is not None:
            words = place_words(ctx.place)
            found = served.dropped_linear_backward(values, weight, keys, rates, *words, grads[0])
            return *found, None, None, None
        of_values = dropped_members(grads[0] @ weight, keys, rates, ctx.place)
        of_weight = grads[0].mT @ dropped_members(values, keys, rates, ctx.place)
        return of_values, of_weight, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        folded = fold_members(info, in_dims, inputs[:4])
        return unfold_members(info, _DroppedLinear.apply(*folded, inputs[4])), 0
