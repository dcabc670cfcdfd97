"""A trial with its results, and the choice between trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from memohop.own.space import Trial
from memohop.training import Selection
from memohop.training.choice import best, first_best

State = dict[str, Tensor] | None
"""Parameters and buffers of a network, if they are kept."""


@dataclass(frozen=True)
class Tried:
    """A trial with its scores on every split; the best one of a model also has its networks."""

    trial: Trial
    selection: Selection


def leading(tried: Sequence[Tried]) -> Tried:
    """The trial with the best mean validation score so far; the first trial if all diverged."""
    return first_best(tried, lambda one: one.selection.score) or tried[0]


def best_of(tried: Sequence[Tried]) -> Tried:
    """The best trial at the end; a ``UsageError`` if all diverged."""
    best([one.selection for one in tried])
    return leading(tried)


def with_states(tried: Tried, change: Callable[[State], State]) -> Tried:
    """The same scores, with ``change`` applied to the parameters of each network."""
    results = tuple(replace(one, state=change(one.state)) for one in tried.selection.results)
    return replace(tried, selection=replace(tried.selection, results=results))
