"""The run store: one SQLite file that any number of processes may work on.

A run is there once, under the digest of its content, whichever cells it belongs to. A cell is
written in one transaction: a process that is killed loses the cell in flight and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memohop.bench.cell import Cell, Run
from memohop.bench.execute import Outcome
from memohop.bench.results import Source
from memohop.bench.settings import digest
from memohop.bench.stored import (
    SCHEMA,
    StoredCell,
    StoredRun,
    pack_curves,
    pack_score,
    unpack_curves,
    unpack_score,
)
from memohop.errors import DataError, UsageError

_VERSION = 1
_SELECT_CELLS = (
    "SELECT id, experiment, protocol, dataset, model, axes, content, failure, finished, "
    "(SELECT count(*) FROM members WHERE cell = cells.id) FROM cells"
)


class Store:
    """Opens a file, or makes it.

    Args:
        path: The file.
        must_exist: Whether a file that is not there is a mistake.
    """

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        if must_exist and not path.is_file():
            raise UsageError(f"there is no store {path}; memohop run makes one")
        self.path = path
        remedy = "name another file"
        try:
            # Without an isolation level, transactions begin where the code says so.
            self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self.db.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                version = self.db.execute("PRAGMA user_version").fetchone()[0]
                if version == 0:
                    for statement in SCHEMA.split(";\n"):
                        self.db.execute(statement)
                    self.db.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error as error:
            raise DataError(f"{path} cannot be used as a store ({error}); {remedy}") from error
        if version not in (0, _VERSION):
            raise DataError(f"{path} is a store of version {version}, not {_VERSION}; {remedy}")

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def cells(self) -> dict[str, StoredCell]:
        """All cells by their id, in the order in which they were finished."""
        found = self.db.execute(f"{_SELECT_CELLS} ORDER BY rowid")
        return {key: _cell(*values) for key, *values in found}

    def cell(self, key: str) -> StoredCell | None:
        """The cell of that id, if it is there."""
        found = self.db.execute(f"{_SELECT_CELLS} WHERE id = ?", (key,)).fetchone()
        return None if found is None else _cell(*found[1:])

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that are not there, each one once."""
        wanted = {run.id: run for run in runs}
        query = "SELECT 1 FROM runs WHERE id = ?"
        return [run for key, run in wanted.items() if not self.db.execute(query, (key,)).fetchone()]

    def write(
        self, cell: Cell, outcomes: Iterable[Outcome] = (), source: Source | None = None
    ) -> None:
        """A cell, with those of its runs that were missing and where they were made."""
        with self.transaction():
            if source is not None:
                made = digest(msgspec.to_builtins(source))
                self.db.execute(
                    "INSERT OR IGNORE INTO sources VALUES (?, ?)",
                    (made, msgspec.json.encode(source).decode()),
                )
                self.db.executemany(
                    "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (_row(outcome, made) for outcome in outcomes),
                )
            self._write_cell(cell, failure=None)
            self.db.execute("DELETE FROM members WHERE cell = ?", (cell.id,))
            self.db.executemany(
                "INSERT INTO members VALUES (?, ?, ?, ?)",
                (
                    (cell.id, place, run.id, json.dumps(run.setting))
                    for place, run in enumerate(cell.runs)
                ),
            )

    def write_failure(self, cell: Cell, traceback: str) -> None:
        """A cell that cannot be trained."""
        with self.transaction():
            self._write_cell(cell, failure=traceback)

    def _write_cell(self, cell: Cell, failure: str | None) -> None:
        place = (cell.id, cell.experiment, cell.protocol, cell.dataset, cell.model)
        self.db.execute(
            "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, json.dumps(cell.axes), cell.content, failure, _now()),
        )

    def members(self, cell: str) -> list[StoredRun]:
        """The runs of a cell, in their order."""
        found = self.db.execute(
            "SELECT setting, runs.content, sources.content, train, val, test, best_epoch, epochs, "
            "seconds FROM members JOIN runs ON runs.id = run JOIN sources ON sources.id = source "
            "WHERE cell = ? ORDER BY place",
            (cell,),
        )
        return [
            StoredRun(
                json.loads(setting),
                json.loads(content),
                msgspec.json.decode(source, type=Source),
                unpack_score(train),
                unpack_score(val),
                unpack_score(test),
                *rest,
            )
            for setting, content, source, train, val, test, *rest in found
        ]

    def curves(self, run: str) -> NDArray[np.float32]:
        """Training loss and validation score of each epoch of a run, `[2, epochs]`."""
        found = self.db.execute("SELECT curves FROM runs WHERE id = ?", (run,)).fetchone()
        if found is None:
            raise UsageError(f"there is no run {run} in {self.path}")
        return unpack_curves(found[0])

    def merge(self, other: Path) -> tuple[int, int]:
        """Take over what another store has and this one has not.

        Of runs and of finished cells that both have, this store's stay.

        Returns:
            How many runs and how many cells were new.
        """
        if other.exists() and other.samefile(self.path):
            raise UsageError(f"{other} is the store itself; name two different ones")
        Store(other, must_exist=True).close()  # refuses what is no store
        self.db.execute("ATTACH ? AS other", (str(other),))
        try:
            with self.transaction():
                return self._merge_attached()
        finally:
            self.db.execute("DETACH other")

    def _merge_attached(self) -> tuple[int, int]:
        self.db.execute("INSERT OR IGNORE INTO sources SELECT * FROM other.sources")
        runs = self.db.execute("INSERT OR IGNORE INTO runs SELECT * FROM other.runs").rowcount
        new = self.db.execute(
            "SELECT id FROM other.cells AS theirs WHERE NOT EXISTS (SELECT 1 FROM main.cells AS "
            "ours WHERE ours.id = theirs.id AND (ours.failure IS NULL OR theirs.failure NOTNULL))"
        ).fetchall()
        for cell in new:
            self.db.execute("DELETE FROM main.members WHERE cell = ?", cell)
            self.db.execute(
                "INSERT OR REPLACE INTO main.cells SELECT * FROM other.cells WHERE id = ?", cell
            )
            self.db.execute(
                "INSERT INTO main.members SELECT * FROM other.members WHERE cell = ?", cell
            )
        return runs, len(new)


def _cell(
    experiment: str, protocol: str, dataset: str, model: str, axes: str, *rest: Any
) -> StoredCell:
    return StoredCell(experiment, protocol, dataset, model, json.loads(axes), *rest)


def _row(outcome: Outcome, source: str) -> tuple[Any, ...]:
    run, result = outcome.run, outcome.result
    return (
        run.id,
        json.dumps(run.content),
        *map(pack_score, (result.train, result.val, result.test)),
        result.best_epoch,
        result.epochs,
        pack_curves(result),
        round(outcome.seconds, 4),
        _now(),
        source,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
