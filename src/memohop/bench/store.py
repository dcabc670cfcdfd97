"""The run store: one SQLite file that any number of processes may work on.

A run is there once, under the digest of its content, whichever cells it belongs to. A cell is
written in one transaction: a process that is killed loses the cell in flight and nothing else.
What is read is held against its digests, so that a damaged file is not taken for results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memohop.bench.cell import Cell, Run
from memohop.bench.database import blaming, open_database, transaction
from memohop.bench.execute import Outcome
from memohop.bench.intact import (
    Members,
    RunRow,
    checked_cell,
    checked_members,
    checked_run,
    checked_source,
    run_content,
)
from memohop.bench.results import Source
from memohop.bench.settings import Scalar, digest
from memohop.bench.stored import (
    StoredCell,
    StoredRun,
    pack_curves,
    pack_score,
    unpack_curves,
    unpack_score,
)
from memohop.errors import UsageError

_SELECT_CELLS = (
    "SELECT id, experiment, protocol, dataset, model, axes, content, failure, finished, "
    "(SELECT count(*) FROM members WHERE cell = cells.id) FROM cells"
)
_SELECT_RUNS = "SELECT runs.*, digest FROM runs LEFT JOIN checks ON checks.run = runs.id"
_SELECT_MEMBERS = (  # a member whose run is gone is none
    "SELECT run, setting FROM members JOIN runs ON runs.id = run WHERE cell = ? ORDER BY place"
)


class Store:
    """Opens a file, or makes it.

    Args:
        path: The file.
        read_only: Whether it must be there and stays as it is.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.db = open_database(path, read_only=read_only)

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()

    def reading(self) -> AbstractContextManager[None]:
        """Goes round every use of the file that reads."""
        return blaming(self.path, "read")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Goes round every use that writes: all or nothing, and nobody else writes meanwhile."""
        with blaming(self.path, "written"), transaction(self.db):
            yield

    def cells(self) -> dict[str, StoredCell]:
        """All cells by their id, in the order in which they were finished."""
        with self.reading():
            found = dict(map(checked_cell, self.db.execute(f"{_SELECT_CELLS} ORDER BY rowid")))
            for key, cell in found.items():
                self._members_of(key, cell)
        return found

    def cell(self, key: str) -> StoredCell | None:
        """The cell of that id, if it is there."""
        with self.reading():
            found = self.db.execute(f"{_SELECT_CELLS} WHERE id = ?", (key,)).fetchone()
            return None if found is None else checked_cell(found)[1]

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that are not there, each one once."""
        wanted = {run.id: run for run in runs}
        with self.reading():
            return [run for key, run in wanted.items() if not self._has_run(key)]

    def members(self, cell: str) -> list[StoredRun]:
        """The runs of a cell, in their order; none of one that has failed."""
        found = self.cell(cell)
        if found is None:
            raise UsageError(f"there is no cell {cell} in {self.path}")
        return [
            _stored_run(run, setting, source)
            for key, setting in self._members_of(cell, found)
            for run, source in self._runs("WHERE runs.id = ?", key)
        ]

    def curves(self, run: str) -> NDArray[np.float32]:
        """Training loss and validation score of each epoch of a run, `[2, epochs]`."""
        for found, _ in self._runs("WHERE runs.id = ?", run):
            return unpack_curves(found.curves)
        raise UsageError(f"there is no run {run} in {self.path}")

    def write(
        self, cell: Cell, outcomes: Iterable[Outcome] = (), source: Source | None = None
    ) -> None:
        """A cell, with those of its runs that were missing and where they were made."""
        with self.transaction():
            if source is not None:
                made = self._write_source(source)
                for outcome in outcomes:
                    self._write_run(_run_row(outcome, made))
            self._write_cell(cell.id, _stored_cell(cell), [(r.id, r.setting) for r in cell.runs])

    def write_failure(self, cell: Cell, traceback: str) -> None:
        """A cell that cannot be trained."""
        with self.transaction():
            self._write_cell(cell.id, _stored_cell(cell, failure=traceback), [])

    def merge(self, other: Path) -> tuple[int, int]:
        """Take over what another store has and this one has not, if all of that is intact.

        Of runs and of finished cells that both have, this store's stay.

        Returns:
            How many runs and how many cells were new.
        """
        if other.exists() and other.samefile(self.path):
            raise UsageError(f"{other} is the store itself; name two different ones")
        theirs = Store(other, read_only=True)
        with closing(theirs), self.transaction():
            with theirs.reading():
                theirs.db.execute("BEGIN")  # from here on, what is read belongs to one moment
            runs = 0
            for run, source in theirs._runs():
                self._write_source(source)
                runs += self._write_run(run)
            ours, new = self.cells(), 0
            for key, cell in theirs.cells().items():
                known = ours.get(key)
                if known is None or (known.failure is not None and cell.failure is None):
                    self._write_cell(key, cell, theirs._members_of(key, cell))
                    new += 1
        return runs, new

    def _runs(self, where: str = "", *values: str) -> Iterator[tuple[RunRow, Source]]:
        with self.reading():
            sources = {
                key: checked_source(key, content)
                for key, content in self.db.execute("SELECT * FROM sources")
            }
            for *row, check in self.db.execute(f"{_SELECT_RUNS} {where}", values):
                run = checked_run(row, check)
                if run.source not in sources:
                    raise msgspec.ValidationError(f"the source of the run {run.id} is gone")
                yield run, sources[run.source]

    def _members_of(self, key: str, cell: StoredCell) -> Members:
        if cell.failure is not None:
            return []
        with self.reading():
            found = self.db.execute(_SELECT_MEMBERS, (key,))
            return checked_members(key, cell.content, found)

    def _has_run(self, key: str) -> bool:
        return self.db.execute("SELECT 1 FROM runs WHERE id = ?", (key,)).fetchone() is not None

    def _write_source(self, source: Source) -> str:
        """The id under which it is there now."""
        key = digest(msgspec.to_builtins(source))
        content = msgspec.json.encode(source).decode()
        self.db.execute("INSERT OR IGNORE INTO sources VALUES (?, ?)", (key, content))
        return key

    def _write_run(self, row: RunRow) -> bool:
        """Whether it was not there before."""
        if self._has_run(row.id):
            return False
        values = msgspec.structs.astuple(row)
        self.db.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(values))})", values)
        self.db.execute("INSERT OR REPLACE INTO checks VALUES (?, ?)", (row.id, row.digest))
        return True

    def _write_cell(self, key: str, cell: StoredCell, members: Members) -> None:
        place = (key, cell.experiment, cell.protocol, cell.dataset, cell.model)
        self.db.execute(
            "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, json.dumps(cell.axes), cell.content, cell.failure, cell.finished),
        )
        self.db.execute("DELETE FROM members WHERE cell = ?", (key,))
        self.db.executemany(
            "INSERT INTO members VALUES (?, ?, ?, ?)",
            (
                (key, place, run, json.dumps(setting))
                for place, (run, setting) in enumerate(members)
            ),
        )


def _stored_cell(cell: Cell, failure: str | None = None) -> StoredCell:
    place = (cell.experiment, cell.protocol, cell.dataset, cell.model, cell.axes)
    return StoredCell(*place, cell.content, failure, _now(), len(cell.runs))


def _stored_run(run: RunRow, setting: dict[str, Scalar], source: Source) -> StoredRun:
    return StoredRun(
        setting,
        run_content(run),
        source,
        train=unpack_score(run.train),
        val=unpack_score(run.val),
        test=unpack_score(run.test),
        best_epoch=run.best_epoch,
        epochs=run.epochs,
        seconds=run.seconds,
    )


def _run_row(outcome: Outcome, source: str) -> RunRow:
    run, result = outcome.run, outcome.result
    return RunRow(
        id=run.id,
        content=json.dumps(run.content),
        train=pack_score(result.train),
        val=pack_score(result.val),
        test=pack_score(result.test),
        best_epoch=result.best_epoch,
        epochs=result.epochs,
        curves=pack_curves(result),
        seconds=round(outcome.seconds, 4),
        finished=_now(),
        source=source,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
