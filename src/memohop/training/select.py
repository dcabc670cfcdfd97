"""Choosing between settings by validation scores, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memohop.errors import UsageError
from memohop.training.member import MemberResult


@dataclass(frozen=True)
class Selection:
    """The setting with the best mean validation score, and what it gives on test.

    Attributes:
        setting: learning rate, lambda and so on, shared by the results.
        results: those of this setting, one per split and seed.
        val: mean validation score; NaN where a result diverged, as are the next two.
        mean: mean test score.
        std: sample standard deviation of the test score (ddof=1); 0 for a single result.
    """

    setting: dict[str, Any]
    results: tuple[MemberResult, ...]
    val: float
    mean: float
    std: float

    @property
    def diverged(self) -> int:
        """How many of the results diverged."""
        return sum(result.diverged for result in self.results)

    @property
    def rank(self) -> float:
        """What a choice goes by: the validation score, and less than any where one diverged."""
        return -math.inf if self.diverged else self.val


def select(results: Sequence[MemberResult]) -> Selection:
    """The setting whose mean validation score is best; the first of equals.

    A setting of which a result diverged is not chosen.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[MemberResult]] = {}
    for result in results:
        groups.setdefault(result.member.setting, []).append(result)
    selections = [summarise(group) for group in groups.values()]
    return best(selections)


def best(selections: Sequence[Selection]) -> Selection:
    """The one with the best mean validation score of which no result diverged."""
    found = max(selections, key=lambda selection: selection.rank)
    if found.diverged:
        raise UsageError(
            f"nothing can be chosen: of each of the {len(selections)} setting(s) a run diverged "
            f"(of the first one, lr={found.setting.get('lr')}, {found.diverged} of "
            f"{len(found.results)}); give a lower lr, or features of a smaller scale"
        )
    return found


def summarise(results: Sequence[MemberResult]) -> Selection:
    """Mean and standard deviation over results of one setting."""
    test = np.array([result.test for result in results])
    return Selection(
        setting=dict(results[0].member.setting),
        results=tuple(results),
        val=float(np.mean([result.val for result in results])),
        mean=float(test.mean()),
        std=float(test.std(ddof=1)) if len(test) > 1 else 0.0,
    )
