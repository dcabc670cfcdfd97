"""Reads an experiment file: TOML of the right shape, without repeated or impossible values."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from memohop.errors import DataError, UsageError, check_distinct
from memohop.jobs.run import Scalar
from study.runs.halving import Halving
from study.runs.space import Space

Search = dict[str, list[Scalar]]
Rows = dict[str, dict[str, Any]]

_MOST_BYTES = 1_000_000  # fifty times the largest file of the package


class Protocol(msgspec.Struct, forbid_unknown_fields=True):
    """A table ``protocols.NAME``."""

    about: str = ""
    like: str | None = None
    seeds: tuple[int, ...] | None = None
    halving: Halving | None = None
    every: dict[str, Any] = {}
    rows: Rows = {}


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    title: str
    expected: str
    time: str
    datasets: list[str]
    models: list[str]
    base: str | None = None
    seeds: tuple[int, ...] = (0,)
    groups: dict[str, list[str]] = {}
    axes: Search = {}
    variants: dict[str, list[dict[str, Scalar]]] = {}
    left_out: dict[str, list[str]] = {}
    protocols: dict[str, Protocol]


class _Row(msgspec.Struct):
    """The keys of a row beside its settings, which are checked when it is complete."""

    about: str = ""
    like: str | list[str] = []
    on: Rows = {}
    search: Search = {}
    space: Space = {}


def read_experiment(path: Path) -> File:
    """The file, or an error that names what is wrong with it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the experiment {path}: {reason}") from error
    with blamed(path):
        raw = _decoded(content)
        _check_values("", raw)
        found = msgspec.convert(raw, File)
        for key, values in _lists(found):
            if not values:
                raise UsageError(f"{key} is empty; give one value at least")
            check_distinct(key, values)
        if not found.protocols:
            raise UsageError("protocols is empty; add one")
    for name, protocol in found.protocols.items():
        for model, row in protocol.rows.items():
            with blamed(path, f"protocols.{name}.rows.{model}"):
                msgspec.convert(row, _Row)
    return found


@contextmanager
def blamed(path: Path, key: str = "") -> Iterator[None]:
    """Name the file and the key of a mistake, and for some mistakes a remedy."""
    start = f"{path.name}: {key}: " if key else f"{path.name}: "
    try:
        yield
    except (msgspec.MsgspecError, UsageError) as error:
        message = f"{start}{error}"
        if "unknown field" in message:
            message += "; correct it or take it out"
        elif "missing required field" in message:
            message += "; add it"
        raise DataError(message) from error
    except RecursionError as error:
        raise DataError(f"{start}tables or lists are nested too deeply") from error


def _decoded(content: bytes) -> dict[str, Any]:
    if len(content) > _MOST_BYTES:
        raise UsageError(f"the file has more than {_MOST_BYTES:,} bytes; is it an experiment?")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"the file is not UTF-8 text ({error.reason}); save it as such") from error
    except ValueError as error:  # also for numbers of thousands of digits
        raise UsageError(f"the file is not TOML: {error}") from error


def _check_values(key: str, value: Any) -> None:
    """Refuse values that an id cannot be made of: all but texts, booleans and usual numbers."""
    if isinstance(value, dict):
        for name, part in value.items():
            _check_values(f"{key}.{name}" if key else name, part)
    elif isinstance(value, list):
        for part in value:
            _check_values(key, part)
    elif isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{key} = {value}; give a finite number")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise UsageError(f"{key} is a number of more than 64 bits; give a smaller one")
    elif not isinstance(value, (str, bool, int, float)):
        raise UsageError(f"{key} = {value} is a date or a time; give a number or a text")


def _lists(file: File) -> Iterator[tuple[str, Sequence[Scalar]]]:
    """The lists that are multiplied out: a repeated value would double the cells or runs."""
    yield from (("datasets", file.datasets), ("models", file.models), ("seeds", file.seeds))
    for name, values in file.axes.items():
        yield f"axes.{name}", values
    for name, points in file.variants.items():
        yield f"variants.{name}", [str(sorted(point.items())) for point in points]
    for name, protocol in file.protocols.items():
        if protocol.seeds is not None:
            yield f"protocols.{name}.seeds", protocol.seeds
