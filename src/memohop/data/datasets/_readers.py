"""Reads the published files: of Geom-GCN, of Planetoid, and of Platonov et al.

Nothing is checked here: :mod:`memohop.data.datasets.fetch` has made sure, by their SHA-256, that
these are the published files.
"""

from __future__ import annotations

import collections
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memohop.data.arcs import graph_data, merge_arcs
from memohop.data.splits import Sets
from memohop.pyg import Data

_PUBLIC_VALIDATION = 500
_PARTS = ("train", "val", "test")


def read_geom_gcn(folder: Path, splits: Sequence[Path], *, words: int | None = None) -> Data:
    """The graph in ``folder``: directed, with the self-loops of the file, duplicates merged.

    Each split is an archive of three masks. If ``words``, the length of the vocabulary, is given,
    the file lists the words of each node by number (as Actor's does). Otherwise it has a zero or
    one for every word.
    """
    # Each in the row of its node: Actor's file is in another order.
    rows = sorted(
        fields_of(folder / "out1_node_feature_label.txt"), key=lambda fields: int(fields[0])
    )
    values = [np.array(features.split(","), dtype=np.int64) for _, features, _ in rows]
    x = np.zeros((len(rows), len(values[0]) if words is None else words), dtype=np.float32)
    for node, of_node in enumerate(values):
        x[node, np.flatnonzero(of_node) if words is None else of_node] = 1
    y = np.array([int(label) for *_, label in rows])
    pairs = np.array(fields_of(folder / "out1_graph_edges.txt"), dtype=np.int64).reshape(-1, 2)
    return graph_data(x, y, merge_arcs(*pairs.T, nodes=len(y)), _geom_gcn_splits(splits))


def fields_of(path: Path) -> list[list[str]]:
    """The fields of every line of a file of Geom-GCN, except the header."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def _geom_gcn_splits(paths: Sequence[Path]) -> Sets:
    """The splits in these archives, in that order."""
    names = [f"{part}_mask" for part in _PARTS]
    return np.stack([_read_npz(path, names) for path in paths], axis=-1).astype(bool)


def _read_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays with these names."""
    with np.load(path, allow_pickle=False) as archive:
        return [archive[name] for name in names]


class _SparseState:
    """Takes the attributes of a pickled ``csr_matrix``, whose class has changed since."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    _shape: tuple[int, int]

    def dense(self) -> NDArray[Any]:
        """The matrix."""
        parts = self.data, self.indices, self.indptr
        return np.asarray(csr_matrix(parts, shape=self._shape).toarray())


def _dtype(name: str, align: int = 0, copy: int = 0) -> np.dtype[Any]:
    """``numpy.dtype`` as old pickles call it: with integer flags, which NumPy 2.4 deprecates."""
    return np.dtype(name, align=bool(align), copy=bool(copy))


_ADMITTED: dict[str, Any] = {
    "dtype": _dtype,
    "ndarray": np.ndarray,
    "_reconstruct": np.empty(0).__reduce__()[0],  # of an array: its module moves about
    "csr_matrix": _SparseState,
    "defaultdict": collections.defaultdict,
    "list": list,
}


class _Unpickler(pickle.Unpickler):
    """Makes what is in the table, whatever module a pickle takes it from, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a dataset")
        return _ADMITTED[name]


def read_planetoid(folder: Path, name: str, *, splits: Sequence[Path] | None) -> Data:
    """The graph in the files ``ind.NAME.allx`` and so on: undirected, without self-loops.

    CiteSeer has nodes that no file describes: they get no features and class 0, as in Geom-GCN's
    loader. The splits are Geom-GCN's, or None for the one public split of Planetoid with 20
    training nodes of each class.
    """

    def part(suffix: str) -> Any:
        """A pickle that Python 2 wrote."""
        with (folder / f"ind.{name}.{suffix}").open("rb") as file:
            return _Unpickler(file, encoding="latin1").load()

    known_x, test_x, graph = part("allx").dense(), part("tx").dense(), part("graph")
    known_y, test_y = part("ally"), part("ty")
    test = np.array((folder / f"ind.{name}.test.index").read_text("ascii").split(), dtype=np.int64)
    nodes = len(graph)
    x = np.zeros((nodes, known_x.shape[1]), dtype=np.float32)
    one_hot = np.zeros((nodes, known_y.shape[1]), dtype=np.int64)
    x[: len(known_x)], x[test] = known_x, test_x
    one_hot[: len(known_y)], one_hot[test] = known_y, test_y
    pairs = [(node, other) for node, others in graph.items() for other in others if node != other]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    arcs = merge_arcs(*ends, nodes=nodes, both_ways=True)
    if splits is not None:
        sets = _geom_gcn_splits(splits)
    else:  # the files have the training nodes first, and then those for validation
        labelled = len(part("y"))
        sets = np.zeros((3, nodes, 1), dtype=bool)
        sets[0, :labelled] = True
        sets[1, labelled : labelled + _PUBLIC_VALIDATION] = True
        sets[2, test] = True
    return graph_data(x, one_hot.argmax(axis=1), arcs, sets)


def read_platonov(path: Path, *, directed: bool) -> Data:
    """The graph in an archive.

    An archive of a directed graph holds its arcs. That of an undirected graph holds every edge
    once, and both of its arcs are returned.
    """
    names = ["node_features", "node_labels", "edges", *(f"{part}_masks" for part in _PARTS)]
    features, labels, edges, *masks = _read_npz(path, names)
    arcs = merge_arcs(*edges.astype(np.int64).T, nodes=len(labels), both_ways=not directed)
    return graph_data(features, labels, arcs, np.stack([mask.T for mask in masks]))
