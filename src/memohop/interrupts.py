"""Ctrl-C waits where it would leave something half-done, and ends what takes long.

Inside :func:`interrupts_wait` the first Ctrl-C is noted and raised at the end of the block, unless
:func:`interrupted` has taken notice of it; inside :func:`interrupts_raised`, in turn, it is raised
at once. A second one is raised at once everywhere. Blocks can be nested, and each is a decorator
too. Only the main thread receives signals: in another one, all of this does nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Handler:
    """The handler of SIGINT while blocks are running; it passes it on to the one before."""

    def __init__(self, before: Any) -> None:
        self.before, self.waits, self.came, self.noted = before, True, False, False

    def __call__(self, number: int, frame: Any) -> None:
        if self.waits and not self.came:
            self.came = self.noted = True
            return
        self.waits = self.came = True  # even if it is raised before a block can say so
        self.before(number, frame)

    @contextmanager
    def block(self, *, waits: bool) -> Iterator[None]:
        """Note a first Ctrl-C, or raise it."""
        outside = self.waits
        try:
            self._switch(waits)
            yield
        except KeyboardInterrupt:  # of a worker, or a function of the caller's
            self.came = True
            raise
        finally:
            self._switch(outside)

    def _switch(self, waits: bool) -> None:
        self.waits = waits
        if self.noted and not waits:
            self.noted = False
            self(signal.SIGINT, None)


_handler: _Handler | None = None


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Note a first Ctrl-C until the end of the block."""
    global _handler
    if not _in_main_thread():
        yield
    elif _handler is not None:
        with _handler.block(waits=True):
            yield
    else:
        before = signal.getsignal(signal.SIGINT)
        _handler = handler = _Handler(before)
        if callable(before):  # or else Ctrl-C is ignored, or ends the process outside of Python
            signal.signal(signal.SIGINT, handler)
        try:
            yield
        finally:
            _handler = None
            if callable(before):
                signal.signal(signal.SIGINT, before)
            if handler.noted:
                handler.before(signal.SIGINT, None)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise Ctrl-C at once inside the block, and one that came before it too."""
    if _handler is None or not _in_main_thread():
        yield
    else:
        with _handler.block(waits=False):
            yield


def interrupted() -> bool:
    """Whether Ctrl-C came since the outermost block began: the caller ends with that in mind."""
    if _handler is None or not _in_main_thread():
        return False
    _handler.noted = False
    return _handler.came


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
