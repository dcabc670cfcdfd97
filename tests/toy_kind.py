"""A kind of model whose scores are known in advance, for the tests of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memohop.data.folds import make_masks
from memohop.fit._candidate import Cost, Fit, Fits, Look, Setting
from memohop.fit._problem import Problem
from memohop.jobs.space import Range, Space
from memohop.training import Enough
from tiny_problem import tiny_problem


@dataclass
class Toy:
    """A kind of model that is right on a share of the nodes, the same for all its settings."""

    id: str
    share: float
    sees_graph: bool = True
    has_memory: bool = False
    never_ends: bool = False
    jobs: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    least: float = 0.0

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        return Cost(self.least, 0.0)

    def openers(self, problem: Problem) -> int:
        return 1

    def first(self, problem: Problem) -> list[Setting]:
        return [Setting(self.id, {}, {"number": 0.0})]

    def space(self, problem: Problem) -> Space:
        return {"number": Range(0.0, 1.0, log=False)}

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        look: Look = lambda share: None,
    ) -> Fits:
        self.jobs.append((len(settings), tuple(splits)))
        try:
            while self.never_ends:
                look(0.5)
        except Enough:
            return [{} for _ in settings]
        right = np.arange(problem.nodes) < self.share * problem.nodes
        said = np.where(right, problem.y, 1 - problem.y)
        outputs = np.stack([1 - said, said], axis=1).astype(np.float32)
        masks = problem.masks
        return [
            {split: Fit(outputs[masks.val[:, split]], outputs[masks.test]) for split in splits}
            for _ in settings
        ]


def toy_problem() -> Problem:
    """A hundred nodes of two classes, with three splits."""
    y = np.arange(100) % 2
    return tiny_problem(y=y, masks=make_masks(y, splits=3, seed=0))
