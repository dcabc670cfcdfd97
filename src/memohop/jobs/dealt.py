"""Members dealt out to workers, each of which has the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memohop.errors import DataError
from memohop.jobs.executor import Executor, Lost, Progress
from memohop.ram import keep_freed_ram
from memohop.training.member import Member, Result
from memohop.training.task import in_default_type
from memohop.training.trainer import train

if TYPE_CHECKING:
    from memohop.parts.group import Group
    from memohop.pyg import Data


def shares_of(members: int, workers: int) -> list[range]:
    """The members of each worker: at least two, since one alone rounds differently."""
    count = max(1, min(workers, members // 2))
    return [range(number, members, count) for number in range(count)]


def train_dealt(
    executor: Executor,
    shares: Sequence[range],
    data: Data,
    model: Any,
    members: Sequence[Member],
    arguments: Mapping[str, Any],
) -> list[Result]:
    """Train each share as a job of an executor."""
    progress = arguments.get("progress")
    others = {name: value for name, value in arguments.items() if name != "progress"}
    work = partial(_train, data=data, model=model, members=members, arguments=others)
    found: dict[range, Sequence[Result]] = {}
    for share, results in executor(work, iter(shares), lambda share, done: None):
        if isinstance(results, Lost):
            raise DataError(
                f"a worker was lost again and again ({results.reason}); see whether its machine "
                "has RAM enough, and give the command again"
            )
        found[share] = results
        if progress is not None:
            progress(len(found), len(shares))
    return _in_order(shares, [found[share] for share in shares])


def train_dealt_in_group(
    group: Group,
    shares: Sequence[range],
    data: Data,
    model: Any,
    members: Sequence[Member],
    arguments: Mapping[str, Any],
) -> list[Result]:
    """Train this process's share, and collect the others'."""
    from memohop.parts.block import digest_of
    from memohop.parts.worker import agree

    agree(group, digest_of(in_default_type(data)))
    found: list[Result] = []
    if group.rank < len(shares):
        share = [members[i] for i in shares[group.rank]]
        found = train(data, model, share, **arguments)
    return _in_order(shares, group.gather(found))


def _train(
    share: range,
    progress: Progress,
    *,
    data: Data,
    model: Any,
    members: Sequence[Member],
    arguments: Mapping[str, Any],
) -> list[Result]:
    keep_freed_ram()
    return train(data, model, [members[i] for i in share], **arguments)


def _in_order(shares: Sequence[range], found: Sequence[Sequence[Result]]) -> list[Result]:
    results = {
        member: result
        for share, part in zip(shares, found, strict=False)
        for member, result in zip(share, part, strict=True)
    }
    return [results[member] for member in sorted(results)]
