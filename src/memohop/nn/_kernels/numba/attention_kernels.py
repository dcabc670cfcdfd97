"""Graph attention with eight heads on a CPU, in Numba: the whole layer after its linear map.

As in :mod:`.kernels`, the functions here take and return tensors; the loops are in
:mod:`.attention_loops`. All ``gat`` rows need them: without them a step takes 1.7 times as long
(``gat`` on Cora, ``gat+de`` on Chameleon), or 1.2 to 1.5 times with ``gat+mmp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from memohop.nn._kernels.numba import attention_backward, attention_loops
from memohop.nn._kernels.numba.attention_loops import HEADS
from memohop.nn._kernels.numba.kernels import drop_arrays, run_loop
from memohop.nn.randomness import place_words

if TYPE_CHECKING:
    from memohop.nn._ops.pattern import Pattern

_AT_ONCE = 1 << 9  # entries that stay in the cache between the passes over them

Drop = tuple[Tensor, Tensor, int]  # keys, rates and the place


def attend(
    pattern: Pattern,
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    negative_slope: float,
    drops: tuple[Drop | None, Drop | None],
) -> tuple[Tensor, Tensor, Tensor]:
    """From ``[B, N, C]`` to the same shape, with the values that the backward pass needs.

    Args:
        pattern: the entries (i, j).
        mapped: the linear map's result, the heads one after the other.
        vectors: ``[B, 3, C]``: the score vectors of receivers and of senders, and the bias.
        keep: ``[B, entries]``, False for entries to leave out.
        negative_slope: slope of the leaky rectifier below 0.
        drops: dropout on the values and on the weights.
    """
    out = torch.empty(mapped.shape)
    kept = torch.empty(2, len(mapped), mapped.shape[1], 2 * HEADS)
    run_loop(
        attention_loops.attend, len(mapped) * len(pattern) * mapped.shape[-1], len(mapped),
        *_arguments(pattern, mapped, vectors, keep, negative_slope, drops), out, *kept,
    )  # fmt: skip
    return out, kept[0], kept[1]


def attend_backward(
    pattern: Pattern,
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
        attention_backward.attend_backward, len(mapped) * len(pattern) * mapped.shape[-1], len(mapped),
        *_arguments(pattern, mapped, vectors, keep, negative_slope, drops), *kept, grad, of_mapped,
        of_vectors,
    )  # fmt: skip
    of_scores, of_bias = of_vectors.split([2, 1], dim=1)
    return of_mapped, torch.cat([_turned_back(of_scores), of_bias], dim=1)


def _arguments(
    pattern: Pattern,
    mapped: Tensor,
    vectors: Tensor,
    keep: Tensor | None,
    negative_slope: float,
    drops: tuple[Drop | None, Drop | None],
) -> tuple[Any, ...]:
    """The arguments that both loops begin with."""
    step = max(1, _AT_ONCE * pattern.shape[0] // max(1, len(pattern)))
    return (
        *pattern.csr_indices, mapped, _turned(vectors),
        np.empty((0, 0), np.bool_) if keep is None else keep,
        np.float32(negative_slope), step, *_drop_arrays(drops[0]), *_drop_arrays(drops[1]),
    )  # fmt: skip


def _turned(vectors: Tensor) -> Tensor:
    """Vectors ``[heads, width]`` in the layout of the loops: ``[width, heads]``."""
    return vectors.unflatten(-1, (HEADS, -1)).mT.flatten(-2)


def _turned_back(vectors: Tensor) -> Tensor:
    return vectors.unflatten(-1, (-1, HEADS)).mT.flatten(-2)


def _drop_arrays(drop: Drop | None) -> tuple[Any, ...]:
    if drop is None:
        return np.empty((0, 2), np.uint32), np.empty(0, np.int16), np.empty(0, np.float32)
    keys, rates, place = drop
    return drop_arrays(keys, rates, *place_words(place))
