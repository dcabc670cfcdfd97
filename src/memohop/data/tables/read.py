"""Readers of your own graphs: from tables, NetworkX or arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from memohop.data.assemble import merge_arcs
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import Class, encode_labels
from memohop.data.tables.links import id_array, link, node_ids, plain_ids
from memohop.data.tables.own_graph import Described, OwnGraph, describe_nodes, no_labels, own_graph
from memohop.data.tables.roles import (
    check_header,
    check_options,
    end_columns,
    id_column,
    label_column,
    unused,
)
from memohop.data.tables.sources import TableLike, open_table
from memohop.errors import DataError, UsageError, unknown_name


def read_graph(
    nodes: TableLike,
    edges: TableLike,
    *,
    label: str | None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    drop_unknown: bool = False,
    encoder: ColumnEncoder | None = None,
    classes: Sequence[Class] | None = None,
) -> OwnGraph:
    """A graph from a table of nodes and a table of edges.

    A table is the path of a CSV or TSV file (in UTF-8, also compressed as ``.gz``, with a first
    line of column names, separated by comma, tab, semicolon or bar) or of a Parquet file, or a
    table of pyarrow, pandas or polars. :class:`ColumnEncoder` turns columns into features. In a
    text file a value that is empty, NA, N/A, NaN or null is missing. Repeated edges count once, and
    edges from a node to itself are kept.

    Args:
        nodes: One row for each node: its id, its label, and columns that become features.
        edges: One row for each edge. Columns beside the two ids are not used; a warning names them.
        label: The column of ``nodes`` with the classes, empty where they are to be predicted. With
            an ``encoder`` it may be None or a column that is not there: no node has a label then.
        id: The column of ``nodes`` with the ids. By default the one named id, node or node_id, or
            else the first.
        source: The column of ``edges`` where an edge begins. By default source, src or from, or
            else the first.
        target: The column where it ends. By default target, dst or to, or else the second.
        directed: Keep the direction of the edges; otherwise there is an arc each way.
        drop_unknown: Leave out edges that name an id that is not in ``nodes``.
        encoder: The encoder of an earlier graph, for a table with the same columns.
        classes: The classes of that earlier graph, to keep their numbers.
    """
    check_options(directed=directed, drop_unknown=drop_unknown, encoder=encoder, classes=classes)
    node_table, edge_table = open_table(nodes, "nodes"), open_table(edges, "edges")
    id = id_column(node_table, id)
    label = label_column(node_table, label, id, optional=encoder is not None)
    ends = end_columns(edge_table, source, target)

    spelled = [id, *([] if label is None else [label])]
    spelled += [] if encoder is None else encoder.text_names
    table = node_table.read(node_table.columns, text=spelled)
    ids = node_ids(table[id], id, node_table.name)
    found = describe_nodes(table.drop_columns([id]), label, encoder, classes)
    del table  # to make room for the edges
    table = edge_table.read(ends, text=ends)
    check_header(ends, ids, edge_table)
    links = link(
        table[ends[0]],
        table[ends[1]],
        ids,
        directed=directed,
        drop_unknown=drop_unknown,
        table=edge_table.name,
    )
    more = [name for name in edge_table.columns if name not in ends]
    return own_graph(
        found,
        links.arcs,
        plain_ids(ids),
        notes=(
            *node_table.notes,
            *edge_table.notes,
            f"{len(ids)} nodes, column {id!r} is their id",
            *links.notes,
        ),
        warnings=(*unused(more, "column", f"{edge_table.name}: "), *links.warnings),
    )


def from_networkx(
    graph: Any,
    *,
    label: str | None,
    encoder: ColumnEncoder | None = None,
    classes: Sequence[Class] | None = None,
) -> OwnGraph:
    """A graph from a NetworkX graph; its node attributes are the columns.

    Args:
        graph: A ``Graph`` or ``DiGraph``; its direction is kept, and parallel edges count once.
        label: The attribute with the classes; nodes without it are to be predicted.
        encoder: The encoder of an earlier graph with the same attributes.
        classes: The classes of that earlier graph.
    """
    nodes = list(graph.nodes)
    if not nodes:
        raise UsageError("graph has no nodes; give one with nodes")
    attributes = list(dict.fromkeys(name for node in nodes for name in graph.nodes[node]))
    if encoder is not None and label not in attributes:
        label = None
    elif label not in attributes:
        raise unknown_name("node attribute", str(label), map(str, attributes))
    columns = {name: _attribute(graph, name) for name in attributes}
    # A table without columns would have no rows.
    table = pa.table(columns or {"": pa.nulls(len(nodes))})
    found = describe_nodes(table, label, encoder, classes)
    position = {node: row for row, node in enumerate(nodes)}
    pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64)
    arcs = merge_arcs(
        *pairs.reshape(-1, 2).T,
        nodes=len(nodes),
        both_ways=not graph.is_directed(),
        origin="graph",
    )
    more = sorted({str(name) for *_, edge in graph.edges(data=True) for name in edge})
    return own_graph(found, arcs, id_array(nodes), warnings=unused(more, "attribute"))


def from_arrays(
    adjacency: Any,
    features: Any,
    labels: Any = None,
    *,
    directed: bool = False,
    ids: Sequence[Hashable] | None = None,
    classes: Sequence[Class] | None = None,
) -> OwnGraph:
    """A graph from a SciPy matrix and NumPy arrays.

    Args:
        adjacency: A sparse or dense matrix; an entry that is not 0 in row ``u`` and column ``v`` is
            an edge from ``u`` to ``v``. Weights are not used.
        features: One row of numbers for each node, sparse or dense, used as they are.
        labels: One label for each node. Nodes with a negative number, NaN or None are to be
            predicted; without labels, all nodes are.
        directed: Keep the direction of the edges; otherwise there is an arc each way.
        ids: The ids of the nodes; their numbers by default.
        classes: The classes of an earlier graph, to keep their numbers.
    """
    matrix = sparse.coo_array(adjacency)
    x = features.toarray() if sparse.issparse(features) else np.asarray(features)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise UsageError(
            f"features has shape {list(x.shape)} and type {x.dtype}; give numbers of shape "
            "[nodes, features]"
        )
    nodes = len(x)
    for name, length in {"labels": labels, "ids": ids}.items():
        if length is not None and len(length) != nodes:
            raise UsageError(
                f"{name} has {len(length)} entries; give one for each of {nodes} nodes"
            )
    if matrix.shape != (nodes, nodes):
        raise UsageError(
            f"adjacency has shape {list(matrix.shape)}; give one of shape [{nodes}, {nodes}], with "
            "a row and a column for each row of features"
        )
    matrix.eliminate_zeros()
    source, target = (index.astype(np.int64) for index in matrix.coords)
    found = no_labels(nodes, classes)
    if labels is not None:
        found = encode_labels(_label_column(labels), "labels", classes)
    return own_graph(
        Described(np.ascontiguousarray(x, dtype=np.float32), found),
        merge_arcs(source, target, nodes=nodes, both_ways=not directed, origin="adjacency"),
        np.arange(nodes) if ids is None else id_array(ids),
        warnings=["the weights of the edges are not used"] * (np.unique(matrix.data).size > 1),
    )


def _attribute(graph: Any, name: str) -> pa.Array:
    try:
        return pa.array([found.get(name) for _, found in graph.nodes(data=True)], from_pandas=True)
    except pa.ArrowException as error:
        raise DataError(
            f"the node attribute {name!r} has values of several types ({error}); give it one type"
        ) from error


def _label_column(labels: Any) -> pa.ChunkedArray:
    try:
        column = pa.chunked_array([pa.array(np.asarray(labels), from_pandas=True)])
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(
            f"labels is not a list of labels of one type ({error}); give one string or whole "
            "number for each node"
        ) from error
    if pa.types.is_signed_integer(column.type):
        column = pc.if_else(pc.less(column, 0), pa.scalar(None, column.type), column)
    return column
