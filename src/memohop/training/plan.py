"""How many members are trained at once: as many as the memory allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from memohop.errors import UsageError
from memohop.out_of_memory import in_units
from memohop.training.member import Member
from memohop.training.memory import (
    available_bytes,
    held_bytes,
    peak_bytes,
    resident_growth,
)
from memohop.training.numbers import RATES

_CPU_CHUNK = 16  # more members at once only push each other out of the cache
_SLACK = 1.3  # of a process's memory, for what lies between tensors: measured, 1.0 to 1.2
_SLACK_UNSEEN = 4.0  # where the system does not tell the height: tensors are a part of it
_PER_EPOCH = 64  # bytes of a member's keys and curves, while they are made
_STEPS = 2  # of a measurement: the second finds what the first has left behind

Step = Callable[[Sequence[Member], int], None]


def members_at_once(
    steps: Step,
    members: Sequence[Member],
    *,
    memory: int | None,
    for_results: int,
    epochs: int,
    device: torch.device,
    most: int | None = None,
) -> int:
    """The size of the chunks, which are as equal as can be.

    One member is trained for a few steps, and what it takes is what each will take. Members
    differ in that: a penalty and dropout have their price, so one of each kind is measured.

    Args:
        steps: trains members for a number of steps, from their start.
        members: all that are to be trained.
        memory: the most bytes that the process may hold: its resident memory on a CPU, what it
            has on a GPU; None for as much as the device can spare.
        for_results: bytes that will be held besides, until the end.
        epochs: the most steps that members will take.
        device: where to train.
        most: the most members of a chunk, whatever the memory.
    """
    most = most or (len(members) if device.type == "cuda" else _CPU_CHUNK)
    most = min(most, len(members))
    budget = available_bytes(device) if memory is None else memory - held_bytes(device)
    if epochs * _PER_EPOCH > budget:
        raise _too_little(memory, device, epochs * _PER_EPOCH, epochs)
    if most == 1 and memory is None:
        return 1
    kinds = {(m.lam > 0, *(getattr(m, rate) == 0 for rate in RATES)): m for m in members}
    each = 0.0
    for member in kinds.values():
        steps([member], 1)  # what is made once, at the first use, stays and is held from now on
        each = max(each, _price(lambda one=member: steps([one], _STEPS), memory, device))  # type: ignore[misc]
    if memory is not None:
        budget = memory - held_bytes(device)
    if device.type == "cpu":
        budget -= for_results
    fits = int(budget / max(each, 1))
    if fits < 1:
        raise _too_little(memory, device, int(each) + for_results, epochs)
    parts = math.ceil(len(members) / min(most, fits))
    return math.ceil(len(members) / parts)


def _price(function: Callable[[], None], memory: int | None, device: torch.device) -> float:
    """Bytes that the call takes: its tensors, or the growth of the process where that counts."""
    if memory is None or device.type == "cuda":
        return peak_bytes(function)
    tensors = peak_bytes(function)
    growth = resident_growth(function)
    return tensors * _SLACK_UNSEEN if growth is None else max(tensors, growth) * _SLACK


def _too_little(memory: int | None, device: torch.device, need: int, epochs: int) -> UsageError:
    if memory is None:
        return UsageError(
            f"one member takes {in_units(need)} for {epochs} epochs, and "
            f"{in_units(available_bytes(device))} can be spared; lower hidden_channels or epochs"
        )
    held = held_bytes(device)
    if held >= memory:
        return UsageError(
            f"memory={in_units(memory)} is too little: the process holds {in_units(held)} before "
            "any training; give more"
        )
    return UsageError(
        f"memory={in_units(memory)} is too little: the process holds {in_units(held)} already, and "
        f"one member takes {in_units(need)} more for {epochs} epochs; give "
        f"{in_units(1.1 * (held + need))}, or lower hidden_channels or epochs"
    )
