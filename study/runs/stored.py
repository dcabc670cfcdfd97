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
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from memohop.jobs.named import Scalar
from memohop.training import Job, Result
from memohop.training.job import digest
from study.runs.cell import Cell, cell_name
from study.runs.results import NO_SCORE, Count, Score, Source


class StoredRun(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table ``runs``.

    Attributes:
        text: The content as JSON.
        train, val, test: Scores at the epoch that counts, or ``NO_SCORE``.
        packed: Training loss and validation score of each epoch, in half precision, compressed.
        seconds: The run's share of the time that its population took.
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
        scores = (result.train, result.val, result.test)
        # Neither SQLite nor JSON has NaN.
        train, val, test = (NO_SCORE if math.isnan(score) else score for score in scores)
        return cls(
            run.id,
            json.dumps(run.content),
            train=train,
            val=val,
            test=test,
            best_epoch=result.best_epoch,
            epochs=result.epochs,
            packed=zlib.compress(curves.tobytes()),
            seconds=round(result.seconds, 4),
            finished=_now(),
            source=source,
        )

    @classmethod
    def checked(cls, row: Iterable[Any]) -> Self:
        """A row of the table, if it can have been written."""
        run, is_sound = msgspec.convert(tuple(row), cls), False
        recipe = run.content
        split, seed = recipe.pop("split", None), recipe.pop("seed", None)
        with suppress(zlib.error, ValueError):
            is_sound = (
                digest([digest(recipe), split, seed]) == run.id
                and run.best_epoch < run.epochs == run.curves.shape[1]
            )
        require(is_sound, f"the run {run.id} is not what was written")
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
        return np.frombuffer(zlib.decompress(self.packed), "<f2").reshape(2, -1).astype(np.float32)

    @property
    def digest(self) -> str:
        """The digest of the whole row."""
        values = msgspec.structs.asdict(self)
        return digest([*(values | {"packed": hashlib.sha256(self.packed).hexdigest()}).values()])


class StoredCell(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of the table ``cells``, and how many runs the cell has.

    The id is the digest of the next five, which name the cell, and the content that of its runs. A
    failure is a traceback.
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
    def name(self) -> str:
        """The name in messages."""
        return cell_name(self.protocol, self.dataset, self.model, self.axes)

    @property
    def digest(self) -> str:
        """The digest of the row, without what it does not hold itself, the number of runs."""
        return digest([*msgspec.structs.astuple(self)[:-1]])

    @classmethod
    def checked(cls, row: Iterable[Any]) -> Self:
        """A row of the table, with the number of runs, if it can have been written."""
        *name, axes, content, failure, finished, runs = row
        cell = msgspec.convert((*name, setting_of(axes), content, failure, finished, runs), cls)
        named = digest([*name[1:], cell.axes])
        require(named == cell.id, f"the cell {cell.id} is not what was written")
        return cell


def checked_source(key: str, content: Any) -> Source:
    """Where runs were made, as it was written."""
    raw = msgspec.json.decode(content, type=dict[str, Any])
    require(digest(raw) == key, f"the source {key} is not what was written")
    return msgspec.convert(raw, Source)


def setting_of(text: Any) -> dict[str, Scalar]:
    """The axes of a cell, or the setting of a member."""
    return msgspec.json.decode(msgspec.convert(text, str), type=dict[str, Scalar])


def require(right: bool, message: str) -> None:
    """Refuse what was not written."""
    if not right:
        raise msgspec.ValidationError(message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
