"""Parts of the labelled nodes: for training, for validation and for the test.

A fifth of the labelled nodes, or those that the graph names, are set aside as test nodes before
anything else happens. The others are dealt to folds, class by class: split ``s`` validates on fold
``s`` and trains on the other folds. The test nodes are scored once, after everything is chosen.
The kept models are fitted after that, and learn from every label: the nodes are dealt anew,
including the test nodes unless the graph named them, and model ``s`` validates on fold ``s``, to
decide when to stop, and trains on the others.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memohop.data.check import MASKS, as_columns, check_masks
from memohop.data.splits import Mask, OwnSplit
from memohop.errors import UsageError, whole_number

if TYPE_CHECKING:
    from memohop.pyg import Data

_TESTED = 5  # one in this many labelled nodes is a test node
_TEST = "a test"
_FEWEST = 3  # nodes of a class, for it to be validated and tested


class Masks(NamedTuple):
    """The nodes of each part: ``[nodes, splits]``, ``test`` ``[nodes]``.

    Attributes:
        train, val: For the search; a single split if the graph names its validation nodes.
        end_train, end_val: For the kept models.
        test: The test nodes.
    """

    train: Mask
    val: Mask
    test: Mask
    end_train: Mask
    end_val: Mask


def own_split(data: Data, split: int | None) -> OwnSplit | None:
    """The split that masks name; None if there are none.

    Args:
        data: A graph with ``train_mask`` and ``test_mask``, and perhaps ``val_mask``, of shape
            ``[nodes]`` or ``[nodes, splits]``; or without any of them.
        split: The column of the masks to use; needed if there are several.
    """
    names = [name for name in MASKS if data.get(name) is not None]
    if not names:
        if split is not None:
            raise UsageError(f"split={split}, but the graph has no masks; leave it out")
        return None
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
    chosen = [column[:, [index]].cpu() for column in columns]
    check_masks(dict(zip(names, chosen, strict=True)))
    masks = {name: mask[:, 0].numpy() for name, mask in zip(names, chosen, strict=True)}
    nothing = np.zeros_like(masks["train_mask"])
    return OwnSplit(*(masks.get(name, nothing) for name in MASKS))


def make_masks(
    y: NDArray[Any],
    *,
    splits: int,
    seed: int,
    own: OwnSplit | None = None,
    groups: NDArray[Any] | None = None,
    both_classes: bool = False,
) -> Masks:
    """Deal the labelled nodes to the parts of each split; a ``UsageError`` if they are too few.

    Args:
        y: Class numbers, -1 for nodes without a label; or numbers, NaN for those.
        splits: How many splits, two or more.
        seed: Decides which nodes are in which part.
        own: The split that the graph came with. Its test nodes are never learned from. Its
            validation nodes, if it names some, validate until the search is over, which then has
            this split alone. If none of its test nodes has a label, the others are dealt as if it
            had none.
        groups: The group of each node; a group is never split.
        both_classes: Whether every part needs nodes of every class. There are fewer splits if
            a class is too small for this many.
    """
    labelled = ~np.isnan(y) if y.dtype.kind == "f" else y >= 0
    tested = _TESTED
    if both_classes:
        rarest = int(np.bincount(y[labelled]).min())
        tested, splits = min(tested, max(rarest, 2)), min(splits, max(rarest - 1, 2))
    pool = labelled
    if own is not None:
        pool = labelled & (own.train | own.val)
    if own is not None and (labelled & own.test).any():
        test = labelled & own.test
    else:
        own, test = None, _deal(y, pool, tested, seed, groups, _TEST) == 0
    order, purpose = np.arange(splits), f"splits={splits}"
    of_end = _deal(y, pool, splits, seed + 1, groups, purpose)[:, None] == order
    end_train = pool[:, None] & ~of_end
    if own is not None and own.val.any():
        val, train = (labelled & mask for mask in (own.val, own.train))
        return Masks(train[:, None], val[:, None], test, end_train, of_end)
    if own is not None:
        return Masks(end_train, of_end, test, end_train, of_end)
    purpose += " beside a test"
    val = _deal(y, pool & ~test, splits, seed + 2, groups, purpose)[:, None] == order
    return Masks((pool & ~test)[:, None] & ~val, val, test, end_train, of_end)


def _deal(
    y: NDArray[Any],
    pool: Mask,
    folds: int,
    seed: int,
    groups: NDArray[Any] | None,
    purpose: str,
) -> NDArray[np.int64]:
    """The fold of every node; -1 outside the pool and for classes that are too small."""
    from sklearn.model_selection import (  # slow to import; a training that deals none needs none
        GroupKFold,
        KFold,
        StratifiedGroupKFold,
        StratifiedKFold,
    )

    rows, least = np.flatnonzero(pool), folds
    if y.dtype.kind == "f":
        plain, grouped = KFold, GroupKFold
        counts = {"labelled nodes": len(rows)}
    else:
        plain, grouped = StratifiedKFold, StratifiedGroupKFold
        sizes, least = np.bincount(y[rows], minlength=1), max(folds, _FEWEST)
        counts = {"labelled nodes of the largest class": int(sizes.max())}
        rows = rows[sizes[y[rows]] >= _FEWEST]
    of_rows = None if groups is None else groups[rows]
    if of_rows is not None:
        counts["groups of labelled nodes"] = len(np.unique(of_rows))
    for what, count in counts.items():
        if count < least:
            raise UsageError(
                f"{purpose} takes {least} {what}, and there are {count}; label more nodes"
                + (", of more groups" if groups is not None else "")
                + (", or lower splits" if purpose != _TEST else "")
            )
    cut = (plain if groups is None else grouped)(folds, shuffle=True, random_state=seed)
    fold = np.full(len(y), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about classes with fewer nodes than folds
        for number, (_, members) in enumerate(cut.split(rows, y[rows], of_rows)):
            fold[rows[members]] = number
    return fold
