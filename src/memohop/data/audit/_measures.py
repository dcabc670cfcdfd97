r"""What is measured on a graph: homophily, twins, and what predicts the labels.

*Homophily*, how far neighbours agree, by the measures of the literature. All take a graph with
each edge once in each direction, without self-loops, and use the edges between two nodes with a
label. With :math:`p(c, d)` the share of the arcs from class :math:`c` to class :math:`d`,
:math:`\bar p(c) = \sum_d p(c, d)` the share that begins in :math:`c`, and :math:`n_c / n` the share
of the nodes in :math:`c`:

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

*Twins* are nodes that point to exactly the same nodes, at least one; in an undirected graph, nodes
with the same neighbours. With one common link that is often chance, with two or more (*close*
twins) hardly ever. A test node with a close twin of the same class in training leaks: the twin
gives its class away, whatever a model has learnt. *Duplicates* have the same features as an earlier
node and point to the same nodes.

A *probe* is a quick test of what predicts the labels: a logistic regression with classes of equal
weight, scored on three folds. Its inputs:

- for the *features*: the features themselves, or their 64 main directions if there are more;
- for the *neighbours* in one direction: the mean of their features, the classes of those in the
  training folds, their number, the 32 main directions of the links, and the features that are
  statistics of a node's edges;
- for both *together*: the product of the two probabilities, with the powers that are best on the
  other folds.

What a probe *says* is its balanced accuracy on the scale from chance, 0, to always right, 1. At
most 10000 nodes are used, drawn at random, to keep large graphs quick.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

from memohop.data.arcs import distinct

_BINS = 5  # of local homophily
FOLDS = 3
_NODES = 10_000
_OF_FEATURES = 64
_OF_LINKS = 32
_SEED = 0
Folds: TypeAlias = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


class Homophily(NamedTuple):
    """The five measures; None where a measure is not defined, as in a graph without edges."""

    edge_homophily: float | None = None
    node_homophily: float | None = None
    class_homophily: float | None = None
    adjusted_homophily: float | None = None
    label_informativeness: float | None = None


def homophily(links: sparse.csr_array, y: NDArray[np.int64]) -> Homophily:
    """All measures, of a symmetric matrix of 0 and 1 with nothing on the diagonal.

    ``y`` has the class of every node, negative if it is not known.
    """
    source, target = _between_labelled(links, y)
    if not source.size:
        return Homophily()
    share = _shares(source, target, y)
    within, ends = share.diagonal(), share.sum(axis=1)
    sizes = np.bincount(y[y >= 0], minlength=len(share))
    edge, chance = float(within.sum()), float((ends**2).sum())
    local, linked, used = local_homophily(links, y), ends > 0, int((sizes > 0).sum())
    excess = within[linked] / ends[linked] - sizes[linked] / sizes.sum()
    return Homophily(
        edge_homophily=edge,
        node_homophily=float(local[~np.isnan(local)].mean()),
        class_homophily=float(np.maximum(excess, 0).sum() / (used - 1)) if used > 1 else None,
        adjusted_homophily=(edge - chance) / (1 - chance) if np.count_nonzero(ends) > 1 else None,
        label_informativeness=_information(share),
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
    """Begin and end of each of five equal bins of local homophily, and a mask of its nodes.

    1 is in the last bin, and NaN in none. Empty bins are left out.
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


def row_keys(matrix: Any) -> NDArray[np.int64]:
    """A number for each row of a dense or sparse matrix, the same for equal rows."""
    if sparse.issparse(matrix):
        rows = (
            matrix.indices[start:end].tobytes() + matrix.data[start:end].tobytes()
            for start, end in pairwise(matrix.indptr)
        )
    else:
        rows = ((row + 0.0).tobytes() for row in matrix)  # -0 is 0
    return np.fromiter(map(hash, rows), np.int64, matrix.shape[0])


def twins(
    pointing: sparse.csr_array, y: NDArray[np.int64], sets: Sequence[NDArray[np.bool_]]
) -> dict[str, Any]:
    """Test nodes with a twin in training, those with a close one, and how often twins agree.

    That is the share of a validation node's close twins in training that have its class, averaged
    over the validation nodes with such twins; None if there are none.

    Args:
        pointing: The nodes that each node points to, as a matrix of 0 and 1.
        y: The class of every node; that of a test node is not used.
        sets: Masks of the training, validation and test nodes.
    """
    groups = np.unique(row_keys(pointing), return_inverse=True)[1]
    train, val, test = sets[0] & (y >= 0), sets[1] & (y >= 0), sets[2]
    learnt = sparse.csr_array(
        (np.ones(int(train.sum())), (groups[train], y[train])),
        shape=(len(y), int(y.max()) + 1),
    )
    known = learnt.sum(axis=1)[groups]  # training nodes with the same links
    degree = np.diff(pointing.indptr)
    with_twin = (degree > 0) & (known > 0)
    close, agreement = with_twin & (degree > 1), None
    if (val & close).any():
        own = groups[val & close], y[val & close]
        agreement = float((learnt[own] / known[val & close]).mean())
    return {
        "twins": int((test & with_twin).sum()),
        "close_twins": int((test & close).sum()),
        "twin_agreement": agreement,
    }


def duplicates(pointing: sparse.csr_array, x: Any) -> int:
    """How many nodes have the links and features of an earlier one."""
    return x.shape[0] - len(distinct(row_keys(pointing) ^ row_keys(x)))


class Said(NamedTuple):
    """What a probe says, from 0 for chance to 1, and its standard error."""

    score: float
    error: float


def probe(
    x: Any,
    links: Mapping[str, sparse.csr_array],
    y: NDArray[np.int64],
    usable: NDArray[np.bool_],
    of_edges: int = 0,
) -> dict[str, Said]:
    """What ``features``, the neighbours in each direction, and ``features and`` those say.

    The last of the features, ``of_edges``, are statistics of edges, and count with the neighbours.
    The classes are those of the usable nodes. Nothing if fewer than two have three of these.
    """
    sizes = np.bincount(y[usable], minlength=1)
    nodes = np.flatnonzero(usable)
    nodes = nodes[sizes[y[nodes]] >= FOLDS]
    if (sizes >= FOLDS).sum() < 2:
        return {}
    if len(nodes) > _NODES:
        nodes = np.sort(np.random.default_rng(_SEED).choice(nodes, _NODES, replace=False))
        nodes = nodes[np.bincount(y[nodes])[y[nodes]] >= FOLDS]
    classes = np.unique(y[nodes], return_inverse=True)[1]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=_SEED).split(nodes, classes))
    own = x.shape[1] - of_edges
    main, edges = _main(x[:, :own], nodes), _main(x[:, own:], nodes)
    of_features = _predict([main[nodes]] * FOLDS, classes, folds)
    said = {"features": _said(of_features, classes)}
    for name, matrix in links.items():
        of_neighbours = _predict(_heard(main, edges, matrix, nodes, classes, folds), classes, folds)
        joined = _product(of_features, of_neighbours, classes, folds)
        said[name] = _said(of_neighbours, classes)
        said[f"features and {name}"] = _said(joined, classes)
    return said


def _main(x: Any, nodes: NDArray[np.int64]) -> NDArray[Any]:
    """Features as they are, or the main directions of many; a constant if there are none."""
    if not x.shape[1]:
        return np.zeros((x.shape[0], 1), dtype=np.float32)
    if x.shape[1] > _OF_FEATURES:
        return np.asarray(x @ _main_directions(x[nodes], _OF_FEATURES))
    return np.asarray(x.toarray() if sparse.issparse(x) else x)


def _heard(
    main: NDArray[Any],
    edges: NDArray[Any],
    matrix: sparse.csr_array,
    nodes: NDArray[np.int64],
    classes: NDArray[np.int64],
    folds: Folds,
) -> list[NDArray[Any]]:
    """Inputs from the neighbours of each node, without the classes of the test nodes of a fold."""
    rows = matrix[nodes]
    degree = np.diff(rows.indptr)[:, None]
    shared = rows[:, np.bincount(rows.indices, minlength=rows.shape[1]) > 1]
    who = shared @ _main_directions(shared, min(_OF_LINKS, *shared.shape))
    who /= np.linalg.norm(who, axis=1, keepdims=True) + 1e-9
    mean = rows @ main / np.maximum(degree, 1)
    always = np.hstack((mean, np.log1p(degree), who, edges[nodes]))
    heard = []
    for train, _ in folds:
        told = np.zeros((len(main), classes.max() + 1), dtype=np.float32)
        told[nodes[train], classes[train]] = 1
        counts = rows @ told
        heard.append(np.hstack((always, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))))
    return heard


def _main_directions(matrix: Any, count: int) -> NDArray[Any]:
    """The first right singular vectors, one in each column."""
    if not count:
        return np.zeros((matrix.shape[1], 0), dtype=np.float32)
    if not sparse.issparse(matrix) and np.count_nonzero(matrix) < 0.2 * matrix.size:
        matrix = sparse.csr_array(matrix)
    return np.asarray(randomized_svd(matrix, count, random_state=_SEED)[2].T, dtype=np.float32)


def _predict(views: list[NDArray[Any]], classes: NDArray[np.int64], folds: Folds) -> NDArray[Any]:
    """The log-probability of each class, for every node from the folds without it."""
    logarithms = np.zeros((len(classes), classes.max() + 1))
    for view, (train, test) in zip(views, folds, strict=True):
        model = make_pipeline(
            StandardScaler(),
            LogisticRegression(C=0.03, class_weight="balanced", max_iter=100, tol=1e-3),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a rough fit is enough
            model.fit(view[train], classes[train])
        share = model.predict_proba(view[test])
        logarithms[test] = np.log(np.maximum(share, np.finfo(share.dtype).tiny))  # never log 0
    return logarithms


def _product(
    first: NDArray[Any],
    second: NDArray[Any],
    classes: NDArray[np.int64],
    folds: Folds,
) -> NDArray[Any]:
    """Both predictions joined; one that knows nothing does no harm."""
    candidates = [(1 - share) * first + share * second for share in np.linspace(0, 1, 7)]
    joined = np.empty_like(first)
    for others, fold in folds:
        best = max(candidates, key=lambda product: _said(product[others], classes[others]).score)
        joined[fold] = best[fold]
    return joined


def _said(logarithms: NDArray[Any], classes: NDArray[np.int64]) -> Said:
    sizes = np.bincount(classes)
    right = np.bincount(classes[logarithms.argmax(axis=1) == classes], minlength=len(sizes)) / sizes
    chance = 1 / len(sizes)
    error = np.sqrt((right * (1 - right) / sizes).sum()) / len(sizes)
    return Said(float((right.mean() - chance) / (1 - chance)), float(error / (1 - chance)))
