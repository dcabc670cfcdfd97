"""The CPU kernels, in Numba: attention, sparse products, the row softmax and dropout.

As with :mod:`memohop.nn._backends.triton.kernels`, each has a plain PyTorch counterpart beside its
caller, which runs where Numba is absent and in the tests as the second computation. The functions
here take and give tensors; the loops are in files of their own. Each of the ``K`` matrices is
computed by itself and in a fixed order: a result depends neither on its company nor on the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._backends.numba import decision_loops, dropout_loops, product_loops, row_loops
from memohop.nn._backends.numba.lanes import LANES
from memohop.nn.randomness import thresholds

_LARGE = 1 << 18  # numbers to go through from which a second thread is worth its start
_AT_ONCE = 1 << 12  # entries that stay in the cache between the passes over them


def attention(
    pointers: Tensor,
    columns: Tensor,
    receive: Tensor,
    send: Tensor,
    keep: Tensor | None,
    negative_slope: float,
) -> Tensor:
    """The weights ``[K, entries]`` of :func:`memohop.nn._ops.attention.attend`."""
    count, entries = len(receive), len(columns)
    out = receive.new_empty(count, entries)
    kept = np.empty((0, 0), np.bool_) if keep is None else as_array(keep != 0)
    run_loop(
        row_loops.attention, out.numel(), count, as_array(pointers), as_array(columns), as_array(receive),
        as_array(send), kept, np.float32(negative_slope), _step(pointers, entries), as_array(out),
    )  # fmt: skip
    return out


def attention_backward(
    pointers: Tensor,
    columns: Tensor,
    receive: Tensor,
    send: Tensor,
    weights: Tensor,
    grad: Tensor,
    negative_slope: float,
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`attention` in ``receive`` and ``send``."""
    of_receive = torch.empty(receive.shape, dtype=receive.dtype)
    of_send = torch.zeros(send.shape, dtype=send.dtype)
    run_loop(
        row_loops.attention_backward, weights.numel(), len(receive), as_array(pointers), as_array(columns),
        as_array(receive), as_array(send), as_array(weights), as_array(grad), np.float32(negative_slope),
        as_array(of_receive), as_array(of_send),
    )  # fmt: skip
    return of_receive, of_send


def product(pointers: Tensor, columns: Tensor, values: Tensor, dense: Tensor, rows: int) -> Tensor:
    """``K`` sparse products: values ``[K, entries]``, dense ``[K, columns, D]``."""
    padded, width = _padded(dense), dense.shape[-1]
    out = dense.new_empty(len(dense), rows, padded.shape[-1])
    run_loop(
        product_loops.product, values.numel() * width, len(dense), as_array(pointers), as_array(columns),
        as_array(values), as_array(padded), as_array(out),
    )  # fmt: skip
    return out[..., :width]


def transposed_product(
    pointers: Tensor, columns: Tensor, values: Tensor, dense: Tensor, rows: int
) -> Tensor:
    """The same with the transposed matrices, which have ``rows`` rows.

    Values of one matrix, ``[1, entries]``, serve for all.
    """
    padded, width = _padded(dense), dense.shape[-1]
    out = dense.new_zeros(len(dense), rows, padded.shape[-1])
    run_loop(
        product_loops.transposed_product, values.numel() * width, len(dense), as_array(pointers),
        as_array(columns), as_array(values), as_array(padded), as_array(out),
    )  # fmt: skip
    return out[..., :width]


def pair_product(
    pointers: Tensor, columns: Tensor, values: Tensor, rows: Tensor, parts: Tensor, dense: Tensor
) -> Tensor:
    """For pairs (row, part), that row's product with that part of dense ``[K, columns, parts, D]``.

    Values of one matrix, ``[1, entries]``, serve for all. Those that are 0 cost next to nothing.
    """
    padded, width = _padded(dense, product_loops.WIDE), dense.shape[-1]
    flat, each = _in_one_row(padded)
    step = padded.shape[-2] * padded.shape[-1]
    out = dense.new_empty(len(dense), len(rows), padded.shape[-1])
    run_loop(
        product_loops.pair_product, out.numel(), len(dense), as_array(pointers), as_array(columns),
        as_array(values), as_array(rows), as_array(parts), flat, each, step, as_array(out),
    )  # fmt: skip
    return out[..., :width]


def transposed_pair_product(
    pointers: Tensor,
    columns: Tensor,
    values: Tensor,
    rows: Tensor,
    parts: Tensor,
    dense: Tensor,
    shape: tuple[int, int],
) -> Tensor:
    """The gradient of :func:`pair_product` in its ``[K, *shape, D]``, from one of its result."""
    padded, width = _padded(dense, product_loops.WIDE), dense.shape[-1]
    out = dense.new_zeros(len(dense), *shape, padded.shape[-1])
    run_loop(
        product_loops.transposed_pair_product, padded.numel(), len(dense), as_array(pointers),
        as_array(columns), as_array(values), as_array(rows), as_array(parts), as_array(padded),
        as_array(out),
    )  # fmt: skip
    return out[..., :width]


def inner(pointers: Tensor, columns: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """For each entry the inner product of two rows: ``[K, entries]``."""
    out = left.new_empty(len(left), len(columns))
    run_loop(
        product_loops.inner, out.numel() * left.shape[-1], len(left), as_array(pointers), as_array(columns),
        as_array(left), as_array(right), as_array(out),
    )  # fmt: skip
    return out


def row_softmax(pointers: Tensor, scores: Tensor) -> Tensor:
    """Softmax of ``[K, entries]`` within rows; rows of -inf alone give 0."""
    out = torch.empty(scores.shape)
    step = _step(pointers, scores.shape[1])
    run_loop(
        row_loops.row_softmax, out.numel(), len(out), as_array(pointers), as_array(scores), step,
        as_array(out),
    )  # fmt: skip
    return out


def softmax_backward(pointers: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    """The gradient of :func:`row_softmax` in its scores."""
    out = torch.empty(weights.shape)
    run_loop(
        row_loops.softmax_backward, out.numel(), len(out), as_array(pointers), as_array(weights),
        as_array(grad), as_array(out),
    )  # fmt: skip
    return out


def row_sums(pointers: Tensor, values: Tensor) -> Tensor:
    """Sums of ``[K, entries]`` within rows."""
    out = values.new_empty(len(values), len(pointers) - 1)
    run_loop(
        row_loops.row_sums,
        values.numel(),
        len(out),
        as_array(pointers),
        as_array(values),
        as_array(out),
    )
    return out


def dropout(values: Tensor, keys: Tensor, rates: Tensor, word1: int, word2: int) -> Tensor:
    """Dropout of ``[B, ...]``, each member by its own key and rate."""
    out = torch.empty(values.shape)
    run_loop(
        dropout_loops.dropout, out.numel(), len(out), as_array(values.flatten(1)),
        *drop_arrays(keys, rates, word1, word2), as_array(out.view(len(out), -1)),
    )  # fmt: skip
    return out


def dropped_linear(
    values: Tensor, weight: Tensor, keys: Tensor, rates: Tensor, word1: int, word2: int
) -> Tensor:
    """Dropout of ``[B, N, D]`` and products with weights ``[B, C, D]``: ``[B, N, C]``."""
    out = values.new_empty(*values.shape[:2], weight.shape[1])
    run_loop(
        decision_loops.dropped_linear, values.numel(), len(out), as_array(values), as_array(weight),
        *drop_arrays(keys, rates, word1, word2), as_array(out),
    )  # fmt: skip
    return out


def dropped_linear_backward(
    values: Tensor,
    weight: Tensor,
    keys: Tensor,
    rates: Tensor,
    word1: int,
    word2: int,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`dropped_linear` in values and weight."""
    found = torch.empty(values.shape), torch.zeros(weight.shape)
    run_loop(
        decision_loops.dropped_linear_backward, values.numel(), len(values), as_array(values),
        as_array(weight), *drop_arrays(keys, rates, word1, word2), as_array(grad),
        *map(as_array, found),
    )  # fmt: skip
    return found


def drop_arrays(keys: Tensor, rates: Tensor, word1: int, word2: int) -> tuple[Any, Any, Any]:
    """What the loops know of dropout: words of the hash, thresholds and scales."""
    words = as_array(keys ^ keys.new_tensor([word1, word2])).view(np.uint32)
    return words, as_array(thresholds(rates)), as_array(1 / (1 - rates))


def as_array(tensor: Tensor) -> Any:
    """The numbers of a tensor for a loop, row after row; a copy only where they lie otherwise."""
    return tensor.detach().contiguous().numpy()


def _in_one_row(members: Tensor) -> tuple[Any, int]:
    """The numbers of all members as they lie in memory, and how far apart members begin.

    Weights of a population lie among its other parameters; this does not copy them.
    """
    if not members[0].is_contiguous():
        members = members.contiguous()
    each, size = members.stride(0), members[0].numel()
    row = members.detach().as_strided(((len(members) - 1) * each + size,), (1,))
    return row.numpy(), each


def _padded(dense: Tensor, lanes: int = LANES) -> Tensor:
    """With columns of zeros up to a full vector, which is faster than loops for the rest."""
    rest = -dense.shape[-1] % lanes
    return F.pad(dense, (0, rest)) if rest else dense


def _step(pointers: Tensor, entries: int) -> int:
    """How many rows to take through all passes before the next ones."""
    return max(1, _AT_ONCE * (len(pointers) - 1) // max(1, entries))


def run_loop(loop: Callable[..., None], work: int, count: int, *arguments: Any) -> None:
    """The loop for all of the ``K`` matrices, spread over PyTorch's number of threads."""
    threads = min(torch.get_num_threads(), count)
    if threads == 1 or work < _LARGE:
        loop(0, count, *arguments)
        return
    bounds = [count * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(loop, *ends, *arguments) for ends in pairwise(bounds)]
        for part in parts:
            part.result()
