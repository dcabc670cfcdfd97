"""Which process works on which cell, so that several on one store do not do the same work."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from contextlib import closing, nullcontext, suppress
from threading import Event, Thread
from typing import Self

from memohop.errors import DataError
from study.runs._database import connect
from study.runs.store import Store

_BEAT = 10.0  # seconds between two signs of life
_STALE = 60.0  # seconds without one after which a claim is void


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
            self._store.db.execute("DELETE FROM claims WHERE host = ? AND pid = ?", self._me)

    def take(self, cell: str) -> bool:
        """Claim a cell; False if another process works on it."""
        with self._store.transaction():
            claim = self._store.db.execute(
                "SELECT host, pid, alive FROM claims WHERE cell = ?", (cell,)
            ).fetchone()
            if claim is not None and self._is_valid(*claim):
                return False
            self._store.db.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (cell, *self._me, time.time())
            )
        return True

    def drop(self, cell: str) -> None:
        """Release a cell."""
        with self._store.transaction():
            self._store.db.execute(
                "DELETE FROM claims WHERE cell = ? AND host = ? AND pid = ?", (cell, *self._me)
            )

    def _is_valid(self, host: str, pid: int, alive: float) -> bool:
        if host == self._me[0] and not _is_running(pid):
            return False
        return time.time() - alive < _STALE

    def _give_signs_of_life(self) -> None:
        while not self._stop.wait(_BEAT):
            # An error now comes again when the cell is written, and is reported then.
            with suppress(sqlite3.Error), closing(connect(self._store.path)) as db:
                db.execute(
                    "UPDATE claims SET alive = ? WHERE host = ? AND pid = ?",
                    (time.time(), *self._me),
                )


def _is_running(pid: int) -> bool:
    """Whether there is a process of that number; assumed where one cannot ask."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
