"""Graphs that are made on the spot; their splits are those of :mod:`memohop.data.splits`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memohop.data.arcs import graph_data, merge_arcs
from memohop.data.splits import FRACTIONS, make_splits
from memohop.errors import UsageError, real_number, whole_number
from memohop.pyg import Data

_MOST = 10**9  # rows or columns of an array


def csbm(
    *,
    homophily: float = 0.2,
    nodes: int = 1000,
    classes: int = 5,
    degree: float = 10,
    channels: int = 64,
    strength: float = 0.22,
    seed: int = 0,
    split: str = "class-wise",
    splits: int = 10,
    fractions: Sequence[float] = FRACTIONS,
) -> Data:
    """Contextual stochastic block model with exactly the homophily asked for, up to rounding.

    Of the ``round(nodes * degree / 2)`` undirected edges the share ``homophily`` is drawn without
    replacement from the pairs of nodes of one class, the rest from the other pairs. There are no
    self-loops, and both arcs of an edge are stored. The features are ``strength`` times the mean of
    the class plus noise, both normal with variance ``1 / channels``. The classes are as equal in
    size as possible, in random order.
    """
    homophily = real_number("homophily", homophily, least=0, most=1)
    nodes = whole_number("nodes", nodes, least=1, most=_MOST)
    classes = whole_number("classes", classes, least=1)
    edges = round(nodes * real_number("degree", degree, least=0) / 2)
    channels = whole_number("channels", channels, least=1, most=_MOST)
    strength = real_number("strength", strength, least=0)
    generator = np.random.default_rng(whole_number("seed", seed, least=0))
    of_features = np.random.default_rng([seed, 1])  # the same features at every homophily
    if nodes < classes:
        raise UsageError(f"classes={classes} is more than nodes={nodes}; ask for fewer classes")

    y = generator.permutation(np.arange(nodes) % classes)
    within = round(homophily * edges)
    inside = _pairs_within(y, within, generator)
    pairs = np.hstack((inside, _pairs_between(y, edges - within, generator)))
    means = of_features.normal(scale=channels**-0.5, size=(classes, channels))
    noise = of_features.normal(scale=channels**-0.5, size=(nodes, channels))
    return graph_data(
        strength * means[y] + noise,
        y,
        merge_arcs(*pairs, nodes=nodes, both_ways=True),
        make_splits(split, y, fractions=fractions, splits=splits, seed=seed),
    )


def digits(
    *,
    neighbours: int = 10,
    seed: int = 0,
    split: str = "class-wise",
    splits: int = 10,
    fractions: Sequence[float] = FRACTIONS,
) -> Data:
    """Scikit-learn's 1797 handwritten digits, each with arcs to its nearest neighbours.

    The distance is that of the pixels, and of digits equally far the earlier one counts as nearer.
    The features are the 64 pixels, scaled to [0, 1]. The seed decides only the splits.
    """
    from scipy.spatial.distance import cdist
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)
    count = len(pixels)
    neighbours = whole_number("neighbours", neighbours, least=1)
    if neighbours >= count:
        raise UsageError(f"neighbours={neighbours} must be less than the {count} digits there are")
    # Pixels are whole numbers, so these squared distances are exact and ties are true ties.
    distances = cdist(pixels, pixels, "sqeuclidean")
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argsort(axis=1, kind="stable")[:, :neighbours]
    source = np.repeat(np.arange(count), neighbours)
    return graph_data(
        pixels / 16,
        y,
        merge_arcs(source, nearest.reshape(-1), nodes=count),
        make_splits(split, y, fractions=fractions, splits=splits, seed=seed),
    )


def _pairs_within(
    y: NDArray[np.int64], count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """``count`` distinct pairs of two nodes of one class, as a ``[2, count]`` array."""
    in_order, sizes = y.argsort(kind="stable"), np.bincount(y)
    label, number = _sample(sizes * (sizes - 1) // 2, count, generator, "one class")
    # All pairs of n nodes in a circle: one starts at `first` and is `step` + 1 long, up to n / 2.
    # Those half a circle long are there once, from the first half of the circle.
    step, first = np.divmod(number, sizes[label])
    begin = (sizes.cumsum() - sizes)[label]
    return in_order[begin + np.stack((first, (first + step + 1) % sizes[label]))]


def _pairs_between(
    y: NDArray[np.int64], count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """``count`` distinct pairs of two nodes of different classes, as a ``[2, count]`` array."""
    # A node is paired with all nodes of later classes, which follow one another in `in_order`.
    in_order, sizes = y.argsort(kind="stable"), np.bincount(y)
    ends = sizes.cumsum()
    later = len(y) - ends
    label, number = _sample(sizes * later, count, generator, "two classes")
    first, second = np.divmod(number, later[label])
    return in_order[np.stack(((ends - sizes)[label] + first, ends[label] + second))]


def _sample(
    blocks: NDArray[np.int64], count: int, generator: np.random.Generator, of: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct numbers below the sum of ``blocks``, as a block and a number within it each."""
    total = int(blocks.sum())
    if count > total:
        raise UsageError(
            f"the degree and homophily asked for take {count} edges between nodes of {of}, and "
            f"there are {total} such pairs; lower degree, change homophily or raise nodes"
        )
    drawn = np.sort(generator.choice(total, size=count, replace=False)) if count else np.arange(0)
    starts = blocks.cumsum() - blocks
    block = np.searchsorted(starts, drawn, side="right") - 1
    return block, drawn - starts[block]
