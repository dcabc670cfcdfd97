r"""Arcs and their weights: checked, merged, assembled to a graph, and as a matrix.

The matrix is the adjacency matrix of a graph under policies, or rows of it. With
:math:`\mathbf{E}_{uv}` the number of arcs :math:`u \to v`, or the sum of their weights, the
policies are explained at :class:`memohop.Graph`. All matrices are SciPy's, in float32 unless the
weights have another type, with indices of 32 bits in order; no transpose is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError

if TYPE_CHECKING:
    from memohop.data.splits import Sets
    from memohop.pyg import Data

LARGEST_WEIGHT = 1e30
"""Of an arc: in single precision, sums over a hundred million of them are finite."""

DIRECTIONS = ("out", "in", "both", "undirected")
SELF_LOOPS = ("keep", "add", "remove")
NORMS = ("row", "symmetric", "none")
POLICIES = {"direction": DIRECTIONS, "self_loops": SELF_LOOPS, "norm": NORMS}
NUMBER_OF_EDGES = "logarithm of the number of edges"
"""The name of an attribute: how many rows of an edge table are an arc."""
LARGEST_ATTRIBUTES = 50_000_000
"""The most numbers that describe arcs, all together: 0.2 GB."""
REVERSED = {"out": "in", "in": "out", "both": "both", "undirected": "undirected"}
"""The direction in which a graph with every arc reversed is the same matrix transposed."""


class ArcAttribute(NamedTuple):
    """What an attribute of arcs is."""

    name: str
    is_relation: bool = False  # 1 where an arc is of that kind, or the share of its rows that are


def check_arcs(edge_index: Tensor, num_nodes: int) -> None:
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


def check_weights(weights: Tensor, num_arcs: int) -> None:
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


def check_attributes(attributes: Tensor, num_arcs: int) -> None:
    """Refuse attributes of arcs that are not some finite numbers for each."""
    _check_tensor("edge_attr", attributes)
    if attributes.dim() not in (1, 2) or len(attributes) != num_arcs:
        raise UsageError(
            f"edge_attr has shape {list(attributes.shape)} and type {attributes.dtype}; give "
            f"numbers of shape [{num_arcs}, attributes], with a row for each arc"
        )
    if attributes.is_complex() or attributes.is_sparse or not attributes.float().isfinite().all():
        raise UsageError(
            "edge_attr holds NaN, infinite or complex values; give finite numbers, with an "
            "attribute that says where one is missing"
        )


def check_relations(relations: Tensor, num_arcs: int) -> None:
    """Refuse kinds of arcs that are not a whole number from 0 on for each."""
    _check_tensor("edge_type", relations)
    whole = not (relations.is_floating_point() or relations.is_complex())
    if relations.shape != (num_arcs,) or not whole or (relations < 0).any():
        raise UsageError(
            f"edge_type has shape {list(relations.shape)} and type {relations.dtype}; give one "
            f"whole number from 0 on for each of the {num_arcs} arcs"
        )


def _check_tensor(name: str, values: Any) -> None:
    if not isinstance(values, Tensor):
        raise UsageError(f"{name} is of type {type(values).__name__}; give a tensor")


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


def collects(
    arcs: NDArray[np.int64], times: NDArray[np.float64], since: NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    r"""Whether the source and the target of each arc, ``[2, arcs]``, may collect from the other.

    With times :math:`t` of the nodes, node :math:`i` collects from node :math:`j` by an arc of
    time :math:`s` if

    .. math:: t_j < t_i \ \text{and}\ s \le t_i,

    where a missing :math:`t_j` or :math:`s` holds no one up. So a node without a time collects only
    where neither the other node nor the arc has one, and nothing goes back in time over several
    arcs. Of two nodes with different times only the later one collects, so that an arc which comes
    too late for it is of no use to anyone.

    Args:
        arcs: ``[2, arcs]``, sources above targets. A node may collect from itself.
        times: Of the nodes, NaN where missing.
        since: The times of the arcs, NaN where missing; by default none has one.
    """
    own = times[arcs]
    other = own[::-1]
    may = np.isnan(other) | (other < own) | (arcs[0] == arcs[1])
    return may if since is None else may & (np.isnan(since) | (since <= own))


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
