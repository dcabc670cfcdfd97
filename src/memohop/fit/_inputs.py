"""The forms of a user's graph, converted to one: features, arcs and labels.

Tables are read by :func:`memohop.read_graph` before ``fit``; a fitted model remembers how, and
reads others, or new nodes of its graph, alike.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from memohop.data import tables
from memohop.data.arcs import check_arcs, check_weights, in_unit
from memohop.data.check import check_one_kind
from memohop.data.folds import own_split
from memohop.data.sparse_features import sharing
from memohop.data.splits import OwnSplit
from memohop.data.tables import ColumnEncoder, OwnGraph, find_column, open_table, read_graph
from memohop.data.tables.column import Matrix
from memohop.errors import DataError, UsageError
from memohop.fit._problem import Inputs
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

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
    if _are_tables(edges):
        raise UsageError(
            "edges is a table; read it together with that of the nodes, and give the result: "
            "fit(memohop.read_graph(nodes, edges, label=...))"
        )
    if _is_networkx(x):
        if not isinstance(y, str):
            raise UsageError(
                f"y={y!r}: X is a NetworkX graph; give the name of the node attribute with the "
                "labels, such as y='club'"
            )
        weighted = any(_WEIGHT in edge for *_, edge in x.edges(data=True))
        x, y = tables.from_networkx(x, label=y, weight=_WEIGHT if weighted else None), None
    given = _as_given(x, y, edges)
    if isinstance(x, Data):
        given = given._replace(own=own_split(x, split))
    return given if groups is None else given._replace(groups=_number_groups(groups))


def to_predict(
    model: GraphEstimator,
    x: Any,
    edges: Any,
    y: Any = None,
    *,
    append: bool = False,
    as_another_graph: bool = False,
) -> tuple[Inputs, GivenLabels | None]:
    """A graph in any form, and its labels; tables and NetworkX are read as those of ``fit``.

    Arguments as for :meth:`GraphEstimator.outputs`; ``y`` may name a column or attribute.
    """
    check_is_fitted(model)
    if _is_networkx(x) or _are_tables(edges):
        label = {"label": y} if isinstance(y, str) else {}
        x, edges = read_alike(model, x, edges, append=append, **label), None
        y = None if label else y
    given = _as_given(x, y, edges)
    return _inputs_of(model, given, append, as_another_graph), given.labels


def read_alike(
    model: GraphEstimator, nodes: Any, edges: Any, *, append: bool = False, **changes: Any
) -> OwnGraph:
    """A graph from tables, or from NetworkX, as that of ``fit`` was read.

    Args:
        model: A fitted model.
        nodes: The table of nodes, or a NetworkX graph.
        edges: The tables of edges. With ``append``, an arc may name a node of ``fit``, and arcs
            count those first.
        append: Whether these are new nodes in the graph of ``fit``.
        **changes: Other options of :func:`~memohop.read_graph` than those of ``fit``.
    """
    if append:
        return _read_new_nodes(model, nodes, edges, **changes)
    how = how_to_read(model) | changes
    if _is_networkx(nodes):
        of_networkx = ("label", "weight", "task", "encoder", "classes")
        return tables.from_networkx(
            nodes, **{name: how[name] for name in of_networkx if name in how}
        )
    return read_graph(nodes, edges, **how)


def how_to_read(model: GraphEstimator) -> dict[str, Any]:
    """The arguments of :func:`~memohop.read_graph` that read tables as those of ``fit``."""
    encoder = model.encoder_
    if encoder is None or model.reading_ is None:
        raise UsageError(
            "this model was fitted on arrays, not on tables; predict from Python, with features "
            "and edges as arrays"
        )
    if (made := len(encoder.feature_names)) != model.n_features_in_:
        raise DataError(
            f"the columns of this model make {made} feature(s), and it has {model.n_features_in_}; "
            "copy the model again, or fit it again"
        )
    return {**model.reading_, "encoder": encoder, "classes": model._classes()}


def _inputs_of(model: GraphEstimator, given: Given, append: bool, as_another_graph: bool) -> Inputs:
    """The graph of ``fit`` with its labels and perhaps new nodes, or another one without labels.

    The graph of ``fit`` is known by its columns, arcs, weights and ids, if there are ids. New nodes
    come last, and arcs may name nodes of both.
    """
    if given.x is None:
        own = model.own_graph()
        if not as_another_graph:
            return own
        x, arcs, weights = own.x, own.arcs, own.weights
    elif given.edge_index is None and model.has_arcs_:
        raise UsageError(
            "edges is None, but the model was fitted on a graph with arcs; give edges "
            "(edges=[] for nodes without any), or leave out X for the graph of fit"
        )
    else:
        x, weights = checked_features(model, given), in_unit(given.weights, model.mean_weight_)
        arcs = given.arcs(x.shape[0] + (model.own_graph().nodes if append else 0))
    unknown, overall = unknown_targets(model, x.shape[0]), model.overall_
    if append:
        return model.own_graph().with_new_nodes(x, arcs, unknown, weights)
    graph = Inputs(
        x,
        arcs,
        unknown,
        directed=model.directed_,
        overall=overall,
        weights=weights,
        of_edges=of_edges(model.encoder_),
    )
    known = getattr(model, "graph_", None)
    if as_another_graph or known is None or not graph.is_same_graph(known):
        return graph
    ids = model.ids_ if given.ids is None else given.ids
    return known if all(map(operator.eq, map(str, ids), map(str, model.ids_))) else graph


def of_edges(encoder: ColumnEncoder | None) -> int:
    """How many of the features, the last ones, are statistics of edges."""
    return 0 if encoder is None else encoder.of_edges


def unknown_targets(model: GraphEstimator, nodes: int) -> NDArray[Any]:
    """The targets of nodes that have none."""
    return np.full(nodes, np.nan if model._predicts_numbers else -1)


def checked_features(model: GraphEstimator, given: Given, *, reset: bool = False) -> Any:
    """The features, if they are those of ``fit``; with ``reset`` any, which are then those."""
    checked = validate_data(
        model,
        given.x,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float32,
        order="C",
        copy=reset,  # the kept graph must not change with the caller's array
        force_writeable=True,  # required by PyTorch
    )
    return sparse.csr_array(checked) if sparse.issparse(checked) else checked


def _read_new_nodes(model: GraphEstimator, nodes: Any, edges: Any, **changes: Any) -> OwnGraph:
    """Features of the new nodes by themselves, and arcs by the ids of all nodes."""
    model.own_graph()
    reading = {**(model.reading_ or {}), **changes}
    table = open_table(nodes, "nodes", reading.get("encoding"))
    id = find_column(table, "id", reading.get("id"))
    first = table.read([id], text=[id])[id][:1]
    any_edge = pa.table({"source": first, "target": first})  # a graph of tables has edges
    of_nodes, of_edges = how_to_read(model)["encoder"].apart()
    only_nodes = {"source": None, "target": None, "weight": None, "encoder": of_nodes}
    new = read_alike(model, nodes, any_edge, **changes | only_nodes)
    old = {str(node) for node in model.ids_}
    if known := [node for node in map(str, new.ids) if node in old]:
        raise UsageError(
            f"{len(known)} of the {len(new.ids)} nodes in {table.name}, such as {known[0]!r}, are "
            "in the graph of the model; leave them out, or predict without append"
        )
    everyone = {"id": [str(node) for node in (*model.ids_, *new.ids)]}
    only_ids = {"label": None, "id": "id", "encoder": of_edges}
    joined = read_graph(everyone, edges, **reading | only_ids)
    data = copy(joined.data)  # its arcs, and their weights
    data.x, data.y = new.data.x, new.data.y
    if of_edges.columns:
        x = joined.x[-len(new.ids) :]  # beside what the node table says, if that is anything
        x = _side_by_side(new.x, x) if of_nodes.columns else x
        data.x = sharing(x) if sparse.issparse(x) else torch.from_numpy(x)
    return replace(new, data=data, notes=(*new.notes, *joined.warnings))


def _side_by_side(left: Matrix, right: Matrix) -> Matrix:
    if sparse.issparse(left) or sparse.issparse(right):
        return sparse.hstack([left, right], format="csr")
    return np.hstack([left, right])


def _is_networkx(graph: Any) -> bool:
    """Whether it is a graph of NetworkX, which is then imported already."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def _are_tables(edges: Any) -> bool:
    """Whether edges are a table or a path, or a list of them, and not numbers of nodes."""
    if isinstance(edges, list | tuple):
        return bool(edges) and all(map(_are_tables, edges))
    return isinstance(edges, str | os.PathLike | Mapping) or any(
        hasattr(edges, name) for name in ("columns", "__arrow_c_stream__")
    )


def _as_given(x: Any, y: Any, edges: Any) -> Given:
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
    data = graph.data
    return Given(
        graph.x,
        labels_of(data.y.numpy(), graph.classes)._replace(kind=graph.task),
        data.edge_index,
        graph.ids,
        graph.encoder,
        graph.notes,
        graph.reading,
        data.edge_weight.numpy() if "edge_weight" in data else None,
        graph.groups,
        graph.masks,
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
    return Given(data.x.cpu().numpy(), labels, data.edge_index, weights=weights)


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
