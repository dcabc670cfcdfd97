"""Tables and NetworkX graphs: read for ``fit``, and others in the way that a model remembers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from memohop.data.tables import from_networkx, read_graph
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.options import find_column
from memohop.data.tables.own_graph import OwnGraph
from memohop.data.tables.sources import open_table
from memohop.errors import UsageError
from memohop.fit.inputs import Given, as_given

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

_WEIGHT = "weight"  # the attribute of edges that NetworkX itself takes for their weight


def read_given(
    x: Any, y: Any, edges: Any, model: GraphEstimator | None = None, *, append: bool = False
) -> Given:
    """A graph in any form; tables and a NetworkX graph are read.

    Args:
        x: The graph, or its features, or its table of nodes.
        y: The targets, or the name of the column or attribute that holds them.
        edges: Arcs or tables of edges, if ``x`` is not the whole graph.
        model: A fitted model, to read tables and attributes as it remembers; None for ``fit``.
        append: Whether they are new nodes in the graph of ``fit``.
    """
    if model is None:
        if _is_networkx(x):
            x, y = _read_networkx(x, y), None
        elif _are_tables(edges):
            raise UsageError(
                "edges is a table; read it together with that of the nodes, and give the result: "
                "fit(memohop.read_graph(nodes, edges, label=...))"
            )
    elif _is_networkx(x) or _are_tables(edges):
        label = {"label": y} if isinstance(y, str) else {}
        x = read_new_nodes(model, x, edges) if append else read_again(model, x, edges, **label)
        y, edges = None if label else y, None
    return as_given(x, y, edges)


def _is_networkx(graph: Any) -> bool:
    """Whether it is a graph of NetworkX, which is then imported already."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(graph, networkx.Graph)


def _read_networkx(graph: Any, label: Any) -> OwnGraph:
    """A NetworkX graph for ``fit``.

    Args:
        graph: The graph. An attribute ``weight`` of its edges is their weight.
        label: The name of the node attribute with the labels.
    """
    if not isinstance(label, str):
        raise UsageError(
            f"y={label!r}: X is a NetworkX graph; give the name of the node attribute with the "
            "labels, such as y='club'"
        )
    weighted = any(_WEIGHT in edge for *_, edge in graph.edges(data=True))
    return from_networkx(graph, label=label, weight=_WEIGHT if weighted else None)


def _are_tables(edges: Any) -> bool:
    """Whether edges are a table or a path, or a list of them, and not numbers of nodes."""
    if isinstance(edges, list | tuple):
        return bool(edges) and all(map(_are_tables, edges))
    return isinstance(edges, str | os.PathLike | Mapping) or any(
        hasattr(edges, name) for name in ("columns", "__arrow_c_stream__")
    )


def read_again(model: GraphEstimator, nodes: Any, edges: Any = None, **changes: Any) -> OwnGraph:
    """A graph from tables, or from NetworkX, as that of ``fit`` was read.

    Args:
        model: A fitted model.
        nodes: The table of nodes, or a NetworkX graph.
        edges: The tables of edges.
        **changes: Other options of :func:`~memohop.read_graph` than those of ``fit``.
    """
    how = how_to_read(model) | changes
    if _is_networkx(nodes):
        tables_only = ("id", "source", "target", "directed", "encoding")
        return from_networkx(nodes, **{k: v for k, v in how.items() if k not in tables_only})
    return read_graph(nodes, edges, **how)


def how_to_read(model: GraphEstimator) -> dict[str, Any]:
    """The arguments of :func:`~memohop.read_graph` that read tables as those of ``fit``."""
    if model.encoder_ is None or model.reading_ is None:
        raise UsageError(
            "this model was fitted on arrays, not on tables; predict from Python, with features "
            "and edges as arrays"
        )
    classes = getattr(model, "classes_", np.empty(0)).tolist()
    return {**model.reading_, "encoder": model.encoder_, "classes": classes}


def read_new_nodes(
    model: GraphEstimator, nodes: Any, edges: Any, *, drop_unknown: bool = False, **changes: Any
) -> OwnGraph:
    """Tables of new nodes in the graph of ``fit``, whose nodes the arcs count first.

    Args:
        model: A fitted model.
        nodes: The table of the new nodes.
        edges: The tables of edges between them, and between them and the nodes of ``fit``.
        drop_unknown: Leave out edges that name a node in neither.
        **changes: Other options of :func:`~memohop.read_graph` than those of ``fit``.
    """
    model.own_graph()
    reading = (model.reading_ or {}) | changes
    table = open_table(nodes, "nodes", reading.get("encoding"))
    id = find_column(table, "id", reading.get("id"))
    first = table.read([id], text=[id])[id][:1]
    alone = pa.table({"source": first, "target": first})  # edges are read below
    without_ends = {"source": None, "target": None, "weight": None}
    new = read_again(model, nodes, alone, **changes | without_ends)
    old = {str(node) for node in model.ids_}
    if known := [node for node in map(str, new.ids) if node in old]:
        raise UsageError(
            f"{len(known)} of the {len(new.ids)} nodes in {table.name}, such as {known[0]!r}, are "
            "in the graph of the model; leave them out, or predict without append"
        )
    everyone = {"id": [str(node) for node in (*model.ids_, *new.ids)]}
    joined = read_graph(
        everyone,
        edges,
        drop_unknown=drop_unknown,
        encoder=ColumnEncoder(()),
        **reading | {"label": None, "id": "id"},
    )
    data = copy(joined.data)  # its arcs, and their weights
    data.x, data.y = new.data.x, new.data.y
    return replace(new, data=data, notes=(*new.notes, *joined.warnings))
