"""Workers as actors of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from memohop.cluster import check_room, connected, import_ray
from memohop.errors import MemohopError
from memohop.parts.block import Block
from memohop.parts.crew import LostError, NoPlaceError
from memohop.parts.group import Group
from memohop.parts.worker import Job, Worker
from memohop.ram import keep_freed_ram
from memohop.training.member import Result

_HIRING = 120  # seconds that a cluster has to start the workers: an autoscaler may need them
_LAST_WORDS = 10  # seconds after a failure in which the loss of a worker is noticed


@contextmanager
def workers_of(address: str | None, workers: int, device: str) -> Iterator[Any]:
    """Ray, connected to a cluster with room for the workers."""
    import_ray(f"workers={workers}", "start the processes by torchrun")
    with connected(address, "give the command again", cores=workers) as ray:
        check_room(ray, workers, device)
        yield ray


class Actor:
    """A process of the cluster that holds a worker."""

    def whereabouts(self) -> tuple[str, int]:
        """Its address, and a port that is free there."""
        import ray

        with socket.socket() as found:
            found.bind(("", 0))
            return ray.util.get_node_ip_address(), found.getsockname()[1]

    def join(self, job: Job, block: Block, rank: int, size: int, meeting: str, here: int) -> Any:
        """Join the others; the size and the number of the populations."""
        keep_freed_ram()
        torch.set_default_dtype(job.dtype)
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // here))
        group = Group.join(job.device, init_method=meeting, rank=rank, world_size=size)
        self.worker = Worker(job, block, group)
        return self.worker.size, self.worker.chunks

    def call(self, method: str, *arguments: Any) -> Any:
        """A method of the worker."""
        return getattr(self.worker, method)(*arguments)


class RayCrew:
    """As many actors as there are blocks, each on a CPU or a GPU of its own.

    Args:
        ray: the module, connected.
        job: what is to be trained.
        blocks: references to the blocks in the cluster.
    """

    def __init__(self, ray: Any, job: Job, blocks: Sequence[Any]) -> None:
        self._ray = ray
        needs = {"num_gpus": 1} if job.device == "cuda" else {"num_cpus": 1}
        self._actors = [ray.remote(Actor).options(**needs).remote() for _ in blocks]
        try:
            self.size, self.chunks = self._meet(job, blocks)
        except BaseException:
            self.dismiss()
            raise

    def _meet(self, job: Job, blocks: Sequence[Any]) -> tuple[int, int]:
        """Give them their blocks, and make them a group."""
        ray = self._ray
        asked = [actor.whereabouts.remote() for actor in self._actors]
        ready, late = ray.wait(asked, num_returns=len(asked), timeout=_HIRING)
        if late:
            raise NoPlaceError(
                f"{len(late)} of {len(asked)} workers could not be started within {_HIRING} s, as "
                "the Ray cluster has no place for them; add machines, or give fewer workers"
            )
        found = self._answers(ready)
        hosts = [host for host, _ in found]
        meeting = f"tcp://{found[0][0]}:{found[0][1]}"
        joined = [
            actor.join.remote(job, block, rank, len(blocks), meeting, hosts.count(hosts[rank]))
            for rank, (actor, block) in enumerate(zip(self._actors, blocks, strict=True))
        ]
        return self._answers(joined)[0]

    def start(self, chunk: int, snapshot: Mapping[str, Tensor] | None = None) -> None:
        """Make a population ready in all of them."""
        self._all("start", chunk, None if snapshot is None else self._ray.put(snapshot))

    def advance(self, epochs: int) -> tuple[int, bool]:
        """Take up to so many steps."""
        return self._all("advance", epochs)[0]

    def snapshot(self) -> dict[str, Tensor]:
        """The state of the population, which is the same everywhere."""
        return self._answers([self._actors[0].call.remote("snapshot")])[0]

    def results(self) -> list[Result]:
        """The results, which are the same everywhere."""
        return self._answers([self._actors[0].call.remote("results")])[0]

    def dismiss(self) -> None:
        """End all of them."""
        for actor in self._actors:
            self._ray.kill(actor)

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        return self._answers([actor.call.remote(method, *arguments) for actor in self._actors])

    def _answers(self, asked: list[Any]) -> list[Any]:
        """What they answer; after a failure, the error of the one that failed first."""
        ray, left = self._ray, list(asked)
        while left:
            (first,), left = ray.wait(left, num_returns=1)
            try:
                ray.get(first)
            except Exception as error:
                others, _ = ray.wait(left, num_returns=len(left), timeout=_LAST_WORDS)
                raise _reason(ray, [error, *_errors(ray, others)]) from error
        return ray.get(asked)


def _errors(ray: Any, asked: Sequence[Any]) -> list[Exception]:
    found: list[Exception] = []
    for one in asked:
        try:
            ray.get(one)
        except Exception as error:
            found.append(error)
    return found


def _reason(ray: Any, errors: Sequence[Exception]) -> Exception:
    """What is to blame: a mistake of the user, the loss of a worker, or the first error.

    The other workers fail too, when the connection to a lost one breaks; if its whole machine is
    lost, Ray notices only later.
    """
    causes = [getattr(error, "cause", None) or error for error in errors]
    for cause in causes:
        if isinstance(cause, MemohopError):
            return cause
    for error in errors:
        if isinstance(error, ray.exceptions.RayError) and not isinstance(
            error, ray.exceptions.RayTaskError
        ):
            return LostError(str(error).strip().partition("\n")[0])
    for cause in causes:
        if isinstance(cause, dist.DistError) or "gloo" in str(cause):
            return LostError(str(cause).strip().partition("\n")[0])
    return causes[0]
