"""Kinds of model that learn from the features of a :class:`~memohop.fit.views.View`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, ClassVar

import numpy as np
import torch

from memohop.fit.candidates.cost import room_in_ram, view_bytes
from memohop.fit.candidates.family import Fits, Look, Part, Setting, by_split, fitted, no_fits
from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Outputs, Problem
from memohop.fit.views import Sees, View
from memohop.training import Enough

_OTHER = 0.2  # share of variations with other means
SMALL = 10_000
"""Rows of a table below which one thread is quicker than several."""

Learned = tuple[Part, Callable[[Matrix], Outputs]]
"""A fitted model, and its outputs for features."""


@dataclass(frozen=True)
class ViewFamily(ABC):
    """Models with the same features.

    Attributes:
        id: Its name.
        sees: The features that the models use.
        balanced: Whether classes, rather than nodes, have equal weight.
        memory: The most bytes that the process may hold; by default what is free.
    """

    id: str
    sees: Sees
    balanced: bool = False
    has_memory: bool = False
    memory: int | None = None
    are_trees: ClassVar[bool] = False

    @property
    def sees_graph(self) -> bool:
        """Whether the models use arcs."""
        return self.sees != "columns"

    def least_seconds(self, problem: Problem, setting: Setting) -> float:
        """None, if there is the RAM: a fit is quick, or stops with a model that is of use."""
        enough = self.least_bytes(problem, setting) <= room_in_ram(self.memory)
        return 0.0 if enough else math.inf

    def least_bytes(self, problem: Problem, setting: Setting) -> float:
        """The RAM of a fit."""
        return view_bytes(problem, sees_graph=self.sees_graph, trees=self.are_trees)

    def first(self, problem: Problem) -> list[Setting]:
        """The first settings; none for models of columns if there are no columns."""
        if not (self.sees_graph or problem.has_columns):
            return []
        ways = self._ways(problem)
        return [Setting(self.id, way, numbers) for numbers in self.starts() for way in ways]

    def openers(self, problem: Problem) -> int:
        """The first numbers, in every way to make the features."""
        return len(self._ways(problem))

    def view(self, problem: Problem, setting: Setting) -> View:
        """How the features of a setting are made."""
        return problem.view(self.sees, **setting.options)

    def features(self, problem: Problem, setting: Setting, split: int) -> Matrix:
        """The features of the labelled nodes, given the training targets of a split."""
        return problem.features(self.sees, split, **setting.options)

    def near_options(
        self, problem: Problem, best: Setting, generator: np.random.Generator
    ) -> Mapping[str, Any]:
        """The options of a setting, or at times others."""
        others = [way for way in self._ways(problem) if way != best.options]
        return others[0] if others and generator.random() < _OTHER else best.options

    def _ways(self, problem: Problem) -> list[Mapping[str, Any]]:
        """The options: which columns have means over the neighbours, if that is a choice."""
        if not (self.sees_graph and problem.has_words):
            return [{}]
        return [{"means": "numbers"}, {"means": "all"}]

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        keep: bool = False,
        look: Look = lambda share: None,
    ) -> Fits:
        """Fit them, on several splits at the same time if the table is small.

        On a large one, each fit has all threads, and there is only one copy of its features.
        """
        found, one_at_a_time, ended = no_fits(settings), Lock(), Event()

        def ask() -> None:
            with one_at_a_time:
                if ended.is_set():
                    raise Enough
                look(sum(map(len, found)) / (len(settings) * len(splits)))

        def fit_on(split: int) -> None:
            with one_at_a_time:  # what all splits have in common is made once
                features = self.features(problem, settings[0], split)
            for fits, setting in zip(found, settings, strict=True):
                if any(found):
                    ask()
                part, say = self.learn(problem, features, setting, split, ask)
                fits[split] = fitted(part if keep else None, problem, split, features, say)

        with ThreadPoolExecutor(splits_at_once(problem)) as pool:
            try:
                for done in [pool.submit(fit_on, split) for split in splits]:
                    done.result()
            except Enough:
                pass
            finally:
                ended.set()  # for threads that are still at work, after Ctrl-C for example
        return by_split(found)

    @abstractmethod
    def starts(self) -> list[Mapping[str, float]]:
        """The numbers of the first settings, the most promising first."""

    @abstractmethod
    def learn(
        self,
        problem: Problem,
        features: Matrix,
        setting: Setting,
        split: int,
        look: Callable[[], None],
    ) -> Learned:
        """Fit one setting to the training nodes of a split.

        Args:
            problem: The problem to fit it on.
            features: The features of the labelled nodes.
            setting: The setting.
            split: The split.
            look: Called now and then; if it raises ``Enough``, the model so far counts.
        """


def splits_at_once(problem: Problem) -> int:
    """How many splits are fitted at the same time."""
    return torch.get_num_threads() if len(problem.labelled) < SMALL else 1
