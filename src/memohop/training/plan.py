"""How many members are trained at once: as many as fit into the RAM."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import le

import torch

from memohop.errors import UsageError
from memohop.ram import in_units
from memohop.training.device import traits_of
from memohop.training.member import Member
from memohop.training.numbers import RATES
from memohop.training.room import available_bytes, held_bytes, peak_bytes, resident_growth

_SLACK = 1.3  # over the measured growth, for gaps between tensors: 1.0 to 1.2 were seen
_SLACK_UNSEEN = 4.0  # over the tensors alone, where the system does not report the growth
_PER_EPOCH = 64  # bytes of a member's keys and curves, while they are made
_PLENTY = 1 << 28  # bytes of a chunk on a CPU: far beyond its cache, more at once gain nothing
_STEPS = 2  # of a measurement: the second step runs beside the leftovers of the first

Step = Callable[[Sequence[Member], int], None]


class TooLittleError(UsageError):
    """One member does not fit.

    Attributes:
        need: the bytes that it takes beside what the process holds.
        budget: the bytes that there are for it.
    """

    def __init__(self, text: str, need: float, budget: float) -> None:
        super().__init__(text)
        self.need, self.budget = need, budget


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
    """The size of the chunks, which are as equal as possible.

    One member is trained for a few steps, and its bytes are measured. Penalty and dropout cost
    extra, so one member of each kind that may be the costliest is measured.

    Args:
        steps: trains members for a number of steps, from their start.
        members: all members to train.
        memory: the most bytes that the process may hold: its resident size on a CPU, its bytes on
            a GPU; None for as many as the device can spare.
        for_results: bytes of results that are held until the end.
        epochs: the most steps that members will take.
        device: the device to train on.
        most: the most members of a chunk; None for the limit of the device.
    """
    separate = traits_of(device).is_separate
    cost = peak_bytes if memory is None or separate else _growth
    most = min(most or traits_of(device).most_members or len(members), len(members))
    budget = available_bytes(device) if memory is None else memory - held_bytes(device)
    if epochs * _PER_EPOCH > budget:
        raise _too_little(memory, device, epochs * _PER_EPOCH, epochs)
    if most == 1 and memory is None:
        return 1
    each = 0.0
    for member in _costliest(members):
        steps([member], 1)  # makes everything that is made once, and then counts as held
        each = max(each, cost(partial(steps, [member], _STEPS)))
    if memory is not None:
        budget = memory - held_bytes(device)
    if not separate:
        budget -= for_results
    fits = int(budget / max(each, 1))
    if fits < 1:
        raise _too_little(memory, device, int(each) + for_results, epochs)
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


def _too_little(memory: int | None, device: torch.device, need: int, epochs: int) -> TooLittleError:
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
