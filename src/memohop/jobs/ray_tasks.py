"""The workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from memohop.cluster import check_room, connected, count_workers, import_ray, in_a_line, needs_of
from memohop.jobs.executor import AnswerT, JobT, Lost, Progress, Tried, keep_busy


class RayTasks:
    """An executor that sends jobs to a cluster. Files must be at the same paths on its machines.

    Args:
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
        device: What each job needs: ``cpu``, a core, or ``cuda``, a GPU.
        remedy: What to do if the cluster is lost.
        count: How many jobs run at the same time; by default as many as there are cores or GPUs.
    """

    def __init__(
        self, address: str | None, device: str, remedy: str, *, count: int | None = None
    ) -> None:
        import_ray()
        self._address, self._device, self._remedy, self._count = address, device, remedy, count

    def __call__(
        self,
        work: Callable[[JobT, Progress], AnswerT],
        jobs: Iterator[JobT],
        progress: Callable[[JobT, float], None],
    ) -> Iterator[tuple[JobT, AnswerT | Lost]]:
        """See :class:`~memohop.jobs.executor.Executor`; they do not tell their progress."""
        with connected(self._address, self._remedy, cores=self._count) as ray:
            if self._count is not None:
                check_room(ray, self._count, self._device)
            size = self._count or count_workers(ray, self._device)
            yield from keep_busy(RayPlaces(ray, work, self._device, size), jobs)


@dataclass
class RayPlaces:
    """Tasks that run at the same time."""

    ray: Any
    work: Callable[..., Any]
    device: str
    size: int
    _running: dict[Any, Tried[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._work = self.ray.put(self.work)  # once, with all that it holds
        # Lost jobs are tried again here.
        self._task = self.ray.remote(max_retries=0, **needs_of(self.device))(do)

    def start(self, tried: Tried[Any]) -> None:
        """Send a job."""
        self._running[self._task.remote(self._work, tried.job)] = tried

    def ended(self) -> tuple[Tried[Any], Any]:
        """Wait for an answer, or for the loss of a worker."""
        (ready,), _ = self.ray.wait(list(self._running), num_returns=1)
        tried = self._running.pop(ready)
        try:
            return tried, self.ray.get(ready)
        except self.ray.exceptions.RayTaskError as error:  # raised by the work
            raise getattr(error, "cause", error) from None
        except self.ray.exceptions.RayError as error:
            return tried, Lost(in_a_line(error))


def do(work: Callable[[JobT, Progress], AnswerT], job: JobT) -> AnswerT:
    """A task of the cluster."""
    return work(job, lambda share: None)
