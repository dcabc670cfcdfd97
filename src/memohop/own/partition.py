"""Splits of a user's labelled nodes: stratified, and honest about classes that are too small."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.assemble import Masks
from memohop.data.splits import class_wise_splits
from memohop.errors import UsageError

FRACTIONS = (0.6, 0.2, 0.2)
_SETS = 3


class SmallClassWarning(UserWarning):
    """A class has too few labelled nodes to be in training, validation and test at once."""


def partition(y: Tensor, classes: NDArray[Any], *, splits: int, seed: int) -> Masks:
    """Masks of training, validation and test nodes, `[nodes, splits]`, class by class.

    Nodes of a class with fewer than three labelled nodes are trained on in every split and never
    tested, with a warning.

    Args:
        y: Class numbers, -1 for nodes without a label, which are in no set.
        classes: What the numbers stand for.
        splits: How many splits.
        seed: Decides which nodes are in which set.
    """
    sizes = torch.bincount(y[y >= 0], minlength=len(classes))
    small = sizes < _SETS
    named = [
        f"{name!r} ({size})"
        for name, size, is_small in zip(
            classes.tolist(), sizes.tolist(), small.tolist(), strict=True
        )
        if is_small
    ]
    if int((~small).sum()) < 2:
        raise UsageError(
            f"fewer than two classes have the {_SETS} labelled nodes that training, validation and "
            f"test need: class {', '.join(named)} is too small; label more nodes"
        )
    if named:
        warnings.warn(
            f"class {', '.join(named)} has fewer than {_SETS} labelled nodes: they are trained on "
            "in every split and never tested; label more of them, or merge the class with another",
            SmallClassWarning,
            stacklevel=4,
        )
    of_small = (y >= 0) & small[y.clamp(min=0)]
    train, val, test = class_wise_splits(
        y.masked_fill(of_small, -1), fractions=FRACTIONS, splits=splits, seed=seed
    )
    return train | of_small[:, None], val, test
