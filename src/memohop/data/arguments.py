"""Checks of the numbers that users hand in, with errors that name the argument and the remedy."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from memohop.errors import UsageError

LARGEST_SEED = 2**32 - 1  # as many as the generators of PyTorch and scikit-learn tell apart


def whole_number(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """`value` as an integer that is at least `least`, and at most `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name}={value!r} is not a whole number; give one from {least}") from None
    if number < least:
        raise UsageError(f"{name}={value!r} is too small; give a whole number from {least}")
    if most is not None and number > most:
        raise UsageError(f"{name}={value!r} is too large; give a whole number up to {most}")
    return number


def real_number(name: str, value: Any, *, least: float, most: float = math.inf) -> float:
    """`value` as a finite number between `least` and `most`."""
    allowed = f"from {least}" if most == math.inf else f"from {least} to {most}"
    if not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{name}={value!r} is not a number; give one {allowed}")
    number = float(value)
    if not least <= number <= most:
        raise UsageError(f"{name}={value!r} is out of range; give a number {allowed}")
    return number
