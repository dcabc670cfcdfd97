"""The rows of a run store, each checked against its digests when it is read.

The id of a run, a cell or a source is the digest of its content, and a cell with results has the
digest of its members. Scores are part of no id, nor are tracebacks and times: so the digest of the
whole row stands beside each run and each cell. In stores of version 1 it stands beside runs alone,
and not beside those of memohop 0.1.0; what has none must at least be possible.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from memohop.jobs.run import Run, Scalar, digest
from memohop.training import Result
from study.runs.cell import Cell
from study.runs.results import NO_SCORE, Count, Score, Source

Members = list[tuple[str, dict[str, Scalar]]]
_WITHOUT_DIGESTS = "0.1.0"  # the version of memohop that wrote runs without them


class StoredRun(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table ``runs``.

    Attributes:
        id: The digest of the content.
        text: The content as JSON.
        train, val, test: Scores at the epoch that counts, or ``NO_SCORE``.
        best_epoch: That epoch, from 0.
        epochs: How many were run.
        packed: Training loss and validation score of each epoch, in half precision, compressed.
        seconds: The run's share of the time that its population took.
        finished: When, in UTC.
        source: The id of the code and machine that trained it.
    """

    id: str
    text: str
    train: Score
    val: Score
    test: Score
    best_epoch: Count
    epochs: Annotated[int, Meta(ge=1)]
    packed: bytes
    seconds: Annotated[float, Meta(ge=0)]
    finished: str
    source: str

    @classmethod
    def of(cls, run: Run, result: Result, source: str) -> Self:
        """The row of a run that was just trained."""
        with np.errstate(over="ignore"):  # a loss beyond 65504 has diverged, stored as infinite
            curves = np.stack([result.loss_curve, result.val_curve]).astype("<f2")
        return cls(
            run.id,
            json.dumps(run.content),
            train=_score(result.train),
            val=_score(result.val),
            test=_score(result.test),
            best_epoch=result.best_epoch,
            epochs=result.epochs,
            packed=zlib.compress(curves.tobytes()),
            seconds=round(result.seconds, 4),
            finished=_now(),
            source=source,
        )

    @classmethod
    def checked(
        cls,
        row: Iterable[Any],
        check: Any,
        sources: Mapping[str, Source],
        *,
        must_be_digested: bool,
    ) -> Self:
        """A row as it was written.

        Args:
            row: The columns of the table.
            check: The digest stored beside it, or None.
            sources: Those of the store, by their ids.
            must_be_digested: Whether there must be one even beside a run of memohop 0.1.0.
        """
        found = msgspec.convert(tuple(row), cls)
        recipe = found.content
        split, seed = recipe.pop("split", None), recipe.pop("seed", None)
        _require(
            digest([digest(recipe), split, seed]) == found.id
            and found.best_epoch < found.epochs
            and found._has_its_curves(),
            f"the run {found.id} is not what was written",
        )
        _require(found.source in sources, f"the source of the run {found.id} is gone")
        made_by = sources[found.source].versions.get("memohop")
        must_be = must_be_digested or made_by != _WITHOUT_DIGESTS
        _require_digest(found, f"the run {found.id}", check, must_be=must_be)
        return found

    @property
    def content(self) -> dict[str, Any]:
        """All that one needs to repeat the run."""
        return msgspec.json.decode(self.text, type=dict[str, Any])

    @property
    def curves(self) -> NDArray[np.float32]:
        """Training loss and validation score of each epoch, ``[2, epochs]``."""
        curves = np.frombuffer(zlib.decompress(self.packed), "<f2").reshape(2, -1)
        return curves.astype(np.float32)

    @property
    def digest(self) -> str:
        """The digest of the whole row."""
        values = msgspec.structs.asdict(self)
        return digest([*(values | {"packed": hashlib.sha256(self.packed).hexdigest()}).values()])

    def _has_its_curves(self) -> bool:
        try:
            return self.curves.shape[1] == self.epochs
        except (zlib.error, ValueError):
            return False


class StoredCell(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table ``cells``, and how many members the cell has.

    Attributes:
        id: The digest of the next five, which name the cell.
        content: The digest of its runs.
        failure: The traceback, or None for a cell with results.
        finished: When, in UTC.
        runs: How many it has.
    """

    id: str
    experiment: str
    protocol: str
    dataset: str
    model: str
    axes: dict[str, Scalar]
    content: str
    failure: str | None
    finished: str
    runs: int

    @classmethod
    def of(cls, cell: Cell, failure: str | None = None) -> Self:
        """A cell that was just finished."""
        name = (cell.id, cell.experiment, cell.protocol, cell.dataset, cell.model)
        return cls(*name, cell.axes, cell.content, failure, _now(), len(cell.runs))

    @property
    def digest(self) -> str:
        """The digest of the row, without what it does not hold itself, the number of runs."""
        return digest([*msgspec.structs.astuple(self)[:-1]])

    @classmethod
    def checked(cls, row: Iterable[Any], check: Any, *, must_be_digested: bool) -> Self:
        """A row as it was written.

        Args:
            row: The columns of the table, and the number of runs.
            check: The digest stored beside it, or None.
            must_be_digested: Whether there must be one.
        """
        *name, axes, content, failure, finished, runs = row
        rest = (_setting(axes), content, failure, finished, runs)
        found = msgspec.convert((*name, *rest), cls)
        _require(
            digest([*name[1:], found.axes]) == found.id and _is_moment(found.finished),
            f"the cell {found.id} is not what was written",
        )
        _require_digest(found, f"the cell {found.id}", check, must_be=must_be_digested)
        return found

    def checked_members(self, rows: Iterable[tuple[Any, Any]]) -> Members:
        """The ids of its runs with their settings, exactly those that were written."""
        found = [(msgspec.convert(run, str), _setting(setting)) for run, setting in rows]
        _require(
            digest(found) == self.content,
            f"the members of the cell {self.id} are not what was written",
        )
        return found


def checked_source(key: str, content: Any) -> Source:
    """Where runs were made, as it was written."""
    raw = msgspec.json.decode(content, type=dict[str, Any])
    _require(digest(raw) == key, f"the source {key} is not what was written")
    return msgspec.convert(raw, Source)


def _score(score: float) -> float:
    """A score as files have it, since neither SQLite nor JSON has NaN."""
    return NO_SCORE if math.isnan(score) else score


def _setting(text: Any) -> dict[str, Scalar]:
    return msgspec.json.decode(msgspec.convert(text, str), type=dict[str, Scalar])


def _require(right: bool, message: str) -> None:
    if not right:
        raise msgspec.ValidationError(message)


def _require_digest(row: StoredRun | StoredCell, name: str, check: Any, *, must_be: bool) -> None:
    _require(check is not None or not must_be, f"the digest of {name} is gone")
    _require(check in (None, row.digest), f"{name} is not what was written")


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
