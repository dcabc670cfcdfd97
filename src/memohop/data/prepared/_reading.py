"""A prepared graph, read from the disk where it is used."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import psutil
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import in_unit
from memohop.data.prepared._arrays import map_array
from memohop.data.prepared._checking import checked
from memohop.data.prepared._folder import Manifest, file_name
from memohop.data.read_options import read_alike
from memohop.data.splits import OwnSplit
from memohop.data.tables.column import Matrix
from memohop.data.tables.labels import Labels
from memohop.data.tables.links import Links
from memohop.data.tables.read import Described, OwnGraph, own_graph
from memohop.errors import DataError, UsageError

GIVE_WORKERS = "free some, or give workers, each of which holds a part of it"
"""What to do with a graph that does not fit, where workers are an option."""

_FREE_SOME = "free some, or use a machine with more"
_OF_FREE = 0.8  # share of the free RAM that a graph may take
_WHOLE_NODES, _WHOLE_ARCS = 1_000_000, 10_000_000  # of a graph that a sample has whole
_CENTRES = 5_000
_NEIGHBOURS = 50  # of a centre, at most


class Neighbours(NamedTuple):
    """Those of node ``u`` are ``indices[indptr[u]:indptr[u + 1]]``, in ascending order.

    Attributes:
        indptr: ``int64``, ``[nodes + 1]``.
        indices: ``int32``, ``[arcs]``.
        weights: ``float32``, ``[arcs]``, of these arcs; None if edges have no weights.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32] | None = None

    def matrix(
        self, nodes: slice | NDArray[np.int64], unit: float | None = 1.0
    ) -> sparse.csr_array:
        """The rows of some nodes in RAM, ``[rows, nodes]``; entries are weights, or else 1.

        Args:
            nodes: Which nodes.
            unit: The number by which weights are divided; None if none count.
        """
        if isinstance(nodes, slice):
            bounds = np.array(self.indptr[nodes.start : nodes.stop + 1])
            places: Any = slice(bounds[0], bounds[-1])
        else:
            starts, counts = self.indptr[nodes], self.indptr[nodes + 1] - self.indptr[nodes]
            bounds = np.concatenate(([0], counts.cumsum()))
            places = np.repeat(starts - bounds[:-1], counts) + np.arange(bounds[-1])
        indices = np.array(self.indices[places])
        values = None if self.weights is None else in_unit(np.array(self.weights[places]), unit)
        if values is None:
            values = np.ones(len(indices), dtype=np.float32)
        shape = len(bounds) - 1, len(self.indptr) - 1
        return sparse.csr_array((values, indices, (bounds - bounds[0]).astype(np.int32)), shape)


class Prepared(Manifest, frozen=True, kw_only=True, eq=False, dict=True):
    """A graph in a folder that :func:`prepare` wrote; its arrays are mapped and read-only.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @property
    def digest(self) -> str:
        """What identifies the whole graph."""
        return self.sha256

    @cached_property
    def out(self) -> Neighbours:
        """The nodes that each node points to."""
        return self._neighbours("out")

    @cached_property
    def into(self) -> Neighbours:
        """The nodes that point to each node; the same as :attr:`out` if there is no direction."""
        return self._neighbours("in") if self.directed else self.out

    @cached_property
    def x(self) -> Matrix:
        """The features, ``float32``: a mapped array, or a ``csr_array`` of mapped arrays."""
        if self.stored is None:
            return self._array("features")
        parts = tuple(self._array(f"features-{part}") for part in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=(self.nodes, self.features))

    @cached_property
    def y(self) -> NDArray[Any]:
        """Class numbers, -1 for a node without a label; or numbers, NaN for a node without one."""
        return self._array("labels")

    @cached_property
    def masks(self) -> OwnSplit | None:
        """The user's own training, validation and test nodes, or None."""
        return OwnSplit(*np.array(self._array("sets")).T) if "sets" in self.files else None

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """The number of each node's group, or None."""
        return np.array(self._array("groups")) if "groups" in self.files else None

    @cached_property
    def ids(self) -> pa.ChunkedArray:
        """The id of each node, whole numbers or strings."""
        return pa.ipc.open_file(pa.memory_map(str(self._path("ids")))).read_all()["id"]

    def features_of(self, nodes: slice) -> Matrix:
        """The features of some nodes, in RAM, dense or sparse."""
        return self.x[nodes].copy()

    def check_labelled(self) -> None:
        """Refuse a graph that nothing can be learned from."""
        if self.label is None:
            raise UsageError(f"{self.folder} was prepared without labels; prepare it with --label")

    def in_ram(self, remedy: str = _FREE_SOME) -> OwnGraph:
        """The whole graph in RAM, as :func:`memohop.read_graph` reads it.

        A graph that takes more RAM than there is free is a :class:`DataError`.

        Args:
            remedy: What to do then.
        """
        values = self.nodes * self.features if self.stored is None else 2 * self.stored
        needed = 28 * self.arcs + 4 * values + 32 * self.nodes
        free = psutil.virtual_memory().available
        if needed > _OF_FREE * free:
            raise DataError(
                f"{self.folder} takes about {needed / 1e9:.1f} GB in RAM, and {free / 1e9:.1f} GB "
                f"are free; {remedy}"
            )
        indptr, indices, weights = self.out
        arcs = np.empty((2, self.arcs), dtype=np.int64)
        arcs[0], arcs[1] = np.repeat(np.arange(self.nodes), np.diff(indptr)), indices
        labels = Labels(np.array(self.y), self.classes, self.task)
        return own_graph(
            Described(
                self.features_of(slice(0, self.nodes)),
                labels,
                self.encoder,
                masks=self.masks,
                groups=self.groups,
            ),
            Links(arcs, None if weights is None else np.array(weights), directed=self.directed),
            np.asarray(self.ids.to_numpy(zero_copy_only=False)),
            notes=[note for note in self.notes if note not in self.warnings],
            warnings=self.warnings,
            reading=read_alike(self.options),
        )

    def _neighbours(self, way: str) -> Neighbours:
        weighted = "out-weights" in self.files
        parts = ("indptr", "indices", *(["weights"] if weighted else []))
        return Neighbours(*(self._array(f"{way}-{part}") for part in parts))

    def _array(self, name: str) -> NDArray[Any]:
        return map_array(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / file_name(name, self.files[name])

    def __repr__(self) -> str:
        how = "directed" if self.directed else "undirected"
        return (
            f"Prepared({str(self.folder)!r}, {self.nodes} nodes, {self.arcs} arcs, {how}, "
            f"{self.features} features)"
        )


def open_prepared(folder: str | os.PathLike[str], *, check: bool = True) -> Prepared:
    r"""Open the folder that :func:`prepare` wrote.

    Args:
        folder: The folder.
        check: Whether to read all files, compare their SHA-256 with those recorded, and check
            every value; otherwise only sizes and types are checked, and a wrong index may end the
            process.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import memohop
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     here = Path(folder)
        ...     _ = (here / "nodes.csv").write_text("id,size,kind\n1,3,a\n2,5,b\n3,4,a\n")
        ...     _ = (here / "edges.csv").write_text("source,target\n1,2\n2,3\n")
        ...     _ = memohop.prepare(here / "nodes.csv", here / "edges.csv", here / "graph")
        ...     graph = memohop.open_prepared(here / "graph")
        ...     graph.nodes, graph.arcs, graph.out.indices.tolist()
        (3, 4, [1, 0, 2, 1])
    """
    path = Path(folder).expanduser()
    return Prepared(folder=path, **msgspec.structs.asdict(checked(path, contents=check)))


def sample(graph: Prepared) -> tuple[OwnGraph, str | None]:
    """The whole graph if it is small, and otherwise random nodes with neighbours.

    A sample consists of 5,000 random nodes with a label (of any nodes if fewer have one), at most
    50 random neighbours of each in either direction, and all arcs between these.

    Returns:
        The graph, and a remark on the sample; None if it is whole.
    """
    if graph.nodes <= _WHOLE_NODES and graph.arcs <= _WHOLE_ARCS:
        return graph.in_ram(), None
    generator = np.random.default_rng(0)
    labelled = np.flatnonzero(graph.y >= 0 if graph.task == "classes" else np.isfinite(graph.y))
    among = labelled if len(labelled) >= _CENTRES else np.arange(graph.nodes)
    centres = generator.choice(among, min(_CENTRES, len(among)), replace=False)
    ways = [graph.out, graph.into] if graph.directed else [graph.out]
    near = [_some_neighbours(way, node, generator) for node in centres for way in ways]
    kept = np.unique(np.concatenate([centres, *near]))
    arcs = np.stack(graph.out.matrix(kept, unit=None)[:, kept].nonzero()).astype(np.int64)
    labels = Labels(np.array(graph.y[kept]), graph.classes, graph.task)
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
