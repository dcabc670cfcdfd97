"""Reads the archives of Platonov et al.: the Wikipedia graphs and their own five."""

from __future__ import annotations

from pathlib import Path

from memohop.data.assemble import graph_data, mask_columns, merge_arcs
from memohop.data.datasets.npz import as_masks, read_npz
from memohop.errors import DataError
from memohop.pyg import Data

_NAMES = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


def read_platonov(path: Path, *, directed: bool) -> Data:
    """The graph in an archive.

    An archive of a directed graph holds its arcs. That of an undirected graph holds every edge
    once, and both of its arcs are returned.
    """
    features, labels, edges, *masks = read_npz(path, _NAMES)
    nodes = len(labels) if labels.ndim == 1 else -1
    if (
        features.ndim != 2
        or len(features) != nodes
        or features.dtype.kind not in "fiub"
        or labels.dtype.kind not in "iu"
        or edges.shape[1:] != (2,)
        or edges.dtype.kind not in "iu"
        or masks[0].ndim != 2
    ):
        shapes = ", ".join(
            f"{array.dtype}{list(array.shape)}" for array in (features, labels, edges)
        )
        raise DataError(
            f"{path} holds features, labels and edges as {shapes}: no graph; fetch it again"
        )
    train, val, test = as_masks(path, masks, shape=(len(masks[0]), nodes))
    source, target = edges.astype("int64").T
    arcs = merge_arcs(source, target, nodes=nodes, both_ways=not directed, origin=path)
    return graph_data(
        features, labels, arcs, (mask_columns(train), mask_columns(val), mask_columns(test))
    )
