"""Arcs and their weights: checked, merged, and assembled to a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.errors import UsageError

if TYPE_CHECKING:
    from memohop.data.splits import Sets
    from memohop.pyg import Data

LARGEST_WEIGHT = 1e30
"""Of an arc: in single precision, sums over a hundred million of them are finite."""


def check_arcs(edge_index: torch.Tensor, num_nodes: int) -> None:
    """Refuse arcs of a wrong shape or type, or with nodes that do not exist."""
    if edge_index.dim() != 2 or len(edge_index) != 2 or edge_index.dtype != torch.int64:
        raise UsageError(
            f"edge_index has shape {list(edge_index.shape)} and type {edge_index.dtype}; give an "
            "int64 tensor of shape [2, arcs]"
        )
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0).nonzero()
    if len(outside):
        first = int(outside[0])
        source, target = edge_index[:, first].tolist()
        raise UsageError(
            f"arc {first} points outside the graph: edge_index[:, {first}] is the arc {source} -> "
            f"{target}, but the {num_nodes} nodes are numbered 0 to {num_nodes - 1} "
            f"({len(outside)} such arc(s) in all); renumber the nodes or raise num_nodes"
        )


def check_weights(weights: torch.Tensor, num_arcs: int) -> None:
    """Refuse weights of arcs that are not one number from 0 to the largest for each."""
    if weights.shape != (num_arcs,) or not weights.is_floating_point():
        raise UsageError(
            f"edge_weight has shape {list(weights.shape)} and type {weights.dtype}; give one "
            f"floating-point number for each of the {num_arcs} arcs"
        )
    in_single = weights.float()
    wrong = (~(in_single >= 0) | (in_single > LARGEST_WEIGHT)).nonzero()
    if len(wrong):
        first = int(wrong[0])
        raise UsageError(
            f"edge_weight[{first}] is {weights[first].item()} ({len(wrong)} such weight(s) in "
            f"all); give every arc a weight from 0 to {LARGEST_WEIGHT:g}"
        )


def mean_weight(weights: NDArray[Any]) -> float:
    """The mean weight of arcs, the unit in which models count; 1 if there are none but zeros."""
    most = float(weights.max(initial=0))  # divided by it first: the sum might be infinite
    return most * float(np.mean(weights.astype(np.float64) / most)) if most else 1.0


def in_unit(weights: NDArray[Any] | None, unit: float | None) -> NDArray[np.float32] | None:
    """Weights of arcs in a unit, such as the mean; None without weights, or if none count."""
    if weights is None or unit is None:
        return None
    return (weights.astype(np.float64) / unit).astype(np.float32)


def merge_arcs(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    *,
    nodes: int,
    both_ways: bool = False,
) -> NDArray[np.int64]:
    """Arcs as a sorted ``[2, E]`` array, each one once.

    With ``both_ways``, every arc's opposite is added, for files with an undirected edge once.
    """
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


def graph_data(x: NDArray[Any], y: NDArray[Any], arcs: NDArray[np.int64], sets: Sets) -> Data:
    """A graph: ``float32`` features, ``int64`` labels and arcs, boolean masks ``[N, S]``."""
    train, val, test = map(torch.from_numpy, sets)
    from memohop.pyg import Data  # slow to import

    return Data(
        x=torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)),
        y=torch.from_numpy(np.ascontiguousarray(y, dtype=np.int64)),
        edge_index=torch.from_numpy(np.ascontiguousarray(arcs, dtype=np.int64)),
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )
