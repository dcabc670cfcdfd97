"""The run store: one SQLite file that any number of processes may work on.

Each run is stored once, under the digest of its content, even if several cells share it. Runs that
were trained as one population are written in one transaction: a process that is killed loses those
in flight and nothing else. Everything read is checked against its digests, so that a damaged file
does not pass for results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from memohop.errors import UsageError
from memohop.training import Job, Result
from memohop.training.job import digest
from study.runs._database import blaming, bring_up_to_date, is_old, open_database, transaction
from study.runs.cell import Cell
from study.runs.results import Source
from study.runs.stored import Members, StoredCell, StoredRun, checked_source, require

_SELECT_CELLS = (
    "SELECT id, experiment, protocol, dataset, model, axes, content, failure, finished, "
    "(SELECT count(*) FROM members WHERE cell = cells.id), digest "
    "FROM cells LEFT JOIN checks ON checks.run = cells.id"
)
_SELECT_RUNS = "SELECT runs.*, digest FROM runs LEFT JOIN checks ON checks.run = runs.id"
_SELECT_MEMBERS = (  # without those whose run is gone
    "SELECT run, setting FROM members JOIN runs ON runs.id = run WHERE cell = ? ORDER BY place"
)
_WRITE_CHECK = "INSERT OR REPLACE INTO checks VALUES (?, ?)"


class Store:
    """Opens a file, or makes it.

    Args:
        path: The file.
        read_only: Whether the file must exist and stays as it is.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.db = open_database(path, read_only=read_only)
        if is_old(self.db):
            try:
                with self.reading() if read_only else self.transaction():
                    bring_up_to_date(self.db, self._digests_of_version_1)
            except BaseException:
                self.close()
                raise

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

    def cells(self) -> dict[str, StoredCell]:
        """All cells by their id, in the order in which they were finished."""
        with self.reading():
            rows = self.db.execute(f"{_SELECT_CELLS} ORDER BY cells.rowid")
            found = [self._checked(row) for row in rows]
            for cell in found:
                self.members_of(cell)
        return {cell.id: cell for cell in found}

    def cell(self, key: str) -> StoredCell | None:
        """The cell of that id, if it is there."""
        with self.reading():
            row = self.db.execute(f"{_SELECT_CELLS} WHERE id = ?", (key,)).fetchone()
            return None if row is None else self._checked(row)

    def members_of(self, cell: StoredCell) -> Members:
        """The ids of a cell's runs with their settings; a cell that has failed has none."""
        if cell.failure is not None:
            return []
        with self.reading():
            return cell.checked_members(self.db.execute(_SELECT_MEMBERS, (cell.id,)))

    def missing(self, runs: Iterable[Job]) -> list[Job]:
        """The runs that are not in the store, each one once."""
        wanted = {run.id: run for run in runs}
        with self.reading():
            return [run for key, run in wanted.items() if not self._has_run(key)]

    def has(self, cell: Cell) -> bool:
        """Whether the cell is there, with results and with exactly these runs."""
        there = self.cell(cell.id)
        return there is not None and there.failure is None and there.content == cell.content

    def runs(self, keys: Iterable[str]) -> Iterator[tuple[StoredRun, Source]]:
        """Those of the runs that are there, in any order."""
        wanted = list(keys)
        yield from self._runs(f"WHERE runs.id IN ({', '.join('?' * len(wanted))})", *wanted)

    def trained_together(self) -> dict[str, tuple[str, ...]]:
        """The ids of the runs that were trained for the same cell as each run, itself included.

        Those are the runs of the first cell that has it, less those of cells before that one. Runs
        of cells that are not complete yet are left out.
        """
        found: dict[str, list[str]] = {}
        with self.reading():
            rows = self.db.execute(
                "SELECT cells.rowid, run FROM members JOIN cells ON cells.id = cell "
                "ORDER BY cells.rowid, place"
            )
            for _, group in groupby(rows, key=itemgetter(0)):
                new = [run for _, run in group if run not in found]
                found |= dict.fromkeys(new, new)
        return {run: tuple(runs) for run, runs in found.items()}

    def sources_of_runs(self) -> Iterator[tuple[str, Source]]:
        """The id of each run, and where it was made."""
        with self.reading():
            sources = self._sources()
            for key, made in self.db.execute("SELECT id, source FROM runs"):
                if made in sources:
                    yield key, sources[made]

    def run(self, key: str) -> tuple[StoredRun, Source]:
        """The run of that id, and where it was made."""
        for found in self._runs("WHERE runs.id = ?", key):
            return found
        raise UsageError(f"there is no run {key} in {self.path}")

    def write_runs(self, results: Iterable[tuple[Job, Result]], source: Source) -> None:
        """Runs with their results, and where they were made."""
        with self.transaction():
            made = self._write_source(source)
            for run, result in results:
                self._write_run(StoredRun.of(run, result, made))

    def write(self, cell: Cell) -> None:
        """A cell whose runs are there."""
        with self.transaction():
            self._write_cell(
                StoredCell.of(cell), [(run.id, dict(run.setting)) for run in cell.runs]
            )

    def write_failure(self, cell: Cell, traceback: str) -> None:
        """A cell that cannot be trained."""
        with self.transaction():
            self._write_cell(StoredCell.of(cell, failure=traceback), [])

    def merge(self, other: Path) -> tuple[int, int]:
        """Take over what another store has and this one lacks, if all of both is intact.

        Of runs and of finished cells that both have, this store's stay.

        Returns:
            How many runs and how many cells were new.
        """
        if other.exists() and other.samefile(self.path):
            raise UsageError(f"{other} is the store itself; name two different ones")
        theirs = Store(other, read_only=True)
        with closing(theirs), self.transaction():
            with theirs.reading():
                theirs.db.execute("BEGIN")  # everything read from here on belongs to one moment
            ours, runs, new = self.cells(), 0, 0
            for _ in self._runs():
                pass  # each one is checked as it is read
            for run, source in theirs._runs():
                self._write_source(source)
                runs += self._write_run(run)
            for key, cell in theirs.cells().items():
                known = ours.get(key)
                if known is None or (known.failure is not None and cell.failure is None):
                    self._write_cell(cell, theirs.members_of(cell))
                    new += 1
        return runs, new

    def _runs(self, where: str = "", *values: str) -> Iterator[tuple[StoredRun, Source]]:
        with self.reading():
            sources = self._sources()
            for *row, check in self.db.execute(f"{_SELECT_RUNS} {where}", values):
                run = StoredRun.checked(row, sources)
                _require_digest(run, "run", check)
                yield run, sources[run.source]

    def _checked(self, row: Iterable[Any]) -> StoredCell:
        *columns, check = row
        cell = StoredCell.checked(columns)
        _require_digest(cell, "cell", check)
        return cell

    def _digests_of_version_1(self) -> Iterator[tuple[str, str]]:
        """Those that rows of a store of version 1 lack: cells, and runs of memohop 0.1.0."""
        with self.reading():
            sources = self._sources()
            for *row, _ in self.db.execute(_SELECT_RUNS):
                run = StoredRun.checked(row, sources)
                if sources[run.source].versions["memohop"] == "0.1.0":
                    yield run.id, run.digest
            for *row, _ in self.db.execute(_SELECT_CELLS):
                cell = StoredCell.checked(row)
                yield cell.id, cell.digest

    def _sources(self) -> dict[str, Source]:
        rows = self.db.execute("SELECT * FROM sources")
        return {key: checked_source(key, content) for key, content in rows}

    def _has_run(self, key: str) -> bool:
        return self.db.execute("SELECT 1 FROM runs WHERE id = ?", (key,)).fetchone() is not None

    def _write_source(self, source: Source) -> str:
        """The id under which it is there now."""
        key = digest(msgspec.to_builtins(source))
        content = msgspec.json.encode(source).decode()
        self.db.execute("INSERT OR IGNORE INTO sources VALUES (?, ?)", (key, content))
        return key

    def _write_run(self, run: StoredRun) -> bool:
        """Whether the run was not there before."""
        if self._has_run(run.id):
            return False
        values = msgspec.structs.astuple(run)
        self.db.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(values))})", values)
        self.db.execute(_WRITE_CHECK, (run.id, run.digest))
        return True

    def _write_cell(self, cell: StoredCell, members: Members) -> None:
        *values, _ = msgspec.structs.astuple(
            msgspec.structs.replace(cell, axes=json.dumps(cell.axes))
        )
        self.db.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        self.db.execute(_WRITE_CHECK, (cell.id, cell.digest))
        self.db.execute("DELETE FROM members WHERE cell = ?", (cell.id,))
        self.db.executemany(
            "INSERT INTO members VALUES (?, ?, ?, ?)",
            (
                (cell.id, index, run, json.dumps(setting))
                for index, (run, setting) in enumerate(members)
            ),
        )


def _require_digest(row: StoredRun | StoredCell, kind: str, check: str | None) -> None:
    require(check is not None, f"the digest of the {kind} {row.id} is gone")
    require(check == row.digest, f"the {kind} {row.id} is not what was written")
