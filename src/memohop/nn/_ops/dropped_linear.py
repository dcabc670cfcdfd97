"""Dropout and a linear map to few columns, such as the decision, in one pass on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor

from memohop.nn._kernels.table import serve
from memohop.nn._ops.dropped import dropped_members
from memohop.nn._ops.operation import Operation
from memohop.nn.randomness import Place, place_words, rows_here

if TYPE_CHECKING:
    from memohop.nn.dropout import Dropout


def dropped_linear(
    values: Tensor, dropout: Dropout, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    r""":math:`\mathrm{drop}(\mathbf{H})\mathbf{W}^\top + \mathbf{b}`.

    Args:
        values: ``[N, D]``.
        dropout: the dropout to apply.
        weight: ``[C, D]``.
        bias: ``[C]``.
    """
    kernel = serve("dropped_linear", values[None], len(weight))
    draw = dropout.draw() if kernel is not None and dropout.active else None
    if draw is None:
        return F.linear(dropout(values), weight, bias)
    tensors = (values[None], weight[None], draw.key[None], dropout.rate.reshape(1))
    product = _DroppedLinear.apply(*tensors, draw.place, kernel).squeeze(0)
    return product if bias is None else product + bias


class _DroppedLinear(Operation):
    tensors = 4

    @staticmethod
    def forward(
        values: Tensor,
        weight: Tensor,
        keys: Tensor,
        rates: Tensor,
        place: Place,
        kernel: Callable[..., Tensor],
    ) -> Tensor:
        rows = rows_here(place, tuple(values.shape[1:]))
        return kernel(values, weight, keys, rates, place_words(place), rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.place, _ = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, weight, keys, rates = ctx.saved_tensors
        kernel = serve("dropped_linear_backward", values, weight.shape[1])
        if kernel is not None:
            rows = rows_here(ctx.place, tuple(values.shape[1:]))
            words = place_words(ctx.place)
            return *kernel(values, weight, keys, rates, words, rows, grads[0]), *[None] * 4
        of_values = dropped_members(grads[0] @ weight, keys, rates, ctx.place)
        of_weight = grads[0].mT @ dropped_members(values, keys, rates, ctx.place)
        return of_values, of_weight, *[None] * 4
