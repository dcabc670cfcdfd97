"""Random splits into training, validation and test nodes.

Split ``s`` depends on ``(seed, s)`` alone: asking for more splits leaves the first ones unchanged.
The shares of the training, validation and test nodes need not add up to 1: the rest is in no set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memohop.errors import UsageError, real_number, unknown_name, whole_number

SPLITS = ("random", "class-wise")
FRACTIONS = (0.48, 0.32, 0.20)
_MOST_SPLITS = 10**6

Mask: TypeAlias = NDArray[np.bool_]
Sets: TypeAlias = NDArray[np.bool_]
"""Training, validation and test nodes of each split, ``[3, nodes, splits]``."""


class OwnSplit(NamedTuple):
    """The split that a graph came with, ``[nodes]`` each; ``val`` may be empty."""

    train: Mask
    val: Mask
    test: Mask


def make_splits(
    kind: str,
    y: NDArray[np.int64],
    *,
    fractions: Sequence[float] = FRACTIONS,
    splits: int = 10,
    seed: int = 0,
) -> Sets:
    """Splits of a kind.

    Args:
        kind: ``random`` for all nodes alike, or ``class-wise`` for each class by itself, to have
            every class in every set; a node with a negative class is then in no set.
        y: The classes.
        fractions: The shares of the training, validation and test nodes.
        splits: How many.
        seed: Decides which nodes are in which set.
    """
    if kind not in SPLITS:
        raise unknown_name("split", kind, SPLITS)
    shares = _check_fractions(fractions)
    least = np.count_nonzero(shares)
    if kind == "random":
        groups = [np.arange(len(y))]
    else:
        groups = [np.flatnonzero(y == label) for label in np.unique(y[y >= 0])]
    for members in groups:
        if len(members) >= least:
            continue
        if kind == "random":
            raise UsageError(
                f"num_nodes={len(y)} is too small for {least} sets; "
                "give a larger graph or set a fraction to 0"
            )
        raise UsageError(
            f"class {y[members[0]]} has {len(members)} node(s), too few for a class-wise "
            f"split into {least} sets; use random splits (split='random')"
        )
    splits = whole_number("splits", splits, least=1, most=_MOST_SPLITS)
    seed = whole_number("seed", seed, least=0)
    sets = np.zeros((3, len(y), splits), dtype=bool)
    cuts = [(members, np.cumsum(_sizes(len(members), shares))) for members in groups]
    for split in range(splits):
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(split,)))
        for members, ends in cuts:
            pieces = np.split(generator.permutation(members), ends)
            for mask, piece in zip(sets, pieces, strict=False):  # the last piece is in no set
                mask[piece, split] = True
    return sets


def _sizes(count: int, shares: tuple[float, float, float]) -> list[int]:
    """Sizes of the three sets; none with a share is empty.

    Their ends are rounded, not their sizes: shares with a sum of 1 use up all nodes.
    """
    ends = [min(round(count * sum(shares[:part])), count) for part in range(4)]
    sizes = [end - begin for begin, end in pairwise(ends)]
    for part in range(3):
        if shares[part] > 0 and sizes[part] == 0:
            sizes[part] = 1
            if sum(sizes) > count:
                sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    try:
        train, val, test = fractions
    except (TypeError, ValueError):
        raise UsageError(
            f"fractions={fractions!r} must be three numbers, for train, validation and test"
        ) from None
    train, val, test = (real_number("fractions", share, least=0) for share in (train, val, test))
    if train == 0 or math.fsum((train, val, test)) > 1 + 1e-9:
        raise UsageError(
            f"fractions={fractions!r} must have a positive share for train and a sum of 1 at most"
        )
    return train, val, test
