"""Gates, hidden state and memory in one operation: Eqs. (8)-(10) with their own backward pass.

With each product and sum as a separate operation, these equations read and write the same few
matrices some thirty times. Here they are one kernel if there is one, and otherwise a handful of
passes in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers

from memohop.nn._operation import Operation, gradients, in_plain_backward, kernels_for
from memohop.nn._randomness import Draw, Place, draw_masks, keep_masks, place_words

Places = tuple[Place, Place]


def gated_update(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    bias: Tensor,
    draws: tuple[Draw | None, Draw | None],
    rate: Tensor,
    wants_memory: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The new hidden state and memory, and the gates ``[N, 3]``; all three carry gradients.

    .. math::
        (\alpha_h, \alpha_m, \alpha_c) &= \mathrm{sigmoid}(
            \mathbf{W}\,\mathrm{drop}[\mathbf{H} \Vert \mathbf{M}] + \mathbf{b}) \\
        \mathbf{H}' &= \alpha_h \mathbf{H} + \alpha_m \mathbf{M}, \quad
        \mathbf{C}' = \alpha_c \mathbf{M}

    Hidden state and message are ``[N, C]``, weight and bias ``[3, 2 C]`` and ``[3]``. ``draws`` are
    the places of the masks of hidden state and message, or twice None for no dropout. A memory that
    is not wanted is left empty.

    States of bfloat16 have weights of the same type; gates are float32, as is the arithmetic.
    """
    if draws[0] is None or draws[1] is None:
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
    """Without kernels, the masks are outputs too: the backward pass reads them."""

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
        nothing = hidden.new_empty(len(hidden), 0)
        if (kernels := _kernels(hidden, places)) is not None:
            tensors = (t.contiguous() for t in (hidden, message, weight, bias, keys, rates))
            results = kernels.gated_update(*tensors, _words(places), wants_memory)
            return *results, nothing, nothing
        masks = None
        if places is not None:
            masks = [*draw_masks(keys, rates, places, tuple(hidden.shape[1:]), hidden.dtype)]
        results = _equations(masks, hidden, message, weight, bias, wants_memory=wants_memory)
        return *results, *((nothing, nothing) if masks is None else masks)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.places, ctx.wants_memory = inputs
        ctx.save_for_backward(*tensors, *output[2:])
        ctx.mark_non_differentiable(*output[3:])
        # The memory of the last layer is not used, and training does not use the gates.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        *states, weight, bias, keys, rates, gates, first, second = unwrap_dead_wrappers(
            ctx.saved_tensors
        )
        of_hidden, of_memory, of_gates = grads[:3]
        plain = in_plain_backward()
        if plain and of_hidden is None:
            of_hidden = torch.zeros_like(states[0])
        kernels = _kernels(states[0], ctx.places) if plain and of_gates is None else None
        if kernels is not None:
            dense = (t.contiguous() for t in (*states, weight))
            drop = keys.contiguous(), rates.contiguous(), _words(ctx.places)
            of_all = kernels.gated_update_backward(*dense, gates, of_hidden, of_memory, *drop)
            return *of_all, *[None] * 4
        # If kernels computed the forward pass, states may be bfloat16, and there are no masks.
        hidden, message, weight, bias = (t.to(gates.dtype) for t in (*states, weight, bias))
        given: Any = tuple(
            None if grad is None else grad.to(gates.dtype)
            for grad in (of_hidden, of_memory, of_gates)
        )
        masks: Sequence[Tensor] | None = None if ctx.places is None else (first, second)
        if masks is not None and (not plain or first.numel() == 0):
            shape = tuple(states[0].shape[1:])
            masks = [keep_masks(keys, rates, place, shape, gates.dtype) for place in ctx.places]
        if plain:
            return *_backward(masks, hidden, message, weight, gates, *given), *[None] * 4

        updated = partial(_equations, masks, wants_memory=ctx.wants_memory)
        return *gradients(updated, (hidden, message, weight, bias), given), *[None] * 4


def _equations(
    masks: Sequence[Tensor] | None,
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    wants_memory: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden state, memory and gates."""
    seen = (hidden, message) if masks is None else (hidden * masks[0], message * masks[1])
    for_hidden, for_message = weight.mT.split(hidden.shape[-1], dim=1)
    scores = torch.baddbmm(bias[:, None], seen[0], for_hidden)
    gates = torch.baddbmm(scores, seen[1], for_message).sigmoid_()
    gate_hidden, gate_message, gate_memory = gates.split(1, dim=-1)
    new_hidden = torch.addcmul(hidden * gate_hidden, message, gate_message)
    memory = message * gate_memory if wants_memory else hidden.new_empty(len(hidden), 0)
    return new_hidden, memory, gates


def _backward(
    masks: Sequence[Tensor] | None,
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    gates: Tensor,
    of_hidden: Tensor,
    of_memory: Tensor | None,
    of_gates: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients in hidden, message, weight and bias, from those in the three results."""
    gate_hidden, gate_message, gate_memory = gates.split(1, dim=-1)
    work = torch.empty_like(hidden)  # one buffer that stays in the cache
    of_scores = torch.zeros_like(gates)
    torch.sum(torch.mul(of_hidden, hidden, out=work), -1, out=of_scores[..., 0])
    torch.sum(torch.mul(of_hidden, message, out=work), -1, out=of_scores[..., 1])
    of_states = of_hidden * gate_hidden, of_hidden * gate_message
    if of_memory is not None:
        torch.sum(torch.mul(of_memory, message, out=work), -1, out=of_scores[..., 2])
        of_states[1].addcmul_(of_memory, gate_memory)
    if of_gates is not None:
        of_scores.add_(of_gates)
    of_scores.mul_(gates * (1 - gates))
    of_weights = []
    weights = weight.split(hidden.shape[-1], dim=-1)
    for side, (state, grad) in enumerate(zip((hidden, message), of_states, strict=True)):
        through = torch.bmm(of_scores, weights[side], out=work)
        if masks is None:
            grad.add_(through)
        else:
            grad.addcmul_(through, masks[side])
            state = torch.mul(state, masks[side], out=work)
        of_weights.append(of_scores.mT @ state)
    return *of_states, torch.cat(of_weights, dim=-1), of_scores.sum(1)


def _kernels(hidden: Tensor, places: Places | None) -> ModuleType | None:
    """The kernels count the elements of a mask from 0, so a part of a graph has none."""
    whole = places is None or places[0].part is None
    return kernels_for(hidden) if whole else None


def _words(places: Places | None) -> tuple[int, ...] | None:
    """How kernels know the places."""
    return places and (*place_words(places[0].number), *place_words(places[1].number))
