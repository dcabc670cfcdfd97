"""RAM: kept by the C library for the next tensor, given back, or lacking.

A failed allocation is reported with the work, the bytes wanted and the option to lower.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memohop.errors import DataError

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # of <malloc.h>
_SIGNS = (  # PyTorch has no error class for a CPU without enough RAM
    "can't allocate memory",
    "not enough memory",
    "Storage size calculation overflowed",
    "integer multiplication overflow",
    "array is too big",
    "Maximum allowed dimension exceeded",
)
_WANTED = (  # as PyTorch, NumPy and Arrow word it
    re.compile(r"[Tt]ried to allocate ([\d.]+ (?:bytes|[KMGTPE]i?B))"),
    re.compile(r"Unable to allocate ([\d.]+ [KMGTPE]?i?B(?:ytes)?)"),
    re.compile(r"(?:malloc|realloc) of size (\d+)"),
)
_UNLOADED = re.compile(r"([^\s/]+): failed to map segment")  # as the loader of libraries words it
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")


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


class OutOfMemoryError(DataError):
    """An allocation failed: the device has not enough RAM left."""


@contextmanager
def reporting_out_of_memory(doing: str, *, lower: str) -> Iterator[None]:
    """Raise a failed allocation of the block as an :class:`OutOfMemoryError`.

    Args:
        doing: What the block does, such as ``training 16 members of gcn``.
        lower: What the user may lower, such as ``memory or hidden_channels``.
    """
    try:
        yield
    except ImportError as error:
        if not (library := _UNLOADED.search(str(error))):
            raise
        raise OutOfMemoryError(
            f"out of memory while {doing}: no address space is left for {library[1]}; raise the "
            "limit, as by ulimit -v unlimited"
        ) from error
    except (MemoryError, RuntimeError, ValueError) as error:
        if isinstance(error, OutOfMemoryError) or not is_out_of_memory(error):
            raise
        raise OutOfMemoryError(
            f"out of memory while {doing}: {_wanted(error)}; lower {lower}"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed: in Python, NumPy, Arrow, or PyTorch on either device."""
    # By its name: PyTorch has an OutOfMemoryError, too, and need not be imported to recognise it.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    words = str(error)
    return isinstance(error, (RuntimeError, ValueError)) and any(sign in words for sign in _SIGNS)


def in_units(count: float) -> str:
    """A number of bytes for people, such as ``2.5 GB``."""
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} {_UNITS[-1]}"


def _wanted(error: BaseException) -> str:
    for pattern in _WANTED:
        if match := pattern.search(str(error)):
            amount = match[1].removesuffix(" bytes")
            return f"it wanted {in_units(int(amount)) if amount.isdigit() else amount} more"
    return "it wanted more than there can be" if str(error) else "it wanted more than there is"
