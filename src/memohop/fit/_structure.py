r"""What the structure of a graph says of each node, without any column or label.

Of the adjacency matrix :math:`\mathbf{A}` (neighbours in either direction, no self-loops) with
:math:`N` nodes, degrees :math:`d_i`, and :math:`\mathbf{P} = \mathbf{D}^{-1}\mathbf{A}`, these are

- *page rank*: :math:`\log N r_i`, where :math:`\mathbf{r} = .85\,(\mathbf{P}^\top\mathbf{r} +
  r_0 / N) + .15 / N` and :math:`r_0` is the sum over nodes without a way on; in a directed graph
  both along its arcs and against them;
- *core number*: the greatest :math:`k` such that the node is in a subgraph in which every node has
  :math:`k` neighbours, as :math:`\log(1 + k)`;
- *component*: the logarithm of the number of nodes that it is connected with, itself among them;
- *degrees of neighbours*: mean, standard deviation and greatest of :math:`\log(1 + d_j)` over the
  neighbours :math:`j`;
- *return in two*, *three* and *four* steps: the probability :math:`(\mathbf{P}^k)_{ii}` that a
  random walk is back where it began;
- *triangles*: :math:`\log(1 + t_i)` of the number of pairs of neighbours that are neighbours
  themselves, and *clustering*: its share of all pairs, :math:`2 t_i / (d_i (d_i - 1))`.

Page rank and walks count the weights of arcs, and the others do not.

Triangles are counted from matrix products, with every edge directed from the node of smaller degree
to that of greater degree: as :math:`\mathbf{L}`, a triangle :math:`u \to v \to w`,
:math:`u \to w` is at :math:`(u, w)` of :math:`\mathbf{L}^2 \circ \mathbf{L}` and at :math:`(v, w)`
of :math:`\mathbf{L}^\top\mathbf{L} \circ \mathbf{L}`. A node then leads to few others, however many
neighbours it has. With :math:`\mathbf{M} = \mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}`, whose
powers have the same diagonals as those of :math:`\mathbf{P}`, the walks of three steps are the same
sums with :math:`M_{uv} M_{vw} M_{uw}` for each triangle, twice, and those of four steps are
:math:`\sum_j (\mathbf{M}^2)_{ij}^2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

COSTLY = 100_000_000
"""Products of two entries, of a few seconds, from which triangles take too long."""

_DAMPING = 0.85
_STILL = 1e-9  # change of all page ranks together at which they are found
_STEPS = 200  # at most
_EXACT = 20_000_000  # the most products for which walks of four steps are not estimated
_VECTORS = 64  # with which they are, otherwise
_AT_ONCE = 1_000_000  # products of two entries, or values, which are held at once

Numbers = NDArray[np.float64]


def structure_width(ways: int, *, triangles: bool) -> int:
    """How many numbers :func:`structure` has for a node, given how many page ranks."""
    return ways + (10 if triangles else 6)


def structure_bytes(nodes: int, arcs: int) -> int:
    """The RAM that :func:`structure` takes at most."""
    return 100 * (nodes + arcs + _AT_ONCE)


def structure(
    both: sparse.csr_array, onward: Sequence[sparse.csr_array], *, triangles: bool
) -> dict[str, Numbers]:
    """All that a graph says of its nodes, by name; without ``triangles``, what is quick.

    Args:
        both: The weights of neighbours in either direction.
        onward: The matrices of arcs that page ranks follow.
        triangles: Whether to count triangles and walks of three and four steps.
    """
    links = sparse.csr_array((np.ones(both.nnz), both.indices, both.indptr), shape=both.shape)
    degrees = links.sum(axis=1)
    part = connected_components(links, directed=False)[1]
    names = ("page rank", "page rank against the arcs")
    told = {name: np.log(page_rank(way)) for name, way in zip(names, onward, strict=False)}
    told["core number"] = np.log1p(core_numbers(links))
    told["nodes connected"] = np.log(np.bincount(part)[part])
    of_degrees = spread(links, np.log1p(degrees)[:, None])
    mean = _divided(links @ np.log1p(degrees), degrees)
    told["mean degree of neighbours"] = mean
    told["spread of neighbours' degrees"] = of_degrees[2][:, 0]
    told["greatest degree of neighbours"] = of_degrees[1][:, 0]
    walk = _symmetric(both)
    in_two = told["return in two steps"] = walk.power(2).sum(axis=1)
    if triangles:
        told["return in three steps"] = 2 * triangle_sums(walk)
        exact = _products(walk, walk).sum() <= _EXACT
        told["return in four steps"] = (_squares if exact else _guessed_squares)(walk, in_two)
        number = triangle_sums(links)
        told["triangles"] = np.log1p(number)
        told["clustering"] = _divided(2 * number, degrees * (degrees - 1))
    return told


def spread(links: sparse.csr_array, x: NDArray[np.floating]) -> list[Numbers]:
    """The least and the greatest value of each column over the neighbours, and their deviation.

    Weights count for the last. All are 0 for a node without neighbours.
    """
    some, total = np.diff(links.indptr) > 0, links.sum(axis=1, dtype=np.float64)[:, None]
    begins = links.indptr[:-1][some]
    least, greatest, deviation = np.zeros((3, links.shape[0], x.shape[1]))
    for column, values in enumerate(x.T.astype(np.float64)):
        of_neighbours = values[links.indices]
        least[some, column] = np.minimum.reduceat(of_neighbours, begins)
        greatest[some, column] = np.maximum.reduceat(of_neighbours, begins)
        mean = _divided(links @ values, total[:, 0])
        apart = links.data * (of_neighbours - np.repeat(mean, np.diff(links.indptr))) ** 2
        deviation[some, column] = np.sqrt(_divided(np.add.reduceat(apart, begins), total[some, 0]))
    return [least, greatest, deviation]


def page_rank(onward: sparse.csr_array) -> Numbers:
    """Page ranks times the number of nodes, given a row for each node with the weights onward."""
    nodes, total = onward.shape[0], onward.sum(axis=1, dtype=np.float64)
    back = sparse.csr_array(onward.T, dtype=np.float64)
    share = np.divide(1, total, out=np.zeros(nodes), where=total > 0)
    ends, ranks = total <= 0, np.ones(nodes)
    for _ in range(_STEPS):
        before = ranks
        ranks = _DAMPING * (back @ (share * before) + before[ends].sum() / nodes) + 1 - _DAMPING
        if np.abs(ranks - before).sum() < _STILL * nodes:
            break
    return ranks


def core_numbers(links: sparse.csr_array) -> NDArray[np.int64]:
    """The core number of each node of a symmetric matrix: nodes are taken away by degree."""
    degree, core = np.diff(links.indptr).astype(np.int64), np.zeros(links.shape[0], dtype=np.int64)
    left = np.arange(links.shape[0])
    while left.size:
        least = degree[left].min()
        taken = left[degree[left] == least]
        while taken.size:
            core[taken], degree[taken] = least, -1
            near = links.indices[_entries(links, taken)]
            near, times = np.unique(near[degree[near] > least], return_counts=True)
            degree[near] = np.maximum(degree[near] - times, least)
            taken = near[degree[near] == least]
        left = left[degree[left] > least]
    return core


def _entries(matrix: sparse.csr_array, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of some rows are."""
    begin, count = matrix.indptr[rows], np.diff(matrix.indptr)[rows]
    return np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())


def triangle_sums(matrix: sparse.csr_array) -> Numbers:
    """For each node the sum over its triangles of the product of their entries.

    The matrix is symmetric, without a diagonal.
    """
    uphill, order = _uphill(matrix)
    sums, downhill = np.zeros(matrix.shape[0]), sparse.csr_array(uphill.T)
    for rows in _slices(_products(uphill, uphill)):
        closed = (uphill[rows] @ uphill).multiply(uphill[rows])
        sums[rows] += closed.sum(axis=1)
        sums += closed.sum(axis=0)
    for rows in _slices(_products(downhill, uphill)):
        sums[rows] += (downhill[rows] @ uphill).multiply(uphill[rows]).sum(axis=1)
    of_nodes = np.empty_like(sums)
    of_nodes[order] = sums
    return of_nodes


def triangles_cost(matrix: sparse.csr_array) -> int:
    """How many products of two entries triangles take."""
    uphill = _uphill(matrix)[0]
    return int(sum(_products(way, uphill).sum() for way in (uphill, sparse.csr_array(uphill.T))))


def _uphill(matrix: sparse.csr_array) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Every edge once, from the node with fewer neighbours, in the order of nodes beside it."""
    order = np.argsort(np.diff(matrix.indptr), kind="stable")
    return sparse.csr_array(sparse.triu(matrix[order][:, order], k=1)), order


def _symmetric(weights: sparse.csr_array) -> sparse.csr_array:
    r""":math:`\mathbf{D}^{-1/2}\mathbf{A}\mathbf{D}^{-1/2}`."""
    root = np.sqrt(weights.sum(axis=1, dtype=np.float64))
    scale = sparse.diags_array(_divided(np.ones_like(root), root))
    return sparse.csr_array(scale @ weights.astype(np.float64) @ scale)


def _divided(values: Numbers, by: Numbers) -> Numbers:
    """Quotients, 0 where the divisor is 0."""
    return np.divide(values, by, out=np.zeros_like(values, dtype=np.float64), where=by > 0)


def _squares(matrix: sparse.csr_array, diagonal: Numbers) -> Numbers:
    """For each row of the square of a symmetric matrix the sum of its squared entries."""
    sums = np.zeros_like(diagonal)
    for rows in _slices(_products(matrix, matrix)):
        sums[rows] = (matrix[rows] @ matrix).power(2).sum(axis=1)
    return sums


def _guessed_squares(matrix: sparse.csr_array, diagonal: Numbers) -> Numbers:
    r"""The same, given the square\'s diagonal, estimated from random signs :math:`\mathbf{z}`.

    The mean of :math:`(\sum_{j \ne i} (\mathbf{M}^2)_{ij} z_j)^2` is
    :math:`\sum_{j \ne i} (\mathbf{M}^2)_{ij}^2`. (M. Hutchinson, *A stochastic estimator of the
    trace of the influence matrix*, 1989.)
    """
    sums = np.zeros_like(diagonal)
    for number in range(_VECTORS):
        bits = np.random.Philox(key=number).random_raw(len(sums))
        signs = np.where(bits % 2, 1.0, -1.0)
        sums += (matrix @ (matrix @ signs) - diagonal * signs) ** 2
    return diagonal**2 + sums / _VECTORS


def _products(left: sparse.csr_array, right: sparse.csr_array) -> NDArray[np.int64]:
    """How many products of two entries each row of a product of matrices takes."""
    pattern = sparse.csr_array((np.ones(left.nnz), left.indices, left.indptr), shape=left.shape)
    return (pattern @ np.diff(right.indptr)).astype(np.int64)


def _slices(costs: NDArray[np.int64]) -> Iterator[slice]:
    """Rows one after the other, in parts that cost about as much."""
    part = np.cumsum(costs) // _AT_ONCE
    ends = np.flatnonzero(np.diff(part, append=part[-1:] + 1)) + 1
    for begin, end in zip([0, *ends], ends, strict=False):
        yield slice(begin, end)
