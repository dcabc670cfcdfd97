"""Whether a problem can be scored."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from memohop.errors import MemohopWarning, UsageError
from memohop.fit._problem import Problem
from memohop.outputs import first_few
from memohop.training.metrics import of_any_targets


class SmallClassWarning(MemohopWarning):
    """A class has too few labelled nodes to be validated or tested."""


def check_scorable(problem: Problem, classes: Sequence[Any]) -> None:
    """A ``UsageError`` if a part has nothing to score; a warning for a class that is only learned.

    The names of ``classes`` are none if numbers are predicted.
    """
    metric, target, masks = problem.objective.metric, problem.y, problem.masks
    if metric.needs_different:  # targets wherever a score is computed
        parts = {"training": masks.train, "validation": masks.val, "test": masks.test[:, None]}
        what = "different numbers" if metric.is_regression else "both classes"
        for part, mask in parts.items():
            if not all(column.any() and np.ptp(target[column]) > 0 for column in mask.T):
                raise UsageError(
                    f"metric={metric.id!r} needs {part} nodes of {what}, and a split has those of "
                    f"one; label more nodes, or use {of_any_targets(metric)}"
                )
    if not classes:
        return
    learned = target[masks.train.any(axis=1)]
    if not np.isin(target[masks.test], learned).any():
        raise UsageError(
            "no class of a test node has a training node, so there is nothing to test: is a class "
            "all in one group, or in one part of the split? Give groups, or parts, that share "
            "classes"
        )
    numbers, sizes = np.unique(learned, return_counts=True)
    scored = np.isin(numbers, target[masks.val.any(axis=1) | masks.test])
    if not scored.all():
        few = zip(numbers[~scored], sizes[~scored], strict=True)
        named = first_few([f"{str(classes[number])!r} ({size})" for number, size in few])
        warnings.warn(
            f"class {named} has too few labelled nodes: they are learned from, but no score "
            "includes them; label more of them, or merge the class with another",
            SmallClassWarning,
            stacklevel=4,
        )
