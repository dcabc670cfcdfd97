"""Nodes that are there twice, and test nodes that have a twin in training.

Two nodes are *twins* if they point to exactly the same nodes, at least one; in an undirected graph,
if they have the same neighbours. With one common link that is often chance, with two or more
(*close* twins) hardly ever. A test node with a close twin of the same class in training leaks: the
twin gives its class away, whatever a model has learnt. *Duplicates* have the same features as an
earlier node and point to the same nodes.

``keys`` are those of :func:`link_keys`, and ``degree`` counts the nodes that each node points to.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.assemble import distinct


class Twins(NamedTuple):
    """How many test nodes have a twin in training, and how many of them a close one."""

    twins: int
    close: int


def link_keys(links: sparse.csr_array) -> NDArray[np.int64]:
    """A number for each row, the same for rows with the same columns."""
    columns = links.indices
    return np.fromiter(
        (hash(columns[start:end].tobytes()) for start, end in pairwise(links.indptr)),
        np.int64,
        links.shape[0],
    )


def twins(
    keys: NDArray[np.int64],
    degree: NDArray[np.int64],
    train: NDArray[np.bool_],
    test: NDArray[np.bool_],
) -> Twins:
    """Count the twins of one split."""
    found = test & (degree > 0) & np.isin(keys, keys[train])
    return Twins(int(found.sum()), int((found & (degree > 1)).sum()))


def twin_agreement(
    keys: NDArray[np.int64],
    degree: NDArray[np.int64],
    y: NDArray[np.int64],
    train: NDArray[np.bool_],
    val: NDArray[np.bool_],
) -> float | None:
    """How often a close twin in training has the class of a validation node.

    The share of agreeing twins, averaged over the validation nodes with such twins; None if there
    are none. All nodes of ``train`` and ``val`` have a class in ``y``; no other class is used.
    """
    groups = np.unique(keys, return_inverse=True)[1]
    learnt = sparse.csr_array(
        (np.ones(int(train.sum())), (groups[train], y[train])),
        shape=(len(y), int(y.max()) + 1),
    )
    known = learnt.sum(axis=1)[groups]  # training nodes with the same links
    close = np.flatnonzero(val & (degree > 1) & (known > 0))
    if not close.size:
        return None
    return float((learnt[groups[close], y[close]] / known[close]).mean())


def duplicates(keys: NDArray[np.int64], x: Any) -> int:
    """How many nodes have the links and features of an earlier one."""
    nodes = x.shape[0]
    if sparse.issparse(x):
        rows = (
            x.indices[start:end].tobytes() + x.data[start:end].tobytes()
            for start, end in pairwise(x.indptr)
        )
    else:
        rows = ((row + 0.0).tobytes() for row in x)  # -0 is 0
    features = np.fromiter(map(hash, rows), np.int64, nodes)
    return nodes - len(distinct(keys ^ features))
