"""Two coordinates for every node, found from the arcs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memohop.data.adjacency import matrix_of

_LANDMARKS = 1000  # nodes from which Isomap measures; a graph of fewer nodes is exact
_EPOCHS, _BURN_IN = 50, 10
_BATCHES, _LEAST_BATCH = 100, 64  # batches of an epoch, and arcs in one
_NEGATIVES = 10
_RATE = 0.3
_RIM = 1 - 1e-5  # points of the disc stay within this radius

Points = NDArray[np.float64]


def isomap(arcs: NDArray[np.int64], nodes: int) -> Points:
    r"""Coordinates with distances like the numbers of steps between nodes.

    Classical scaling of the lengths of shortest paths: the two leading eigenvectors of the
    centred :math:`-\mathbf{D}^{\circ 2}/2`, each times the root of its eigenvalue. In a large
    graph the paths start at 1000 landmarks (drawn with a fixed seed), and the other nodes are
    located by their distances to those. Parts that no path joins are one step further from each
    other than the farthest nodes of one part.

    The result is scaled to at most 1 and rounded to six digits: nodes at the same point on one
    machine are so on every machine. Arcs are ``[2, arcs]``, both ways and without self-loops.
    """
    from scipy.sparse.csgraph import dijkstra
    from sklearn.decomposition import KernelPCA

    if not arcs.size:
        return np.zeros((nodes, 2))
    landmarks = np.arange(nodes)
    if nodes > _LANDMARKS:
        landmarks = np.sort(np.random.default_rng(0).permutation(nodes)[:_LANDMARKS])
    steps = dijkstra(matrix_of(arcs, nodes), unweighted=True, indices=landmarks)
    apart = np.isinf(steps)
    steps[apart] = steps[~apart].max() + 1
    kernel = -0.5 * steps**2
    scaling = KernelPCA(n_components=2, kernel="precomputed", eigen_solver="dense")
    points: Points = scaling.fit(kernel[:, landmarks]).transform(kernel.T)
    return np.round(points / np.abs(points).max(), 6)


def poincare(arcs: NDArray[np.int64], nodes: int, *, seed: int = 0) -> Points:
    r"""Points of the hyperbolic disc in which neighbours are near (Nickel and Kiela, 2017).

    Minimises, over the arcs :math:`(u, v)` and ten nodes :math:`v'` drawn for each,

    .. math::
        -\log\frac{e^{-d(u, v)}}{e^{-d(u, v)} + \sum_{v'} e^{-d(u, v')}}

    by Riemannian gradient descent with a burn-in at a tenth of the rate. A node moves by the
    mean of its gradients within a batch, to keep hubs from leaping. Arcs are ``[2, arcs]``, both
    ways and without self-loops; the seed decides first points, order and draws.
    """
    generator = np.random.default_rng(seed)
    points = generator.uniform(-1e-3, 1e-3, (nodes, 2))
    count = arcs.shape[1]
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


def euclidean_distance(one: Points, other: Points) -> NDArray[np.float64]:
    """Distances in the plane, between points that broadcast."""
    return np.sqrt(np.square(one - other).sum(-1))


def hyperbolic_distance(one: Points, other: Points) -> NDArray[np.float64]:
    """Distances in the Poincaré disc, between points that broadcast."""
    between = np.square(one - other).sum(-1)
    room = (1 - np.square(one).sum(-1)) * (1 - np.square(other).sum(-1))
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
