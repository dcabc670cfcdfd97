"""What becomes of memory that is freed."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of <malloc.h>


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for the next tensor, where it can be told to (glibc).

    By default it gives large pieces back at once, and the next tensor has to ask the system for
    every four kilobytes anew: up to half the time of a training step on a CPU. Our own processes
    do this; a library must not do it to the program that it serves.
    """
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, -1)  # never
        mallopt(_TOP_PAD, 1 << 26)


def release_freed_memory() -> None:
    """Have the C library give back what it has kept, where it can be told to (glibc)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
