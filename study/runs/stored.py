"""The rows of a run store, each checked against its digests when it is read.

The id of a run, a cell or a source is the digest of its content, and a cell with results has the
digest of its members. Scores are part of no id, nor are tracebacks and times: so the digest of the
whole row stands beside each run and each cell.
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

from memohop.jobs.named import Scalar
from memohop.training import Job, Result
from memohop.training.job import digest
from study.runs.cell import Cell
from study.runs.results import NO_SCORE, Count, Score, Source

Members = list[tuple[str, dict[str, Scalar]]]


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
    def of(cls, run: Job, result: Result, source: str) -> Self:
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
    def checked(cls, row: Iterable[Any], sources: Mapping[str, Source]) -> Self:
        """A row of the table, if it can have been written; ``sources`` are those of the store."""
        run = msgspec.convert(tuple(row), cls)
        recipe = run.content
        split, seed = recipe.pop("split", None), recipe.pop("seed", None)
        require(
            digest([digest(recipe), split, seed]) == run.id
            and run.best_epoch < run.epochs
            and run._has_its_curves(),
            f"the run {run.id} is not what was written",
        )
        require(run.source in sources, f"the source of the run {run.id} is gone")
        return run

    @property
    def content(self) -> dict[str, Any]:
        """All that one needs to repeat the run."""
        return msgspec.json.decode(self.text, type=dict[str, Any])

    @property
    def data(self) -> str:
        """The digest of the dataset's files, empty if that of one of them is not known."""
        files = self.content["data"]["files"]
        return "" if None in files.values() else digest(files)

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
    finished: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
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
    def checked(cls, row: Iterable[Any]) -> Self:
        """A row of the table, with the number of runs, if it can have been written."""
        *name, axes, content, failure, finished, runs = row
        cell = msgspec.convert((*name, _setting(axes), content, failure, finished, runs), cls)
        require(
            digest([*name[1:], cell.axes]) == cell.id,
            f"the cell {cell.id} is not what was written",
        )
        return cell

    def checked_members(self, rows: Iterable[tuple[Any, Any]]) -> Members:
        """The ids of its runs with their settings, exactly those that were written."""
        members = [(msgspec.convert(run, str), _setting(setting)) for run, setting in rows]
        require(
            digest(members) == self.content,
            f"the members of the cell {self.id} are not what was written",
        )
        return members


def checked_source(key: str, content: Any) -> Source:
    """Where runs were made, as it was written."""
    raw = msgspec.json.decode(content, type=dict[str, Any])
    require(digest(raw) == key, f"the source {key} is not what was written")
    return msgspec.convert(raw, Source)


def _score(score: float) -> float:
    """A score as files have it, since neither SQLite nor JSON has NaN."""
    return NO_SCORE if math.isnan(score) else score


def _setting(text: Any) -> dict[str, Scalar]:
    return msgspec.json.decode(msgspec.convert(text, str), type=dict[str, Scalar])


def require(right: bool, message: str) -> None:
    """Refuse what was not written."""
    if not right:
        raise msgspec.ValidationError(message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
