"""A trial with its results, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from memohop.own.space import Trial
from memohop.training import MemberResult, Selection
from memohop.training.choice import best, first_best


@dataclass(frozen=True)
class Tried:
    """A trial with its scores on every split; the best one of a model has its networks as well."""

    trial: Trial
    selection: Selection


def leading(tried: Sequence[Tried]) -> Tried:
    """The trial with the best mean validation score so far; the first trial if all diverged."""
    return first_best(tried, lambda one: one.selection.score) or tried[0]


def best_of(tried: Sequence[Tried]) -> Tried:
    """The same at the end; a ``UsageError`` if all diverged."""
    best([one.selection for one in tried])
    return leading(tried)


def without_networks(tried: Tried) -> Tried:
    """The trial with its scores alone."""
    return _with_results(tried, (replace(one, state=None) for one in tried.selection.results))


def feature_scale(x: Tensor) -> float:
    """The root mean square of the features that are not 0."""
    stored = int((x != 0).sum())
    norm = float(torch.linalg.vector_norm(x, dtype=torch.float64))
    return norm / stored**0.5 if stored else 1.0


def for_unscaled(tried: Tried, scale: float) -> Tried:
    """The same networks for undivided features: their first layer divides them by the scale."""

    def unscaled(result: MemberResult) -> MemberResult:
        if result.state is None:
            return result
        weight = result.state["input.weight"] / scale
        return replace(result, state={**result.state, "input.weight": weight})

    return _with_results(tried, map(unscaled, tried.selection.results))


def _with_results(tried: Tried, results: Iterable[MemberResult]) -> Tried:
    return replace(tried, selection=replace(tried.selection, results=tuple(results)))
