"""The start of a search: the first settings of every kind, their order, and their least time.

Kinds of columns come first, then one network with memory, then everything else: whatever the others
take, the verdict on the graph and on memory has something to compare.
"""

from __future__ import annotations

import math
import sys
import time as clock
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from memohop.errors import UsageError
from memohop.fit.candidate import Candidate
from memohop.fit.candidates.cost import room_in_ram
from memohop.fit.candidates.family import Family, Setting
from memohop.fit.certainty import paired_interval
from memohop.fit.problem import Problem
from memohop.ram import in_units
from memohop.training.room import resident_bytes

if TYPE_CHECKING:
    from memohop.fit.portfolio import Run

OPENING = 0.35
"""The share of the time for the first settings of every kind."""
_MOST = 0.25  # share of the time that a setting may need to be worth starting
_MEMORY = 0.5  # the same for the first network with memory, which is cut off if need be
_LEAST = 0.1  # share of the time that it gets, if it needs so much, beside that of all settings
_MANY = 100  # classes that take most of the RAM
_COMPARED = 10  # comparisons of two models after the search, beside one of each kind


class Opening(NamedTuple):
    """A candidate to start with, and the seconds that it gets at least."""

    candidate: Candidate
    seconds: float = 0.0


def openings(run: Run) -> list[Opening]:
    """The settings that a search starts with, in their order, taken from those that wait.

    Those are left out that even the largest share of the time, or the RAM, is too small for.
    """
    settings: list[Setting] = []
    for name, family in run.families.items():
        count = family.openers(run.problem)
        count = count if run.trials is None else min(count, run.trials)
        settings += run.waiting[name][:count]
        del run.waiting[name][:count]
    kinds = [run.families[one.family] for one in settings]
    least = [
        kind.least_seconds(run.problem, one) for kind, one in zip(kinds, settings, strict=True)
    ]
    with_memory = [index for index, kind in enumerate(kinds) if kind.has_memory]
    sure = min(with_memory, key=least.__getitem__, default=None)
    most = [_finite((_MEMORY if i == sure else _MOST) * run.time) for i in range(len(settings))]
    kept = [i for i, needed in enumerate(least) if needed <= max(most[i], min(least))]
    kept.sort(key=lambda i: (kinds[i].sees_graph, i != sure))
    return [
        Opening(Candidate(settings[i]), min(least[i], _LEAST * run.time) if i == sure else 0.0)
        for i in kept
        if least[i] < math.inf
    ]


def check_room(problem: Problem, families: Sequence[Family], memory: int | None) -> None:
    """Refuse a problem of which no kind of model fits in the RAM.

    Args:
        problem: The problem.
        families: The kinds of model.
        memory: The most bytes that the process may hold; by default what is free.
    """
    firsts = [(family, first) for family in families for first in family.first(problem)[:1]]
    needs = [family.least_bytes(problem, first) for family, first in firsts]
    room = room_in_ram(memory)
    if not needs or min(needs) <= room:
        return
    held, classes = resident_bytes(), f" and {problem.classes} classes" * bool(problem.classes)
    limit = f"memory={in_units(memory)}" if memory is not None else f"{in_units(room)} of free RAM"
    raise UsageError(
        f"{limit} is too little for {problem.nodes} nodes, {problem.arcs.shape[1]} arcs{classes}: "
        f"the process holds {in_units(held)} already, and the smallest kind of model takes about "
        f"{in_units(min(needs))} more; give {in_units(1.1 * (held + min(needs)))}, or fewer "
        f"{'classes' if problem.classes > _MANY else 'nodes or columns'}"
    )


def seconds_to_compare(run: Run) -> float:
    """How long the comparisons after the search will take, by one of them on validation nodes."""
    first, begin = run.all_splits[0], clock.monotonic()
    said = next((one.fits[first].val for one in run.ranked() if first in one.fits), None)
    if said is None:
        return 0.0
    masks = run.problem.masks
    paired_interval(run.problem, masks.val[:, first], said, said)
    each = (clock.monotonic() - begin) * max(masks.test.sum() / len(said), 1)
    return (len(run.families) + _COMPARED) * float(each)


def _finite(seconds: float) -> float:
    return min(seconds, sys.float_info.max)  # what does not fit in RAM needs infinite time
