"""Training, validation and test nodes: splits of the labelled nodes, or the masks of a graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.arguments import whole_number
from memohop.data.assemble import Masks
from memohop.data.check import MASKS, as_columns, check_masks
from memohop.data.splits import class_wise_splits
from memohop.data.tables.column_kinds import first_few
from memohop.errors import UsageError
from memohop.pyg import Data

_FRACTIONS = (0.6, 0.2, 0.2)
_OF_TRAINING = (0.75, 0.25, 0.0)  # shares if the graph has its own test nodes


class SmallClassWarning(UserWarning):
    """A class has too few labelled nodes for training, validation and test."""


def given_masks(data: Data, split: int | None) -> dict[str, Tensor]:
    """The masks that a graph came with, ``[nodes]``, by name; empty if it has none.

    Args:
        data: A graph with ``train_mask`` and ``test_mask``, and perhaps ``val_mask``, of shape
            ``[nodes]`` or ``[nodes, splits]``; or without any of them.
        split: The column of the masks to use; needed if there are several.
    """
    names = [name for name in MASKS if data.get(name) is not None]
    if not names:
        if split is not None:
            raise UsageError(f"split={split}, but the graph has no masks; leave it out")
        return {}
    if not {"train_mask", "test_mask"} <= set(names):
        raise UsageError(
            f"the graph has {' and '.join(names)} alone; give it train_mask and test_mask (without "
            "val_mask, some of the training nodes are for validation), or no mask"
        )
    columns = as_columns(data, names)
    count = columns[0].shape[1]
    if split is None and count > 1:
        raise UsageError(
            f"the masks have {count} columns, and a classifier is for one split; choose one, from "
            f"split=0 to split={count - 1}, or give the graph without masks to have it split anew"
        )
    index = whole_number("split", split or 0, least=0)
    if index >= count:
        raise UsageError(
            f"split={index}, but the masks have {count} column(s); give one from 0 to {count - 1}"
        )
    chosen = {name: column[:, index].cpu() for name, column in zip(names, columns, strict=True)}
    check_masks({name: mask[:, None] for name, mask in chosen.items()})
    return chosen


def make_masks(
    y: Tensor, classes: NDArray[Any], given: dict[str, Tensor], *, splits: int, seed: int
) -> Masks:
    """Masks of training, validation and test nodes, ``[nodes, splits]``.

    If the graph came with masks, every split has its test nodes. If these masks include validation
    nodes, all splits are the same; if not, each split takes another quarter of the training nodes
    for validation. Arguments as for :func:`partition`.
    """
    if not given:
        return partition(y, classes, splits=splits, seed=seed)
    masks = {name: mask[:, None].repeat(1, splits) for name, mask in given.items()}
    if "val_mask" in masks:
        return masks["train_mask"], masks["val_mask"], masks["test_mask"]
    y = y.masked_fill(~given["train_mask"], -1)
    train, val, _ = partition(y, classes, splits=splits, seed=seed, fractions=_OF_TRAINING)
    return train, val, masks["test_mask"]


def partition(
    y: Tensor,
    classes: NDArray[Any],
    *,
    splits: int,
    seed: int,
    fractions: Sequence[float] = _FRACTIONS,
) -> Masks:
    """Masks of training, validation and test nodes, ``[nodes, splits]``, class by class.

    If a class has fewer labelled nodes than there are sets, all of them are training nodes in every
    split, with a warning.

    Args:
        y: Class numbers, -1 for nodes without a label, which are in no set.
        classes: The names of the classes.
        splits: How many splits.
        seed: Decides which nodes are in which set.
        fractions: The shares of training, validation and test nodes; 0 for an empty set.
    """
    sets = ("training", "validation", "test")[: sum(share > 0 for share in fractions)]
    sizes = torch.bincount(y[y >= 0], minlength=len(classes))
    small = sizes < len(sets)
    named = first_few(
        [
            f"{name!r} ({size})"
            for name, size in zip(classes.tolist(), sizes.tolist(), strict=True)
            if 0 < size < len(sets)
        ]
    )
    if int((~small).sum()) < 2:
        raise UsageError(
            f"fewer than two classes have the {len(sets)} labelled nodes that {' and '.join(sets)} "
            f"need: class {named} is too small; label more nodes"
        )
    if named:
        warnings.warn(
            f"class {named} has fewer than {len(sets)} labelled nodes: they are trained on in "
            f"every split and never used for {' or '.join(sets[1:])}; label more of them, or merge "
            "the class with another",
            SmallClassWarning,
            stacklevel=4,
        )
    of_small = (y >= 0) & small[y.clamp(min=0)]
    train, val, test = class_wise_splits(
        y.masked_fill(of_small, -1), fractions=fractions, splits=splits, seed=seed
    )
    return train | of_small[:, None], val, test
