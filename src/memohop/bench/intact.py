"""What a store holds must be what was put there: every row is held against its digests.

The id of a run, a cell or a source is the digest of its content, and a cell with results has the
digest of its members. Scores are part of no id: since version 0.1.0 each run has the digest of its
whole row beside it. The rows of that version must at least be possible.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memohop.bench.results import Score, Source
from memohop.bench.settings import Scalar, digest
from memohop.bench.stored import StoredCell, unpack_curves

Members = list[tuple[str, dict[str, Scalar]]]


class RunRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table `runs`."""

    id: str
    content: str
    train: Score
    val: Score
    test: Score
    best_epoch: Annotated[int, Meta(ge=0)]
    epochs: Annotated[int, Meta(ge=1)]
    curves: bytes
    seconds: Annotated[float, Meta(ge=0)]
    finished: str
    source: str

    @property
    def digest(self) -> str:
        """Of everything in it."""
        values = msgspec.structs.asdict(self)
        return digest([*(values | {"curves": hashlib.sha256(self.curves).hexdigest()}).values()])


class _CellRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table `cells`, and how many members it has."""

    id: str
    experiment: str
    protocol: str
    dataset: str
    model: str
    axes: str
    content: str
    failure: str | None
    finished: str
    runs: int


def checked_run(row: Iterable[Any], check: Any) -> RunRow:
    """A run as it was written.

    Args:
        row: What lies in the table.
        check: The digest that lies beside it, or None.
    """
    found = msgspec.convert(tuple(row), RunRow)
    content = run_content(found)
    recipe = {name: value for name, value in content.items() if name not in ("split", "seed")}
    _require(
        digest([digest(recipe), content.get("split"), content.get("seed")]) == found.id
        and found.best_epoch < found.epochs
        and _length(found.curves) == found.epochs
        and check in (None, found.digest),
        f"the run {found.id} is not what was written",
    )
    return found


def run_content(row: RunRow) -> dict[str, Any]:
    """All that one needs to repeat a run."""
    return msgspec.json.decode(row.content, type=dict[str, Any])


def checked_cell(row: Iterable[Any]) -> tuple[str, StoredCell]:
    """The id of a cell and the cell as it was written."""
    found = msgspec.convert(tuple(row), _CellRow)
    axes = msgspec.json.decode(found.axes, type=dict[str, Scalar])
    place = (found.experiment, found.protocol, found.dataset, found.model)
    _require(
        digest([*place, axes]) == found.id and _is_moment(found.finished),
        f"the cell {found.id} is not what was written",
    )
    rest = (found.content, found.failure, found.finished, found.runs)
    return found.id, StoredCell(*place, axes, *rest)


def checked_members(cell: str, content: str, members: Iterable[tuple[Any, Any]]) -> Members:
    """The runs of a cell with results and their settings, none more and none less."""
    found = [
        (msgspec.convert(run, str), msgspec.json.decode(setting, type=dict[str, Scalar]))
        for run, setting in members
    ]
    _require(digest(found) == content, f"the members of the cell {cell} are not what was written")
    return found


def checked_source(key: str, content: Any) -> Source:
    """Where runs were made, as it was written."""
    raw = msgspec.json.decode(content, type=dict[str, Any])
    _require(digest(raw) == key, f"the source {key} is not what was written")
    return msgspec.convert(raw, Source)


def _require(right: bool, message: str) -> None:
    if not right:
        raise msgspec.ValidationError(message)


def _length(curves: bytes) -> int | None:
    """How many epochs the curves have; None where they cannot be read."""
    try:
        return unpack_curves(curves).shape[1]
    except (zlib.error, ValueError):
        return None


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
