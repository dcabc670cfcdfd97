"""A trial that was made, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memohop.own.space import Trial
from memohop.training import MemberResult, Selection


@dataclass(frozen=True)
class Tried:
    """A trial on every split, with its scores; the best one of each model has its networks."""

    trial: Trial
    selection: Selection


def best_of(tried: Sequence[Tried]) -> Tried:
    """The trial with the best mean validation score; the first of equals."""
    return max(tried, key=lambda one: one.selection.val)


def without_networks(tried: Tried) -> Tried:
    """The same scores alone."""
    return _with_results(tried, (replace(one, state=None) for one in tried.selection.results))


def for_unscaled(tried: Tried, scale: float) -> Tried:
    """The same networks, with the division of all features by a number inside their first layer."""

    def unscaled(result: MemberResult) -> MemberResult:
        if result.state is None:
            return result
        weight = result.state["input.weight"] / scale
        return replace(result, state={**result.state, "input.weight": weight})

    return _with_results(tried, map(unscaled, tried.selection.results))


def _with_results(tried: Tried, results: Iterable[MemberResult]) -> Tried:
    return replace(tried, selection=replace(tried.selection, results=tuple(results)))
