"""Nodes that are there twice, and test nodes that have a twin in training.

Two nodes are *twins* if they point to exactly the same nodes, at least one. In an undirected graph
that is: if they have the same neighbours. With one link in common that is often chance, with two or
more (*close* twins) hardly ever. A test node with a close twin in training whose class is the same
leaks: what tells its class is that twin, and not what a model has learnt. *Duplicates* are nodes
that have the same features as an earlier node and point to the same nodes.
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
    """A number for each row, which is the same for rows with the same columns."""
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
    """Counts the twins of one split.

    Args:
        keys: What `link_keys` gives for the nodes that each node points to.
        degree: How many these are.
        train: The training nodes.
        test: The test nodes.
    """
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

    The mean over the validation nodes with such twins of the share that agrees; None if there are
    none. All of `train` and `val` have a class in `y`, and no other class is looked at.
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


def duplicates(keys: NDArray[np.int64], x: NDArray[Any]) -> int:
    """How many nodes have the links and features of an earlier one."""
    features = np.fromiter((hash((row + 0.0).tobytes()) for row in x), np.int64, len(x))  # -0 is 0
    return len(x) - len(distinct(keys ^ features))
