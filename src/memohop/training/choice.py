"""Choosing between settings by validation scores, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from memohop.errors import UsageError
from memohop.training.member import Result

_Candidate = TypeVar("_Candidate")


def first_best(
    candidates: Iterable[_Candidate], score: Callable[[_Candidate], float]
) -> _Candidate | None:
    """The rule of every choice: the candidate with the highest score, the first among equals.

    A candidate without a score (NaN), such as one that diverged, is never chosen; None if no
    candidate has one.
    """
    scored = [(candidate, score(candidate)) for candidate in candidates]
    sound = [pair for pair in scored if not math.isnan(pair[1])]
    return max(sound, key=lambda pair: pair[1])[0] if sound else None


@dataclass(frozen=True)
class Selection:
    """A setting with its results and their mean scores.

    Attributes:
        setting: learning rate, lambda and so on, shared by the results.
        results: one per split and seed.
        val: mean validation score; NaN if a result diverged, as are the next two.
        mean: mean test score.
        std: sample standard deviation of the test score (ddof=1); 0 for a single result.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(split=range(3), lr=(0.01, 0.1))
        >>> chosen = memohop.select(memohop.train(data, "mlp", members, epochs=3))
        >>> len(chosen.results), chosen.setting["lr"] in (0.01, 0.1)
        (3, True)
    """

    setting: dict[str, Any]
    results: tuple[Result, ...]
    val: float
    mean: float
    std: float

    @property
    def diverged(self) -> int:
        """How many of the results diverged."""
        return sum(result.diverged for result in self.results)

    @property
    def score(self) -> float:
        """The score that a choice compares: the validation score; NaN if a result diverged."""
        return math.nan if self.diverged else self.val


def select(results: Sequence[Result]) -> Selection:
    """The setting with the best mean validation score, among those of which no result diverged.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(split=range(2), lr=(0.01, 1000.0))
        >>> results = memohop.train(data, "mlp", members, epochs=20)
        >>> memohop.select(results).setting["lr"]
        0.01
    """
    return best(selections_of((dict(result.member.setting), result) for result in results))


def selections_of(results: Iterable[tuple[Mapping[str, Any], Result]]) -> list[Selection]:
    """Each setting with its results, in order of first appearance."""
    groups: dict[tuple[tuple[str, Any], ...], list[Result]] = {}
    for setting, result in results:
        groups.setdefault(tuple(setting.items()), []).append(result)
    return [_summarise(dict(setting), group) for setting, group in groups.items()]


def best(selections: Sequence[Selection]) -> Selection:
    """The first of those with the best mean validation score, leaving out diverged ones."""
    found = first_best(selections, lambda selection: selection.score)
    if found is None:
        first = selections[0]
        raise UsageError(
            f"nothing can be chosen: each of the {len(selections)} setting(s) has a run that "
            f"diverged (the first one, lr={first.setting.get('lr')}, has {first.diverged} of "
            f"{len(first.results)}); give a lower lr, or features of a smaller scale"
        )
    return found


def _summarise(setting: dict[str, Any], results: Sequence[Result]) -> Selection:
    val, test = (np.array([getattr(one, name) for one in results]) for name in ("val", "test"))
    std = float(test.std(ddof=1)) if len(test) > 1 else 0.0
    return Selection(setting, tuple(results), float(val.mean()), float(test.mean()), std)
