"""The interface of a kind of model in a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Inputs, Outputs, Problem
from memohop.fit.saved import Saved

Look = Callable[[float], None]
"""Called now and then with the share of the work that is done.

It may raise :class:`~memohop.training.Enough`: the fit then ends with its result so far.
"""

Fits = list[dict[int, "Fitted"]]
"""The results of each setting by split, in order; a fit that ended early may lack some."""


@dataclass(frozen=True)
class Setting:
    """One candidate: a kind of model with everything that decides how it is fitted.

    Attributes:
        family: The id of its kind.
        options: The structure; candidates that share it can be fitted together.
        numbers: Learning rate, penalties and so on.
    """

    family: str
    options: Mapping[str, Any]
    numbers: Mapping[str, float]


class Part(Protocol):
    """A fitted model, which predicts and can be saved."""

    def outputs(self, inputs: Inputs) -> Outputs:
        """Its outputs for every node of a graph, given the targets that ``inputs`` holds."""

    def saved(self) -> Saved:
        """The data from which ``from_saved`` of its class makes it again, without its view."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate on one split.

    Attributes:
        val: Its outputs for the validation nodes, ``[nodes, outputs]``.
        test: Its outputs for the test nodes.
        part: The model, if it was to be kept.
    """

    val: Outputs
    test: Outputs
    part: Part | None = None

    @property
    def is_sound(self) -> bool:
        """Whether all outputs are finite."""
        return bool(np.isfinite(self.val).all() and np.isfinite(self.test).all())


class Family(Protocol):
    """A kind of model."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def sees_graph(self) -> bool:
        """Whether it uses arcs."""

    @property
    def has_memory(self) -> bool:
        """Whether it passes messages through a memory."""

    def openers(self, problem: Problem) -> int:
        """How many of its first settings differ so much that a search starts with all of them."""

    def least_seconds(self, problem: Problem, setting: Setting) -> float:
        """Seconds below which it is not worth starting a fit; infinite if its RAM is too small."""

    def least_bytes(self, problem: Problem, setting: Setting) -> float:
        """The RAM of a fit, beside what the process holds."""

    def first(self, problem: Problem) -> list[Setting]:
        """The settings to try first on any graph, the most promising first."""

    def near(
        self, problem: Problem, best: Setting, count: int, generator: np.random.Generator
    ) -> list[Setting]:
        """Variations of a setting, all with the same options, which may differ from its own."""

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        keep: bool = False,
        look: Look = lambda share: None,
    ) -> Fits:
        """Fit settings with the same options, each on each of some splits."""


def no_fits(settings: Sequence[Setting]) -> Fits:
    """Empty results, one for each setting."""
    return [{} for _ in settings]


def by_split(found: Fits) -> Fits:
    """The same results in the order of the splits, not that in which they came."""
    return [dict(sorted(fits.items())) for fits in found]


def fitted(
    part: Part | None,
    problem: Problem,
    split: int,
    features: Matrix,
    say: Callable[[Matrix], Outputs],
) -> Fitted:
    """A candidate on one split.

    Args:
        part: The model, if it is to be kept.
        problem: The problem that it was fitted on.
        split: The split.
        features: The features of the labelled nodes.
        say: The outputs of the model for features.
    """
    val, test = problem.masks.val[problem.labelled, split], problem.masks.test[problem.labelled]
    return Fitted(say(features[val]), say(features[test]), part)
