r"""The contribution of each feature to the logits of trees and linear models.

For trees these are LightGBM's own contributions. In a linear model, feature :math:`j` of node
:math:`i` adds :math:`w_{jc}\,(x_{ij} - \bar{x}_j)` to the logit of class :math:`c`: like those of
trees, contributions are differences from the mean over all nodes. Adding the same number to all
logits changes no probability: only differences between classes count here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.trees import Trees
from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Inputs

Numbers = NDArray[np.float64]

_LOOKED_AT = 400  # nodes, at most, over which the contributions of trees are averaged
_FEWEST = 30  # of them, however many trees there are
_WORK = 400_000  # nodes times trees: some seconds
_AT_ONCE = 50


def mean_sizes(part: Trees | Linear, inputs: Inputs) -> Numbers:
    """The mean absolute contribution of each feature, over nodes and classes, ``[features]``.

    Contributions of trees take long to compute, so some hundred nodes stand for all, or fewer if
    there are very many trees, as with many classes.
    """
    features = part.view.features(inputs, inputs.y)
    if isinstance(part, Linear):
        weight = _between_classes(part.weight.astype(np.float64)[None])[0]
        return np.abs(weight).mean(axis=1) * _mean_deviations(features)
    count = int(np.clip(_WORK // part.count, _FEWEST, _LOOKED_AT))
    rows = np.unique(np.linspace(0, inputs.nodes - 1, count).astype(int))
    total = np.zeros(features.shape[1])
    for some in np.array_split(rows, -(-len(rows) // _AT_ONCE)):
        found = part.contributions(features[some])
        total += np.abs(_between_classes(found)).mean(axis=2).sum(axis=0)
    return total / len(rows)


def of_node(
    part: Trees | Linear, inputs: Inputs, index: int, first: int, second: int | None
) -> Numbers:
    """The contribution of each feature of a node to the margin of two classes, ``[features]``.

    Args:
        part: The model.
        inputs: The graph.
        index: The node.
        first: The class that a positive contribution supports.
        second: The class that it opposes; None for a number, to which contributions add.
    """
    features = part.view.features(inputs, inputs.y)
    if isinstance(part, Linear):
        own = features[[index]]
        dense = own.toarray() if sparse.issparse(own) else own
        apart = dense[0] - np.asarray(features.mean(axis=0)).ravel()
        found = apart[:, None] * part.weight.astype(np.float64)
    else:
        found = part.contributions(features[[index]])[0]
        if part.view.classes == 2:
            found = np.hstack([-found, found]) / 2
    return found[:, first] - (0 if second is None else found[:, second])


def _between_classes(found: Numbers) -> Numbers:
    """Contributions ``[..., outputs]`` without the part that all classes have in common."""
    outputs = found.shape[-1]
    if outputs == 1:
        return found
    if outputs == 2:
        return found[..., 1:] - found[..., :1]
    return found - found.mean(axis=-1, keepdims=True)


def _mean_deviations(features: Matrix) -> Numbers:
    """The mean distance of each feature from its mean."""
    mean = np.asarray(features.mean(axis=0), dtype=np.float64).ravel()
    if not sparse.issparse(features):
        return np.abs(features - mean).mean(axis=0)
    columns = sparse.csc_array(features)
    stored = np.diff(columns.indptr)
    apart = np.abs(columns.data - np.repeat(mean, stored))
    sums = np.bincount(np.repeat(np.arange(len(mean)), stored), apart, minlength=len(mean))
    nodes = features.shape[0]
    return (sums + (nodes - stored) * np.abs(mean)) / nodes
