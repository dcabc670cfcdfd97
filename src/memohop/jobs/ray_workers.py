"""The workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memohop.cluster import check_room, connected, count_workers, import_ray, in_a_line, needs_of
from memohop.jobs.executor import Doer, Lost, Pool, Process, Seat


class RayWorkers(Pool):
    """An executor with actors of a cluster. Files must be at the same paths on its machines.

    Args:
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
        device: What each worker needs: ``cpu``, a core, or ``cuda``, a GPU.
        remedy: What to do if the cluster is lost.
        count: How many workers there are; by default as many as there are cores or GPUs.
    """

    def __init__(
        self,
        address: str | None,
        device: str,
        remedy: str,
        *,
        count: int | None = None,
    ) -> None:
        import_ray()
        self._address, self._device, self._remedy, self._count = address, device, remedy, count
        self._packed: tuple[Any, Any] | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Connected to the cluster, with room for the workers."""
        with connected(self._address, self._remedy, cores=self._count) as self._ray:
            if self._count is not None:
                check_room(self._ray, self._count, self._device)
            self.size = self._count or count_workers(self._ray, self._device)
            try:
                yield
            finally:
                self._packed = None

    def start(self, work: Callable[..., Any]) -> Process:
        """A new actor for some work."""
        if self._packed is None or self._packed[0] is not work:  # once, with all that it holds
            packed = self._ray.put(self._ray.cloudpickle.dumps(work))
            self._packed = work, packed
        return _RayProcess(self._ray, self._packed[1], self._device)

    def wait(self, processes: Sequence[_RayProcess], seconds: float) -> Sequence[_RayProcess]:
        """One that has something to say, or is lost."""
        asked = [process.asked for process in processes]
        ready, _ = self._ray.wait(asked, num_returns=1, timeout=seconds)
        return [process for process in processes if process.asked in ready]


class _RayProcess(Process):
    """An actor for one job at a time."""

    def __init__(self, ray: Any, packed: Any, device: str) -> None:
        self._ray = ray
        # Lost workers are replaced by the pool.
        self._actor = ray.remote(max_restarts=0, **needs_of(device))(RayWorker).remote(packed)
        self.asked = self._actor.whereabouts.remote()

    def ask(self, method: str, *given: Any) -> None:
        """Have it call a method of its ``Doer``."""
        self.asked = getattr(self._actor, method).remote(*given)

    def take(self) -> Any:
        """What it says, or that it is lost."""
        try:
            return self._ray.get(self.asked)
        except self._ray.exceptions.RayTaskError as error:  # raised by the work
            return getattr(error, "cause", None) or error
        except self._ray.exceptions.RayError as error:
            return Lost(in_a_line(error))

    def end(self) -> None:
        """Kill the actor, even in the middle of its work."""
        self._ray.kill(self._actor)


class RayWorker(Doer):
    """What an actor does."""

    def __init__(self, packed: bytes) -> None:
        from ray.cloudpickle import loads

        from memohop.ram import keep_freed_ram

        keep_freed_ram()
        super().__init__(loads(packed))  # here: arrays that Ray unpacks cannot be written to

    def whereabouts(self) -> tuple[str, int]:
        """Its address, and a port that is free there."""
        import ray

        from memohop.jobs.processes import free_port

        return ray.util.get_node_ip_address(), free_port()

    def begin(self, job: Any, seat: Seat | None) -> Any:
        """See ``Doer``; the workers of a machine share its cores."""
        if seat is not None:
            import torch

            torch.set_num_threads(max(1, (os.cpu_count() or 1) // seat.beside))
        return super().begin(job, seat)
