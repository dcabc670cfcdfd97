"""Whether a problem can be scored, and whether accuracy says anything of it."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from memohop.errors import MemohopWarning, UsageError
from memohop.fit._candidate import until
from memohop.fit._certainty import paired_interval
from memohop.fit._problem import Problem
from memohop.fit.candidates._trees import TreeFamily
from memohop.fit.candidates._view_family import SMALL
from memohop.outputs import first_few
from memohop.training.metrics import of_any_targets

_SMALLER = 0.3  # share of the smaller class below which accuracy may say nothing of it
_FEWEST = 10  # nodes of it: fewer cannot be in every part of every split


class SmallClassWarning(MemohopWarning):
    """A class has too few labelled nodes to be validated or tested."""


class RankingWarning(MemohopWarning):
    """Models are chosen by how they rank the nodes of a class that accuracy says nothing of."""


def class_to_find(problem: Problem, seconds: float) -> int | None:
    """The clearly smaller one of two classes, if accuracy says nothing of its nodes; else None.

    Where few nodes have a class, and little tells which, the best accuracy is that of always saying
    the other one. So boosted trees with features of neighbours, which take at most these seconds,
    are compared with that, on validation nodes: of all splits if the table is small.
    """
    learned = problem.masks.train.any(axis=1) | problem.masks.val.any(axis=1)
    sizes = np.bincount(problem.y[learned], minlength=2)
    if problem.classes != 2 or not _FEWEST <= sizes.min() < _SMALLER * sizes.sum():
        return None
    family = TreeFamily("lightgbm+neighbours", "neighbours")
    setting = family.first(problem)[0]
    if family.cost(problem, setting).seconds > seconds:
        return None
    splits = range(problem.splits if len(problem.labelled) < SMALL else 1)
    look = until(clock.monotonic() + seconds)
    said = np.full((problem.nodes, 2), np.nan, dtype=np.float32)
    for split, fit in family.fit(problem, [setting], splits, look=look)[0].items():
        said[problem.masks.val[:, split]] = fit.val
    mask, constant = ~np.isnan(said[:, 0]), np.eye(2, dtype=np.float32)[[sizes.argmax()]]
    said = said[mask]
    gap = paired_interval(problem, mask, said, np.repeat(constant, len(said), axis=0))
    return None if gap.above_zero or gap.says_nothing else int(sizes.argmin())


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
