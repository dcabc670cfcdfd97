"""What a fitted model predicts on: graphs in any form, as it takes them.

Tables are read by :func:`memohop.read_graph` before ``fit``; a fitted model remembers how, and
reads others, or new nodes of its graph, alike.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from memohop.data import tables
from memohop.data.arcs import in_unit, matrix_of
from memohop.data.sparse_features import sharing
from memohop.data.tables import ColumnEncoder, OwnGraph, find_column, open_table, read_graph
from memohop.data.tables.column import Matrix
from memohop.data.tables.times import TimeColumn
from memohop.errors import DataError, UsageError
from memohop.fit._given import Given, GivenLabels, are_tables, as_given, is_networkx
from memohop.fit._graph import Inputs
from memohop.outputs import count

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator


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
    if is_networkx(x) or are_tables(edges):
        label = {"label": y} if isinstance(y, str) else {}
        x, edges = read_alike(model, x, edges, append=append, **label), None
        y = None if label else y
    given = as_given(x, y, edges)
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
    if is_networkx(nodes):
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
        attributes, times = own.attributes, own.times
    elif given.edge_index is None and model.has_arcs_:
        raise UsageError(
            "edges is None, but the model was fitted on a graph with arcs; give edges "
            "(edges=[] for nodes without any), or leave out X for the graph of fit"
        )
    else:
        x, weights = checked_features(model, given), in_unit(given.weights, model.mean_weight_)
        times = given.times
        if times is None and model.encoder_ is not None and model.encoder_.time is not None:
            raise UsageError(
                f"the model was fitted with times, column {model.encoder_.time.name!r}, and these "
                "nodes have none; give tables, with that column"
            )
        arcs = given.arcs(x.shape[0] + (model.own_graph().nodes if append else 0))
        attributes = _known_attributes(model, given, arcs.shape[1])
    unknown, overall = unknown_targets(model, x.shape[0]), model.overall_
    if append:
        return model.own_graph().with_new_nodes(x, arcs, unknown, weights, attributes, times)
    graph = Inputs(
        x,
        arcs,
        unknown,
        directed=model.directed_,
        overall=overall,
        weights=weights,
        of_edges=of_edges(model.encoder_),
        attributes=attributes,
        described=tuple(model.arc_attributes_),
        times=times,
        value_labels=model.value_labels_,
    )
    known = getattr(model, "graph_", None)
    if as_another_graph or known is None or not _are_same(graph, known):
        return graph
    ids = model.ids_ if given.ids is None else given.ids
    return known if all(map(operator.eq, map(str, ids), map(str, model.ids_))) else graph


def of_edges(encoder: ColumnEncoder | None) -> int:
    """How many of the features, the last ones, are statistics of edges."""
    return 0 if encoder is None else encoder.of_edges


def _are_same(graph: Inputs, other: Inputs) -> bool:
    """Whether columns, times, arcs and what is known of them are the same, in any order."""
    times, others = (each.times if each.times is not None else 0 for each in (graph, other))
    return (
        graph.x.shape == other.x.shape
        and graph.arcs.shape == other.arcs.shape
        and (graph.weights is None) == (other.weights is None)
        and len(graph.described) == len(other.described)
        and np.array_equal(times, others, equal_nan=True)
        and _have_same_columns(graph.x, other.x)
        and all(map(np.array_equal, _rows_of_arcs(graph), _rows_of_arcs(other)))
    )


def _have_same_columns(x: Matrix, other: Matrix) -> bool:
    """Whether two matrices of one shape, dense or sparse, have the same entries."""
    if sparse.issparse(x) or sparse.issparse(other):
        return bool((sparse.csr_array(x) != sparse.csr_array(other)).nnz == 0)
    return np.array_equal(x, other)


def _rows_of_arcs(graph: Inputs) -> Iterator[NDArray[Any]]:
    """The arrays of matrices of all arcs, which are the same in whatever order they came."""
    of_arcs = [] if graph.attributes is None else [*graph.attributes.T]
    for values in (graph.weights, *of_arcs):
        doubles = None if values is None else values.astype(np.float64)
        matrix = matrix_of(graph.arcs, graph.nodes, doubles)
        yield from (matrix.indptr, matrix.indices, matrix.data)


def _known_attributes(model: GraphEstimator, given: Given, arcs: int) -> NDArray[np.float32] | None:
    """The attributes of arcs that a model knows; relations that are not there are 0 everywhere."""
    known = tuple(model.arc_attributes_)
    if not known:
        return None
    attributes = np.empty((0, 0), np.float32) if given.attributes is None else given.attributes
    width = attributes.shape[1]
    if not arcs:
        return np.zeros((0, len(known)), np.float32)
    if (
        width
        and given.described == known[:width]
        and all(more.is_relation for more in known[width:])
    ):
        return np.pad(attributes, ((0, 0), (0, len(known) - width)))
    if width != len(known):
        raise UsageError(
            f"the model was fitted on arcs with {count(len(known), 'attribute')}, such as "
            f"{known[0].name!r}, and these have {width or 'none'}; give tables like those of fit, "
            "or a Data with the same edge_attr and edge_type"
        )
    return attributes


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
    everyone: dict[str, Any] = {"id": [str(node) for node in (*model.ids_, *new.ids)]}
    if (times := model.own_graph().times) is not None and new.times is not None:
        everyone["time"] = np.append(times, new.times)
        of_edges = msgspec.structs.replace(of_edges, time=TimeColumn("time", dates=False))
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
