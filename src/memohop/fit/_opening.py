"""The opening of the search: which settings it starts with, and in which order.

Second settings of a kind come after the first ones of all kinds: the more of them there were, the
sooner each kind was cut off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

from memohop.fit._candidate import Family, Setting
from memohop.fit._problem import Problem

# Shares of the time.
_HALF = 0.5  # for the first network with memory, if need be
_QUARTER = 0.25  # for one fit
_LITTLE = 0.1  # for the first network with memory at least


class Opener(NamedTuple):
    """A setting that the search starts with.

    Attributes:
        setting: The setting.
        least: The seconds that it gets at least.
        is_first: Whether it is the first one of its kind.
    """

    setting: Setting
    least: float
    is_first: bool


def openers(
    problem: Problem,
    families: Mapping[str, Family],
    waiting: dict[str, list[Setting]],
    limit: float,
    trials: int | None,
) -> list[Opener]:
    """The settings that the search starts with, in their order.

    Those are left out that even the largest share of the time, or the RAM, is too small for;
    the first network with memory may have more of it, and is cut off if need be.

    Args:
        problem: The problem.
        families: The kinds, by id.
        waiting: Their first settings, from which these are taken.
        limit: Seconds.
        trials: The most settings of each kind; None for no limit.
    """
    settings: list[Setting] = []
    for name, family in families.items():
        count = min(family.openers(problem) + bool(problem.curves), trials or sys.maxsize)
        settings += waiting[name][:count]
        del waiting[name][:count]
    kinds = [families[setting.family] for setting in settings]
    least = [
        kind.cost(problem, setting).seconds for kind, setting in zip(kinds, settings, strict=True)
    ]
    with_memory = [i for i, kind in enumerate(kinds) if kind.has_memory]
    sure = min(with_memory, key=least.__getitem__, default=None)
    cheapest = min(least, default=0.0)
    possible = [
        i
        for i in sorted(range(len(settings)), key=lambda i: (kinds[i].sees_graph, i != sure))
        if least[i] < math.inf
        and least[i] <= max((_HALF if i == sure else _QUARTER) * limit, cheapest)
    ]
    first = {kinds[i].id: i for i in reversed(possible)}
    openers = [
        Opener(
            settings[i], min(least[i], _LITTLE * limit) if i == sure else 0.0, i in first.values()
        )
        for i in possible
    ]
    return sorted(openers, key=lambda opener: not opener.is_first)
