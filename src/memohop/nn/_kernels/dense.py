"""A batched matrix product, in Triton, that rounds each member alike in any batch.

Matrix libraries choose their algorithm, and with it the order of the sums, by the size of the
batch: the last bit of a member of a population would then depend on the other members, and Adam
magnifies that where a gradient is nearly 0. Here the order depends on one member's shapes alone.
That is its only purpose: it is as quick as the library's product, and no quicker.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_SPLIT = 1024  # if there are few tiles, the inner sum is cut into parts of this length
_FEW_TILES = 16
_MOST_PARTS = 65535  # the third axis of a grid is no longer


@triton.jit
def _dense_kernel(
    left, right, out, rows, columns, inner, split,
    left_b, left_m, left_k, right_b, right_k, right_n, out_s, out_b,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out[s, b] = left[b, :, part s] @ right[b, part s, :]."""
    across = tl.cdiv(columns, BLOCK_N)
    m = (tl.program_id(0) // across) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tl.program_id(0) % across) * BLOCK_N + tl.arange(0, BLOCK_N)
    member, part = tl.program_id(1).to(tl.int64), tl.program_id(2)
    start = part * split
    end = tl.minimum(start + split, inner)
    left += member * left_b + m.to(tl.int64)[:, None] * left_m
    right += member * right_b + n.to(tl.int64)[None, :] * right_n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for turn in range(start, end, BLOCK_K):
        k = turn + tl.arange(0, BLOCK_K)
        offset = k.to(tl.int64)
        a = tl.load(left + offset[None, :] * left_k,
                    mask=(m < rows)[:, None] & (k < end)[None, :], other=0.0)  # fmt: skip
        b = tl.load(right + offset[:, None] * right_k,
                    mask=(k < end)[:, None] & (n < columns)[None, :], other=0.0)  # fmt: skip
        total = tl.dot(a, b, total, input_precision="ieee")
    offset = out + part.to(tl.int64) * out_s + member * out_b + n[None, :]
    offset += m.to(tl.int64)[:, None] * columns
    tl.store(offset, total, mask=(m < rows)[:, None] & (n < columns)[None, :])


@triton.jit
def _sum_kernel(parts, out, count, size, BLOCK: tl.constexpr):
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(count):
        total += tl.load(parts + part * size + offset, mask=offset < size, other=0.0)
    tl.store(out + offset, total, mask=offset < size)


def batched_product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right`` for stacks ``[B, M, K]`` and ``[B, K, N]`` with any strides."""
    count, rows, inner = left.shape
    columns = right.shape[-1]
    narrow = columns <= 16  # tile sizes as measured on an H200
    block_m = min(128 if narrow else 64, max(16, triton.next_power_of_2(rows)))
    block_n = min(64, max(16, triton.next_power_of_2(columns)))
    block_k = 16 if narrow or inner <= 16 else 32
    tiles = triton.cdiv(rows, block_m) * triton.cdiv(columns, block_n)
    split = max(inner, 1)
    if tiles < _FEW_TILES:
        split = max(_SPLIT, triton.cdiv(inner, _MOST_PARTS))
    parts = max(1, triton.cdiv(inner, split))
    kept = left.dtype if parts == 1 else torch.float32
    sums = left.new_empty(parts, count, rows, columns, dtype=kept)
    if sums.numel() == 0:
        return sums[0]
    _dense_kernel[(tiles, count, parts)](
        left, right, sums, rows, columns, inner, split,
        *left.stride(), *right.stride(), sums.stride(0), sums.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=2 if narrow else 4,
    )  # fmt: skip
    if parts == 1:
        return sums[0]
    out = torch.empty_like(sums[0], dtype=left.dtype)
    block = 1024
    _sum_kernel[(triton.cdiv(out.numel(), block),)](sums, out, parts, out.numel(), BLOCK=block)
    return out
