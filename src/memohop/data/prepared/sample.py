"""A part of a prepared graph that fits in RAM, for a look at it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memohop.data.prepared.reading import Prepared, Rows
from memohop.data.tables.labels import Labels
from memohop.data.tables.links import Links
from memohop.data.tables.read import Described, OwnGraph, own_graph

_NODES, _ARCS = 1_000_000, 10_000_000  # of a graph that is taken whole
_CENTRES = 5_000
_NEIGHBOURS = 50  # of a centre, at most


def sample(graph: Prepared) -> tuple[OwnGraph, str | None]:
    """The whole graph if it is small, and otherwise random nodes with neighbours.

    A sample consists of 5,000 random nodes with a label (of any nodes if fewer have one), at most
    50 random neighbours of each in either direction, and all arcs between these.

    Returns:
        The graph, and a remark on the sample; None if it is whole.
    """
    if graph.nodes <= _NODES and graph.arcs <= _ARCS:
        return graph.in_ram(), None
    generator = np.random.default_rng(0)
    labelled = np.flatnonzero(graph.y >= 0 if graph.task == "classes" else np.isfinite(graph.y))
    among = labelled if len(labelled) >= _CENTRES else np.arange(graph.nodes)
    centres = generator.choice(among, min(_CENTRES, len(among)), replace=False)
    near = [_some_neighbours(way, node, generator) for node in centres for way in _ways(graph)]
    kept = np.unique(np.concatenate([centres, *near]))
    arcs = _arcs_between(graph.out, kept)
    labels = Labels(np.array(graph.y[kept]), graph.classes, [], [], graph.task)
    ids = np.asarray(graph.ids.take(kept).to_numpy(zero_copy_only=False))
    x = graph.x[kept] if graph.manifest.sparse else np.array(graph.x[kept])
    found = own_graph(
        Described(x, labels, graph.encoder), Links(arcs, directed=graph.directed), ids
    )
    return found, (
        f"the graph has {graph.nodes} nodes and {graph.arcs} arcs; these figures are those of a "
        f"sample, {len(centres)} random nodes with up to {_NEIGHBOURS} neighbours each: "
        f"{len(kept)} nodes and {arcs.shape[1]} arcs. Nodes have fewer neighbours there"
    )


def _ways(graph: Prepared) -> list[Rows]:
    return [graph.out, graph.into] if graph.directed else [graph.out]


def _some_neighbours(rows: Rows, node: int, generator: np.random.Generator) -> NDArray[np.int32]:
    start, end = rows.indptr[node], rows.indptr[node + 1]
    if end - start <= _NEIGHBOURS:
        return np.array(rows.indices[start:end])
    drawn = generator.choice(end - start, _NEIGHBOURS, replace=False)
    return np.array(rows.indices[start + drawn])


def _arcs_between(rows: Rows, kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """The arcs between some nodes, in ascending order, numbered among these."""
    found = []
    for number, node in enumerate(kept):
        targets = np.array(rows.indices[rows.indptr[node] : rows.indptr[node + 1]])
        index = np.minimum(np.searchsorted(kept, targets), len(kept) - 1)
        inside = index[kept[index] == targets]
        found.append(np.stack([np.full(len(inside), number), inside]))
    return np.concatenate(found, axis=1).astype(np.int64)
