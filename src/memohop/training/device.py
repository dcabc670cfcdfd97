"""What a device is good at: the trainer asks here, and nowhere else, whether it runs on a GPU.

On a GPU a whole step is captured once and replayed without launch overhead, and products round each
member alike in any population.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memohop.errors import MemohopWarning, UsageError
from memohop.nn.operation import kernels_for


@dataclass(frozen=True)
class Traits:
    """How to train on a kind of device.

    Attributes:
        is_separate: whether it has RAM and a random generator of its own.
        captures: whether a step can be captured and replayed.
        rounds_alike: whether a member goes through ``vmap`` even if it is alone, and through
            matrix products of ours, so that it rounds alike in any population. On a CPU, a single
            member is up to twice as fast without.
        most_members: the most members to train at once; None for no limit.
        look_every: epochs between two checks for members that have stopped.
        change: what it takes to continue with fewer members, in nodes of an epoch of a member.
    """

    is_separate: bool
    captures: bool
    rounds_alike: bool
    most_members: int | None
    look_every: int
    change: int


_CPU = Traits(
    is_separate=False,
    captures=False,
    rounds_alike=False,
    most_members=16,  # more members at once only push each other out of the cache
    look_every=10,
    change=0,
)
_GPU = Traits(
    is_separate=True,
    captures=True,
    rounds_alike=True,
    most_members=None,
    look_every=50,  # a check waits for the device
    change=8_000_000,  # a new capture takes as long as 20 epochs of 20 members on 20,000 nodes
)


def traits_of(device: torch.device) -> Traits:
    """The traits of the device's kind."""
    return _GPU if device.type == "cuda" else _CPU


def find_device(name: torch.device | str) -> torch.device:
    """The device of that name, if it exists."""
    device = torch.device(name)
    if traits_of(device).is_separate and not torch.cuda.is_available():
        raise UsageError(f"device={name!s}, but PyTorch sees no GPU here: use device='cpu'")
    return device


_WARM_UP = 1  # steps before the capture, in which kernels are compiled and libraries set up


class EagerWarning(MemohopWarning):
    """A step could not be captured and runs eagerly instead, which is slower."""


def captured(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """The step as a :class:`CapturedStep`, where the device can capture."""
    return CapturedStep(step) if traits_of(device).captures else step


def waiter(device: torch.device) -> Callable[[], None]:
    """A function that waits for the device; the core is free for other processes meanwhile."""
    if not traits_of(device).captures:
        return lambda: None
    event = torch.cuda.Event(blocking=True)

    def wait() -> None:
        event.record()
        event.synchronize()

    return wait


class CapturedStep:
    """Calls a step; after the first call, replays its capture instead.

    The step must work in place on tensors that are never reallocated, and must not read anything
    back from the device. If the capture fails, the step continues to run eagerly.

    Args:
        step: the function.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        self._step, self._calls = step, 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream()

    def __call__(self) -> None:
        """Run one step."""
        self._calls += 1
        if self._calls == _WARM_UP + 1:
            self._graph = self._capture()
        if self._graph is not None:
            self._graph.replay()
        elif self._calls <= _WARM_UP:  # off the default stream, which a capture requires
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._step()
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            self._step()

    def _capture(self) -> torch.cuda.CUDAGraph | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            warnings.warn(
                f"the step could not be captured and runs eagerly ({reason})",
                EagerWarning,
                stacklevel=3,
            )
            return None
        return graph


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

    Args:
        device: the device of the products.
        alone: whether the member is computed without ``vmap``.
    """
    kernels = kernels_for(torch.empty(0, device=device))
    return nullcontext() if kernels is None else _Invariant(alone)
