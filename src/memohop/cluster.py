"""The workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memohop.errors import DataError, UsageError


def import_ray() -> Any:
    """Ray's module; a ``UsageError`` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "engine=ray, but Ray is not installed here: pip install 'memohop[ray]', or leave out "
            "--engine ray"
        ) from error
    return ray


@contextmanager
def connected(address: str | None, remedy: str) -> Iterator[Any]:
    """Ray, connected to a cluster until the end; a ``DataError`` if the cluster is lost.

    Args:
        address: Of a running cluster, or ``auto``; None to start one on this machine.
        remedy: What to do if it is lost.
    """
    ray = import_ray()
    ray.init(
        address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise DataError(
            f"the Ray cluster is lost ({in_a_line(error)}); see that it runs and {remedy}"
        ) from error
    finally:
        ray.shutdown()


def needs_of(device: str) -> dict[str, int]:
    """What a worker takes for itself: a GPU, or a core."""
    return {"num_gpus": 1} if device == "cuda" else {"num_cpus": 1}


def count_workers(ray: Any, device: str) -> int:
    """How many workers run at the same time: as many as there are GPUs, or cores."""
    kind = "GPU" if device == "cuda" else "CPU"
    workers = int(ray.cluster_resources().get(kind, 0))
    if not workers:
        raise UsageError(f"the Ray cluster has no {kind}; add one or choose another --device")
    return workers


def in_a_line(error: Exception) -> str:
    """The kind of error and the first line of its text, which may be a page long."""
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
