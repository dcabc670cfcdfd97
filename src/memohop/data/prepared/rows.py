r"""Arcs sorted out of core: rows of the adjacency matrix, and the decision on their direction.

An edge from :math:`u` to :math:`v` becomes two keys, :math:`2(uN + v)` in the row of :math:`u` and
:math:`2(vN + u) + 1` in the row of :math:`v`. Keys go to files by ranges of rows; each file is then
sorted in RAM. Even keys, each once, are the arcs as listed, odd ones the same arcs reversed, and
both, halved, the arcs of the graph without a direction. If edges have weights, each key has one
beside it, and those of equal keys are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from memohop.data.arcs import distinct
from memohop.data.prepared.arrays import ArrayFile
from memohop.data.tables.links import direction_of

_RANGES = 256  # of rows; as many files are open at once
MOST_NODES = 2**31 - 1
"""Nodes are numbered with 32 bits."""
_RECORD = np.dtype([("key", np.int64), ("weight", np.float64)])

Keys = NDArray[np.int64]
Weights = NDArray[np.float64]


class Sorted(NamedTuple):
    """What became of the edges.

    Attributes:
        arcs: The number of arcs.
        directed: Whether an edge is one arc, or one each way.
        notes: What was done.
    """

    arcs: int
    directed: bool
    notes: list[str]


class ArcFiles:
    """Keys of arcs, in files by ranges of rows.

    Args:
        folder: Where the files are, an empty folder.
        nodes: The number of nodes.
        weighted: Whether edges have weights.
    """

    def __init__(self, folder: Path, nodes: int, *, weighted: bool = False) -> None:
        self._nodes, self._weighted = nodes, weighted
        self._least, self._most = np.inf, -np.inf  # of the weights
        self._same_both_ways = True
        self._width = -(-nodes // _RANGES)
        self._paths = [folder / f"{start}.keys" for start in range(0, nodes, self._width)]
        self._files = [path.open("wb") for path in self._paths]
        self.edges = 0

    def close(self) -> None:
        """Close the files; the last edges are written then."""
        for file in self._files:
            file.close()

    def add(
        self, begin: NDArray[np.int32], end: NDArray[np.int32], weight: Weights | None = None
    ) -> None:
        """Add edges between known nodes, with their weights if edges have some."""
        self.edges += len(begin)
        begins, ends, nodes = begin.astype(np.int64), end.astype(np.int64), self._nodes
        keys = np.concatenate((2 * (begins * nodes + ends), 2 * (ends * nodes + begins) + 1))
        weights = None
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys)
            keys, weights = keys[order], np.tile(weight, 2)[order]
            self._least = min(self._least, weight.min(initial=np.inf))
            self._most = max(self._most, weight.max(initial=-np.inf))
        rows = _rows(keys, weights)
        first = np.minimum(np.arange(len(self._files) + 1) * self._width, nodes)
        bounds = np.searchsorted(keys, 2 * nodes * first)
        for file, (start, stop) in zip(self._files, pairwise(bounds), strict=True):
            if stop > start:
                file.write(rows[start:stop].data)

    def write(self, folder: Path, *, directed: bool | None) -> Sorted:
        """Sort everything, and write ``indptr`` and ``indices``, both ways if these differ.

        The files must be closed. Weights are written beside them, in the order of the indices, and
        add up as :func:`~memohop.data.tables.links.Links.of` says.

        Args:
            folder: Where to write ``out-indptr.npy`` and ``out-indices.npy``; of a directed graph
                also ``in-indptr.npy`` and ``in-indices.npy``.
            directed: Whether an edge is one arc, or one each way; None to have the edges decide.
        """
        listed = either = loops = 0
        for path in self._paths:
            keys, weights = self._read(path)
            if weights is None:
                keys = distinct(keys)
            else:
                keys, weights = _added_up(keys, weights)
                self._same_both_ways &= np.array_equal(*_both_ways(keys, weights))
            with path.open("wb") as again:
                again.write(_rows(keys, weights).data)
            arcs = keys[keys % 2 == 0] // 2
            here = int((arcs // self._nodes == arcs % self._nodes).sum())
            loops += here
            listed += len(arcs) - here
            either += len(_once(keys // 2)) - here
        notes = []
        if directed is None:
            directed, note = direction_of(listed, either)
            notes.append(note)
        ways = {"out": 0, "in": 1} if directed else {"out": None}
        arcs = sum(self._write_way(folder, name, odd) for name, odd in ways.items()) // len(ways)
        edges = arcs if directed else (arcs + loops) // 2
        if self._weighted and self.edges:
            notes.append(f"weights of edges from {self._least:g} to {self._most:g}")
        if repeated := self.edges - edges:
            again_too = "" if directed else ", the other way round included"
            effect = "their weights add up" if self._weighted else "each counts once"
            notes.append(f"{repeated} edge(s) come again{again_too}; {effect}")
        if loops:
            notes.append(f"{loops} edge(s) from a node to itself, kept")
        notes.append(f"{edges} edges, {'one arc for each' if directed else 'one arc each way'}")
        return Sorted(arcs, directed, notes)

    def _write_way(self, folder: Path, name: str, odd: int | None) -> int:
        """One matrix: of even keys, of odd ones, or of both."""
        with ExitStack() as files:

            def opened(part: str, kind: DTypeLike) -> ArrayFile:
                return files.enter_context(ArrayFile(folder / f"{name}-{part}.npy", kind))

            indptr, indices = opened("indptr", np.int64), opened("indices", np.int32)
            of_arcs = opened("weights", np.float32) if self._weighted else None
            indptr.append(np.zeros(1, dtype=np.int64))
            for start, keys, weights in self._sorted():
                arcs = _once(keys // 2) if odd is None else keys[keys % 2 == odd] // 2
                rows, columns = np.divmod(arcs, self._nodes)
                here = min(self._width, self._nodes - start)
                degrees = np.bincount(rows - start, minlength=here)
                indptr.append(indices.rows + np.cumsum(degrees))
                indices.append(columns)
                if of_arcs is not None and weights is not None:
                    if odd is None:
                        listed, back = _both_ways(keys, weights)
                        if not self._same_both_ways:
                            listed += np.where(rows == columns, 0, back)
                    else:
                        listed = weights[keys % 2 == odd]
                    of_arcs.append(listed)
        return indices.rows

    def _sorted(self) -> Iterator[tuple[int, Keys, Weights | None]]:
        for number, path in enumerate(self._paths):
            yield number * self._width, *self._read(path)

    def _read(self, path: Path) -> tuple[Keys, Weights | None]:
        if not self._weighted:
            return np.fromfile(path, dtype=np.int64), None
        records = np.fromfile(path, dtype=_RECORD)
        return records["key"], records["weight"]


def _rows(keys: Keys, weights: Weights | None) -> NDArray[np.uint8]:
    """Keys, with weights or without, as the bytes of each."""
    records: NDArray[Any] = keys
    if weights is not None:
        records = np.empty(len(keys), dtype=_RECORD)
        records["key"], records["weight"] = keys, weights
    return records.view(np.uint8).reshape(len(keys), records.itemsize)


def _once(ordered: Keys) -> Keys:
    """Numbers in order, each once."""
    return ordered[_are_first(ordered)]


def _are_first(ordered: Keys) -> NDArray[np.bool_]:
    return np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]


def _added_up(keys: Keys, weights: Weights) -> tuple[Keys, Weights]:
    """Keys in order, each once, with the sum of its weights, in whatever order these came."""
    order = np.lexsort((weights, keys))
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(_are_first(keys))
    return keys[first], np.add.reduceat(weights, first) if len(first) else weights


def _both_ways(keys: Keys, weights: Weights) -> tuple[Weights, Weights]:
    """For each arc of the graph without a direction, its weight as listed, and the other way."""
    arcs = _once(keys // 2)
    found = np.zeros((2, len(arcs)))
    found[keys % 2, np.searchsorted(arcs, keys // 2)] = weights
    return found[0], found[1]
