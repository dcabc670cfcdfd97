"""Members dealt out to workers, each of which has the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memohop.allocator import keep_freed_ram
from memohop.errors import DataError, MemohopError
from memohop.parts.block import digest_of
from memohop.parts.group import Group
from memohop.parts.worker import agree
from memohop.training.member import Member, MemberResult
from memohop.training.task import in_default_type
from memohop.training.trainer import train

if TYPE_CHECKING:
    from memohop.pyg import Data

_TRIES = 3


def shares_of(members: int, workers: int) -> list[range]:
    """The members of each worker: at least two, since one alone rounds differently."""
    count = max(1, min(workers, members // 2))
    return [range(number, members, count) for number in range(count)]


def train_dealt_in_group(
    group: Group,
    shares: Sequence[range],
    data: Data,
    model: Any,
    members: Sequence[Member],
    arguments: Mapping[str, Any],
) -> list[MemberResult]:
    """Train this process's share, and collect the others'."""
    agree(group, digest_of(in_default_type(data)))
    found: list[MemberResult] = []
    if group.rank < len(shares):
        share = [members[i] for i in shares[group.rank]]
        found = train(data, model, share, **arguments)
    return _in_order(shares, group.gather(found))


def train_dealt_on_ray(
    ray: Any,
    shares: Sequence[range],
    data: Data,
    model: Any,
    members: Sequence[Member],
    arguments: Mapping[str, Any],
) -> list[MemberResult]:
    """Train each share in a task of its own, which Ray tries again if its worker is lost."""
    progress = arguments.get("progress")
    needs = {"num_gpus": 1} if str(arguments.get("device", "cpu")) == "cuda" else {"num_cpus": 1}
    task = ray.remote(max_retries=_TRIES, **needs)(_train)
    there, others = ray.put(data), {k: v for k, v in arguments.items() if k != "progress"}
    asked = [task.remote(there, model, [members[i] for i in share], others) for share in shares]
    left, done = list(asked), 0
    while left:
        ready, left = ray.wait(left, num_returns=1)
        try:
            done += sum(result.epochs for result in ray.get(ready[0]))
        except ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise cause if isinstance(cause, MemohopError) else error from None
        except ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0]
            raise DataError(
                f"a worker was lost {_TRIES + 1} times ({reason}); see whether its machine has RAM "
                "enough, and give the command again"
            ) from error
        if progress is not None:
            progress(len(asked) - len(left), len(asked))
    return _in_order(shares, ray.get(asked))


def _train(
    data: Data, model: Any, members: Sequence[Member], arguments: Mapping[str, Any]
) -> list[MemberResult]:
    keep_freed_ram()
    return train(data, model, members, **arguments)


def _in_order(
    shares: Sequence[range], found: Sequence[Sequence[MemberResult]]
) -> list[MemberResult]:
    results = {
        member: result
        for share, part in zip(shares, found, strict=False)
        for member, result in zip(share, part, strict=True)
    }
    return [results[member] for member in sorted(results)]
