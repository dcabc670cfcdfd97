"""Sends jobs to the workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from memohop.bench.runner import Attempt, Attempts, Engine, Inner, Job, Resources, attempt
from memohop.errors import DataError, UsageError

_TRIES = 3


def ray_engine(address: str | None = None) -> Engine:
    """An engine for :func:`memohop.bench.runner.run_cells`.

    The workers train, and the driver alone writes the store. A job whose worker or node is lost is
    tried again after the others; after three losses it counts as lost. Workers read the data files
    at the same path as the driver, or download them.

    Args:
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "engine=ray, but Ray is not installed here: pip install 'memohop[ray]', or leave out "
            "--engine ray"
        ) from error

    def engine(jobs: Iterator[Job], resources: Resources, inner: Inner) -> Attempts:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        try:
            yield from _send(ray, jobs, resources)
        except ray.exceptions.RayError as error:
            raise DataError(
                f"the Ray cluster is lost ({_in_a_line(error)}); see that it runs and give the "
                "command again: what is done is in the store"
            ) from error
        finally:
            ray.shutdown()

    return engine


def _send(ray: Any, jobs: Iterator[Job], resources: Resources) -> Attempts:
    """Keeps every worker busy, and gives their attempts as they come."""
    needs = {"num_gpus": 1} if resources.device == "cuda" else {"num_cpus": 1}
    kind = "GPU" if resources.device == "cuda" else "CPU"
    workers = int(ray.cluster_resources().get(kind, 0))
    if not workers:
        raise UsageError(f"the Ray cluster has no {kind}; add one or choose another --device")
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
        losses[job.cell.id] += found.lost is not None
        if found.lost is None or losses[job.cell.id] == _TRIES:
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
        return Attempt(lost=_in_a_line(error))


def _in_a_line(error: Exception) -> str:
    """The kind of error and the first line of its text, which may be a page long."""
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
