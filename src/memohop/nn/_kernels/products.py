"""The GPU kernels, in Triton: sparse products, dropout and the row softmax.

Each has a plain PyTorch counterpart beside its caller, which runs on CPUs, if Triton is
absent, and in the tests as the second computation. The hash is that of
:mod:`memohop.nn._randomness`, so masks are equal bit for bit on every device. All sums run in a
fixed order, in float32 for operands of any type: the same call gives the same bits.

On an H200, ``memohop.train`` of ten splits takes 1.4 times as long without the products with
``gcn+mmp`` on Texas and 4 to 5 times with ``gat`` and ``gat+mmp`` on Cora, and 1.5 times without the
row softmax and sums with ``gatv2`` on Tolokers. Dropout has a kernel for its memory: PyTorch's
operations hold a mask and its hashes, several times as large as a state of 16 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from memohop.nn._ops.pattern import Pattern

# Elements per program, entries per turn and warps of the sparse product, as measured on an H200.
_SHAPE, _SHAPE_WITH_DROPOUT = (256, 8, 2), (512, 4, 4)


@triton.jit
def _mix(value, middle):
    value = value ^ (value >> 16)
    value = value * 0x7FEB352D
    value = value ^ (value >> 15)
    value = value ^ middle
    value = value * 0x846CA68B
    return value ^ (value >> 16)


@triton.jit
def stays(element, first, second, threshold):
    """Whether elements stay; ``threshold`` is the rate in units of 2^-16."""
    bits = _mix((element >> 1).to(tl.uint32) ^ first, second)
    half = tl.where((element & 1) == 0, bits & 0xFFFF, bits >> 16)
    return (half ^ 0x8000).to(tl.int32) >= threshold  # as signed 16-bit numbers compare


@triton.jit
def member_words(keys, rates, member, word1, word2):
    """Key words, threshold and scale of one member's mask at one place."""
    first = tl.load(keys + 2 * member).to(tl.uint32, bitcast=True) ^ word1.to(tl.uint32)
    second = tl.load(keys + 2 * member + 1).to(tl.uint32, bitcast=True) ^ word2.to(tl.uint32)
    rate = tl.load(rates + member)
    return first, second, _round_half_even(rate * 65536.0), 1.0 / (1.0 - rate)


@triton.jit
def _round_half_even(value):
    """Like ``torch.round``: adding and subtracting 2^23 leaves no fraction."""
    return ((value + 8388608.0) - 8388608.0).to(tl.int32)


@triton.jit
def _product_kernel(
    pointers, columns, entries, values, keys, rates, bias, dense, out,
    count, rows, width, value_stride, dense_k, dense_n, word1, word2,
    HAS_ENTRIES: tl.constexpr, HAS_BIAS: tl.constexpr, DROP: tl.constexpr, UNROLL: tl.constexpr,
    BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """out[k, i] = sum over the entries of row i of value[k, entry] * dense[k, column]."""
    row = tl.program_id(0)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    d = tl.arange(0, BLOCK_D)
    inside = (k < count)[:, None] & (d < width)[None, :]
    start, end = tl.load(pointers + row), tl.load(pointers + row + 1)
    base = dense + k.to(tl.int64)[:, None] * dense_k + d[None, :]
    total = tl.zeros((BLOCK_K, BLOCK_D), dtype=tl.float32)
    if HAS_BIAS:
        total += tl.load(bias + k[:, None] * width + d[None, :], mask=inside, other=0.0).to(
            tl.float32
        )
    safe_k = tl.where(k < count, k, 0)
    if DROP:
        first, second, threshold, scale = member_words(keys, rates, safe_k, word1, word2)
    values += safe_k.to(tl.int64) * value_stride
    for e in range(start, end, UNROLL):
        for step in tl.static_range(UNROLL):  # several loads under way at once
            there = e + step < end
            column = tl.load(columns + e + step, mask=there, other=0)
            entry = tl.load(entries + e + step, mask=there, other=0) if HAS_ENTRIES else e + step
            value = tl.load(values + entry, mask=there & (k < count), other=0.0).to(tl.float32)
            if DROP:
                kept = stays(tl.zeros_like(safe_k) + entry, first, second, threshold)
                value = tl.where(kept, value * scale, 0.0)
            part = tl.load(base + column.to(tl.int64) * dense_n, mask=inside & there, other=0.0)
            total += value[:, None] * part.to(tl.float32)
    offset = out + (k.to(tl.int64)[:, None] * rows + row) * width + d[None, :]
    tl.store(offset, total, mask=inside)


def product(
    values: Tensor,
    dense: Tensor,
    pattern: Pattern,
    *,
    bias: Tensor | None = None,
    drop: tuple[Tensor, Tensor, int, int] | None = None,
    transposed: bool = False,
) -> Tensor:
    """``K`` sparse products: dense ``[K, columns, D]`` to ``[K, rows, D]``.

    Values are ``[entries]``, shared by all, or ``[K, entries]``, in the order of the pattern; a bias
    ``[K, D]`` is added to every row. Dropout of the values is given as keys ``[K, 2]``, rates
    ``[K]`` and two words. Transposed, the matrices are the transposes.
    """
    values = values.contiguous()
    matrix = pattern.transpose if transposed else pattern
    entries = pattern.order if transposed else None
    pointers, columns, pieces = matrix.pointers, matrix.col, matrix.pieces
    if pieces is None:
        return _product(values, entries, dense, bias, pointers, columns, drop, dense.dtype)
    starts, of_rows = pieces
    parts = _product(values, entries, dense, None, starts, columns, drop, torch.float32)
    ones, every = parts.new_ones(parts.shape[1]), torch.arange(parts.shape[1], device=dense.device)
    return _product(ones, None, parts, bias, of_rows, every.int(), None, dense.dtype)


def _product(
    values: Tensor,
    entries: Tensor | None,
    dense: Tensor,
    bias: Tensor | None,
    pointers: Tensor,
    columns: Tensor,
    drop: tuple[Tensor, Tensor, int, int] | None,
    dtype: torch.dtype,
) -> Tensor:
    """The products of CSR matrices; ``entries`` are the places of their values, if not in order."""
    rows, (count, _, width) = len(pointers) - 1, dense.shape
    if dense.stride(-1) != 1:
        dense = dense.contiguous()
    out = dense.new_empty(count, rows, width, dtype=dtype)
    block_d = triton.next_power_of_2(width)
    tile, unroll, warps = _SHAPE if drop is None else _SHAPE_WITH_DROPOUT
    block_k = max(1, min(triton.next_power_of_2(count), tile // block_d))
    keys, rates, word1, word2 = drop if drop is not None else (pointers, values, 0, 0)
    _product_kernel[(rows, triton.cdiv(count, block_k))](
        pointers, columns, pointers if entries is None else entries, values, keys, rates,
        values if bias is None else bias.contiguous(), dense, out, count, rows, width,
        0 if values.dim() == 1 else values.stride(0), dense.stride(0), dense.stride(1), word1, word2,
        HAS_ENTRIES=entries is not None, HAS_BIAS=bias is not None, DROP=drop is not None,
        UNROLL=unroll, BLOCK_K=block_k, BLOCK_D=block_d,
        num_warps=warps if block_k * block_d >= 256 else 1,
    )  # fmt: skip
    return out


@triton.jit
def _inner_kernel(
    row, column, left, right, out, entries, width, left_k, left_n, right_k, right_n,
    BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(1).to(tl.int64)
    e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    d = tl.arange(0, BLOCK_D)
    there = e < entries
    i, j = tl.load(row + e, mask=there, other=0), tl.load(column + e, mask=there, other=0)
    inside = there[:, None] & (d < width)[None, :]
    a = tl.load(
        left + k * left_k + i.to(tl.int64)[:, None] * left_n + d[None, :], mask=inside, other=0.0
    )
    b = tl.load(
        right + k * right_k + j.to(tl.int64)[:, None] * right_n + d[None, :], mask=inside, other=0.0
    )
    tl.store(out + k * entries + e, tl.sum(a * b, axis=1), mask=there)


def inner(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The inner product of two rows for each entry: ``[K, entries]``."""
    row, column = pattern.row, pattern.col
    left = left if left.stride(-1) == 1 else left.contiguous()
    right = right if right.stride(-1) == 1 else right.contiguous()
    count, _, width = left.shape
    out = left.new_empty(count, len(row))
    block_d = triton.next_power_of_2(width)
    block_e = max(16, 4096 // block_d)
    if len(row):
        _inner_kernel[(triton.cdiv(len(row), block_e), count)](
            row, column, left, right, out, len(row), width,
            left.stride(0), left.stride(1), right.stride(0), right.stride(1),
            BLOCK_E=block_e, BLOCK_D=block_d,
        )  # fmt: skip
    return out


@triton.jit
def _softmax_kernel(
    pointers, scores, out, entries, count, BLOCK_K: tl.constexpr, BLOCK_E: tl.constexpr
):
    """Softmax within each row, in three passes over its entries."""
    start, end = tl.load(pointers + tl.program_id(0)), tl.load(pointers + tl.program_id(0) + 1)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    shift = k.to(tl.int64)[:, None] * entries + tl.arange(0, BLOCK_E)[None, :]
    width = tl.arange(0, BLOCK_E)[None, :]
    ours = (k < count)[:, None]
    top = tl.full((BLOCK_K,), float("-inf"), tl.float32)
    for e in range(start, end, BLOCK_E):
        there = ours & (e + width < end)
        score = tl.load(scores + shift + e, mask=there, other=float("-inf"))
        top = tl.maximum(top, tl.max(score, axis=1))
    top = tl.where(top == float("-inf"), 0.0, top)[:, None]
    total = tl.zeros((BLOCK_K,), tl.float32)
    for e in range(start, end, BLOCK_E):
        there = ours & (e + width < end)
        score = tl.load(scores + shift + e, mask=there, other=float("-inf"))
        total += tl.sum(tl.exp(score - top), axis=1)
    total = tl.where(total == 0.0, 1.0, total)[:, None]
    for e in range(start, end, BLOCK_E):
        there = ours & (e + width < end)
        score = tl.load(scores + shift + e, mask=there, other=float("-inf"))
        tl.store(out + shift + e, tl.exp(score - top) / total, mask=there)


def row_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """Softmax of ``[K, entries]`` within rows; rows with only -inf give 0."""
    scores, pointers = scores.contiguous(), pattern.pointers
    out, (count, entries), rows = torch.empty_like(scores), scores.shape, len(pointers) - 1
    block_k, block_e = _row_shape(count, entries, rows)
    _softmax_kernel[(rows, triton.cdiv(count, block_k))](
        pointers, scores, out, entries, count, BLOCK_K=block_k, BLOCK_E=block_e, num_warps=2
    )
    return out


@triton.jit
def _row_sum_kernel(
    pointers, values, out, entries, count, rows, BLOCK_K: tl.constexpr, BLOCK_E: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    start, end = tl.load(pointers + row), tl.load(pointers + row + 1)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    base = values + k.to(tl.int64)[:, None] * entries
    total = tl.zeros((BLOCK_K, BLOCK_E), tl.float32)
    for first in range(start, end, BLOCK_E):
        e = first + tl.arange(0, BLOCK_E)
        there = (k < count)[:, None] & (e < end)[None, :]
        total += tl.load(base + e[None, :], mask=there, other=0.0)
    tl.store(out + k.to(tl.int64) * rows + row, tl.sum(total, axis=1), mask=k < count)


def row_sums(values: Tensor, pattern: Pattern) -> Tensor:
    """Sums of ``[K, entries]`` within rows."""
    values, pointers, rows = values.contiguous(), pattern.pointers, pattern.shape[0]
    count, stored = values.shape
    out = values.new_empty(count, rows)
    block_k, block_e = _row_shape(count, stored, rows)
    _row_sum_kernel[(rows, triton.cdiv(count, block_k))](
        pointers, values, out, stored, count, rows, BLOCK_K=block_k, BLOCK_E=block_e, num_warps=2,
    )  # fmt: skip
    return out


def _row_shape(count: int, entries: int, rows: int) -> tuple[int, int]:
    """A tile of matrices by entries; its width is near the usual length of a row."""
    block_e = min(64, max(4, triton.next_power_of_2(entries // max(rows, 1) + 1)))
    return max(1, min(triton.next_power_of_2(count), 512 // block_e)), block_e


@triton.jit
def _dropout_kernel(values, keys, rates, out, count, word1, word2, BLOCK: tl.constexpr):
    member = tl.program_id(1)
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < count
    first, second, threshold, scale = member_words(keys, rates, member, word1, word2)
    offset = member.to(tl.int64) * count + element
    value = tl.load(values + offset, mask=inside).to(tl.float32)
    kept = stays(element, first, second, threshold)
    tl.store(out + offset, tl.where(kept, value * scale, 0.0), mask=inside)


def dropout(values: Tensor, keys: Tensor, rates: Tensor, word1: int, word2: int) -> Tensor:
    """Dropout of ``[B, ...]``, each member with its own key and rate."""
    values = values.contiguous()
    out = torch.empty_like(values)
    count = values[0].numel()
    grid = (triton.cdiv(count, 1024), len(values))
    _dropout_kernel[grid](values, keys, rates, out, count, word1, word2, BLOCK=1024)
    return out
