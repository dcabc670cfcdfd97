"""Whether the C library keeps freed RAM or gives it back."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of <malloc.h>


def keep_freed_ram() -> None:
    """Make the C library keep freed RAM for the next tensor; only glibc offers this.

    By default it gives large blocks back, and the next tensor asks the system for every four
    kilobytes again: up to half the time of a training step on a CPU. Only our own processes call
    this: a library must not change the allocator of the program that imports it.
    """
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, -1)  # never
        mallopt(_TOP_PAD, 1 << 26)


def release_freed_ram() -> None:
    """Make the C library give back the RAM that it has kept; only glibc offers this."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
