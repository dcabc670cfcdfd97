"""Graph attention with eight heads on a CPU, in Numba: the whole layer after its linear map.

As in :mod:`.kernels`, the functions here take and give tensors; the loops are in
:mod:`.attention_loops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from memohop.nn._backends.numba import attention_backward, attention_loops
from memohop.nn._backends.numba.attention_loops import HEADS, SUMS
from memohop.nn._backends.numba.kernels import as_array, drop_arrays, run_loop
from memohop.nn.randomness import place_words

_AT_ONCE = 1 << 9  # entries that stay in the cache between the passes over them

Indices = tuple[Tensor, Tensor]
Drop = tuple[Tensor, Tensor, int]  # keys, rates and the place


def serves(heads: int, width: int) -> bool:
    """Whether the loops are made for so many heads of that width."""
    return heads == HEADS and width % SUMS == 0


def attend(
    indices: Indices,
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    negative_slope: float,
    drops: tuple[Drop | None, Drop | None],
) -> tuple[Tensor, Tensor, Tensor]:
    """From ``[B, N, C]`` to the same shape, and what the backward pass needs again.

    Args:
        indices: where the entries of each row begin, and their columns.
        mapped: the linear map's result, the heads one after the other.
        vectors: ``[B, 3, C]``: those that score receivers and senders, and the bias.
        keep: ``[B, entries]``, False for entries to leave out.
        negative_slope: of the leaky rectifier.
        drops: dropout on the values and on the weights.
    """
    out = torch.empty(mapped.shape)
    kept = torch.empty(2, len(mapped), mapped.shape[1], 2 * HEADS)
    run_loop(
        attention_loops.attend, _work(indices, mapped), len(mapped),
        *_arguments(indices, mapped, vectors, keep, negative_slope, drops), as_array(out),
        *map(as_array, kept),
    )  # fmt: skip
    return out, kept[0], kept[1]


def attend_backward(
    indices: Indices,
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    negative_slope: float,
    drops: tuple[Drop | None, Drop | None],
    kept: tuple[Tensor, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients in ``mapped`` and ``vectors``."""
    of_mapped, of_vectors = torch.empty(mapped.shape), torch.zeros(vectors.shape)
    run_loop(
        attention_backward.attend_backward, _work(indices, mapped), len(mapped),
        *_arguments(indices, mapped, vectors, keep, negative_slope, drops), *map(as_array, kept),
        as_array(grad), as_array(of_mapped), as_array(of_vectors),
    )  # fmt: skip
    of_scores, of_bias = of_vectors.split([2, 1], dim=1)
    return of_mapped, torch.cat([_turned_back(of_scores), of_bias], dim=1)


def _arguments(
    indices: Indices,
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    negative_slope: float,
    drops: tuple[Drop | None, Drop | None],
) -> tuple[Any, ...]:
    """What both loops begin with."""
    pointers, columns = indices
    step = max(1, _AT_ONCE * (len(pointers) - 1) // max(1, len(columns)))
    return (
        *map(as_array, (*indices, mapped, _turned(vectors))),
        np.empty((0, 0), np.bool_) if keep is None else as_array(keep),
        np.float32(negative_slope), step, *_drop_arrays(drops[0]), *_drop_arrays(drops[1]),
    )  # fmt: skip


def _work(indices: Indices, mapped: Tensor) -> int:
    return len(mapped) * len(indices[1]) * mapped.shape[-1]


def _turned(vectors: Tensor) -> Tensor:
    """Vectors ``[heads, width]`` as the loops have them: ``[width, heads]``."""
    return vectors.unflatten(-1, (HEADS, -1)).mT.flatten(-2)


def _turned_back(vectors: Tensor) -> Tensor:
    return vectors.unflatten(-1, (-1, HEADS)).mT.flatten(-2)


def _drop_arrays(drop: Drop | None) -> tuple[Any, ...]:
    if drop is None:
        return np.empty((0, 2), np.uint32), np.empty(0, np.int16), np.empty(0, np.float32)
    keys, rates, place = drop
    return drop_arrays(keys, rates, *place_words(place))
