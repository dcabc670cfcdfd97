"""What a device is good at, and how many members fit on it, which is measured and not guessed.

The trainer asks here, and nowhere else, whether it runs on a GPU. There a whole step is captured
once and replayed without launch overhead, and products round each member alike in any population.
"""

from __future__ import annotations

import gc
import math
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from memohop.errors import MemohopWarning, UsageError
from memohop.interrupts import interrupts_wait
from memohop.nn import kernels_for
from memohop.ram import in_units, release_freed_ram
from memohop.training.member import RATES, Member

if TYPE_CHECKING:
    from memohop.training.job import Job
    from memohop.training.population import Population

_SLACK = 1.3  # over the measured growth, for gaps between tensors: 1.0 to 1.2 were seen
_SLACK_UNSEEN = 4.0  # over the tensors alone, where the system does not report the growth
_PER_EPOCH = 64  # bytes of a member's keys and curves, while they are made
_MOST_ON_CPU = 16  # members at once: more only push each other out of the cache
_PLENTY = 1 << 28  # bytes of a chunk on a CPU: far beyond its cache, more at once gain nothing
_STEPS = 2  # of a measurement: the second step runs beside the leftovers of the first


def is_gpu(device: torch.device) -> bool:
    """Whether the device is a GPU, which has RAM and a random generator of its own."""
    return device.type == "cuda"


def find_device(name: torch.device | str) -> torch.device:
    """The device of that name, if it exists."""
    device = torch.device(name)
    if is_gpu(device) and not torch.cuda.is_available():
        raise UsageError(f"device={name!s}, but PyTorch sees no GPU here: use device='cpu'")
    return device


class EagerWarning(MemohopWarning):
    """A step could not be captured and runs eagerly instead, which is slower."""


def captured(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The step; on a GPU its capture, from the second call on.

    The step must work in place on tensors that are never reallocated, and must not read anything
    back from the device. If the capture fails, the step continues to run eagerly.
    """
    return partial(next, _replayed(step)) if is_gpu(device) else step


def _replayed(step: Callable[[], None]) -> Iterator[None]:
    """Takes a step whenever it is asked."""
    # In the first, kernels are compiled and libraries set up; not on the default stream, which a
    # capture requires.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    yield
    graph = torch.cuda.CUDAGraph()
    replay = graph.replay
    try:
        with torch.cuda.graph(graph):
            step()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        replay = step
        reason = str(error).strip().splitlines()[0]
        warnings.warn(
            f"the step could not be captured and runs eagerly ({reason})",
            EagerWarning,
            stacklevel=2,
        )
    while True:
        replay()
        yield


def wait_for(device: torch.device) -> None:
    """Wait until the device is done; the core is free for other processes meanwhile."""
    if is_gpu(device):
        event = torch.cuda.Event(blocking=True)
        event.record()
        event.synchronize()


class _Invariant(TorchDispatchMode):
    """Sends the batched matrix products of ``vmap`` to a kernel of ours.

    Intercepting every operation costs some host time, but only once for a captured step.

    Args:
        alone: whether products of a member without ``vmap`` go there too: over a long sum of
            bfloat16 the library's product is less exact.
    """

    def __init__(self, alone: bool) -> None:
        super().__init__()
        aten = torch.ops.aten
        self._products = {aten.bmm.default, *([aten.mm.default] if alone else [])}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in self._products and (kernels := kernels_for(args[0])) is not None:
            if func is torch.ops.aten.bmm.default:
                return kernels.batched_product(*args)
            return kernels.batched_product(args[0][None], args[1][None])[0]
        return func(*args, **(kwargs or {}))


def invariant_products(device: torch.device, *, alone: bool = False) -> AbstractContextManager[Any]:
    """Within it a member's products do not depend on the size of its population.

    It may be ``alone``, computed without ``vmap``.
    """
    kernels = kernels_for(torch.empty(0, device=device))
    return nullcontext() if kernels is None else _Invariant(alone)


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
    if is_gpu(device):
        return int(torch.cuda.mem_get_info(device)[0] * 0.8)
    import psutil

    return int(psutil.virtual_memory().available * 0.5)


def held_bytes(device: torch.device) -> int:
    """The bytes that this process holds on the device; on a CPU, its resident size."""
    return torch.cuda.memory_allocated(device) if is_gpu(device) else resident_bytes()


class TooLittleError(UsageError):
    """One member does not fit: it takes ``need`` bytes, and there are ``budget`` for it."""

    def __init__(self, text: str, need: float, budget: float) -> None:
        super().__init__(text)
        self.need, self.budget = need, budget


def members_at_once(
    population: Callable[[Sequence[Member]], Population],
    job: Job,
    device: torch.device,
    *,
    for_results: int = 0,
    most: int | None = None,
) -> int:
    """The size of the chunks, which are as equal as possible.

    One member is trained for a few steps, and its bytes are measured. Penalty and dropout cost
    extra, so one member of each kind that may be the costliest is measured.

    Args:
        population: makes one of some members.
        job: all members to train. Its ``memory`` is the most bytes that the process may hold: its
            resident size on a CPU, its bytes on a GPU; None for as many as the device can spare.
        device: the device to train on.
        for_results: bytes of results that are held until the end.
        most: the most members of a chunk; None for the limit of the device.
    """

    def steps(member: Member, count: int) -> None:
        first = population([member])
        for _ in range(min(count, job.epochs)):
            first.step()

    members, memory, separate = job.members, job.memory, is_gpu(device)
    cost = peak_bytes if memory is None or separate else _growth
    most = min(most or (len(members) if separate else _MOST_ON_CPU), len(members))
    budget = available_bytes(device) if memory is None else memory - held_bytes(device)
    if job.epochs * _PER_EPOCH > budget:
        raise _too_little(job, device, job.epochs * _PER_EPOCH)
    if most == 1 and memory is None:
        return 1
    each = 0.0
    for member in _costliest(members):
        steps(member, 1)  # makes everything that is made once, and then counts as held
        each = max(each, cost(partial(steps, member, _STEPS)))
    if memory is not None:
        budget = memory - held_bytes(device)
    if not separate:
        budget -= for_results
    fits = int(budget / max(each, 1))
    if fits < 1:
        raise _too_little(job, device, int(each) + for_results)
    if not separate:
        fits = max(1, min(fits, int(_PLENTY / max(each, 1))))
    parts = math.ceil(len(members) / min(most, fits))
    return math.ceil(len(members) / parts)


def _costliest(members: Sequence[Member]) -> list[Member]:
    """A member of each kind, except kinds that have a part of another one's penalty and rates."""
    kinds = {(m.lam > 0, *(getattr(m, rate) != 0 for rate in RATES)): m for m in members}
    return [
        member
        for kind, member in kinds.items()
        if not any(kind != other and all(map(le, kind, other)) for other in kinds)
    ]


def _growth(function: Callable[[], object]) -> float:
    """Bytes by which the process will grow: measured, with slack, and no less than its tensors."""
    tensors, growth = peak_bytes(function), resident_growth(function)
    return tensors * _SLACK_UNSEEN if growth is None else max(tensors, growth) * _SLACK


def _too_little(job: Job, device: torch.device, need: int) -> TooLittleError:
    memory, epochs = job.memory, job.epochs
    if memory is None:
        budget = available_bytes(device)
        text = (
            f"one member takes {in_units(need)} for {epochs} epochs, and {in_units(budget)} can "
            "be spared; lower hidden_channels or epochs"
        )
        return TooLittleError(text, need, budget)
    held = held_bytes(device)
    if held >= memory:
        text = (
            f"memory={in_units(memory)} is too little: the process holds {in_units(held)} before "
            "any training; give more"
        )
    else:
        text = (
            f"memory={in_units(memory)} is too little: the process holds {in_units(held)} "
            f"already, and one member takes {in_units(need)} more for {epochs} epochs; give "
            f"{in_units(1.1 * (held + need))}, or lower hidden_channels or epochs"
        )
    return TooLittleError(text, need, memory - held)
