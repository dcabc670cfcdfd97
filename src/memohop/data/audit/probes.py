"""A quick test of what predicts the labels: the features, the neighbours, or both together.

A *probe* is a logistic regression with classes of equal weight, scored on three folds. Its inputs:

- for the *features*: the features themselves, or their 64 main directions if there are more;
- for the *neighbours* in one direction: the mean of their features, the classes of those in the
  training folds, their number, and the 32 main directions of the links;
- for both *together*: the product of the two probabilities, with the powers that are best on the
  other folds.

What a probe *says* is its balanced accuracy on the scale from chance, 0, to always right, 1. At
most 10000 nodes are used, drawn at random, to keep large graphs quick.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

FOLDS = 3
_NODES = 10_000
_OF_FEATURES = 64
_OF_LINKS = 32
_SEED = 0
Folds: TypeAlias = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


class Said(NamedTuple):
    """What a probe says, from 0 for chance to 1, and its standard error."""

    score: float
    error: float


class Probes(NamedTuple):
    """What the features say, and, by direction, the neighbours alone and with the features."""

    features: Said
    neighbours: dict[str, Said]
    together: dict[str, Said]


def probe(
    x: Any,
    links: Mapping[str, sparse.csr_array],
    y: NDArray[np.int64],
    usable: NDArray[np.bool_],
) -> Probes | None:
    """Probe features and neighbours; None if fewer than two classes have three usable nodes.

    Args:
        x: Features, a dense array or a ``csr_array``.
        links: For each direction, the neighbours of each node as a matrix of 0 and 1.
        y: The class of every node.
        usable: The nodes with a class that may be used.
    """
    sizes = np.bincount(y[usable], minlength=1)
    nodes = np.flatnonzero(usable)
    nodes = nodes[sizes[y[nodes]] >= FOLDS]
    if (sizes >= FOLDS).sum() < 2:
        return None
    if len(nodes) > _NODES:
        nodes = np.sort(np.random.default_rng(_SEED).choice(nodes, _NODES, replace=False))
        nodes = nodes[np.bincount(y[nodes])[y[nodes]] >= FOLDS]
    classes = np.unique(y[nodes], return_inverse=True)[1]
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=_SEED).split(nodes, classes))
    if x.shape[1] > _OF_FEATURES:
        main = x @ _main_directions(x[nodes], _OF_FEATURES)
    else:
        main = x.toarray() if sparse.issparse(x) else x
    of_features = _predict([main[nodes]] * FOLDS, classes, folds)
    neighbours, together = {}, {}
    for name, matrix in links.items():
        of_neighbours = _predict(_heard(main, matrix, nodes, classes, folds), classes, folds)
        neighbours[name] = _said(of_neighbours, classes)
        together[name] = _said(_product(of_features, of_neighbours, classes, folds), classes)
    return Probes(_said(of_features, classes), neighbours, together)


def _heard(
    main: NDArray[Any],
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
    always = np.hstack((rows @ main / np.maximum(degree, 1), np.log1p(degree), who))
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
    found = np.zeros((len(classes), classes.max() + 1))
    for view, (train, test) in zip(views, folds, strict=True):
        model = make_pipeline(
            StandardScaler(),
            LogisticRegression(C=0.03, class_weight="balanced", max_iter=100, tol=1e-3),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a rough fit is enough
            model.fit(view[train], classes[train])
        share = model.predict_proba(view[test])
        found[test] = np.log(np.maximum(share, np.finfo(share.dtype).tiny))  # never log 0
    return found


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
        best = max(candidates, key=lambda found: _said(found[others], classes[others]).score)
        joined[fold] = best[fold]
    return joined


def _said(logarithms: NDArray[Any], classes: NDArray[np.int64]) -> Said:
    sizes = np.bincount(classes)
    right = np.bincount(classes[logarithms.argmax(axis=1) == classes], minlength=len(sizes)) / sizes
    chance = 1 / len(sizes)
    error = np.sqrt((right * (1 - right) / sizes).sum()) / len(sizes)
    return Said(float((right.mean() - chance) / (1 - chance)), float(error / (1 - chance)))
