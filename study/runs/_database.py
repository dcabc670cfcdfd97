"""The SQLite file of a run store: its tables, how it is recognised, and what its errors mean."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from memohop.errors import DataError, UsageError

_MARK = int.from_bytes(b"Memo")  # the application id in the header of each file that we make
VERSION = 2  # in files of version 1, cells and runs of memohop 0.1.0 have no digest
_WAIT = 60.0  # seconds to wait for others to release the file
_DAMAGED = "the file is damaged: take an earlier copy of it, or name another file"
_HELD = "another program holds the file: try again when that is done"
_NOT_WRITABLE = "make the file and its folder writable, or name another file"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_FULL: "make room on the disk and try again; what was there is unchanged",
    sqlite3.SQLITE_IOERR: "see whether the disk is full or broken; then try again",
    sqlite3.SQLITE_READONLY: _NOT_WRITABLE,
    sqlite3.SQLITE_PERM: _NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: "see that its folder is there and that both may be read and written",
    sqlite3.SQLITE_NOTADB: "name another file",
}

_SCHEMA = """
CREATE TABLE sources (id TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY,        -- digest of the content
    content TEXT NOT NULL,      -- JSON: all that one needs to repeat it
    train REAL NOT NULL, val REAL NOT NULL, test REAL NOT NULL,
    best_epoch INTEGER NOT NULL, epochs INTEGER NOT NULL,
    curves BLOB NOT NULL,       -- loss and validation score, two rows of half precision, zlib
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
# The digest of each row of `runs` and `cells`, by its id.
_CHECKS = "CREATE TABLE checks (run TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID"


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the file of a store, or make it; any other file is left as it is.

    If it is to be read only, it must exist, and neither it nor its folder is written.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file and cannot be a store; name a file")
    if read_only and not path.exists():
        raise UsageError(f"there is no store {path}; python -m study run makes one")
    with blaming(path, "used as a store"), ExitStack() as on_failure:
        if read_only or (path.exists() and path.stat().st_size):
            reading = connect(path, read_only=True)
            on_failure.callback(reading.close)
            _check_ours(reading, path, may_be_empty=not read_only)
            if read_only:
                if "checks" not in _tables(reading):  # a store of 0.1.0
                    reading.execute(_CHECKS.replace("TABLE", "TEMP TABLE", 1))
                on_failure.pop_all()
                return reading
            reading.close()
        db = connect(path)
        on_failure.callback(db.close)
        db.execute("PRAGMA journal_mode = WAL")
        with transaction(db):
            if _is_empty(db):
                for statement in _SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_MARK}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            if "checks" not in _tables(db):
                db.execute(_CHECKS)
        on_failure.pop_all()
        return db


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection without implicit transactions."""
    whole = path.resolve()
    # Without a writer's files beside it the file cannot change, and needs no such files itself.
    others = (whole.with_name(whole.name + ending) for ending in ("-wal", "-journal"))
    still = "" if any(other.exists() for other in others) else "&immutable=1"
    mode = f"ro{still}" if read_only else "rwc"
    return sqlite3.connect(
        f"{whole.as_uri()}?mode={mode}", uri=True, timeout=_WAIT, isolation_level=None
    )


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and nobody else writes meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    with db:
        yield


@contextmanager
def blaming(path: Path, done: str) -> Iterator[None]:
    """Turn each error of SQLite or of the content into one that names the file and a remedy.

    ``done`` is what is being done with it, such as ``read``.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, msgspec.MsgspecError) as error:
        # SQLite's messages quote damaged names, which may be no text.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        remedy = _REMEDIES.get(code, _DAMAGED)
        raise DataError(f"{path} cannot be {done} ({error}); {remedy}") from error


def _is_empty(db: sqlite3.Connection) -> bool:
    """Whether the database holds nothing yet, not even a mark."""
    marked = any(pragma(db, name) for name in ("application_id", "user_version"))
    return not marked and db.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _check_ours(db: sqlite3.Connection, path: Path, *, may_be_empty: bool) -> None:
    """Check the mark (stores of version 0.1.0 have none), the tables, and SQLite's integrity."""
    if may_be_empty and _is_empty(db):
        return
    mark, version = pragma(db, "application_id"), pragma(db, "user_version")
    if mark == _MARK and version > VERSION:
        raise DataError(
            f"{path} is a store of version {version}, not {VERSION} or less; take the version of "
            "memohop that made it, or name another file"
        )
    schema = _SCHEMA + (_CHECKS if version > 1 else "")
    lacking = set(re.findall(r"CREATE TABLE (\w+)", schema)) - _tables(db)
    if mark not in (0, _MARK) or version < 1 or lacking:
        raise DataError(
            f"{path} cannot be used as a store (it is a database of something else); name another "
            "file"
        )
    verdict = pragma(db, "integrity_check(1)")
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def pragma(db: sqlite3.Connection, name: str) -> Any:
    """A value in the header of the file, or a check of it."""
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def _tables(db: sqlite3.Connection) -> set[str]:
    tables = db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")
    return {name for (name,) in tables}
