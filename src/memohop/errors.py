"""The errors that a user can cause or meet, and the base of our warnings."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

LARGEST_SEED = 2**32 - 1  # the largest that both PyTorch and scikit-learn take
_SHOWN = 40  # names that an error lists


class MemohopError(Exception):
    """Base of every error raised on purpose; its text names what is wrong and the remedy.

    Example:
        >>> import memohop
        >>> issubclass(memohop.UsageError, memohop.MemohopError)
        True
    """


class UsageError(MemohopError, ValueError):
    """An argument that cannot be right; exit code 2 on the command line.

    Example:
        >>> import memohop
        >>> memohop.load("texsa")
        Traceback (most recent call last):
        memohop.errors.UsageError: there is no dataset named 'texsa'; did you mean texas?
    """


class DataError(MemohopError, RuntimeError):
    """A file or a network connection that failed; exit code 1 on the command line.

    Example:
        >>> import memohop
        >>> try:
        ...     memohop.load("texas", root="no-such-folder")
        ... except memohop.DataError as error:
        ...     print(str(error)[:37])
        the data folder no-such-folder has no
    """


class MemohopWarning(UserWarning):
    """Base of every warning that is given on purpose; a command shows its text as one line."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in a registry; it suggests the nearest names that are."""
    known = list(known)
    nearest = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    listed = f"known: {', '.join(known[:_SHOWN])}{more}."
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else listed
    return UsageError(f"there is no {kind} named {name!r}; {hint}")


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Refuse a value that is not one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise UsageError(f"{name} must be one of {listed}, not {value!r}")


def check_distinct(name: str, values: Iterable[object]) -> None:
    """Refuse a list that has a value twice."""
    seen: list[object] = []  # not a set: values may be lists
    for value in values:
        if value in seen:
            raise UsageError(f"{name} has {value} twice; leave one of them out")
        seen.append(value)


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
