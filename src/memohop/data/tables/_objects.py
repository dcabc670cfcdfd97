"""A graph of your own from objects: of NetworkX, or arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import LARGEST_WEIGHT
from memohop.data.read_options import Class, ReadOptions, Task, read_alike
from memohop.data.sparse_features import as_matrix
from memohop.data.tables.column import is_mostly_zero
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import no_labels, read_labels
from memohop.data.tables.links import Links, unused
from memohop.data.tables.read import Described, OwnGraph, describe_nodes, own_graph
from memohop.errors import UsageError, unknown_name


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
    columns = {
        name: _column(
            [value for _, value in graph.nodes(data=name)],
            f"the node attribute {name!r} has values",
        )
        for name in attributes
    }
    # A table without columns would have no rows.
    table = pa.table(columns or {"": pa.nulls(len(nodes))})
    how = ReadOptions(label=label, weight=weight, task=task, encoder=encoder, classes=classes)
    described = describe_nodes(table, label, how)
    position = {node: row for row, node in enumerate(nodes)}
    pairs = np.array([(position[u], position[v]) for u, v in graph.edges()], dtype=np.int64)
    weights = None
    if weight is not None:
        given = [value for *_, value in graph.edges(data=weight)]
        weights = _checked_weights(given, f"the edge attribute {weight!r}")
    links = Links.of(
        pairs.reshape(-1, 2).T, weights, nodes=len(nodes), directed=graph.is_directed()
    )
    names = {str(name) for *_, edge in graph.edges(data=True) for name in edge if name != weight}
    return own_graph(
        described,
        links,
        _id_array(nodes),
        warnings=unused(sorted(names), "attribute", weighted=weight is not None),
        reading=read_alike(vars(how)),
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
    x: Any = sparse.csr_array(features) if sparse.issparse(features) else np.asarray(features)
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
    of_nodes = no_labels(nodes, classes, task)
    if labels is not None:
        column = _column(np.asarray(labels), "labels has values")
        if pa.types.is_signed_integer(column.type) and task != "numbers":
            column = pc.if_else(pc.less(column, 0), pa.scalar(None, column.type), column)
        of_nodes = read_labels(column, "labels", task, classes)
    warnings = []
    if not weighted and np.unique(matrix.data).size > 1:
        warnings = ["the weights of the edges are not used; weighted=True uses them"]
    if sparse.issparse(x) and is_mostly_zero(x.nnz, x.shape):
        x = as_matrix(x, torch.float32)
    else:
        x = np.ascontiguousarray(x.toarray() if sparse.issparse(x) else x, dtype=np.float32)
    return own_graph(
        Described(x, of_nodes),
        Links.of(
            np.stack(matrix.coords).astype(np.int64),
            _checked_weights(matrix.data, "adjacency") if weighted else None,
            nodes=nodes,
            directed=directed,
        ),
        np.arange(nodes) if ids is None else _id_array(ids),
        warnings=warnings,
    )


def _id_array(ids: Iterable[Hashable]) -> NDArray[Any]:
    """Ids as an array: ``int64`` if all are whole numbers, and objects otherwise.

    A string array of NumPy gives each string the room of the longest, and would turn a tuple into
    a row.
    """
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    whole = all(type(name) is int and abs(name) < 2**63 for name in names)
    return np.fromiter(names, dtype=np.int64 if whole else object, count=len(names))


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


def _column(values: Any, what: str) -> pa.ChunkedArray:
    """Values of one type as a column, null where they are None or NaN."""
    try:
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except (pa.ArrowException, ValueError) as error:
        raise UsageError(f"{what} of several types, or of none ({error}); give one type") from error
