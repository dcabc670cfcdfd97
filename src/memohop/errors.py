"""The two ways in which things go wrong for a user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHOWN = 40  # names that an error lists


class MemohopError(Exception):
    """Base of every error raised on purpose: its text names what was given and the remedy."""


class UsageError(MemohopError, ValueError):
    """An argument that cannot be right. The command line answers with exit code 2."""


class DataError(MemohopError, RuntimeError):
    """Files or a network that fail to deliver. The command line answers with exit code 1."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in a registry, with the nearest names that are."""
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
    """Refuse a list in which a value is there twice."""
    seen: list[object] = []
    for value in values:
        if value in seen:
            raise UsageError(f"{name} has {value} twice; leave one of them out")
        seen.append(value)
