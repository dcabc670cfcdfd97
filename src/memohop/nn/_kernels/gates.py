"""The gated update of MMP as GPU kernels, in Triton: one pass forward and one backward.

As in :mod:`.products`, masks are the same on every device and sums run in a fixed order, in float32
for states of any type. On an H200, ``memohop.train`` of ``gcn+mmp`` takes 1.3 to 1.5 times as long
without it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from memohop.nn._kernels.products import member_words, stays

_NOWHERE = 0, 0, 0, 0  # the words of no mask


@triton.jit
def _gate_forward(
    hidden, message, weight, bias, keys, rates, out_hidden, out_memory, out_gates,
    nodes, width, w11, w12, w21, w22,
    DROP: tl.constexpr, MEMORY: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1)
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    c = tl.arange(0, BLOCK_C)
    inside = (n < nodes)[:, None] & (c < width)[None, :]
    element = n[:, None] * width + c[None, :]
    offset = member.to(tl.int64) * nodes * width + element
    h = tl.load(hidden + offset, mask=inside, other=0.0).to(tl.float32)
    m = tl.load(message + offset, mask=inside, other=0.0).to(tl.float32)
    h_in, m_in = h, m
    if DROP:
        first, second, threshold, scale = member_words(keys, rates, member, w11, w12)
        h_in = tl.where(stays(element, first, second, threshold), h * scale, 0.0)
        first, second, threshold, scale = member_words(keys, rates, member, w21, w22)
        m_in = tl.where(stays(element, first, second, threshold), m * scale, 0.0)
    own = weight + member * 6 * width + c
    gates = out_gates + (member.to(tl.int64) * nodes + n) * 3
    kept = _one_gate(h_in, m_in, own, bias + member * 3, width, c < width)
    absorbed = _one_gate(h_in, m_in, own + 2 * width, bias + member * 3 + 1, width, c < width)
    passed = _one_gate(h_in, m_in, own + 4 * width, bias + member * 3 + 2, width, c < width)
    tl.store(gates, kept, mask=n < nodes)
    tl.store(gates + 1, absorbed, mask=n < nodes)
    tl.store(gates + 2, passed, mask=n < nodes)
    tl.store(out_hidden + offset, kept[:, None] * h + absorbed[:, None] * m, mask=inside)
    if MEMORY:
        tl.store(out_memory + offset, passed[:, None] * m, mask=inside)


@triton.jit
def _one_gate(h_in, m_in, weight, bias, width, inside):
    for_hidden = tl.load(weight, mask=inside, other=0.0)
    for_message = tl.load(weight + width, mask=inside, other=0.0)
    score = tl.sum(h_in * for_hidden[None, :] + m_in * for_message[None, :], axis=1)
    return tl.sigmoid(score + tl.load(bias))


@triton.jit
def _gate_backward(
    hidden, message, weight, keys, rates, gates, grad_hidden, grad_memory,
    out_hidden, out_message, out_weight, out_bias,
    nodes, width, blocks, w11, w12, w21, w22,
    DROP: tl.constexpr, MEMORY: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1)
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    c = tl.arange(0, BLOCK_C)
    inside = (n < nodes)[:, None] & (c < width)[None, :]
    element = n[:, None] * width + c[None, :]
    offset = member.to(tl.int64) * nodes * width + element
    h = tl.load(hidden + offset, mask=inside, other=0.0).to(tl.float32)
    m = tl.load(message + offset, mask=inside, other=0.0).to(tl.float32)
    g_h = tl.load(grad_hidden + offset, mask=inside, other=0.0).to(tl.float32)
    g_c = tl.zeros_like(g_h)
    if MEMORY:
        g_c = tl.load(grad_memory + offset, mask=inside, other=0.0).to(tl.float32)
    h_mask = inside.to(tl.float32)
    m_mask = h_mask
    if DROP:
        first, second, threshold, scale = member_words(keys, rates, member, w11, w12)
        h_mask = tl.where(stays(element, first, second, threshold), h_mask * scale, 0.0)
        first, second, threshold, scale = member_words(keys, rates, member, w21, w22)
        m_mask = tl.where(stays(element, first, second, threshold), m_mask * scale, 0.0)
    at = gates + (member.to(tl.int64) * nodes + n) * 3
    kept = tl.load(at, mask=n < nodes, other=0.0)
    absorbed = tl.load(at + 1, mask=n < nodes, other=0.0)
    passed = tl.load(at + 2, mask=n < nodes, other=0.0)
    d_kept = tl.sum(g_h * h, axis=1) * kept * (1 - kept)
    d_absorbed = tl.sum(g_h * m, axis=1) * absorbed * (1 - absorbed)
    d_passed = tl.sum(g_c * m, axis=1) * passed * (1 - passed)
    own = weight + member * 6 * width + c
    h_sum = tl.zeros((BLOCK_N, BLOCK_C), tl.float32)
    m_sum = tl.zeros((BLOCK_N, BLOCK_C), tl.float32)
    part = (member * blocks + tl.program_id(0)).to(tl.int64)
    partial = out_weight + part * 6 * width + c
    h_in, m_in = h * h_mask, m * m_mask
    for gate in tl.static_range(3):
        d_score = d_kept if gate == 0 else (d_absorbed if gate == 1 else d_passed)
        h_sum += (
            d_score[:, None] * tl.load(own + 2 * gate * width, mask=c < width, other=0.0)[None, :]
        )
        m_sum += (
            d_score[:, None]
            * tl.load(own + (2 * gate + 1) * width, mask=c < width, other=0.0)[None, :]
        )
        tl.store(
            partial + 2 * gate * width, tl.sum(d_score[:, None] * h_in, axis=0), mask=c < width
        )
        tl.store(
            partial + (2 * gate + 1) * width,
            tl.sum(d_score[:, None] * m_in, axis=0),
            mask=c < width,
        )
        tl.store(out_bias + part * 3 + gate, tl.sum(d_score, axis=0))
    tl.store(out_hidden + offset, kept[:, None] * g_h + h_mask * h_sum, mask=inside)
    tl.store(
        out_message + offset,
        absorbed[:, None] * g_h + passed[:, None] * g_c + m_mask * m_sum,
        mask=inside,
    )


Words = tuple[int, int, int, int]


def gated_update(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    bias: Tensor,
    keys: Tensor,
    rates: Tensor,
    words: Words | None,
    wants_memory: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Eqs. (8)-(10) for ``[B, N, C]``: hidden, memory, and the gates ``[B, N, 3]``, float32.

    All tensors are contiguous: weight ``[B, 3, 2 C]``, bias ``[B, 3]``, the keys of the masks
    ``[B, 2]``, the rates ``[B]``. ``words`` are those of the places of the two masks, or None for no
    dropout. A memory that is not wanted is left empty.
    """
    members, nodes, width = hidden.shape
    out_hidden = torch.empty_like(hidden)
    out_memory = torch.empty_like(hidden) if wants_memory else hidden.new_empty(members, 0)
    gates = hidden.new_empty(members, nodes, 3, dtype=torch.float32)
    block_c = triton.next_power_of_2(width)
    block_n = max(1, 2048 // block_c)
    _gate_forward[(triton.cdiv(nodes, block_n), members)](
        hidden, message, weight, bias, keys, rates, out_hidden, out_memory, gates,
        nodes, width, *(words or _NOWHERE), DROP=words is not None, MEMORY=wants_memory, BLOCK_N=block_n, BLOCK_C=block_c,
    )  # fmt: skip
    return out_hidden, out_memory, gates


def gated_update_backward(
    hidden: Tensor,
    message: Tensor,
    weight: Tensor,
    gates: Tensor,
    grad_hidden: Tensor,
    grad_memory: Tensor | None,
    keys: Tensor,
    rates: Tensor,
    words: Words | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of :func:`gated_update` in hidden, message, weight and bias.

    Those of weight and bias are float32.
    """
    members, nodes, width = hidden.shape
    block_c = triton.next_power_of_2(width)
    block_n = max(1, 2048 // block_c)
    blocks = triton.cdiv(nodes, block_n)
    out_hidden, out_message = torch.empty_like(hidden), torch.empty_like(hidden)
    out_weight = gates.new_empty(members, blocks, 3, 2 * width)
    out_bias = gates.new_empty(members, blocks, 3)
    _gate_backward[(blocks, members)](
        hidden, message, weight, keys, rates, gates,
        grad_hidden.contiguous(), grad_hidden if grad_memory is None else grad_memory.contiguous(),
        out_hidden, out_message, out_weight, out_bias, nodes, width, blocks, *(words or _NOWHERE),
        DROP=words is not None, MEMORY=grad_memory is not None, BLOCK_N=block_n, BLOCK_C=block_c,
    )  # fmt: skip
    return out_hidden, out_message, out_weight.sum(1), out_bias.sum(1)
