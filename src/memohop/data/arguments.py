"""Checks of numbers from users, with errors that name the argument and the remedy."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from memohop.errors import UsageError

LARGEST_SEED = 2**32 - 1  # the largest that both PyTorch and scikit-learn take


def whole_number(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """The value as an integer from ``least`` to ``most``."""
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
    """The value as a finite number from ``least`` to ``most``."""
    allowed = f"from {least}" if most == math.inf else f"from {least} to {most}"
    if not isinstance(value, Real) or not math.isfinite(value):
        raise UsageError(f"{name}={value!r} is not a number; give one {allowed}")
    number = float(value)
    if not least <= number <= most:
        raise UsageError(f"{name}={value!r} is out of range; give a number {allowed}")
    return number
