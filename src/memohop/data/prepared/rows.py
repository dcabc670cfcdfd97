r"""Arcs sorted out of core: rows of the adjacency matrix, and the decision on their direction.

An edge from :math:`u` to :math:`v` becomes two keys, :math:`2(uN + v)` in the row of :math:`u` and
:math:`2(vN + u) + 1` in the row of :math:`v`. Keys go to files by ranges of rows; each file is then
sorted in RAM. Even keys, each once, are the arcs as listed, odd ones the same arcs reversed, and
both, halved, the arcs of the graph without a direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memohop.data.assemble import distinct
from memohop.data.prepared.arrays import ArrayFile
from memohop.data.tables.links import direction_of

_RANGES = 256  # of rows; as many files are open at once
MOST_NODES = 2**31 - 1
"""Nodes are numbered with 32 bits."""


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
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        self._nodes = nodes
        self._width = -(-nodes // _RANGES)
        self._paths = [folder / f"{start}.keys" for start in range(0, nodes, self._width)]
        self._files = [path.open("wb") for path in self._paths]
        self.edges = 0

    def close(self) -> None:
        """Close the files; the last edges are written then."""
        for file in self._files:
            file.close()

    def add(self, begin: NDArray[np.int32], end: NDArray[np.int32]) -> None:
        """Add edges between known nodes."""
        self.edges += len(begin)
        begins, ends, nodes = begin.astype(np.int64), end.astype(np.int64), self._nodes
        keys = np.concatenate((2 * (begins * nodes + ends), 2 * (ends * nodes + begins) + 1))
        keys.sort()
        first = np.minimum(np.arange(len(self._files) + 1) * self._width, nodes)
        bounds = np.searchsorted(keys, 2 * nodes * first)
        for file, (start, stop) in zip(self._files, pairwise(bounds), strict=True):
            if stop > start:
                file.write(keys[start:stop].data.cast("B"))

    def write(self, folder: Path, *, directed: bool | None) -> Sorted:
        """Sort everything, and write ``indptr`` and ``indices``, both ways if these differ.

        The files must be closed.

        Args:
            folder: Where to write ``out-indptr.npy`` and ``out-indices.npy``; of a directed graph
                also ``in-indptr.npy`` and ``in-indices.npy``.
            directed: Whether an edge is one arc, or one each way; None to have the edges decide.
        """
        listed = either = loops = 0
        for path in self._paths:
            keys = distinct(np.fromfile(path, dtype=np.int64))
            with path.open("wb") as again:
                again.write(keys.data.cast("B"))
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
        if repeated := self.edges - edges:
            again_too = "" if directed else ", the other way round included"
            notes.append(f"{repeated} edge(s) come again{again_too}; each counts once")
        if loops:
            notes.append(f"{loops} edge(s) from a node to itself, kept")
        notes.append(f"{edges} edges, {'one arc for each' if directed else 'one arc each way'}")
        return Sorted(arcs, directed, notes)

    def _write_way(self, folder: Path, name: str, odd: int | None) -> int:
        """One matrix: of even keys, of odd ones, or of both."""
        with (
            ArrayFile(folder / f"{name}-indptr.npy", np.int64) as indptr,
            ArrayFile(folder / f"{name}-indices.npy", np.int32) as indices,
        ):
            indptr.append(np.zeros(1, dtype=np.int64))
            for start, keys in self._sorted():
                arcs = _once(keys // 2) if odd is None else keys[keys % 2 == odd] // 2
                rows, columns = np.divmod(arcs, self._nodes)
                here = min(self._width, self._nodes - start)
                degrees = np.bincount(rows - start, minlength=here)
                indptr.append(indices.rows + np.cumsum(degrees))
                indices.append(columns)
        return indices.rows

    def _sorted(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for number, path in enumerate(self._paths):
            yield number * self._width, np.fromfile(path, dtype=np.int64)


def _once(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers in order, each once."""
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]
