"""Readers of your own graphs: from tables, NetworkX or arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import LARGEST_WEIGHT
from memohop.data.assemble import merge_arcs
from memohop.data.tables.column import as_features
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import Class, Task, read_labels
from memohop.data.tables.links import (
    check_header,
    id_array,
    join,
    locate,
    node_ids,
    plain_ids,
    sum_weights,
    unused,
)
from memohop.data.tables.options import ReadOptions, find_roles, read_alike
from memohop.data.tables.own_graph import Described, OwnGraph, describe_nodes, no_labels, own_graph
from memohop.data.tables.sources import TableLike, open_table
from memohop.errors import DataError, UsageError, unknown_name
from memohop.outputs import listed as listed_names


def read_graph(
    nodes: TableLike, edges: TableLike | Sequence[TableLike], *, label: str | None, **options: Any
) -> OwnGraph:
    """A graph from a table of nodes and one or more tables of edges.

    A table is the path of a CSV or TSV file (also compressed as ``.gz``, with a first line of
    column names, separated by comma, tab, semicolon or bar) or of a Parquet file, or a table of
    pyarrow, pandas or polars. :class:`ColumnEncoder` turns columns into features. In a text file a
    value that is empty, NA, N/A, NaN or null is missing. Repeated edges count once, or add up their
    weights, and edges from a node to itself are kept.

    Args:
        nodes: One row for each node: its id, its label, and columns that become features.
        edges: One row for each edge; a list of tables with the same columns is read as one. Columns
            that are not used are named in a warning.
        label: The column of ``nodes`` with the labels, empty where they are to be predicted. With
            an ``encoder`` it may be None or a column that is not there: no node has a label then.
        **options: Which column is for what, and how columns are read: the other arguments of
            :class:`~memohop.data.tables.ReadOptions`.

    Example:
        >>> import memohop
        >>> nodes = {"id": ["a", "b", "c", "d", "e"], "size": [3, 1, 4, 1, 5]}
        >>> nodes["kind"] = ["big", "small", "big", "small", None]  # the last is to be predicted
        >>> edges = {"source": ["a", "b"], "target": ["b", "c"]}
        >>> graph = memohop.read_graph(nodes, edges, label="kind")  # or the names of two files
        >>> graph.data.num_nodes, graph.classes
        (5, ['big', 'small'])
    """
    how = ReadOptions(label=label, **options)
    if label is None and how.encoder is None:
        raise UsageError("label=None: name the column of the node table with the classes")
    several = isinstance(edges, list | tuple)
    if several and not edges:
        raise UsageError("edges is an empty list; give at least one table")
    node_table = open_table(nodes, "nodes", how.encoding)
    edge_tables = [
        open_table(table, f"edges[{index}]" if several else "edges", how.encoding)
        for index, table in enumerate(edges if several else [edges])
    ]
    roles = find_roles(node_table, edge_tables[0], how)
    read = [*roles.ends, *([] if roles.weight is None else [roles.weight])]
    for other in edge_tables[1:]:
        absent = [name for name in read if name not in other.columns]
        if absent:
            raise DataError(
                f"{other.name} has no column {absent[0]!r}, which {roles.edges.name} has; give "
                "tables of edges with the same columns"
            )

    text_names = [] if how.encoder is None else how.encoder.text_names
    kept = [name for name in node_table.columns if name not in roles.dropped]
    table = node_table.read(kept, text=[*roles.spelled, *text_names])
    ids = node_ids(table[roles.id], roles.id, node_table.name)
    described = describe_nodes(
        table.drop_columns([roles.id]),
        roles.label,
        how.encoder,
        how.classes,
        task=how.task,
        readings=roles.readings,
        roles=roles.sets,
    )
    del table  # to make room for the edges
    pa.default_memory_pool().release_unused()
    listed, warnings = [], [*node_table.warnings]
    for edge_table in edge_tables:
        table = edge_table.read(read, text=roles.ends)
        check_header(roles.ends, ids, edge_table.name)
        listed.append(
            locate(
                table,
                ids,
                drop_unknown=how.drop_unknown,
                weight=roles.weight,
                name=edge_table.name,
            )
        )
        del table
        more = [name for name in edge_table.columns if name not in read]
        prefix = f"{edge_table.name}: "
        warnings += edge_table.warnings
        warnings += unused(more, "column", prefix, weighted=roles.weight is not None)
        warnings += listed[-1].warnings
    links = join(listed, nodes=len(ids), directed=how.directed, origin=roles.edges.name)
    return own_graph(
        described,
        links.arcs,
        plain_ids(ids),
        directed=links.directed,
        weight=links.weight,
        notes=(
            *node_table.notes,
            *(note for edge_table in edge_tables for note in edge_table.notes),
            f"{len(ids)} nodes, column {roles.id!r} is their id",
            *([f"dropped as asked: {listed_names(roles.dropped)}"] if roles.dropped else []),
            *links.notes,
        ),
        warnings=warnings,
        reading=read_alike(vars(how)),
    )


def from_networkx(
    graph: Any,
    *,
    label: str | None,
    weight: str | None = None,
    task: Literal["auto"] | Task = "auto",
    encoder: ColumnEncoder | None = None,
    classes: Sequence[Class] | None = None,
) -> OwnGraph:
    """A graph from a NetworkX graph; its node attributes are the columns.

    Args:
        graph: A ``Graph`` or ``DiGraph``; its direction is kept, and parallel edges count once, or
            with the sum of their weights.
        label: The attribute with the labels; nodes without it are to be predicted.
        weight: The edge attribute with the weights, numbers from 0 on.
        task: Whether the labels are classes or numbers, as for :func:`read_graph`.
        encoder: The encoder of an earlier graph with the same attributes.
        classes: The classes of that earlier graph.

    Example:
        >>> import networkx
        >>> from memohop.data.tables import from_networkx
        >>> club = networkx.karate_club_graph()
        >>> from_networkx(club, label="club").data.num_nodes
        34
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
    found = describe_nodes(table, label, encoder, classes, task=task)
    position = {node: row for row, node in enumerate(nodes)}
    pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64)
    (begin, end), directed = pairs.reshape(-1, 2).T, graph.is_directed()
    arcs = merge_arcs(begin, end, nodes=len(nodes), both_ways=not directed, origin="graph")
    weights = None
    if weight is not None:
        listed = [value for *_, value in graph.edges(data=weight)]
        values = _checked_weights(listed, f"the edge attribute {weight!r}")
        weights = sum_weights(arcs, begin, end, values, nodes=len(nodes), directed=directed)
    names = {str(name) for *_, edge in graph.edges(data=True) for name in edge if name != weight}
    return own_graph(
        found,
        arcs,
        id_array(nodes),
        directed=directed,
        weight=weights,
        warnings=unused(sorted(names), "attribute", weighted=weight is not None),
        reading={"label": label, "id": None, "source": None, "target": None, "weight": weight},
    )


def from_arrays(
    adjacency: Any,
    features: Any,
    labels: Any = None,
    *,
    directed: bool = False,
    weighted: bool = False,
    task: Literal["auto"] | Task = "auto",
    ids: Sequence[Hashable] | None = None,
    classes: Sequence[Class] | None = None,
) -> OwnGraph:
    """A graph from a SciPy matrix and NumPy arrays.

    Args:
        adjacency: A sparse or dense matrix; an entry that is not 0 in row ``u`` and column ``v`` is
            an edge from ``u`` to ``v``.
        features: One row of numbers for each node, sparse or dense, used as they are.
        labels: One label for each node. Nodes with a negative class, NaN or None are to be
            predicted; without labels, all nodes are.
        directed: Keep the direction of the edges; otherwise there is an arc each way.
        weighted: Take the entries of the matrix as weights; otherwise all edges count alike.
        task: Whether the labels are classes or numbers, as for :func:`read_graph`.
        ids: The ids of the nodes; their numbers by default.
        classes: The classes of an earlier graph, to keep their numbers.

    Example:
        >>> import numpy as np
        >>> from memohop.data.tables import from_arrays
        >>> ring = np.roll(np.eye(4), 1, axis=1)
        >>> graph = from_arrays(ring, features=np.eye(4), labels=[0, 1, 0, -1])
        >>> graph.data.num_nodes, tuple(graph.data.edge_index.shape)
        (4, (2, 8))
    """
    matrix = sparse.coo_array(adjacency)
    x = sparse.csr_array(features) if sparse.issparse(features) else np.asarray(features)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise UsageError(
            f"features has shape {list(x.shape)} and type {x.dtype}; give numbers of shape "
            "[nodes, features]"
        )
    nodes = x.shape[0]
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
    found = no_labels(nodes, classes, task)
    if labels is not None:
        column = _label_column(labels, negative=task == "numbers")
        found = read_labels(column, "labels", task, classes)
    arcs = merge_arcs(source, target, nodes=nodes, both_ways=not directed, origin="adjacency")
    weights, warnings = None, []
    if weighted:
        values = _checked_weights(matrix.data, "adjacency")
        weights = sum_weights(arcs, source, target, values, nodes=nodes, directed=directed)
    elif np.unique(matrix.data).size > 1:
        warnings = ["the weights of the edges are not used; weighted=True uses them"]
    return own_graph(
        Described(as_features(x), found),
        arcs,
        np.arange(nodes) if ids is None else id_array(ids),
        directed=directed,
        weight=weights,
        warnings=warnings,
    )


def _checked_weights(listed: Any, where: str) -> NDArray[np.float64]:
    """Weights of edges as numbers; a ``UsageError`` if one cannot be a weight."""
    try:
        values = np.asarray(listed, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{where} has weights that are no numbers ({error}); give numbers"
        ) from error
    wrong = np.flatnonzero(~(values >= 0) | (values > LARGEST_WEIGHT))
    if wrong.size:
        raise UsageError(
            f"{where} has {wrong.size} weight(s) that are missing, negative or too large, such as "
            f"{values[wrong[0]]:g}; give every edge a number from 0 to {LARGEST_WEIGHT:g}"
        )
    return values


def _attribute(graph: Any, name: str) -> pa.Array:
    try:
        return pa.array([found.get(name) for _, found in graph.nodes(data=True)], from_pandas=True)
    except pa.ArrowException as error:
        raise DataError(
            f"the node attribute {name!r} has values of several types ({error}); give it one type"
        ) from error


def _label_column(labels: Any, *, negative: bool) -> pa.ChunkedArray:
    """Labels as a column; a negative whole number is missing unless it may be one to predict."""
    try:
        column = pa.chunked_array([pa.array(np.asarray(labels), from_pandas=True)])
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(
            f"labels is not a list of labels of one type ({error}); give one string or whole "
            "number for each node"
        ) from error
    if pa.types.is_signed_integer(column.type) and not negative:
        column = pc.if_else(pc.less(column, 0), pa.scalar(None, column.type), column)
    return column
