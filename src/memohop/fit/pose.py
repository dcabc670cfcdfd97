"""From the graph that a user gave to the problem that a search solves."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.data.arguments import whole_number
from memohop.data.check import MASKS, as_columns, check_masks
from memohop.data.folds import Masks, make_masks
from memohop.data.splits import OwnSplit
from memohop.data.tables.read import OwnGraph
from memohop.errors import MemohopWarning, UsageError
from memohop.fit.inputs import Given
from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Problem
from memohop.outputs import first_few
from memohop.pyg import Data
from memohop.training.metrics import of_any_targets
from memohop.training.objective import Objective


class SmallClassWarning(MemohopWarning):
    """A class has too few labelled nodes to be validated or tested."""


def given_split(graph: Any, split: int | None) -> OwnSplit | None:
    """The split that a graph came with; None if it has none.

    Args:
        graph: An ``OwnGraph``, a ``Data``, or features, which have no split.
        split: The column of the masks of a ``Data`` to use; needed if there are several.
    """
    if isinstance(graph, Data):
        return _given_masks(graph, split)
    if split is not None:
        raise UsageError(f"split={split}, but X is not a Data with masks; leave it out")
    return graph.masks if isinstance(graph, OwnGraph) else None


def pose(
    x: Matrix,
    target: NDArray[Any],
    objective: Objective,
    given: Given,
    own: OwnSplit | None,
    *,
    classes: Sequence[str],
    splits: int,
    seed: int,
) -> Problem:
    """Deal the labelled nodes to splits; a ``UsageError`` if they are too few.

    A class that is so small that it is only learned from is named in a warning.

    Args:
        x: The features.
        target: Class numbers, or numbers to predict.
        objective: Loss and score.
        given: The rest of the graph.
        own: The split that it came with.
        classes: The names of the classes; empty if numbers are predicted.
        splits: How many splits.
        seed: Decides which nodes are in which part.
    """
    metric = objective.metric
    masks = make_masks(
        target,
        splits=splits,
        seed=seed,
        own=own,
        groups=given.groups,
        both_classes=metric.is_ranking,
    )
    if metric.needs_different:  # targets wherever a score is computed
        parts = {"training": masks.train, "validation": masks.val, "test": masks.test[:, None]}
        what = "different numbers" if metric.is_regression else "both classes"
        for part, mask in parts.items():
            if not all(column.any() and np.ptp(target[column]) > 0 for column in mask.T):
                raise UsageError(
                    f"metric={metric.id!r} needs {part} nodes of {what}, and a split has those of "
                    f"one; label more nodes, or use {of_any_targets(metric)}"
                )
    if classes and not np.isin(target[masks.test], target[masks.train.any(axis=1)]).any():
        raise UsageError(
            "no class of a test node has a training node, so there is nothing to test: is a class "
            "all in one group, or in one part of the split? Give groups, or parts, that share "
            "classes"
        )
    _warn_of_small_classes(target, classes, masks)
    arcs = given.arcs(x.shape[0]).numpy()
    return Problem(
        x=x,
        arcs=arcs,
        y=target,
        objective=objective,
        masks=masks,
        groups=given.groups,
        weights=given.weights,
    )


def _warn_of_small_classes(target: NDArray[Any], classes: Sequence[str], masks: Masks) -> None:
    scored = set(target[masks.val.any(axis=1) | masks.test].tolist())
    learned = target[masks.train.any(axis=1)].tolist() if classes else []
    sizes = Counter(one for one in learned if one not in scored)
    if sizes:
        named = first_few([f"{classes[one]!r} ({size})" for one, size in sorted(sizes.items())])
        warnings.warn(
            f"class {named} has too few labelled nodes: they are learned from, but no score "
            "includes them; label more of them, or merge the class with another",
            SmallClassWarning,
            stacklevel=4,
        )


def _given_masks(data: Data, split: int | None) -> OwnSplit | None:
    """The masks that a graph came with; None if it has none.

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
    chosen = {name: column[:, index].cpu() for name, column in zip(names, columns, strict=True)}
    check_masks({name: mask[:, None] for name, mask in chosen.items()})
    nothing = torch.zeros_like(chosen["train_mask"])
    return OwnSplit(*(chosen.get(name, nothing).numpy() for name in MASKS))
