"""The table that assigns kernels to operations, with the conditions for each.

An operation asks :func:`serve` for a kernel and computes with PyTorch if there is none. A kernel
has the same arguments as its operation in :mod:`memohop.nn._ops`. The first line that fits wins:
the tensor lies on its device and has its type, its condition holds, its backend is installed and
its group is not switched off by :func:`without`. Kernels cannot be mapped or differentiated, so
kernels of operations that end in ``_backward`` serve only if nothing will do either.

A new kernel is a function in a module beside this one, and a line here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from memohop.nn._ops.fixed_matrix import FixedMatrix
    from memohop.nn._ops.pattern import Pattern

Condition = Callable[..., bool]

CROWDED_FOR_TABLES = 1 / 6  # from this share of entries on, tables of sums are quicker ...
LARGE_FOR_TABLES = 1 << 20  # ... in a matrix of at least this size, zeros included
MANY_ENTRIES = 1 << 17  # with a vector of 128 channels for each, they exceed a GPU's cache


class Kernel(NamedTuple):
    """A line of the table.

    Attributes:
        function: module and name, below this package.
        device: ``"cpu"`` or ``"cuda"``.
        group: the name by which :func:`without` switches it off.
        condition: a function of the tensor and the sizes that the operation passes.
        double: whether it serves float64 too.
        half: whether it serves bfloat16 too, with sums in float32.
    """

    function: str
    device: str
    group: str
    condition: Condition = lambda *given: True
    double: bool = False
    half: bool = False


def keeps_threads_busy(tensor: Tensor, *sizes: Any) -> bool:
    """Whether there is a member for each thread: loops share out members, PyTorch also rows."""
    mapped = torch._C._are_functorch_transforms_active()
    return len(tensor) >= torch.get_num_threads() or mapped


def has_all_rows(tensor: Tensor, rows: Tensor | None = None) -> bool:
    """Whether a mask covers the whole tensor: Triton's kernels count its elements from 0."""
    return rows is None


def has_even_rows(tensor: Tensor, *sizes: Any) -> bool:
    """The same for rows in which each hash decides two neighbours."""
    return tensor.shape[-1] % 2 == 0 and keeps_threads_busy(tensor)


def is_narrow(dense: Tensor, *sizes: Any) -> bool:
    """The same for products with few columns, where PyTorch spends its time on overhead."""
    return dense.shape[-1] <= 16 and keeps_threads_busy(dense)


def decides_few(values: Tensor, columns: int) -> bool:
    """The same for linear maps to few columns."""
    return columns <= 16 and has_even_rows(values)


def has_eight_heads(mapped: Tensor, heads: int) -> bool:
    """The same for attention with eight heads and a width that is a multiple of four."""
    return heads == 8 and mapped.shape[-1] % (4 * heads) == 0 and keeps_threads_busy(mapped)


def is_crowded(dense: Tensor, matrix: FixedMatrix) -> bool:
    """Whether a matrix is so full that it is quicker to keep its zeros."""
    return matrix.share > 1 / 6


def suits_tables(dense: Tensor, matrix: FixedMatrix) -> bool:
    """Whether a matrix is large and crowded, and its values are products of two factors."""
    large = math.prod(matrix.pattern.shape) >= LARGE_FOR_TABLES
    return matrix.factors is not None and large and matrix.share > CROWDED_FOR_TABLES


def has_many_entries(tensor: Tensor, pattern: Pattern) -> bool:
    """Whether the vectors of all entries are too many for a GPU's cache, even in one network."""
    return len(pattern) >= MANY_ENTRIES


def is_far_flung(dense: Tensor, matrix: FixedMatrix) -> bool:
    """Whether wide operands exceed a cache, and rows collect enough from each block of them."""
    (rows, columns), (count, _, width) = matrix.pattern.shape, dense.shape
    if columns * width <= 1 << 20 or (count > 1 and width <= 32):
        return False
    blocks = columns / max(1, (1 << 17) // max(width, 1))
    return len(matrix.pattern) > 4 * rows * blocks


TABLE: dict[str, list[Kernel]] = {
    "dropout": [Kernel("triton.kernels.dropout", "cuda", "dropout", half=True)],
    "dropped_product": [Kernel("triton.kernels.dropped_product", "cuda", "products", half=True)],
    "dropped_linear": [Kernel("numba.kernels.dropped_linear", "cpu", "decision", decides_few)],
    "dropped_linear_backward": [
        Kernel("numba.kernels.dropped_linear_backward", "cpu", "decision", decides_few)
    ],
    "fixed_product": [
        Kernel("torch.side_by_side.full", "cuda", "crowded", is_crowded, double=True),
        Kernel("triton.kernels.fixed_product", "cuda", "products", half=True),
        Kernel("torch.side_by_side.sparse", "cuda", "sparse", double=True),
        Kernel("numba.table_kernels.fixed_product", "cpu", "tables", suits_tables),
        Kernel(
            "torch.column_blocks.fixed_product", "cpu", "column_blocks", is_far_flung, double=True
        ),
    ],
    "weighted_product": [
        Kernel("triton.kernels.weighted_product", "cuda", "products"),
        Kernel("numba.kernels.weighted_product", "cpu", "products", is_narrow),
    ],
    "weighted_product_backward": [
        Kernel("numba.kernels.weighted_product_backward", "cpu", "products", is_narrow),
    ],
    "inner": [
        Kernel("triton.kernels.inner", "cuda", "products"),
        Kernel("numba.kernels.inner", "cpu", "products", keeps_threads_busy),
    ],
    "row_sums": [
        Kernel("triton.kernels.row_sums", "cuda", "rows"),
        Kernel("numba.kernels.row_sums", "cpu", "rows", keeps_threads_busy),
    ],
    "row_softmax": [
        Kernel("triton.kernels.row_softmax", "cuda", "rows"),
        Kernel("numba.kernels.row_softmax", "cpu", "rows", keeps_threads_busy),
    ],
    "row_softmax_backward": [
        Kernel("numba.kernels.row_softmax_backward", "cpu", "rows", keeps_threads_busy)
    ],
    "attention": [Kernel("numba.kernels.attention", "cpu", "rows", keeps_threads_busy)],
    "attention_backward": [
        Kernel("numba.kernels.attention_backward", "cpu", "rows", keeps_threads_busy)
    ],
    "dynamic_scores": [
        Kernel("triton.attention_kernels.dynamic_scores", "cuda", "scores", has_many_entries)
    ],
    "dynamic_scores_backward": [
        Kernel(
            "triton.attention_kernels.dynamic_scores_backward", "cuda", "scores", has_many_entries
        )
    ],
    "whole_attention": [
        Kernel("numba.attention_kernels.attend", "cpu", "whole_attention", has_eight_heads)
    ],
    "whole_attention_backward": [
        Kernel("numba.attention_kernels.attend_backward", "cpu", "whole_attention")
    ],
    "pair_product": [Kernel("numba.kernels.pair_product", "cpu", "pairs", keeps_threads_busy)],
    "pair_product_backward": [
        Kernel("numba.kernels.pair_product_backward", "cpu", "pairs", keeps_threads_busy)
    ],
    "gated_update": [
        Kernel("triton.gate_kernels.gated_update", "cuda", "gates", has_all_rows, half=True),
        Kernel("numba.gate_kernels.gated_update", "cpu", "gates", has_even_rows),
    ],
    "gated_update_backward": [
        Kernel(
            "triton.gate_kernels.gated_update_backward", "cuda", "gates", has_all_rows, half=True
        ),
        Kernel("numba.gate_kernels.gated_update_backward", "cpu", "gates", has_even_rows),
    ],
    "cosine": [Kernel("numba.gate_kernels.cosine", "cpu", "cosine", keeps_threads_busy)],
    "cosine_backward": [Kernel("numba.gate_kernels.cosine_backward", "cpu", "cosine")],
    "adam": [Kernel("torch.adam.step", "cpu", "adam", double=True)],
    "batched_product": [Kernel("triton.dense_kernels.batched_product", "cuda", "dense", half=True)],
}

AT_ONCE = {"cpu": 1 << 16, "cuda": 1 << 26}
"""How many numbers an operation holds at a time: on a CPU as many as fit into its cache."""

_off: set[str] = set()


def serve(operation: str, tensor: Tensor, *sizes: Any) -> Callable[..., Any] | None:
    """The kernel of an operation for this tensor, or None to compute with PyTorch.

    Args:
        operation: a key of the table.
        tensor: the tensor to work on; its leading axis is that of the members.
        *sizes: the other arguments of this operation's conditions.
    """
    for kernel in TABLE[operation]:
        types = {torch.float32: True, torch.float64: kernel.double, torch.bfloat16: kernel.half}
        fits = kernel.device == tensor.device.type and types.get(tensor.dtype, False)
        if not fits or kernel.group in _off or not kernel.condition(tensor, *sizes):
            continue
        if operation.endswith("_backward") and not in_plain_backward():
            return None
        if (function := load(kernel.function)) is not None:
            return function
    return None


def in_plain_backward() -> bool:
    """Whether nothing will map or differentiate the gradients of this backward pass."""
    return not (torch.is_grad_enabled() or torch._C._are_functorch_transforms_active())


@contextmanager
def without(*groups: str) -> Iterator[None]:
    """Switch groups of kernels off inside the block, for all threads."""
    known = {kernel.group for kernels in TABLE.values() for kernel in kernels}
    assert known.issuperset(groups), f"no such group among {sorted(known)}: {groups}"
    new = set(groups) - _off
    _off.update(new)
    try:
        yield
    finally:
        _off.difference_update(new)


@cache
def load(function: str) -> Callable[..., Any] | None:
    """A kernel, imported at its first use since Numba is slow; None if its backend is missing."""
    module, name = function.rsplit(".", 1)
    try:
        return getattr(import_module(f"memohop.nn._kernels.{module}"), name)
    except (ImportError, RuntimeError):  # not installed, or no folder for compiled code
        return None
