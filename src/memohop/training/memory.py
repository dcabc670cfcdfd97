"""How much memory a step needs, measured and not guessed."""

from __future__ import annotations

import gc
import re
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from memohop.allocator import release_freed_ram


class _Meter(TorchDispatchMode):
    """Adds up the storages that live at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_iter(result):
            if isinstance(value, Tensor) and value.layout == torch.strided:
                self._count(value.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        place, size = storage._cdata, storage.nbytes()
        if place in self._seen:
            return
        self._seen.add(place)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, place, size)

    def _forget(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self.now -= size


def peak_bytes(function: Callable[[], object]) -> int:
    """The most bytes of tensors that the call holds at once, on top of what was there."""
    with _interrupts_wait(), _Meter() as meter:
        function()
    return meter.peak


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Have Ctrl-C wait for the end of the block.

    Python ignores whatever is raised while it tells the meter of a freed tensor, a
    ``KeyboardInterrupt`` too.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if before is None or not in_main_thread:  # not Python's to handle, or not this thread's
        yield
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def resident_bytes() -> int:
    """The memory that this process holds."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def resident_growth(function: Callable[[], object]) -> int | None:
    """By how much the process is larger than before at the height of the call.

    Freed memory that the C library keeps is given back first, so that nothing is taken from it
    unseen. None where the system does not tell (it does on Linux).
    """
    gc.collect()
    release_freed_ram()
    before = resident_bytes()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the height is from here on
        function()
        height = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return None if height is None else max(0, int(height[1]) * 1024 - before)


def available_bytes(device: torch.device) -> int:
    """What may be used: half of what a CPU has free, four fifths of what a GPU has."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * 0.8)
    import psutil

    return int(psutil.virtual_memory().available * 0.5)


def held_bytes(device: torch.device) -> int:
    """What this process holds on the device: on a CPU, its resident memory."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else resident_bytes()
