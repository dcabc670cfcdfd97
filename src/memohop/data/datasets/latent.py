"""Geom-GCN's neighbours: those in the graph and those in a latent space, by relative position."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import adjacency, check_arcs
from memohop.data.datasets._readers import fields_of
from memohop.data.datasets.fetch import locate
from memohop.data.datasets.registry import describe
from memohop.errors import unknown_name

Points = NDArray[np.float64]
Distance: TypeAlias = Callable[[Points, Points], NDArray[np.float64]]

_LANDMARKS = 1000  # nodes from which Isomap measures; a graph of fewer nodes is exact
_EPOCHS, _BURN_IN = 50, 10
_BATCHES, _LEAST_BATCH = 100, 64  # batches of an epoch, and arcs in one
_NEGATIVES = 10
_RATE = 0.3
_RIM = 1 - 1e-5  # points of the disc stay within this radius
_ROWS = 256  # nodes with their distances to all others at a time


@dataclass(frozen=True, eq=False)
class LatentNeighbours:
    """The arcs of a graph and of a latent space, each once and with its division, no self-loops.

    That is 0 to 3 for an arc of the graph and 4 to 7 for one of the latent space, by the relative
    position of its two ends. An arc of both counts as one of the latent space.
    """

    arcs: torch.Tensor  # [2, arcs], int64: from the first row to the second
    division: torch.Tensor  # [arcs], int64


@dataclass(frozen=True)
class PublishedNeighbours:
    """The neighbours of a dataset, not read before a model asks for them."""

    name: str
    root: str | os.PathLike[str] | None = None

    def read(self) -> LatentNeighbours:
        """The neighbours.

        Their arcs within the graph are those of the undirected graph without self-loops; most of
        their arcs of the latent space go one way only.
        """
        info = describe(self.name)
        path = locate((info.neighbours,), root=self.root) / info.neighbours
        return read_neighbours(path, info.nodes)


def read_neighbours(path: Path, nodes: int) -> LatentNeighbours:
    """The neighbours in one of Geom-GCN's files, for a graph of this many nodes."""
    lines = fields_of(path)
    arcs = np.array([ends.split(",") for ends, *_ in lines], dtype=np.int64).reshape(-1, 2)
    division = [int(position) + 4 * (space == "latent_space") for _, space, position in lines]
    return _neighbours(arcs.T, np.array(division, dtype=np.int64), nodes)


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
    links = adjacency(edge_index, num_nodes, direction="undirected", self_loops="remove")
    graph = np.stack(links.tocoo().coords).astype(np.int64)
    embed, distance = EMBEDDINGS[embedding]
    points = embed(links)
    pairs = _nearest_pairs(points, distance, count=links.nnz // 2)
    arcs = np.concatenate((graph, pairs, pairs[::-1]), axis=1)
    space = np.repeat((0, 4), (graph.shape[1], 2 * pairs.shape[1]))
    above = points[arcs[0]] <= points[arcs[1]]
    return _neighbours(arcs, space + 2 * above[:, 0] + above[:, 1], num_nodes)


def _nearest_pairs(points: Points, distance: Distance, count: int) -> NDArray[np.int64]:
    """The ``count`` nearest pairs, and those as far as the last if they are at most ``count`` more.

    Otherwise a draw chooses among those that are as far as the last. Pairs are ``[2, pairs]``.
    """
    generator = np.random.default_rng(0)
    pairs: list[NDArray[Any]] = [*np.empty((2, 0)), *np.empty((2, 0), dtype=np.int64)]
    limit = np.inf
    for start in range(0, len(points) if count else 0, _ROWS):
        far = distance(points[start : start + _ROWS, None], points[None, start:])
        row, column = np.nonzero(np.triu(far <= limit, k=1))
        new = (generator.random(len(row)), far[row, column], row + start, column + start)
        pairs = [np.concatenate(parts) for parts in zip(pairs, new, strict=True)]
        nearest = np.lexsort(pairs[:2])[: 2 * count + 1]
        pairs = [part[nearest] for part in pairs]
        if len(nearest) >= count:
            limit = pairs[1][count - 1]
    within = int((pairs[1] <= limit).sum())
    kept = within if within <= 2 * count else count
    return np.stack(pairs[2:])[:, :kept]


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


def isomap(links: sparse.csr_array) -> Points:
    r"""Coordinates with distances like the numbers of steps between nodes.

    Classical scaling of the lengths of shortest paths: the two leading eigenvectors of the
    centred :math:`-\mathbf{D}^{\circ 2}/2`, each times the root of its eigenvalue. In a large
    graph the paths start at 1000 landmarks (drawn with a fixed seed), and the other nodes are
    located by their distances to those. Parts that no path joins are one step further from each
    other than the farthest nodes of one part.

    The result is scaled to at most 1 and rounded to six digits: nodes at the same point on one
    machine are so on every machine. The matrix of arcs is symmetric, without self-loops.
    """
    from scipy.sparse.csgraph import dijkstra
    from sklearn.decomposition import KernelPCA

    nodes = links.shape[0]
    if not links.nnz:
        return np.zeros((nodes, 2))
    landmarks = np.arange(nodes)
    if nodes > _LANDMARKS:
        landmarks = np.sort(np.random.default_rng(0).permutation(nodes)[:_LANDMARKS])
    steps = dijkstra(links, unweighted=True, indices=landmarks)
    apart = np.isinf(steps)
    steps[apart] = steps[~apart].max() + 1
    kernel = -0.5 * steps**2
    scaling = KernelPCA(n_components=2, kernel="precomputed", eigen_solver="dense")
    points: Points = scaling.fit(kernel[:, landmarks]).transform(kernel.T)
    return np.round(points / np.abs(points).max(), 6)


def poincare(links: sparse.csr_array) -> Points:
    r"""Points of the hyperbolic disc in which neighbours are near (Nickel and Kiela, 2017).

    Minimises, over the arcs :math:`(u, v)` and ten nodes :math:`v'` drawn for each,

    .. math::
        -\log\frac{e^{-d(u, v)}}{e^{-d(u, v)} + \sum_{v'} e^{-d(u, v')}}

    by Riemannian gradient descent with a burn-in at a tenth of the rate. A node moves by the
    mean of its gradients within a batch, to keep hubs from leaping. The matrix of arcs is that of
    :func:`isomap`; first points, order and draws have a fixed seed.
    """
    generator = np.random.default_rng(0)
    arcs, (count, nodes) = np.stack(links.tocoo().coords), (links.nnz, links.shape[0])
    points = generator.uniform(-1e-3, 1e-3, (nodes, 2))
    batch = max(_LEAST_BATCH, -(-count // _BATCHES))
    for epoch in range(_EPOCHS):
        rate = _RATE / 10 if epoch < _BURN_IN else _RATE
        order = generator.permutation(count)
        for start in range(0, count, batch):
            source, target = arcs[:, order[start : start + batch]]
            drawn = generator.integers(nodes, size=(len(source), _NEGATIVES))
            others = np.concatenate((target[:, None], drawn), axis=1)
            points -= rate * _mean_gradient(points, source, others)
            radius = np.linalg.norm(points, axis=1, keepdims=True)
            points *= np.minimum(1, _RIM / np.maximum(radius, _RIM))
    return points


def euclidean_distance(x: Points, y: Points) -> NDArray[np.float64]:
    """Distances in the plane, between points that broadcast."""
    return np.sqrt(np.square(x - y).sum(-1))


def hyperbolic_distance(x: Points, y: Points) -> NDArray[np.float64]:
    """Distances in the Poincaré disc, between points that broadcast."""
    between = np.square(x - y).sum(-1)
    room = (1 - np.square(x).sum(-1)) * (1 - np.square(y).sum(-1))
    return np.arccosh(1 + 2 * between / room)


def _mean_gradient(
    points: Points, source: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.float64]:
    r"""The Riemannian gradient of the loss, averaged over the occurrences of each node.

    With :math:`a = 1 - |x|^2`, :math:`b = 1 - |y|^2` and :math:`\gamma = \cosh d(x, y)` that of
    the distance at :math:`x` is
    :math:`((|y|^2 - 2 x \cdot y + 1)\,x - a\,y) / (b \sqrt{\gamma^2 - 1})`.
    """
    x, y = points[source][:, None], points[others]
    xx, yy, xy = np.square(x).sum(-1), np.square(y).sum(-1), (x * y).sum(-1)
    a, b = 1 - xx, 1 - yy
    gamma = 1 + 2 * np.maximum(xx + yy - 2 * xy, 0) / (a * b)
    distance = np.arccosh(gamma)
    share = np.exp(distance.min(1, keepdims=True) - distance)
    share /= share.sum(1, keepdims=True)
    slope = -share
    slope[:, 0] += 1  # the first is the neighbour
    slope /= np.sqrt(np.maximum(np.square(gamma) - 1, 1e-12))
    at_x = (slope / b * (yy - 2 * xy + 1))[..., None] * x - (slope / b * a)[..., None] * y
    at_y = (slope / a * (xx - 2 * xy + 1))[..., None] * y - (slope / a * b)[..., None] * x
    nodes = np.concatenate((source, others.ravel()))
    gradients = np.concatenate((at_x.sum(1), at_y.reshape(-1, 2)))
    sums = [np.bincount(nodes, column, len(points)) for column in gradients.T]
    return np.stack(sums, 1) / np.maximum(np.bincount(nodes, minlength=len(points)), 1)[:, None]


EMBEDDINGS: dict[str, tuple[Callable[[sparse.csr_array], Points], Distance]] = {
    "isomap": (isomap, euclidean_distance),
    "poincare": (poincare, hyperbolic_distance),
}
