"""Geom-GCN's neighbours: those in the graph and those in a latent space, by relative position."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.data.arcs import check_arcs
from memohop.data.assemble import merge_arcs
from memohop.data.datasets.embedding import (
    Points,
    euclidean_distance,
    hyperbolic_distance,
    isomap,
    poincare,
)
from memohop.data.datasets.fetch import known_digests, locate
from memohop.data.datasets.registry import describe
from memohop.errors import DataError, UsageError, unknown_name

Distance: TypeAlias = Callable[[Points, Points], NDArray[np.float64]]

EMBEDDINGS: dict[str, tuple[Callable[[NDArray[np.int64], int], Points], Distance]] = {
    "isomap": (isomap, euclidean_distance),
    "poincare": (poincare, hyperbolic_distance),
}
_ROWS = 256  # nodes with their distances to all others at a time
_FOLDER = "geom-gcn/structural_neighborhood"
_HEADER = "node1,node2\tspace\trelation_type"
_LINE = re.compile(r"(\d{1,9}),(\d{1,9})\t(graph|latent_space)\t([0-3])")


@dataclass(frozen=True, eq=False)
class LatentNeighbours:
    """The arcs of a graph and of a latent space, each with its division.

    Attributes:
        arcs: ``[2, arcs]``, ``int64``: from the first row to the second, each once, no self-loops.
        division: ``[arcs]``, ``int64``: 0 to 3 for an arc of the graph, 4 to 7 for one of the
            latent space, by the relative position of its two ends. An arc of both counts as one of
            the latent space.
    """

    arcs: torch.Tensor
    division: torch.Tensor


@dataclass(frozen=True)
class PublishedNeighbours:
    """The neighbours of a dataset, not read before a model asks for them."""

    name: str
    root: str | os.PathLike[str] | None = None

    def read(self) -> LatentNeighbours:
        """The neighbours."""
        return published(self.name, root=self.root)


def published_file(name: str, embedding: str = "poincare") -> str | None:
    """The path of the file with the published neighbours of a dataset; None if there is none."""
    return _published_files(name).get(embedding)


@cache
def _published_files(name: str) -> dict[str, str]:
    """The files with the published neighbours of a dataset, by embedding."""
    stem = "film" if name == "actor" else name
    start = f"{_FOLDER}/outf_nodes_space_relation_{stem}_"
    return {
        path.removeprefix(start).removesuffix(".txt").lower(): path
        for path in known_digests()
        if path.startswith(start)
    }


def published(
    name: str,
    embedding: str = "poincare",
    *,
    root: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> LatentNeighbours:
    """The neighbours that Geom-GCN's authors published for a dataset.

    Their arcs within the graph are those of the undirected graph without self-loops; most of
    their arcs of the latent space go one way only.

    Args:
        name: The id of a dataset.
        embedding: ``poincare``; for cora also ``struc2vec``, for citeseer and pubmed also ``mds``.
        root: A local folder with the files, instead of a download.
        progress: Show a progress bar on standard error while downloading.
    """
    info, files = describe(name), _published_files(name)
    if embedding not in files:
        raise UsageError(
            f"no neighbours of {name} in a latent space {embedding!r} were published; "
            + (f"known: {', '.join(files)}" if files else "have them computed")
        )
    folder = locate((files[embedding],), root=root, progress=progress)
    return read_neighbours(folder / files[embedding], nodes=info.nodes)


def read_neighbours(path: Path, *, nodes: int) -> LatentNeighbours:
    """The neighbours in one of Geom-GCN's files, for a graph of this many nodes."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}; fetch it again") from error
    if not lines or lines[0] != _HEADER:
        raise DataError(f"{path} does not begin with {_HEADER!r}; fetch it again")
    rows = np.empty((len(lines) - 1, 3), dtype=np.int64)
    for number, line in enumerate(lines[1:]):
        match = _LINE.fullmatch(line)
        if match is None or max(int(match[1]), int(match[2])) >= nodes:
            raise DataError(
                f"{path}, line {number + 2}: {line[:40]!r} is not an arc within {nodes} nodes "
                "with its space and position; fetch the file again"
            )
        rows[number] = match[1], match[2], int(match[4]) + 4 * (match[3] == "latent_space")
    return _neighbours(rows[:, :2].T, rows[:, 2], nodes)


def computed(
    edge_index: torch.Tensor, num_nodes: int, *, embedding: str = "isomap"
) -> LatentNeighbours:
    r"""Neighbours in a latent space that is found from the arcs, for any graph.

    With two coordinates :math:`z` for each node, two nodes are neighbours in the latent space
    if their distance is at most :math:`\rho`, the least one that gives as many neighbours as in
    the graph (Pei et al. 2020). If that gives more than twice as many, since many pairs are equally
    far apart, a draw with a fixed seed leaves out some of the farthest.

    An arc :math:`u \to v` has position

    .. math:: 2 \cdot [z_u^0 \le z_v^0] + [z_u^1 \le z_v^1]

    Args:
        edge_index: ``[2, arcs]``; direction and self-loops do not matter.
        num_nodes: Number of nodes.
        embedding: ``isomap`` or ``poincare``.
    """
    if embedding not in EMBEDDINGS:
        raise unknown_name("embedding", embedding, EMBEDDINGS)
    check_arcs(edge_index, num_nodes)
    source, target = edge_index.cpu().numpy()
    between = source != target
    graph = merge_arcs(
        source[between], target[between], nodes=num_nodes, both_ways=True, origin="edge_index"
    )
    embed, distance = EMBEDDINGS[embedding]
    points = embed(graph, num_nodes)
    one, other = _nearest_pairs(points, distance, count=graph.shape[1] // 2)
    latent = np.stack((np.concatenate((one, other)), np.concatenate((other, one))))
    arcs = np.concatenate((graph, latent), axis=1)
    space = np.repeat((0, 4), (graph.shape[1], latent.shape[1]))
    above = points[arcs[0]] <= points[arcs[1]]
    return _neighbours(arcs, space + 2 * above[:, 0] + above[:, 1], num_nodes)


def _nearest_pairs(
    points: Points, distance: Distance, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ``count`` nearest pairs, and those as far as the last if they are at most ``count`` more.

    Otherwise a draw chooses among those that are as far as the last.
    """
    generator = np.random.default_rng(0)
    found: list[NDArray[Any]] = [*np.empty((2, 0)), *np.empty((2, 0), dtype=np.int64)]
    limit = np.inf
    for start in range(0, len(points) if count else 0, _ROWS):
        far = distance(points[start : start + _ROWS, None], points[None, start:])
        row, column = np.nonzero(np.triu(far <= limit, k=1))
        new = (generator.random(len(row)), far[row, column], row + start, column + start)
        found = [np.concatenate(pair) for pair in zip(found, new, strict=True)]
        nearest = np.lexsort(found[:2])[: 2 * count + 1]
        found = [part[nearest] for part in found]
        if len(nearest) >= count:
            limit = found[1][count - 1]
    within = int((found[1] <= limit).sum())
    kept = within if within <= 2 * count else count
    return found[2][:kept], found[3][:kept]


def _neighbours(
    arcs: NDArray[np.int64], division: NDArray[np.int64], nodes: int
) -> LatentNeighbours:
    """Each arc once, without self-loops, and with the last of its divisions."""
    between = arcs[0] != arcs[1]
    source, target = arcs[:, between]
    numbers = np.sort((source * nodes + target) * 8 + division[between])
    last = np.append(numbers[1:] // 8 != numbers[:-1] // 8, True)[: len(numbers)]
    numbers = numbers[last]
    arcs = np.stack(np.divmod(numbers // 8, max(nodes, 1)))
    return LatentNeighbours(torch.from_numpy(arcs), torch.from_numpy(numbers % 8))
