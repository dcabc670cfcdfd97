r"""Arcs as a matrix, in one place: the adjacency matrix of a graph under policies, or rows of it.

With :math:`\mathbf{E}_{uv}` the number of arcs :math:`u \to v`, or the sum of their weights, the
policies are explained at :class:`memohop.Graph`. All matrices are SciPy's, in float32 unless the
weights have another type, with indices of 32 bits in order; no transpose is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_weights

DIRECTIONS = ("out", "in", "both", "undirected")
SELF_LOOPS = ("keep", "add", "remove")
NORMS = ("row", "symmetric", "none")
POLICIES = {"direction": DIRECTIONS, "self_loops": SELF_LOOPS, "norm": NORMS}
REVERSED = {"out": "in", "in": "out", "both": "both", "undirected": "undirected"}
"""The direction in which a graph with every arc reversed is the same matrix transposed."""


def adjacency(
    edge_index: Tensor,
    num_nodes: int,
    *,
    direction: str,
    self_loops: str = "keep",
    weights: Tensor | None = None,
) -> sparse.csr_array:
    r"""The matrix :math:`\mathbf{A}` of a :class:`memohop.Graph`, before it is normalised."""
    if weights is not None:
        check_weights(weights, edge_index.shape[1])
        weights = weights.to("cpu", torch.float32)
    arcs = matrix_of(
        edge_index.cpu().numpy(), num_nodes, None if weights is None else weights.numpy()
    )
    return rows_of(
        lambda end: arcs if end == "out" else arcs.T.tocsr(),
        direction=direction,
        self_loops=self_loops,
        weighted=weights is not None,
    )


def matrix_of(
    arcs: NDArray[np.int64], nodes: int, weights: NDArray[Any] | None = None
) -> sparse.csr_array:
    r""":math:`\mathbf{E}`, from ``[2, arcs]``: sources above targets."""
    if weights is None:
        weights = np.ones(arcs.shape[1], dtype=np.float32)
    source, target = arcs.astype(np.int32)
    return sparse.csr_array((weights, (source, target)), shape=(nodes, nodes))


def rows_of(
    end: Callable[[str], sparse.csr_array],
    *,
    direction: str,
    self_loops: str,
    weighted: bool,
    first: int = 0,
) -> sparse.csr_array:
    r"""The rows of :math:`\mathbf{A}` from node ``first`` on, before they are normalised.

    Args:
        end: gives these rows of :math:`\mathbf{E}` for ``"out"``, and of
            :math:`\mathbf{E}^\top` for ``"in"``. They may be changed.
        direction: as for :class:`memohop.Graph`, like the next.
        self_loops: what becomes of the diagonal.
        weighted: whether arcs have weights; an arc of weight 0 is none.
        first: the number of the first row's node.
    """
    if direction in ("out", "in"):
        matrix = end(direction)
    elif direction == "both":
        matrix = end("out") + end("in")
    else:
        matrix = end("out").maximum(end("in"))
        if not weighted:
            matrix.data[:] = 1
    rows = matrix.shape[0]
    if self_loops != "keep":
        row = np.repeat(np.arange(first, first + rows, dtype=np.int32), np.diff(matrix.indptr))
        matrix.data[matrix.indices == row] = 0
    if weighted or self_loops != "keep":
        matrix.eliminate_zeros()
    if self_loops == "add":
        matrix = matrix + sparse.eye_array(*matrix.shape, k=first, dtype=np.float32, format="csr")
    return matrix


def normalised(
    weight: Tensor, norm: str, of_rows: Callable[[], Tensor], of_columns: Callable[[], Tensor]
) -> Tensor:
    r"""The weights of some entries, divided according to ``norm``.

    .. math::
        a_{ij} = w_{ij} \Big/ \sum_k w_{ik} \quad\text{(row)}, \qquad
        a_{ij} = w_{ij} \Big/ \sqrt{\textstyle\sum_k w_{ik} \sum_k w_{kj}}
            \quad\text{(symmetric)}

    Args:
        weight: ``[..., entries]``.
        norm: one of ``NORMS``.
        of_rows: returns, for each entry, the sum of the weights in its row.
        of_columns: returns, for each entry, the sum of the weights in its column.
    """
    if norm == "none":
        return weight
    # A kept entry has sums of at least its own weight; a dropped one is 0, perhaps like its sums.
    least = torch.finfo(weight.dtype).tiny
    if norm == "row":
        return weight / of_rows().clamp(min=least)
    return weight / (of_rows() * of_columns()).clamp(min=least).sqrt()
