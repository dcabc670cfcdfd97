"""Kinds of model that learn from the features of a :class:`~memohop.own.views.View`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from memohop.own.candidates.family import Setting
from memohop.own.problem import Problem
from memohop.own.views import Sees


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
    openers: int = 1

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
        return [Setting(self.id, {}, numbers) for numbers in self.starts()]

    @abstractmethod
    def starts(self) -> list[Mapping[str, float]]:
        """The numbers of the first settings, the most promising first."""
