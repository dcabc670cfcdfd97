"""What a device is good at. The trainer asks here, and nowhere else, whether it runs on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from memohop.errors import UsageError


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
