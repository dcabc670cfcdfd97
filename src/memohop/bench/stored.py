"""What the run store holds, in the file and in memory."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.bench.results import NO_SCORE, Source
from memohop.training import MemberResult

SCHEMA = """
CREATE TABLE sources (id TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY,        -- digest of the content
    content TEXT NOT NULL,      -- JSON: all that one needs to repeat it
    train REAL NOT NULL, val REAL NOT NULL, test REAL NOT NULL,
    best_epoch INTEGER NOT NULL, epochs INTEGER NOT NULL,
    curves BLOB NOT NULL,       -- see pack_curves
    seconds REAL NOT NULL, finished TEXT NOT NULL,
    source TEXT NOT NULL REFERENCES sources (id)
);
CREATE TABLE cells (
    id TEXT PRIMARY KEY,
    experiment TEXT NOT NULL, protocol TEXT NOT NULL, dataset TEXT NOT NULL, model TEXT NOT NULL,
    axes TEXT NOT NULL,         -- JSON
    content TEXT NOT NULL,      -- digest of its runs
    failure TEXT,               -- the traceback, where there is no result
    finished TEXT NOT NULL
);
CREATE TABLE members (
    cell TEXT NOT NULL REFERENCES cells (id), place INTEGER NOT NULL,
    run TEXT NOT NULL REFERENCES runs (id), setting TEXT NOT NULL,
    PRIMARY KEY (cell, place)
) WITHOUT ROWID;
CREATE TABLE claims (
    cell TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, alive REAL NOT NULL
) WITHOUT ROWID;
"""
# Apart from the others, since files of version 0.1.0 have none: the digest of each row of `runs`.
CHECKS = "CREATE TABLE checks (run TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True)
class StoredCell:
    """A cell as the store has it.

    Attributes:
        experiment, protocol, dataset, model, axes: Its place.
        content: The digest of its runs.
        failure: The traceback, or None for a cell with results.
        finished: When that was, in UTC.
        runs: How many it has.
    """

    experiment: str
    protocol: str
    dataset: str
    model: str
    axes: dict[str, Any]
    content: str
    failure: str | None
    finished: str
    runs: int


@dataclass(frozen=True)
class StoredRun:
    """A member of a cell as the store has it.

    Attributes:
        setting: What validation chooses, with the values of this run.
        content: All that one needs to repeat it.
        source: Where it was made.
        train, val, test: Scores at the epoch that counts; NaN where the run diverged.
        best_epoch: That epoch, from 0.
        epochs: How many were run.
        seconds: Its share of the time that its population took.
    """

    setting: dict[str, Any]
    content: dict[str, Any]
    source: Source
    train: float
    val: float
    test: float
    best_epoch: int
    epochs: int
    seconds: float


def pack_score(score: float) -> float:
    """A score as files have it: ``NO_SCORE`` for none, since SQLite and JSON know no NaN."""
    return NO_SCORE if math.isnan(score) else score


def unpack_score(stored: float) -> float:
    """What :func:`pack_score` made; a run without a validation score has diverged."""
    return math.nan if stored < 0 else stored


def pack_curves(result: MemberResult) -> bytes:
    """The two curves in half precision, compressed."""
    with np.errstate(over="ignore"):  # a loss beyond 65504 has diverged, and infinite says so
        curves = np.stack([result.loss_curve, result.val_curve]).astype("<f2")
    return zlib.compress(curves.tobytes())


def unpack_curves(packed: bytes) -> NDArray[np.float32]:
    """What :func:`pack_curves` made, as `[2, epochs]`."""
    return np.frombuffer(zlib.decompress(packed), "<f2").reshape(2, -1).astype(np.float32)
