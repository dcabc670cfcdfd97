"""Gates, hidden state and memory in one operation: Eqs. (8)-(10) with their own backward pass.

With each product and sum as a separate operation, these equations read and write the same few
matrices some thirty times. Here they are one kernel if there is one, and otherwise a handful of
passes in place.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers

from memohop.nn.operation import Operation, gradients, in_plain_backward, kernels_for
from memohop.nn.randomness import Draw, Place, draw_masks, keep_masks, place_words

Places = tuple[Place, Place]


def gated_update(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    bias: Tensor,
    draws: tuple[Draw, Draw] | None,
    rate: Tensor,
    wants_memory: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The new hidden state and memory, and the gates ``[N, 3]``; all three carry gradients.

    .. math::
        (\alpha_h, \alpha_m, \alpha_c) &= \mathrm{sigmoid}(
            \mathbf{W}\,\mathrm{drop}[\mathbf{H} \Vert \mathbf{M}] + \mathbf{b}) \\
        \mathbf{H}' &= \alpha_h \mathbf{H} + \alpha_m \mathbf{M}, \quad
        \mathbf{C}' = \alpha_c \mathbf{M}

    Args:
        hidden: ``[N, C]``.
        message: ``[N, C]``.
        weight: ``[3, 2 C]``.
        bias: ``[3]``.
        draws: the places of the masks of hidden and message, or None for no dropout.
        rate: the rate of dropout, a scalar.
        wants_memory: False if the memory is not needed: it is then left empty.

    States of bfloat16 have weights of the same type; gates are float32, as is the arithmetic.
    """
    if draws is None:
        key, places = torch.zeros(2, dtype=torch.int32, device=hidden.device), None
    else:
        key, places = draws[0].key, (draws[0].place, draws[1].place)
    if hidden.dtype == torch.bfloat16 and _kernels(hidden, places) is None:
        states, parameters = (hidden.float(), message.float()), (weight.float(), bias.float())
        hidden, memory, gates = gated_update(*states, *parameters, draws, rate, wants_memory)
        return hidden.bfloat16(), memory.bfloat16(), gates
    tensors = (hidden, message, weight, bias, key, rate.reshape(()))
    results = _GatedUpdate.apply(*(tensor[None] for tensor in tensors), places, wants_memory)
    return results[0].squeeze(0), results[1].squeeze(0), results[2].squeeze(0)


class _GatedUpdate(Operation):
    """Without kernels, masks and masked inputs are outputs too: the backward pass reads them."""

    tensors = 6

    @staticmethod
    def forward(
        hidden: Tensor,
        message: Tensor,
        weight: Tensor,
        bias: Tensor,
        keys: Tensor,
        rates: Tensor,
        places: Places | None,
        wants_memory: bool,
    ) -> tuple[Tensor, ...]:
        kept: tuple[Tensor, ...] = (hidden.new_empty(len(hidden), 0),) * 4
        if (kernels := _kernels(hidden, places)) is not None:
            tensors = (t.contiguous() for t in (hidden, message, weight, bias))
            drop = _drop(keys, rates, places)
            return *kernels.gated_update(*tensors, drop, wants_memory), *kept
        parts = (hidden, message)
        if places is not None:
            kept = _masked(hidden, message, keys, rates, places)
            parts = kept[2:]
        return *_equations(hidden, message, parts, weight, bias, wants_memory), *kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.places, ctx.wants_memory = inputs
        ctx.save_for_backward(*tensors, *output[2:])
        ctx.mark_non_differentiable(*output[3:])
        # The memory of the last layer is not used, and training does not use the gates.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, message, weight, bias, keys, rates, gates, *kept = unwrap_dead_wrappers(
            ctx.saved_tensors
        )
        plain = in_plain_backward()
        kernels = _kernels(hidden, ctx.places) if plain and grads[2] is None else None
        if kernels is None:
            hidden, message, weight, bias = (
                tensor.to(gates.dtype) for tensor in (hidden, message, weight, bias)
            )
            grads = tuple(None if grad is None else grad.to(gates.dtype) for grad in grads)
        if not plain:
            masks = [
                keep_masks(keys, rates, place, tuple(hidden.shape[1:]), hidden.dtype)
                for place in ctx.places or ()
            ]

            def updated(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
                hidden, message, weight, bias = tensors
                parts = (hidden * masks[0], message * masks[1]) if masks else (hidden, message)
                return _equations(hidden, message, parts, weight, bias, ctx.wants_memory)

            return *gradients(updated, (hidden, message, weight, bias), grads[:3]), *[None] * 4
        of_hidden = torch.zeros_like(hidden) if grads[0] is None else grads[0]
        if kernels is not None:
            tensors = (t.contiguous() for t in (hidden, message, weight))
            drop = _drop(keys, rates, ctx.places)
            grads = kernels.gated_update_backward(*tensors, gates, of_hidden, grads[1], drop)
            return *grads, *[None] * 4
        if ctx.places is None:
            kept = [None, None, hidden, message]
        elif kept[0].numel() == 0:  # kernels computed the forward pass
            kept = [*_masked(hidden, message, keys, rates, ctx.places)]
        grads = _backward(hidden, message, weight, gates, kept, of_hidden, *grads[1:3])
        return *grads, *[None] * 4


def _equations(
    hidden: Tensor,
    message: Tensor,
    parts: tuple[Tensor, ...],
    weight: Tensor,
    bias: Tensor,
    wants_memory: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden state, memory and gates; ``parts`` are hidden and message as input of the gates."""
    for_hidden, for_message = weight.mT.split(hidden.shape[-1], dim=1)
    scores = torch.baddbmm(bias[:, None], parts[0], for_hidden)
    gates = torch.baddbmm(scores, parts[1], for_message).sigmoid_()
    gate_hidden, gate_message, gate_memory = gates.split(1, dim=-1)
    new_hidden = torch.addcmul(hidden * gate_hidden, message, gate_message)
    memory = message * gate_memory if wants_memory else hidden.new_empty(len(hidden), 0)
    return new_hidden, memory, gates


def _backward(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    gates: Tensor,
    kept: list[Any],
    of_hidden: Tensor,
    of_memory: Tensor | None,
    of_gates: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients in hidden, message, weight and bias, from those in the three results.

    ``kept`` holds the masks of hidden and message, or None, and both with masks applied.
    """
    gate_hidden, gate_message, gate_memory = gates.split(1, dim=-1)
    work = torch.empty_like(hidden)  # one buffer that stays in the cache
    of_scores = torch.zeros_like(gates)
    torch.sum(torch.mul(of_hidden, hidden, out=work), -1, out=of_scores[..., 0])
    torch.sum(torch.mul(of_hidden, message, out=work), -1, out=of_scores[..., 1])
    grad_hidden, grad_message = of_hidden * gate_hidden, of_hidden * gate_message
    if of_memory is not None:
        torch.sum(torch.mul(of_memory, message, out=work), -1, out=of_scores[..., 2])
        grad_message.addcmul_(of_memory, gate_memory)
    if of_gates is not None:
        of_scores.add_(of_gates)
    of_scores.mul_(gates * (1 - gates))
    grad_weight = []
    for mask, part, grad, of_part in zip(
        kept[:2],
        kept[2:],
        (grad_hidden, grad_message),
        weight.split(hidden.shape[-1], dim=-1),
        strict=True,
    ):
        through = torch.bmm(of_scores, of_part, out=work)
        if mask is None:
            grad.add_(through)
        else:
            grad.addcmul_(through, mask)
        grad_weight.append(of_scores.mT @ part)
    return grad_hidden, grad_message, torch.cat(grad_weight, dim=-1), of_scores.sum(1)


def _masked(
    hidden: Tensor, message: Tensor, keys: Tensor, rates: Tensor, places: Places
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The masks of hidden and message, and both with masks applied."""
    masks = draw_masks(keys, rates, places, tuple(hidden.shape[1:]), hidden.dtype)
    return masks[0], masks[1], hidden * masks[0], message * masks[1]


def _kernels(hidden: Tensor, places: Places | None) -> ModuleType | None:
    """The kernels count the elements of a mask from 0, so a part of a graph has none."""
    whole = places is None or isinstance(places[0], int)
    return kernels_for(hidden) if whole else None


def _drop(keys: Tensor, rates: Tensor, places: Places | None) -> Any:
    """The arguments of the kernels' dropout."""
    if places is None:
        return None
    words = place_words(places[0]), place_words(places[1])
    return keys.contiguous(), rates.contiguous(), *words
