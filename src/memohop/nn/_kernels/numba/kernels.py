"""The CPU kernels, in Numba: attention, sparse products, the row softmax and a narrow linear map.

As in :mod:`memohop.nn._kernels.triton.kernels`, each has a plain PyTorch counterpart beside its
caller, which runs if Numba is absent, and in the tests as the second computation. The functions
here take and return tensors; the loops are in separate files. Each of the ``K`` matrices is
computed by itself and in a fixed order: a result depends neither on the others nor on the threads.

A step takes this many times as long without

- narrow products: 1.2 with ``gat`` on Cora, 1.3 with ``gat+de`` on Chameleon;
- attention and row softmax: 1.1 with ``gat+de`` on Chameleon and ``gatv2`` on Cora;
- the narrow linear map with dropout: 1.3 with ``mlp`` on Cora and ``h2gcn`` on Actor;
- products of pairs: 1.4 with ``geom-gcn`` on Texas and 1.3 on Cora.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._kernels.numba import decision_loops, product_loops, row_loops
from memohop.nn._kernels.numba.lanes import LANES
from memohop.nn.randomness import thresholds

if TYPE_CHECKING:
    from memohop.nn._ops.pairs import Pairs
    from memohop.nn._ops.pattern import Pattern

_LARGE = 1 << 18  # from this many numbers on, a second thread pays off
_AT_ONCE = 1 << 12  # entries that stay in the cache between the passes over them


def attention(
    receive: Tensor, send: Tensor, keep: Tensor | None, negative_slope: float, pattern: Pattern
) -> Tensor:
    """The weights ``[K, entries]`` of :func:`memohop.nn._ops.attention.attend`."""
    out = receive.new_empty(len(receive), len(pattern))
    kept = np.empty((0, 0), np.bool_) if keep is None else keep != 0
    run_loop(
        row_loops.attention, out.numel(), len(out), *pattern.csr_indices, receive, send, kept,
        np.float32(negative_slope), _step(pattern), out,
    )  # fmt: skip
    return out


def attention_backward(
    receive: Tensor,
    send: Tensor,
    weights: Tensor,
    grad: Tensor,
    negative_slope: float,
    pattern: Pattern,
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`attention` in ``receive`` and ``send``."""
    of_receive, of_send = torch.empty(receive.shape), torch.zeros(send.shape)
    run_loop(
        row_loops.attention_backward, weights.numel(), len(receive), *pattern.csr_indices, receive,
        send, weights, grad, np.float32(negative_slope), of_receive, of_send,
    )  # fmt: skip
    return of_receive, of_send


def weighted_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """``K`` sparse products: values ``[K, entries]``, dense ``[K, columns, D]``."""
    padded, width = _padded(dense), dense.shape[-1]
    out = dense.new_empty(len(dense), pattern.shape[0], padded.shape[-1])
    work = values.numel() * width
    run_loop(product_loops.product, work, len(dense), *pattern.csr_indices, values, padded, out)
    return out[..., :width]


def weighted_product_backward(values: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """The same product with the transposed matrices."""
    padded, width = _padded(grad), grad.shape[-1]
    out = grad.new_zeros(len(grad), pattern.shape[1], padded.shape[-1])
    run_loop(
        product_loops.transposed_product, values.numel() * width, len(grad), *pattern.csr_indices,
        values, padded, out,
    )  # fmt: skip
    return out[..., :width]


def pair_product(values: Tensor, dense: Tensor, pattern: Pattern, pairs: Pairs) -> Tensor:
    """For each pair (row, part), the row's product with that part of ``[K, columns, parts * D]``.

    The values of one matrix, ``[1, entries]``, serve for all. Zeros cost next to nothing.
    """
    apart = dense.unflatten(-1, (pairs.parts, -1))
    padded, width = _padded(apart, product_loops.WIDE), apart.shape[-1]
    flat, each = _in_one_row(padded)
    step = padded.shape[-2] * padded.shape[-1]
    out = dense.new_empty(len(dense), len(pairs.row), padded.shape[-1])
    run_loop(
        product_loops.pair_product, out.numel(), len(dense), *pattern.csr_indices, values,
        pairs.row, pairs.part, flat, each, step, out,
    )  # fmt: skip
    return out[..., :width]


def pair_product_backward(values: Tensor, grad: Tensor, pattern: Pattern, pairs: Pairs) -> Tensor:
    """The gradient of :func:`pair_product` in its ``dense``, from the gradient of its result."""
    padded, width = _padded(grad, product_loops.WIDE), grad.shape[-1]
    out = grad.new_zeros(len(grad), pattern.shape[1], pairs.parts, padded.shape[-1])
    run_loop(
        product_loops.transposed_pair_product, padded.numel(), len(grad), *pattern.csr_indices,
        values, pairs.row, pairs.part, padded, out,
    )  # fmt: skip
    return out[..., :width].flatten(2)


def inner(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The inner product of two rows for each entry: ``[K, entries]``."""
    out = left.new_empty(len(left), len(pattern))
    work = out.numel() * left.shape[-1]
    run_loop(product_loops.inner, work, len(left), *pattern.csr_indices, left, right, out)
    return out


def row_softmax(scores: Tensor, pattern: Pattern) -> Tensor:
    """Softmax of ``[K, entries]`` within rows; rows with only -inf give 0."""
    out, pointers = torch.empty(scores.shape), pattern.csr_indices[0]
    run_loop(row_loops.row_softmax, out.numel(), len(out), pointers, scores, _step(pattern), out)
    return out


def row_softmax_backward(weights: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """The gradient of :func:`row_softmax` in its scores."""
    out, pointers = torch.empty(weights.shape), pattern.csr_indices[0]
    run_loop(row_loops.softmax_backward, out.numel(), len(out), pointers, weights, grad, out)
    return out


def row_sums(values: Tensor, pattern: Pattern) -> Tensor:
    """Sums of ``[K, entries]`` within rows."""
    out = values.new_empty(len(values), pattern.shape[0])
    run_loop(row_loops.row_sums, values.numel(), len(out), pattern.csr_indices[0], values, out)
    return out


def dropped_linear(
    values: Tensor,
    weight: Tensor,
    keys: Tensor,
    rates: Tensor,
    words: tuple[int, int],
    rows: Tensor | None,
) -> Tensor:
    """Dropout of ``[B, N, D]`` and products with weights ``[B, C, D]``: ``[B, N, C]``.

    The masks are those of a larger matrix's ``rows``, or those of a matrix of this size.
    """
    out = values.new_empty(*values.shape[:2], weight.shape[1])
    run_loop(
        decision_loops.dropped_linear, values.numel(), len(out), values, weight,
        *drop_arrays(keys, rates, *words), row_numbers(rows), out,
    )  # fmt: skip
    return out


def dropped_linear_backward(
    values: Tensor,
    weight: Tensor,
    keys: Tensor,
    rates: Tensor,
    words: tuple[int, int],
    rows: Tensor | None,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`dropped_linear` in values and weight."""
    found = torch.empty(values.shape), torch.zeros(weight.shape)
    run_loop(
        decision_loops.dropped_linear_backward, values.numel(), len(values), values, weight,
        *drop_arrays(keys, rates, *words), row_numbers(rows), grad, *found,
    )  # fmt: skip
    return found


def drop_arrays(keys: Tensor, rates: Tensor, word1: int, word2: int) -> tuple[Any, Any, Any]:
    """Dropout in the form that the loops take: words of the hash, thresholds and scales."""
    words = as_array(keys ^ keys.new_tensor([word1, word2])).view(np.uint32)
    return words, as_array(thresholds(rates)), as_array(1 / (1 - rates))


def row_numbers(rows: Tensor | None) -> Any:
    """Where the rows lie in a larger matrix, in the form that the loops take."""
    return np.empty(0, np.int64) if rows is None else as_array(rows)


def as_array(tensor: Tensor) -> Any:
    """The numbers of a tensor for a loop, row by row; copied only if they are not contiguous."""
    return tensor.detach().contiguous().numpy()


def _in_one_row(members: Tensor) -> tuple[Any, int]:
    """The numbers of all members as they are stored, and the stride between members.

    The weights of a population lie among its other parameters; this does not copy them.
    """
    if not members[0].is_contiguous():
        members = members.contiguous()
    each, size = members.stride(0), members[0].numel()
    row = members.detach().as_strided(((len(members) - 1) * each + size,), (1,))
    return row.numpy(), each


def _padded(dense: Tensor, lanes: int = LANES) -> Tensor:
    """Pad with columns of zeros to a full vector, which is faster than loops for the rest."""
    rest = -dense.shape[-1] % lanes
    return F.pad(dense, (0, rest)) if rest else dense


def _step(pattern: Pattern) -> int:
    """How many rows go through all passes before the next rows do."""
    return max(1, _AT_ONCE * pattern.shape[0] // max(1, len(pattern)))


def run_loop(loop: Callable[..., None], work: int, count: int, *arguments: Any) -> None:
    """Run the loop for all ``K`` matrices, spread over PyTorch's number of threads.

    Tensors among the arguments become arrays; one that is written to must be contiguous.
    """
    arguments = tuple(as_array(one) if isinstance(one, Tensor) else one for one in arguments)
    threads = min(torch.get_num_threads(), count)
    if threads == 1 or work < _LARGE:
        loop(0, count, *arguments)
        return
    bounds = [count * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(loop, *ends, *arguments) for ends in pairwise(bounds)]
        for part in parts:
            part.result()
