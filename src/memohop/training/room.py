"""How much RAM a step needs, measured and not guessed."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from memohop.interrupts import interrupts_wait
from memohop.ram import release_freed_ram
from memohop.training.device import traits_of


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
        address, size = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self._seen.add(address)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._forget, address, size)

    def _forget(self, address: int, size: int) -> None:
        self._seen.discard(address)
        self.now -= size


def peak_bytes(function: Callable[[], object]) -> int:
    """The most bytes of new tensors that exist at the same time during the call.

    Ctrl-C waits: the meter counts freed tensors in finalizers, and Python ignores exceptions raised
    there, ``KeyboardInterrupt`` included.
    """
    with interrupts_wait(), _Meter() as meter:
        function()
    return meter.peak


def resident_bytes() -> int:
    """The RAM that this process holds."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def resident_growth(function: Callable[[], object]) -> int | None:
    """How much larger the process is at the peak of the call than before it.

    Freed blocks that the C library keeps are returned first: the call could reuse them without
    growing. None where the system does not report a peak (Linux does).
    """
    gc.collect()
    release_freed_ram()
    before = resident_bytes()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # starts a new peak
        function()
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return None if peak is None else max(0, int(peak[1]) * 1024 - before)


def available_bytes(device: torch.device) -> int:
    """The bytes that may be used: half of a machine's free RAM, four fifths of a GPU's."""
    if traits_of(device).is_separate:
        return int(torch.cuda.mem_get_info(device)[0] * 0.8)
    import psutil

    return int(psutil.virtual_memory().available * 0.5)


def held_bytes(device: torch.device) -> int:
    """The bytes that this process holds on the device; on a CPU, its resident size."""
    separate = traits_of(device).is_separate
    return torch.cuda.memory_allocated(device) if separate else resident_bytes()
