r"""Search spaces: settings drawn evenly from one, and settings near a good one.

A structure is a choice of the model's options; the numbers (learning rate, dropout rates and so on)
are those of :class:`memohop.Member`. Networks of one structure train as one
population, which is why :math:`S` structures get :math:`E` sets of numbers each, and not
:math:`S E` settings one of each.

Draws are stratified. The :math:`S` structures divide the values of every option as evenly as
possible. Of every number, each structure gets one value from each of :math:`E` equally likely
ranges, and all :math:`S E` values lie in different ones of :math:`S E` ranges. A draw depends on
its name and the seed alone: two models that share an option or a number get the same values of it,
and a space without an option has the same draws of the others.

A setting near another has a structure with at most one choice changed, and numbers near its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from memohop.errors import UsageError
from memohop.training import NUMBERS

if TYPE_CHECKING:
    from numpy.random import Generator

_DIGITS = 3  # of a number that is drawn, so that it can be read and typed
_STEP = 0.6  # standard deviation of the logarithm of the factor between near numbers
_REDRAWN = 0.4  # of the numbers without a scale
_UNCHANGED = 2  # times as often as a choice of the structure is changed, all of them stay


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


_Scalar = bool | int | float | str
Choice = list[_Scalar | dict[str, _Scalar]]
"""Values of an option; a table sets several options together."""

Space = dict[str, Range | Choice]
"""What is drawn, by the name of an option, of a number, or of tables that set several options."""

DrawnSettings = tuple[dict[str, _Scalar], ...]
"""Settings: values of options and numbers."""


def draw(
    space: Mapping[str, Range | Choice], *, structures: int, each: int, seed: int
) -> DrawnSettings:
    """The settings, ``each`` of them of one structure after the other."""
    settings: list[dict[str, _Scalar]] = [{} for _ in range(structures * each)]
    for name, values in space.items():
        places = _places(name, structures, each, seed)
        for setting, place in zip(settings, places, strict=True):
            value = _value(values, place)
            setting |= value if isinstance(value, dict) else {name: value}
    if not space or len({tuple(setting.items()) for setting in settings}) < len(settings):
        raise UsageError(
            f"the space of {', '.join(space) or 'nothing'} does not give {structures * each} "
            "different settings; draw a number from a range"
        )
    return tuple(settings)


def near_options(
    space: Mapping[str, Range | Choice], options: Mapping[str, Any], generator: Generator
) -> dict[str, Any]:
    """Options with at most one of the space's choices changed."""
    place = int(generator.integers(len(space) + _UNCHANGED)) if space else 0
    if place >= len(space):
        return dict(options)
    name, values = [*space.items()][place]
    assert not isinstance(values, Range)
    tables = [value if isinstance(value, dict) else {name: value} for value in values]
    others = [table for table in tables if not table.items() <= options.items()]
    return {**options, **others[generator.integers(len(others))]} if others else dict(options)


def near_numbers(
    space: Mapping[str, Range | Choice], numbers: Mapping[str, float], generator: Generator
) -> dict[str, float]:
    """Numbers a few times larger or smaller; those without a logarithmic scale at times redrawn."""
    changed = dict(numbers)
    for name, values in space.items():
        if isinstance(values, Range) and values.log:
            value = numbers[name] * math.exp(generator.normal(scale=_STEP))
            changed[name] = min(max(value, values.low), values.high)
        elif generator.random() < _REDRAWN:
            changed[name] = float(_value(values, generator.random()))
    return changed


def options_of(space: Mapping[str, Range | Choice]) -> dict[str, list[Any]]:
    """Every option or number that a space sets, with all values it may have or its two ends."""
    options: dict[str, list[Any]] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            options[name] = [values.low, values.high]
            continue
        for value in values:
            for key, choice in (value if isinstance(value, dict) else {name: value}).items():
                options.setdefault(key, []).append(choice)
    return options


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
