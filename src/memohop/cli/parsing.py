"""Turns the text of options into values, or refuses it with a remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memohop.errors import UsageError, unknown_name
from memohop.training.numbers import RATES

_DIGITS = 18  # of a whole number: more can only be a mistake
_MOST_NUMBERS = 100_000  # of a list


def model_options(
    model: str,
    known: dict[str, Any],
    given: list[str] | None,
    numbers: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """The options of a model; they are checked, and so are numbers that only some models have."""
    for name in RATES:
        if name in numbers and name not in known:
            raise UsageError(f"{model} has no {name}; leave out --{name.replace('_', '-')}")
    if any(numbers.get("lam", ())) and "decoupling" not in known:
        raise UsageError(
            f"--lam weights the decoupling loss, which {model} does not have; leave it out, or "
            "use a model with memory, such as gcn+mmp"
        )
    options = {}
    for name, text in name_value_pairs("option", given):
        if name in RATES:
            raise UsageError(f"--option {name}={text}: give --{name.replace('_', '-')} {text}")
        if name not in known:
            raise unknown_name(f"option of {model}", name, known)
        options[name] = value_of(name, text, like=known[name])
    return options


def name_value_pairs(flag: str, given: list[str] | None) -> list[tuple[str, str]]:
    """The names and values of an option given as ``name=value``, once or several times."""
    for text in given or ():
        if "=" not in text:
            raise UsageError(f"--{flag} {text}: give it as name=value")
    return [(name, text) for name, _, text in (pair.partition("=") for pair in given or ())]


def value_of(name: str, text: str, *, like: Any = None) -> Any:
    """The value of a text: of the type of ``like``, or else of the type it looks like."""
    words = {"true": True, "yes": True, "false": False, "no": False}
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        if text.lower() not in words:
            raise UsageError(f"{name}={text}: give true or false")
        return words[text.lower()]
    for kind in (int, float):
        try:
            found = [kind(part) for part in text.split(",")]
        except ValueError:
            continue
        if like is not None and (len(found) > 1 or (isinstance(like, int) and kind is float)):
            break
        return tuple(found) if len(found) > 1 else found[0]
    if like is not None:
        raise UsageError(f"{name}={text}: give a {'whole ' * isinstance(like, int)}number")
    return words.get(text.lower(), text)


def number_list(flag: str, text: str) -> list[float]:
    """Numbers separated by commas, without repetitions."""
    try:
        found = list(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        raise UsageError(
            f"--{flag} {text}: give a number, or several separated by commas, such as 0,0.1"
        )
    return found


def id_list(flag: str, text: str, *, count_alone: bool = False) -> list[int]:
    """Whole numbers such as ``0,3`` or ``0-4``; with ``count_alone`` a single 3 means 0, 1, 2."""
    if count_alone and re.fullmatch(rf"[1-9]\d{{,{_DIGITS - 1}}}", text):
        return list(_few(flag, text, range(int(text))))
    found: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(rf"(\d{{1,{_DIGITS}}})(?:-(\d{{1,{_DIGITS}}}))?", part)
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        if not numbers or (count_alone and text == "0"):
            raise UsageError(f"--{flag} {text}: give whole numbers such as 0,3 or a range like 0-4")
        found |= dict.fromkeys(_few(flag, text, numbers))
    return list(found)


def _few(flag: str, text: str, numbers: range) -> range:
    if len(numbers) > _MOST_NUMBERS:
        raise UsageError(
            f"--{flag} {text}: that is {len(numbers)} numbers; give {_MOST_NUMBERS} at most"
        )
    return numbers


def byte_count(text: str | None) -> int | None:
    """A number of bytes, given as ``4GB``; None if there is none."""
    if text is None:
        return None
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?) ?([kmg]i?)?b?", text.lower())
    if not match or not float(match[1]):
        raise UsageError(f"--memory {text}: give an amount such as 4GB or 500MB")
    return int(float(match[1]) * units[match[2] or ""])
