"""The forms of a user's graph, converted to one: features, arcs and labels."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from memohop.data import tables
from memohop.data.arcs import (
    LARGEST_ATTRIBUTES,
    ArcAttribute,
    check_arcs,
    check_attributes,
    check_relations,
    check_weights,
)
from memohop.data.check import check_one_kind
from memohop.data.folds import own_split
from memohop.data.splits import OwnSplit
from memohop.data.tables import ColumnEncoder, OwnGraph
from memohop.errors import MemohopWarning, UsageError
from memohop.pyg import Data

_WEIGHT = "weight"  # the attribute of edges that NetworkX itself takes for their weight


class GivenLabels(NamedTuple):
    """Which nodes have a label, ``[nodes]``, and their labels."""

    known: NDArray[np.bool_]
    names: NDArray[Any]
    kind: Literal["classes", "numbers"] | None = None  # if a reader or a type decided


class Given(NamedTuple):
    """A graph as the user gave it; None for each part that was not given."""

    x: Any = None  # features, anything with a row for each node
    labels: GivenLabels | None = None
    edge_index: Tensor | None = None
    ids: NDArray[Any] | None = None
    encoder: ColumnEncoder | None = None  # how the columns of tables became features
    notes: tuple[str, ...] = ()  # how tables were read, in plain words
    reading: Mapping[str, Any] | None = None  # to read other tables alike
    weights: NDArray[np.floating[Any]] | None = None  # of the arcs, in any unit
    groups: NDArray[np.int64] | None = None  # of nodes that no split divides
    own: OwnSplit | None = None  # the split that it came with
    attributes: NDArray[np.float32] | None = None  # of the arcs
    described: tuple[ArcAttribute, ...] = ()  # what each of them is
    times: NDArray[np.float64] | None = None  # of the nodes
    undecided: bool = False  # whether arcs, which are listed once, may have no direction

    def arcs(self, nodes: int) -> NDArray[np.int64]:
        """The arcs, none if none were given; a ``UsageError`` if one points to no node."""
        if self.edge_index is None:
            return np.empty((2, 0), dtype=np.int64)
        check_arcs(self.edge_index, nodes)
        return self.edge_index.cpu().numpy()


def given_to_fit(x: Any, y: Any, edges: Any, groups: Any = None, split: int | None = None) -> Given:
    """A graph in any form but tables; arguments as for :meth:`GraphEstimator.fit`."""
    if split is not None and not isinstance(x, Data):
        raise UsageError(f"split={split}, but X is not a Data with masks; leave it out")
    if are_tables(edges):
        raise UsageError(
            "edges is a table; read it together with that of the nodes, and give the result: "
            "fit(memohop.read_graph(nodes, edges, label=...))"
        )
    if is_networkx(x):
        if not isinstance(y, str):
            raise UsageError(
                f"y={y!r}: X is a NetworkX graph; give the name of the node attribute with the "
                "labels, such as y='club'"
            )
        weighted = any(_WEIGHT in edge for *_, edge in x.edges(data=True))
        x, y = tables.from_networkx(x, label=y, weight=_WEIGHT if weighted else None), None
    given = as_given(x, y, edges)
    if isinstance(x, Data):
        given = given._replace(own=own_split(x, split))
    return given if groups is None else given._replace(groups=_number_groups(groups))


def is_networkx(graph: Any) -> bool:
    """Whether it is a graph of NetworkX, which is then imported already."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def are_tables(edges: Any) -> bool:
    """Whether edges are a table or a path, or a list of them, and not numbers of nodes."""
    if isinstance(edges, list | tuple):
        return bool(edges) and all(map(are_tables, edges))
    return isinstance(edges, str | os.PathLike | Mapping) or any(
        hasattr(edges, name) for name in ("columns", "__arrow_c_stream__")
    )


def as_given(x: Any, y: Any, edges: Any) -> Given:
    """The parts of an ``OwnGraph``, of a ``Data``, or of separate arrays."""
    labels = None if y is None else _labels(y)
    if isinstance(x, OwnGraph | Data):
        if edges is not None:
            raise UsageError(
                f"edges is given although X is a {type(x).__name__}, which has its own; leave it "
                "out"
            )
        given = _of_own(x) if isinstance(x, OwnGraph) else _of_data(x, labels is None)
        return given if labels is None else given._replace(labels=labels)
    if x is not None:
        check_one_kind(x, "X")
    x = x.cpu().numpy() if isinstance(x, Tensor) else x
    return Given(x, labels, None if edges is None else _arcs(edges))


def _of_own(graph: OwnGraph) -> Given:
    data, reading = graph.data, graph.reading
    if undecided := graph.listed is not None:
        data, reading = graph.listed, {**(reading or {}), "directed": True}
    return Given(
        graph.x,
        labels_of(data.y.numpy(), graph.classes)._replace(kind=graph.task),
        data.edge_index,
        graph.ids,
        graph.encoder,
        graph.notes,
        reading,
        data.edge_weight.numpy() if "edge_weight" in data else None,
        graph.groups,
        graph.masks,
        data.edge_attr.numpy() if "edge_attr" in data else None,
        graph.encoder.edges.attributes if "edge_attr" in data and graph.encoder else (),
        graph.times,
        undecided,
    )


def _of_data(data: Data, wants_labels: bool) -> Given:
    if not isinstance(data.x, Tensor) or not isinstance(data.edge_index, Tensor):
        raise UsageError("X is a Data without x or without edge_index; give it both")
    labels = weights = None
    if wants_labels and isinstance(data.y, Tensor) and data.y.numel():
        if data.y.dim() != 1:
            raise UsageError(
                f"X is a Data; its y has shape {list(data.y.shape)} and type {data.y.dtype}; give "
                "one whole number for each node, its class, negative where it is not known; or "
                "one number to predict, NaN where it is not known"
            )
        labels = labels_of(data.y.cpu().numpy())
    if "edge_weight" in data:
        check_weights(data.edge_weight, data.edge_index.shape[1])
        weights = data.edge_weight.to("cpu", torch.float64).numpy()
    attributes, described = _of_arcs(data)
    return Given(
        data.x.cpu().numpy(),
        labels,
        data.edge_index,
        weights=weights,
        attributes=attributes,
        described=described,
    )


def _of_arcs(data: Data) -> tuple[NDArray[np.float32] | None, tuple[ArcAttribute, ...]]:
    """``edge_attr``, then a relation for each number that ``edge_type`` may be."""
    arcs, parts, columns, kinds = data.edge_index.shape[1], [], 0, 0
    if "edge_attr" in data:
        check_attributes(data.edge_attr, arcs)
        numbers = data.edge_attr.detach().to("cpu", torch.float32).numpy()
        parts.append(numbers if numbers.ndim == 2 else numbers[:, None])
        columns = parts[0].shape[1]
    if "edge_type" in data:
        check_relations(data.edge_type, arcs)
        kinds = int(data.edge_type.max()) + 1 if arcs else 0
    if (number := columns + kinds) * arcs > LARGEST_ATTRIBUTES:
        warnings.warn(
            f"{number} attributes of {arcs} arcs are too many, and not used; give fewer",
            MemohopWarning,
            stacklevel=2,
        )
        return None, ()
    if "edge_type" in data:
        parts.append(np.eye(kinds, dtype=np.float32)[data.edge_type.cpu().numpy()])
    if not number:
        return None, ()
    described = [ArcAttribute(f"edge attribute {i}") for i in range(columns)]
    described += [ArcAttribute(f"edge type {i}", True) for i in range(kinds)]
    return np.hstack(parts), tuple(described)


def _number_groups(groups: Any) -> NDArray[np.int64]:
    """A number for each group; a node without one, None or NaN, is a group of its own."""
    known, names, _ = _labels(groups)
    numbers = len(known) + np.arange(len(known))
    try:
        numbers[known] = np.unique(names, return_inverse=True)[1]
    except TypeError as error:
        raise not_sortable("groups has names", error) from error
    return numbers


def not_sortable(what: str, error: TypeError) -> UsageError:
    """The error that names the remedy."""
    return UsageError(f"{what} of kinds that cannot be sorted ({error}); make them all strings")


def _labels(y: Any) -> GivenLabels:
    y = column_or_1d(y, warn=True)
    known = np.ones(len(y), dtype=bool)
    if y.dtype.kind == "f":
        known = ~np.isnan(y)
    elif y.dtype.kind == "O":
        known = np.array([not _is_missing(value) for value in y], dtype=bool)
    names = y[known]
    if y.dtype.kind == "O" and all(isinstance(name, Number | np.bool_) for name in names):
        names = np.array(names.tolist())  # whole numbers or truth values, as without gaps
    return GivenLabels(known, names)


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or pandas' NA, which has no truth value when compared."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def labels_of(y: NDArray[Any], classes: Sequence[Any] | None = None) -> GivenLabels:
    """Labels from class numbers, negative for unknown; or from numbers, NaN for unknown."""
    if y.dtype.kind == "f":
        return _labels(y)._replace(kind="numbers")
    known = y >= 0
    return GivenLabels(known, y[known] if classes is None else np.array(list(classes))[y[known]])


def _arcs(edges: Any) -> Tensor:
    """Arcs ``[2, arcs]`` from an array of that shape or from a sparse adjacency matrix."""
    if sparse.issparse(edges):
        source, target = sparse.coo_array(edges).coords
        return torch.from_numpy(np.stack([source, target]).astype(np.int64))
    array = edges.cpu().numpy() if isinstance(edges, Tensor) else np.asarray(edges)
    if array.size == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    if array.ndim != 2 or array.shape[0] != 2 or array.dtype.kind not in "iu":
        raise UsageError(
            f"edges has shape {list(array.shape)} and type {array.dtype}; give whole numbers of "
            "shape [2, arcs], row 0 the sources and row 1 the targets, or a SciPy sparse matrix"
        )
    return torch.from_numpy(array.astype(np.int64))
