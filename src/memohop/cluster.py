"""The workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import logging
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memohop.errors import DataError, UsageError

_ANSWER = 5  # seconds that a cluster has to answer at its address


def import_ray(asked: str = "engine=ray", instead: str = "leave out --engine ray") -> Any:
    """Ray's module; a ``UsageError`` with what was asked and what to do instead if it is absent."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"{asked}, but Ray is not installed here: pip install 'memohop[ray]', or {instead}"
        ) from error
    return ray


@contextmanager
def connected(address: str | None, remedy: str, *, cores: int | None = None) -> Iterator[Any]:
    """Ray, connected to a cluster until the end; a ``DataError`` if the cluster is lost.

    A cluster that this process is connected to already is used and left as it is.

    Args:
        address: Of a running cluster, or ``auto``; None to start one on this machine.
        remedy: What to do if it is lost.
        cores: Of a cluster that is started here; by default those of the machine.
    """
    ray = import_ray()
    ours = not ray.is_initialized()
    if ours:
        _check_answers(address)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # older ones tell of Ray's plans
                ray.init(
                    address=address or "local",
                    num_cpus=cores if address is None else None,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_answer(address, str(error).strip().partition("\n")[0]) from error
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise DataError(
            f"the Ray cluster is lost ({in_a_line(error)}); see that it runs and {remedy}"
        ) from error
    finally:
        if ours:
            ray.shutdown()


def _check_answers(address: str | None) -> None:
    """Refuse an address at which nothing listens: Ray would try for a minute."""
    if address is None or address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            f"ray={address}: give an address such as 10.0.0.1:6379, or auto for the cluster on "
            "this machine"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER).close()
    except OSError as error:
        raise _no_answer(address, str(error)) from error


def _no_answer(address: str | None, why: str) -> DataError:
    return DataError(
        f"no Ray cluster answers at {address or 'this machine'} ({why}); start one by "
        "`ray start --head`, or leave out the address"
    )


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


def check_room(ray: Any, workers: int, device: str) -> None:
    """Refuse a cluster that cannot run so many workers at the same time."""
    kind = "GPU" if device == "cuda" else "CPU"
    there = int(ray.cluster_resources().get(kind, 0))
    if there < workers:
        raise UsageError(
            f"workers={workers}, but the Ray cluster has {there} {kind}s; give at most {there}, or "
            "add machines to the cluster"
        )


def in_a_line(error: Exception) -> str:
    """The kind of error and the first line of its text, which may be a page long."""
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
