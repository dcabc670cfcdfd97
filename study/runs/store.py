"""The run store: one SQLite file that any number of processes may work on, each on its own cells.

Each run is stored once, under the digest of its content, even if several cells share it. Runs that
were trained as one population are written in one transaction: a process that is killed loses those
in flight and nothing else. Everything read is checked against its digests, so that a damaged file
does not pass for results.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import msgspec
import psutil

from memohop.errors import DataError, UsageError
from memohop.jobs.named import Scalar
from memohop.training import Job, Result
from memohop.training.job import digest
from study.runs._database import VERSION, blaming, connect, open_database, pragma, transaction
from study.runs.cell import Cell
from study.runs.results import Source
from study.runs.stored import StoredCell, StoredRun, checked_source, require, setting_of

_BEAT = 10.0  # seconds between two signs of life
_STALE = 60.0  # seconds without one after which a claim is void
_SELECT_CELLS = (
    "SELECT id, experiment, protocol, dataset, model, axes, content, failure, finished, "
    "(SELECT count(*) FROM members WHERE cell = cells.id), digest "
    "FROM cells LEFT JOIN checks ON checks.run = cells.id"
)
_SELECT_RUNS = "SELECT runs.*, digest FROM runs LEFT JOIN checks ON checks.run = runs.id"
_SELECT_MEMBERS = (  # without those whose run is gone
    "SELECT run, setting FROM members JOIN runs ON runs.id = run WHERE cell = ? ORDER BY place"
)
_CHECK = "OR REPLACE INTO checks"


_Members = list[tuple[str, dict[str, Scalar]]]


class Store:
    """Opens a file, or makes it; one to be read only must exist, and stays as it is."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.db = open_database(path, read_only=read_only)
        self._is_old = pragma(self.db, "user_version") < VERSION
        if self._is_old and not read_only:
            with ExitStack() as on_failure:
                on_failure.callback(self.close)
                self._bring_up_to_date()
                on_failure.pop_all()

    def _bring_up_to_date(self) -> None:
        """Give digests to the rows of a store of version 1 that have none."""
        with self.transaction():
            digests = {run.id: run.digest for run, _ in self._runs()}
            digests |= {key: cell.digest for key, cell in self.cells().items()}
            for key, check in digests.items():
                self.insert(_CHECK, key, check)
            self.db.execute(f"PRAGMA user_version = {VERSION}")
        self._is_old = False

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    def reading(self) -> AbstractContextManager[None]:
        """Goes round every use of the file that reads."""
        return blaming(self.path, "read")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Goes round every use that writes: all or nothing, and nobody else writes meanwhile."""
        with blaming(self.path, "written"), transaction(self.db):
            yield

    def insert(self, where: str, *values: Any) -> int:
        """Write a row, such as ``INTO runs``; how many are new."""
        marks = ", ".join("?" * len(values))
        return self.db.execute(f"INSERT {where} VALUES ({marks})", values).rowcount

    def cells(self) -> dict[str, StoredCell]:
        """All cells by their id, in the order in which they were finished."""
        cells = {cell.id: cell for cell in self._cells("ORDER BY cells.rowid")}
        for cell in cells.values():
            self.members_of(cell)
        return cells

    def cell(self, key: str) -> StoredCell | None:
        """The cell of that id, if it is there."""
        return next(self._cells("WHERE id = ?", key), None)

    def members_of(self, cell: StoredCell) -> _Members:
        """The ids of a cell's runs with their settings; a cell that has failed has none."""
        if cell.failure is not None:
            return []
        with self.reading():
            rows = self.db.execute(_SELECT_MEMBERS, (cell.id,))
            members = [(msgspec.convert(run, str), setting_of(text)) for run, text in rows]
            is_whole = digest(members) == cell.content
            require(is_whole, f"the members of the cell {cell.id} are not what was written")
            return members

    def missing(self, runs: Iterable[Job]) -> list[Job]:
        """The runs that are not in the store, each one once."""
        wanted = {run.id: run for run in runs}
        query = "SELECT 1 FROM runs WHERE id = ?"
        with self.reading():
            there = {key for key in wanted if self.db.execute(query, (key,)).fetchone()}
        return [run for key, run in wanted.items() if key not in there]

    def has(self, cell: Cell) -> bool:
        """Whether the cell is there, with results and with exactly these runs."""
        there = self.cell(cell.id)
        return there is not None and there.failure is None and there.content == cell.content

    def runs(self, keys: Iterable[str]) -> Iterator[tuple[StoredRun, Source]]:
        """Those of the runs that are there, in any order."""
        wanted = list(keys)
        yield from self._runs(f"WHERE runs.id IN ({', '.join('?' * len(wanted))})", *wanted)

    def companies(self) -> dict[str, tuple[tuple[str, ...], Source]]:
        """The ids of the runs that were trained for the same cell as each run, and where it was.

        Those are the runs of the first cell that has it, less those of cells before that one. Runs
        of cells that are not complete yet are left out.
        """
        companies: dict[str, tuple[tuple[str, ...], Source]] = {}
        with self.reading():
            sources = self._sources()
            rows = self.db.execute(
                "SELECT cells.rowid, run, source FROM members JOIN cells ON cells.id = cell "
                "JOIN runs ON runs.id = run JOIN sources ON sources.id = source "
                "ORDER BY cells.rowid, place"
            )
            for _, group in groupby(rows, key=itemgetter(0)):
                made = {run: source for _, run, source in group if run not in companies}
                company = tuple(made)
                companies |= {run: (company, sources[made[run]]) for run in company}
        return companies

    def run(self, key: str) -> tuple[StoredRun, Source]:
        """The run of that id, and where it was made."""
        for run in self.runs([key]):
            return run
        raise UsageError(f"there is no run {key} in {self.path}")

    def write_runs(self, results: Iterable[tuple[Job, Result]], source: Source) -> None:
        """Runs with their results, and where they were made."""
        with self.transaction():
            made = self._write_source(source)
            for run, result in results:
                self._write_run(StoredRun.of(run, result, made))

    def write(self, cell: Cell, failure: str | None = None) -> None:
        """A cell whose runs are there, or one that cannot be trained, with the traceback."""
        members = [(run.id, dict(run.setting)) for run in cell.runs] if failure is None else []
        with self.transaction():
            self._write_cell(StoredCell.of(cell, failure), members)

    def merge(self, other: Path) -> tuple[int, int]:
        """Take over what another store has and this one lacks, if all of both is intact.

        Of runs and of finished cells that both have, this store's stay. Returns how many runs and
        how many cells were new.
        """
        if other.exists() and other.samefile(self.path):
            raise UsageError(f"{other} is the store itself; name two different ones")
        theirs = Store(other, read_only=True)
        with closing(theirs), self.transaction():
            with theirs.reading():
                theirs.db.execute("BEGIN")  # everything read from here on belongs to one moment
            ours, runs, cells = self.cells(), 0, 0
            for _ in self._runs():
                pass  # each one is checked as it is read
            for run, source in theirs._runs():
                self._write_source(source)
                runs += self._write_run(run)
            for key, cell in theirs.cells().items():
                known = ours.get(key)
                if known is None or (known.failure is not None and cell.failure is None):
                    self._write_cell(cell, theirs.members_of(cell))
                    cells += 1
        return runs, cells

    def _runs(self, where: str = "", *values: str) -> Iterator[tuple[StoredRun, Source]]:
        with self.reading():
            sources = self._sources()
            for *row, check in self.db.execute(f"{_SELECT_RUNS} {where}", values):
                run = StoredRun.checked(row)
                require(run.source in sources, f"the source of the run {run.id} is gone")
                source = sources[run.source]
                self._check(run, "run", check, may_lack=source.versions["memohop"] == "0.1.0")
                yield run, source

    def _cells(self, where: str, *values: str) -> Iterator[StoredCell]:
        with self.reading():
            for *row, check in self.db.execute(f"{_SELECT_CELLS} {where}", values).fetchall():
                cell = StoredCell.checked(row)
                self._check(cell, "cell", check, may_lack=True)
                yield cell

    def _check(
        self, row: StoredRun | StoredCell, kind: str, check: str | None, *, may_lack: bool
    ) -> None:
        """Compare the digest of a row; in a store of version 1 some may lack it."""
        if check is None and may_lack and self._is_old:
            return
        require(check is not None, f"the digest of the {kind} {row.id} is gone")
        require(check == row.digest, f"the {kind} {row.id} is not what was written")

    def _sources(self) -> dict[str, Source]:
        rows = self.db.execute("SELECT * FROM sources")
        return {key: checked_source(key, content) for key, content in rows}

    def _write_source(self, source: Source) -> str:
        """The id under which it is there now."""
        key = digest(msgspec.to_builtins(source))
        self.insert("OR IGNORE INTO sources", key, msgspec.json.encode(source).decode())
        return key

    def _write_run(self, run: StoredRun) -> bool:
        """Whether the run was not there before."""
        is_new = self.insert("OR IGNORE INTO runs", *msgspec.structs.astuple(run)) > 0
        if is_new:
            self.insert(_CHECK, run.id, run.digest)
        return is_new

    def _write_cell(self, cell: StoredCell, members: _Members) -> None:
        *values, _ = msgspec.structs.astuple(
            msgspec.structs.replace(cell, axes=json.dumps(cell.axes))
        )
        self.insert("OR REPLACE INTO cells", *values)
        self.insert(_CHECK, cell.id, cell.digest)
        self.db.execute("DELETE FROM members WHERE cell = ?", (cell.id,))
        for place, (run, setting) in enumerate(members):
            self.insert("INTO members", cell.id, place, run, json.dumps(setting))


class Claims:
    """The cells of a store that this process works on, while the ``with`` block lasts.

    A thread gives signs of life. A claim without them is void, as is that of a process of this
    machine that has ended. If another process takes over a claim all the same, both write the same
    content, and only time is lost.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._stop = store, Event()
        self._me = (socket.gethostname(), os.getpid())
        self._thread = Thread(target=self._give_signs_of_life, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._stop.set()
        self._thread.join()
        # The error that ended the work matters, not that the store cannot be written either.
        with nullcontext() if error is None else suppress(DataError), self._store.transaction():
            here, me = self._me
            claims = self._store.db.execute("SELECT pid FROM claims WHERE host = ?", (here,))
            # One that was killed may have left a claim to a cell that it had written.
            void = {pid for (pid,) in claims.fetchall() if not psutil.pid_exists(pid)}
            for pid in {me, *void}:
                self._store.db.execute("DELETE FROM claims WHERE host = ? AND pid = ?", (here, pid))

    def take(self, cell: str) -> bool:
        """Claim a cell; False if another process works on it."""
        with self._store.transaction():
            query = "SELECT host, pid, alive FROM claims WHERE cell = ?"
            claim = self._store.db.execute(query, (cell,)).fetchone()
            if claim is not None:
                host, pid, alive = claim
                has_ended = host == self._me[0] and not psutil.pid_exists(pid)
                if not has_ended and time.time() - alive < _STALE:
                    return False
            self._store.insert("OR REPLACE INTO claims", cell, *self._me, time.time())
        return True

    def drop(self, cell: str) -> None:
        """Release a cell."""
        ours = "DELETE FROM claims WHERE cell = ? AND host = ? AND pid = ?"
        with self._store.transaction():
            self._store.db.execute(ours, (cell, *self._me))

    def _give_signs_of_life(self) -> None:
        while not self._stop.wait(_BEAT):
            # An error now comes again when the cell is written, and is reported then.
            with suppress(sqlite3.Error), closing(connect(self._store.path)) as db:
                alive = "UPDATE claims SET alive = ? WHERE host = ? AND pid = ?"
                db.execute(alive, (time.time(), *self._me))
