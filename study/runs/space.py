r"""Settings drawn from a search space: few structures, each with many numbers.

A structure is a choice of the model's options; the numbers (learning rate, dropout rates and so on)
are those of :class:`memohop.training.numbers.Numbers`. Networks of one structure train as one
population, which is why :math:`S` structures get :math:`E` sets of numbers each, and not
:math:`S E` settings one of each.

Draws are stratified. The :math:`S` structures divide the values of every option as evenly as
possible. Of every number, each structure gets one value from each of :math:`E` equally likely
ranges, and all :math:`S E` values lie in different ones of :math:`S E` ranges. A draw depends on
its name and the seed alone: two models that share an option or a number get the same values of it,
and a space without an option has the same draws of the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import msgspec

from memohop.errors import UsageError
from memohop.jobs.run import Scalar
from memohop.training.numbers import NUMBERS

_DIGITS = 3  # of a number that is drawn, so that it can be read and typed


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers between two ends, equally likely on a logarithmic scale, or on a linear one."""

    low: float
    high: float
    log: bool = True

    def __post_init__(self) -> None:
        if not (self.low < self.high and (self.low > 0 or not self.log)):
            raise ValueError(f"low={self.low} must be above 0 (if log) and below high={self.high}")

    def at(self, place: float) -> float:
        """The number below which a share ``place`` of the draws lies."""
        if self.log:
            value = self.low * math.pow(self.high / self.low, place)
        else:
            value = self.low + (self.high - self.low) * place
        return float(f"{value:.{_DIGITS}g}")


Choice = list[Scalar | dict[str, Scalar]]
"""Values of an option; a table sets several options together."""

Space = dict[str, Range | Choice]
"""What is drawn, by the name of an option, of a number, or of tables that set several options."""


Drawn = tuple[dict[str, Scalar], ...]
"""Settings: values of options and numbers."""


def draw(space: Mapping[str, Range | Choice], *, structures: int, each: int, seed: int) -> Drawn:
    """The settings, one structure after the other.

    Args:
        space: What to draw from.
        structures: How many structures.
        each: How many settings of each structure.
        seed: Decides the draws.
    """
    columns: dict[str, list[Any]] = {}
    for name, values in space.items():
        places = _places(name, structures, each, seed)
        columns[name] = [_value(values, place) for place in places]
    found: list[dict[str, Scalar]] = []
    for row in zip(*columns.values(), strict=True):
        setting: dict[str, Scalar] = {}
        for name, value in zip(columns, row, strict=True):
            setting |= value if isinstance(value, dict) else {name: value}
        found.append(setting)
    if len({tuple(setting.items()) for setting in found}) < structures * each:
        raise UsageError(
            f"the space of {', '.join(space) or 'nothing'} does not give {structures * each} "
            "different settings; draw a number from a range"
        )
    return tuple(found)


def options_of(space: Mapping[str, Range | Choice]) -> dict[str, list[Any]]:
    """Every option or number that a space sets, with all values it may have or its two ends."""
    found: dict[str, list[Any]] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            found[name] = [values.low, values.high]
            continue
        for value in values:
            for key, one in (value if isinstance(value, dict) else {name: value}).items():
                found.setdefault(key, []).append(one)
    return found


@cache
def _places(name: str, structures: int, each: int, seed: int) -> list[float]:
    """For each setting, the place between 0 and 1 of the value that it gets."""
    random = Random(f"{seed} {name}")
    if name not in NUMBERS:
        order = _order(structures, random)
        return [(place + 0.5) / structures for place in order for _ in range(each)]
    within = [_order(structures, random) for _ in range(each)]
    return [
        (stratum + (within[stratum][structure] + 0.5) / structures) / each
        for structure in range(structures)
        for stratum in _order(each, random)
    ]


def _order(count: int, random: Random) -> list[int]:
    """A random order; of Python's generator only ``random()`` is the same in every version."""
    keys = [random.random() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def _value(values: Range | Choice, place: float) -> Any:
    return values.at(place) if isinstance(values, Range) else values[int(place * len(values))]
