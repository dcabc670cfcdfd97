"""A kind of model whose scores are known in advance, for the tests of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memohop.fit._candidate import Candidate, Cost, Fit, Fits, Look, Setting
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._portfolio import search
from memohop.fit._problem import Problem
from memohop.jobs.space import Range, Space
from memohop.training import Enough
from tiny_problem import tiny_problem


@dataclass
class Toy:
    """A kind of model that is right on a share of the nodes, the same for all its settings.

    Attributes:
        never_ends: Whether it goes on until its time is up, without a result.
        first_only: Whether it has time for the first split alone.
        least: The seconds that it asks for.
        jobs: How many settings it was fitted with, and the splits, each time.
    """

    id: str
    share: float
    sees_graph: bool = True
    has_memory: bool = False
    never_ends: bool = False
    first_only: bool = False
    least: float = 0.0
    jobs: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

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
        look: Look = lambda: None,
    ) -> Fits:
        self.jobs.append((len(settings), tuple(splits)))
        try:
            while self.never_ends:
                look()
        except Enough:
            return [{} for _ in settings]
        right = np.arange(problem.nodes) < self.share * problem.nodes
        done = [split for split in splits if split == 0 or not self.first_only]
        return [fits_of(problem, says(problem, right, 1.0), done) for _ in settings]


@dataclass(frozen=True)
class Model:
    """Stands in for a fitted model: it says of every node what it was made with."""

    said: np.ndarray
    has_rows = takes_labels = takes_attributes = needs_whole_graph = False

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> np.ndarray:
        return self.said[rows]


def fits_of(problem: Problem, said: np.ndarray, splits: Sequence[int]) -> dict[int, Fit]:
    """What a model that says the same of all nodes in every split says."""
    masks = problem.masks
    return {
        split: Fit(said[masks.val[:, split]], said[masks.test], Model(said)) for split in splits
    }


def says(problem: Problem, right: np.ndarray, sure: float) -> np.ndarray:
    """Outputs that are right on some nodes, all with the same probability."""
    said = np.where(right == (problem.y == 1), sure, 1 - sure)
    return np.stack([1 - said, said], axis=1).astype(np.float32)


def candidate(
    problem: Problem, said: np.ndarray, name: str = "toy", seconds: float = 0.0
) -> Candidate:
    """A candidate that was fitted on all splits."""
    fits = fits_of(problem, said, range(problem.splits))
    val = problem.masks.val
    scores = {split: problem.score(fit.val, val[:, split]) for split, fit in fits.items()}
    return Candidate(Setting(name, {}, {}), fits, scores, seconds)


def toy_problem() -> Problem:
    """A hundred nodes of two classes, with three splits."""
    return tiny_problem(100, splits=3)


def searched(problem, kinds, time=None, trials=None, **more):
    """What a search finds."""
    return search(problem, kinds, **{"time": time, "trials": trials, "seed": 0} | more)


def counts(run, *names):
    """How many settings of each kind were tried."""
    families = [tried.setting.family for tried in run.candidates]
    return [families.count(name) for name in names]
