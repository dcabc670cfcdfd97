"""Kinds of model that learn from the features of a :class:`~memohop.own.views.View`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from memohop.own.candidates.family import Setting
from memohop.own.neighbourhood import Matrix
from memohop.own.problem import Problem
from memohop.own.views import Sees, View

_OTHER = 0.2  # share of variations with other means


@dataclass(frozen=True)
class ViewFamily(ABC):
    """Models with the same features.

    Attributes:
        id: Its name.
        sees: The features that the models use.
        balanced: Whether classes, rather than nodes, have equal weight.
    """

    id: str
    sees: Sees
    balanced: bool = False
    has_memory: bool = False

    @property
    def sees_graph(self) -> bool:
        """Whether the models use arcs."""
        return self.sees != "columns"

    def least_seconds(self, problem: Problem, setting: Setting) -> float:
        """None: a fit is quick, or stops with a model that is of use."""
        return 0.0

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

    @abstractmethod
    def starts(self) -> list[Mapping[str, float]]:
        """The numbers of the first settings, the most promising first."""
