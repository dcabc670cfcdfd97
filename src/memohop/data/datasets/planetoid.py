"""Reads Cora, CiteSeer and PubMed: pickles that Python 2 wrote, read without trusting them."""

from __future__ import annotations

import collections
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memohop.data.assemble import Masks, graph_data, merge_arcs
from memohop.data.datasets.geom_gcn import read_geom_gcn_splits
from memohop.errors import DataError
from memohop.pyg import Data

_PUBLIC_VALIDATION = 500


class _SparseState:
    """Takes the attributes of a pickled ``csr_matrix``.

    SciPy's class would take them unchecked; :func:`_dense` gives them to its constructor.
    """

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    _shape: tuple[int, int]


def _dtype(name: str, align: int = 0, copy: int = 0) -> np.dtype[Any]:
    """``numpy.dtype`` as old pickles call it: with integer flags, which NumPy 2.4 deprecates."""
    return np.dtype(name, align=bool(align), copy=bool(copy))


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): np.ndarray,
    # Taken from an array, because the module of this function moves about.
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): _SparseState,
    ("scipy.sparse._csr", "csr_matrix"): _SparseState,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    """Admits the classes in the table under their old and new names, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in a dataset")
        return _ADMITTED[module, name]


def read_planetoid(folder: Path, name: str, *, splits: Sequence[Path] | None) -> Data:
    """The citation graph ``name``, undirected, without self-loops.

    CiteSeer has nodes that no file describes: they get no features and class 0, as in
    Geom-GCN's loader.

    Args:
        folder: Holds ``ind.NAME.allx`` and so on.
        name: ``cora``, ``citeseer`` or ``pubmed``.
        splits: Archives of Geom-GCN's splits, or None for the one public split of Planetoid
            with 20 training nodes of each class.
    """
    try:
        x, y, arcs, labelled, test = _read_graph(folder, name)
    except DataError:
        raise
    except Exception as error:  # a pickle can hold anything, so any step may fail
        raise DataError(
            f"{folder}/ind.{name}.* is not a Planetoid dataset: {error!r}; fetch it again"
        ) from error
    if splits is not None:
        return graph_data(x, y, arcs, read_geom_gcn_splits(splits, nodes=len(y)))
    return graph_data(x, y, arcs, _public_split(labelled, test, nodes=len(y)))


def _read_graph(
    folder: Path, name: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], int, NDArray[np.int64]]:
    """Features, labels, arcs, the size of the public training set, and the public test nodes."""

    def part(suffix: str) -> Any:
        with (folder / f"ind.{name}.{suffix}").open("rb") as file:
            return _Unpickler(file, encoding="latin1").load()

    known_x, known_y = _dense(part("allx")), part("ally")
    test_x, test_y = _dense(part("tx")), part("ty")
    graph = part("graph")
    test = np.array((folder / f"ind.{name}.test.index").read_text("ascii").split(), dtype=np.int64)
    nodes = len(graph)
    if sorted(graph) != list(range(nodes)) or np.unique(test).size != test.size:
        raise ValueError("its nodes are not numbered from 0")
    if test.min() < len(known_x):
        raise ValueError("some of its test nodes are described twice")
    if (len(known_x), len(test_x), len(test)) != (len(known_y), len(test_y), len(test_x)):
        raise ValueError("it does not have one label for every row of features")
    if known_y.shape[1:] != test_y.shape[1:]:
        raise ValueError("its labels are of two kinds")

    x = np.zeros((nodes, known_x.shape[1]), dtype=np.float32)
    one_hot = np.zeros((nodes, known_y.shape[1]), dtype=np.int64)
    x[: len(known_x)], x[test] = known_x, test_x
    one_hot[: len(known_y)], one_hot[test] = known_y, test_y

    pairs = [(node, other) for node, others in graph.items() for other in others if node != other]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    arcs = merge_arcs(
        source, target, nodes=nodes, both_ways=True, origin=folder / f"ind.{name}.graph"
    )
    return x, one_hot.argmax(axis=1), arcs, len(part("y")), test


def _dense(state: _SparseState) -> NDArray[Any]:
    matrix = csr_matrix((state.data, state.indices, state.indptr), shape=state._shape)
    matrix.check_format(full_check=True)
    return np.asarray(matrix.toarray())


def _public_split(labelled: int, test: NDArray[np.int64], *, nodes: int) -> Masks:
    """The files have the training nodes first, then 500 for validation, and list the test nodes."""
    train, val, held_out = (torch.zeros((nodes, 1), dtype=torch.bool) for _ in range(3))
    train[:labelled] = True
    val[labelled : labelled + _PUBLIC_VALIDATION] = True
    held_out[torch.from_numpy(test)] = True
    return train, val, held_out
