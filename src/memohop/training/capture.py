"""A whole training step as one CUDA graph: captured once, replayed without launch overhead."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from memohop.training.device import traits_of

_WARM_UP = 1  # steps before the capture, in which kernels are compiled and libraries set up


class EagerWarning(UserWarning):
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
