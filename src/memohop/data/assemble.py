"""From arrays to the :class:`Data` of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.errors import DataError

if TYPE_CHECKING:
    from memohop.pyg import Data

Masks: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Training, validation and test nodes, one column for each split."""


def graph_data(x: NDArray[Any], y: NDArray[Any], arcs: NDArray[np.int64], masks: Masks) -> Data:
    """A graph: ``float32`` features, ``int64`` labels and arcs, boolean masks ``[N, S]``."""
    train, val, test = masks
    from memohop.pyg import Data  # slow to import

    return Data(
        x=torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)),
        y=torch.from_numpy(np.ascontiguousarray(y, dtype=np.int64)),
        edge_index=torch.from_numpy(np.ascontiguousarray(arcs, dtype=np.int64)),
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )


def mask_columns(masks: NDArray[np.bool_]) -> torch.Tensor:
    """Masks with one row for each split, as in files, as an ``[N, S]`` tensor."""
    return torch.from_numpy(np.ascontiguousarray(masks.T))


def merge_arcs(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    *,
    nodes: int,
    both_ways: bool = False,
    origin: object,
) -> NDArray[np.int64]:
    """Arcs as a sorted ``[2, E]`` array, each one once.

    Args:
        source: Where each arc begins.
        target: Where it ends.
        nodes: Number of nodes; an arc to another node is a :class:`DataError`.
        both_ways: Add every arc's opposite, for files that hold an undirected edge once.
        origin: The file, for the error.
    """
    outside = np.flatnonzero(
        (np.minimum(source, target) < 0) | (np.maximum(source, target) >= nodes)
    )
    if outside.size:
        first = outside[0]
        raise DataError(
            f"{origin}: the arc {source[first]} -> {target[first]} leaves the graph of {nodes} "
            "nodes; fetch the file again"
        )
    keys = source * nodes + target
    if both_ways:
        keys = np.concatenate((keys, target * nodes + source))
    keys = distinct(keys)
    arcs = np.empty((2, len(keys)), dtype=np.int64)
    np.divmod(keys, nodes, out=(arcs[0], arcs[1]))
    return arcs


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers in order, each once; ``np.unique`` takes 100 times as long for 20 million."""
    numbers = np.sort(numbers)
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))[: len(numbers)]]
