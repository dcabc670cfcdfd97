"""Sends jobs to the workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from memohop.cluster import connected, count_workers, import_ray, in_a_line, needs_of
from memohop.errors import DataError
from study.runs.runner import Attempt, Attempts, Engine, Inner, Job, Resources, attempt

_TRIES = 3


def ray_engine(address: str | None = None) -> Engine:
    """An engine for :func:`study.runs.runner.run_cells`.

    The workers train, and the driver alone writes the store. A job whose worker or node is lost is
    tried again after the others; after three losses it counts as lost. Workers read the data files
    at the same path as the driver, or download them.

    Args:
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
    """
    import_ray()

    def engine(jobs: Iterator[Job], resources: Resources, inner: Inner) -> Attempts:
        with connected(address, "give the command again: what is done is in the store") as ray:
            yield from _send(ray, jobs, resources)

    return engine


def _send(ray: Any, jobs: Iterator[Job], resources: Resources) -> Attempts:
    """Keeps every worker busy, and gives their attempts as they come."""
    workers, needs = count_workers(ray, resources.device), needs_of(resources.device)
    remote = ray.remote(max_retries=0, **needs)(attempt)  # lost jobs are tried again here
    running: dict[Any, Job] = {}
    lost, losses = deque[Job](), Counter[str]()
    while True:
        waiting = chain(jobs, _taken(lost))
        for job in islice(waiting, workers - len(running)):
            running[remote.remote(job, resources)] = job
        if not running:
            return
        (ready,), _ = ray.wait(list(running), num_returns=1)
        job, found = running.pop(ready), _received(ray, ready)
        losses[job.id] += found.lost is not None
        if found.lost is None or losses[job.id] == _TRIES:
            yield job, found
        else:
            lost.append(job)


def _taken(jobs: deque[Job]) -> Iterator[Job]:
    while jobs:
        yield jobs.popleft()


def _received(ray: Any, ready: Any) -> Attempt:
    try:
        return ray.get(ready)
    except DataError as error:  # Ray's error, which is also an instance of the original's class
        raise DataError(str(getattr(error, "cause", error))) from error
    except ray.exceptions.RayError as error:
        # An error of the training is part of the attempt, so this is one of the cluster.
        return Attempt(lost=in_a_line(error))
