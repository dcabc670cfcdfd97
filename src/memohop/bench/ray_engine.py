"""Sends jobs to the workers of a Ray cluster. Ray is an extra: `pip install memohop[ray]`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

from memohop.bench.runner import Attempt, Engine, Inner, Job, Place, attempt
from memohop.errors import DataError, UsageError


def ray_engine(address: str | None = None) -> Engine:
    """An engine for :func:`memohop.bench.runner.run_cells`.

    The workers train and the driver alone writes the store. A job whose worker is lost is run
    again by Ray. Workers read the data files at the same path as the driver, or download them.

    Args:
        address: Of a cluster that runs, or `auto`; one is started on this machine by default.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "engine=ray, but Ray is not installed here: pip install 'memohop[ray]', or leave out "
            "--engine ray"
        ) from error

    def engine(jobs: Iterator[Job], place: Place, inner: Inner) -> Iterator[tuple[Job, Attempt]]:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        try:
            yield from _send(ray, jobs, place)
        finally:
            ray.shutdown()

    return engine


def _send(ray: Any, jobs: Iterator[Job], place: Place) -> Iterator[tuple[Job, Attempt]]:
    """Keeps every worker busy, and gives what comes back in the order in which it comes."""
    needs = {"num_gpus": 1} if place.device == "cuda" else {"num_cpus": 1}
    kind = "GPU" if place.device == "cuda" else "CPU"
    workers = int(ray.cluster_resources().get(kind, 0))
    if not workers:
        raise UsageError(f"the Ray cluster has no {kind}; add one or choose another --device")
    # A task is repeated when its worker dies; what the task itself raises is no reason to.
    remote = ray.remote(max_retries=3, **needs)(attempt)
    running: dict[Any, Job] = {}
    while True:
        for job in islice(jobs, workers - len(running)):
            running[remote.remote(job, place)] = job
        if not running:
            return
        (ready,), _ = ray.wait(list(running), num_returns=1)
        yield running.pop(ready), _received(ray, ready)


def _received(ray: Any, ready: Any) -> Attempt:
    try:
        return ray.get(ready)
    except DataError as error:  # Ray's error, which is also an instance of the original's class
        raise DataError(str(getattr(error, "cause", error))) from error
    except ray.exceptions.RayError as error:
        return Attempt(failure=str(error))
