"""The checks of arcs and their weights, for data and for products with the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.errors import UsageError

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
