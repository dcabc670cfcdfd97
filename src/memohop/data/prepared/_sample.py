"""A part of a prepared graph that fits in RAM, for a look at it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memohop.data.prepared._reading import Neighbours, Prepared
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
    ways = [graph.out, graph.into] if graph.directed else [graph.out]
    near = [_some_neighbours(way, node, generator) for node in centres for way in ways]
    kept = np.unique(np.concatenate([centres, *near]))
    arcs = np.stack(graph.out.matrix(kept, unit=None)[:, kept].nonzero()).astype(np.int64)
    labels = Labels(np.array(graph.y[kept]), graph.classes, [], [], graph.task)
    drawn = own_graph(
        Described(graph.x[kept], labels, graph.encoder),
        Links(arcs, directed=graph.directed),
        np.asarray(graph.ids.take(kept).to_numpy(zero_copy_only=False)),
    )
    return drawn, (
        f"the graph has {graph.nodes} nodes and {graph.arcs} arcs; these figures are those of a "
        f"sample, {len(centres)} random nodes with up to {_NEIGHBOURS} neighbours each: "
        f"{len(kept)} nodes and {arcs.shape[1]} arcs. Nodes have fewer neighbours there"
    )


def _some_neighbours(
    rows: Neighbours, node: int, generator: np.random.Generator
) -> NDArray[np.int32]:
    start, end = rows.indptr[node : node + 2]
    if end - start <= _NEIGHBOURS:
        return np.array(rows.indices[start:end])
    drawn = generator.choice(end - start, _NEIGHBOURS, replace=False)
    return np.array(rows.indices[start + drawn])
