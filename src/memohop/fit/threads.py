"""As many threads as the other processes of the machine leave cores for.

An operation on several threads waits for the slowest of them, and on a machine with other work one
of them is often not running at all: two threads that share two cores with others may take ten times
as long for a step of a network as one.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
import psutil
import torch

_P = ParamSpec("_P")
_R = TypeVar("_R")
_APART = 2.0  # seconds, at least, between two looks at the machine


class Threads:
    """The threads of PyTorch, and so of all models, adapted to the load of the machine."""

    def __init__(self) -> None:
        self.most = torch.get_num_threads()
        self._seen = clock.monotonic(), _seconds_of_others()

    def adapt(self) -> None:
        """Take one for each core that others have not used since the last time, at least one."""
        (before, used), now = self._seen, clock.monotonic()
        if now < before + _APART:
            return
        self._seen = now, _seconds_of_others()
        idle = (psutil.cpu_count() or 1) - (self._seen[1] - used) / (now - before)
        torch.set_num_threads(int(np.clip(round(idle), 1, self.most)))


def _seconds_of_others() -> float:
    """The seconds that cores have spent on other processes."""
    machine, own = psutil.cpu_times(), psutil.Process().cpu_times()
    idle = machine.idle + getattr(machine, "iowait", 0.0)
    return float(sum(machine[:8]) - idle - own.user - own.system)


def restoring_threads(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, after which PyTorch has the threads that it had before."""

    @wraps(function)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        before = torch.get_num_threads()
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_num_threads(before)

    return wrapped
