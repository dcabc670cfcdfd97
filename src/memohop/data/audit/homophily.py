r"""How far neighbours agree, measured in the ways that papers use.

All take a graph whose edges count once in each direction, without self-loops, and look at the
edges between two nodes that have a label. With :math:`p(c, d)` the share of the arcs from class
:math:`c` to class :math:`d`, :math:`\bar p(c) = \sum_d p(c, d)` the share that begins in
:math:`c`, and :math:`n_c / n` the share of the nodes in :math:`c`:

==================  ==============================================================================
edge                :math:`h = \sum_c p(c, c)` (Zhu et al. 2020)
node                the mean, over the nodes with neighbours, of the share of their neighbours that
                    are of their class (Pei et al. 2020)
class-insensitive   :math:`\frac{1}{C - 1} \sum_c \max(0, p(c, c) / \bar p(c) - n_c / n)`
                    (Lim et al. 2021)
adjusted            :math:`(h - \sum_c \bar p(c)^2) / (1 - \sum_c \bar p(c)^2)`: 0 where neighbours
                    say nothing, 1 where all agree (Platonov et al. 2023)
informativeness     :math:`I / H(\bar p)` with
                    :math:`I = \sum_{c, d} p(c, d) \log \frac{p(c, d)}{\bar p(c) \bar p(d)}`: how
                    much of a label is known from one neighbour's label (Platonov et al. 2023)
==================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_BINS = 5


class Homophily(NamedTuple):
    """The five measures; None where a measure is not defined, as in a graph without edges."""

    edge: float | None
    node: float | None
    class_insensitive: float | None
    adjusted: float | None
    informativeness: float | None


def homophily(links: sparse.csr_array, y: NDArray[np.int64]) -> Homophily:
    """All measures at once.

    Args:
        links: A symmetric matrix of 0 and 1 with nothing on the diagonal.
        y: The class of every node, negative where it is not known.
    """
    source, target = _between_labelled(links, y)
    if not source.size:
        return Homophily(None, None, None, None, None)
    classes = int(y.max()) + 1
    counts = np.bincount(y[source] * classes + y[target], minlength=classes**2)
    share = counts.reshape(classes, classes) / source.size
    within, ends = share.diagonal(), share.sum(axis=1)
    sizes = np.bincount(y[y >= 0], minlength=classes)
    edge, chance = float(within.sum()), float((ends**2).sum())
    linked, used = ends > 0, int((sizes > 0).sum())
    excess = within[linked] / ends[linked] - sizes[linked] / sizes.sum()
    return Homophily(
        edge=edge,
        node=_node_homophily(source, y[source] == y[target], len(y)),
        class_insensitive=float(np.maximum(excess, 0).sum() / (used - 1)) if used > 1 else None,
        adjusted=(edge - chance) / (1 - chance) if np.count_nonzero(ends) > 1 else None,
        informativeness=_information(share),
    )


def informativeness_of_a_neighbour(links: sparse.csr_array, y: NDArray[np.int64]) -> float | None:
    """How much of a node's label is known from the label of one of its neighbours.

    As above, but for a node drawn at random and then one of the neighbours in its row of `links`,
    so that every node counts alike. The matrix need not be symmetric: it tells apart the nodes that
    a node points to from those that point to it.
    """
    source, target = _between_labelled(links, y)
    if not source.size:
        return None
    classes = int(y.max()) + 1
    degree = np.bincount(source, minlength=len(y))
    share = np.bincount(
        y[source] * classes + y[target], weights=1 / degree[source], minlength=classes**2
    ).reshape(classes, classes)
    return _information(share / share.sum())


def homophily_bins(
    local: NDArray[np.float64],
) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
    """Nodes of similar local homophily: five bins of equal width, those without nodes left out.

    Args:
        local: For each node the share of its neighbours that are of its class. NaN is in no bin.

    Yields:
        Where the bin begins and ends, and which nodes lie in it; 1 lies in the last one.
    """
    number = np.minimum(np.floor(local * _BINS), _BINS - 1)
    for i in range(_BINS):
        inside = number == i
        if inside.any():
            yield i / _BINS, (i + 1) / _BINS, inside


def _between_labelled(links: sparse.csr_array, y: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    source, target = links.tocoo().coords
    known = (y[source] >= 0) & (y[target] >= 0)
    return source[known], target[known]


def _node_homophily(source: NDArray[Any], same: NDArray[np.bool_], nodes: int) -> float:
    degree = np.bincount(source, minlength=nodes)
    agreeing = np.bincount(source, weights=same, minlength=nodes)
    linked = degree > 0
    return float((agreeing[linked] / degree[linked]).mean())


def _information(share: NDArray[np.float64]) -> float | None:
    """Mutual information of row and column, divided by the entropy of the row."""
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    there = share > 0
    mutual = float(
        (share[there] * np.log((share / np.outer(rows, columns).clip(1e-300))[there])).sum()
    )
    entropy = -float((rows[rows > 0] * np.log(rows[rows > 0])).sum())
    return mutual / entropy if np.count_nonzero(rows) > 1 else None
