r"""How far neighbours agree, by the measures of the literature.

All take a graph with each edge once in each direction, without self-loops, and use the edges
between two nodes with a label. With :math:`p(c, d)` the share of the arcs from class
:math:`c` to class :math:`d`, :math:`\bar p(c) = \sum_d p(c, d)` the share that begins in
:math:`c`, and :math:`n_c / n` the share of the nodes in :math:`c`:

==================  ==============================================================================
edge                :math:`h = \sum_c p(c, c)` (Zhu et al. 2020)
node                the mean, over the nodes with neighbours, of the share of their neighbours that
                    are of their class (Pei et al. 2020)
class-insensitive   :math:`\frac{1}{C - 1} \sum_c \max(0, p(c, c) / \bar p(c) - n_c / n)`
                    (Lim et al. 2021)
adjusted            :math:`(h - \sum_c \bar p(c)^2) / (1 - \sum_c \bar p(c)^2)`: 0 where neighbours
                    tell nothing, 1 where all agree (Platonov et al. 2023)
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
from scipy.special import entr

_BINS = 5


class Homophily(NamedTuple):
    """The five measures; None where a measure is not defined, as in a graph without edges."""

    edge: float | None
    node: float | None
    class_insensitive: float | None
    adjusted: float | None
    informativeness: float | None


def homophily(links: sparse.csr_array, y: NDArray[np.int64]) -> Homophily:
    """All measures.

    Args:
        links: A symmetric matrix of 0 and 1 with nothing on the diagonal.
        y: The class of every node, negative if it is not known.
    """
    source, target = _between_labelled(links, y)
    if not source.size:
        return Homophily(None, None, None, None, None)
    share = _shares(source, target, y)
    within, ends = share.diagonal(), share.sum(axis=1)
    sizes = np.bincount(y[y >= 0], minlength=len(share))
    edge, chance = float(within.sum()), float((ends**2).sum())
    local, linked, used = local_homophily(links, y), ends > 0, int((sizes > 0).sum())
    excess = within[linked] / ends[linked] - sizes[linked] / sizes.sum()
    return Homophily(
        edge=edge,
        node=float(local[~np.isnan(local)].mean()),
        class_insensitive=float(np.maximum(excess, 0).sum() / (used - 1)) if used > 1 else None,
        adjusted=(edge - chance) / (1 - chance) if np.count_nonzero(ends) > 1 else None,
        informativeness=_information(share),
    )


def local_homophily(links: sparse.csr_array, y: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of each node's labelled neighbours that have its own label; NaN for none.

    Arguments as above; a node without a label has no share.
    """
    source, target = _between_labelled(links, y)
    known = np.bincount(source, minlength=len(y))
    alike = np.bincount(source[y[source] == y[target]], minlength=len(y))
    return np.divide(alike, known, out=np.full(len(y), np.nan), where=known > 0)


def informativeness_of_a_neighbour(links: sparse.csr_array, y: NDArray[np.int64]) -> float | None:
    """How much of a node's label is known from the label of one of its neighbours.

    As above, but for a node drawn at random and then one of the neighbours in its row of
    ``links``: every node counts alike. The matrix need not be symmetric; its rows may hold only the
    nodes that a node points to, or only those that point to it.
    """
    source, target = _between_labelled(links, y)
    if not source.size:
        return None
    return _information(_shares(source, target, y, weights=1 / np.bincount(source)[source]))


def homophily_bins(
    local: NDArray[np.float64],
) -> Iterator[tuple[float, float, NDArray[np.bool_]]]:
    """Nodes of similar local homophily, in five bins of equal width; empty bins are left out.

    Args:
        local: For each node the share of its neighbours that are of its class. NaN is in no bin.

    Yields:
        Begin and end of a bin, and a mask of its nodes; 1 is in the last bin.
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


def _shares(
    source: NDArray[Any],
    target: NDArray[Any],
    y: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The shares :math:`p(c, d)` of the classes of the two ends."""
    classes = int(y.max()) + 1
    counts = np.bincount(y[source] * classes + y[target], weights, minlength=classes**2)
    return counts.reshape(classes, classes) / counts.sum()


def _information(share: NDArray[np.float64]) -> float | None:
    """Mutual information of row and column, divided by the entropy of the row."""
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    if np.count_nonzero(rows) < 2:
        return None
    entropy = entr(rows).sum()
    return float((entropy + entr(columns).sum() - entr(share).sum()) / entropy)
