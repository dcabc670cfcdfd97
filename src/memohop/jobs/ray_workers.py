"""The workers of a Ray cluster. Ray is an extra: ``pip install memohop[ray]``."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memohop.errors import DataError, UsageError
from memohop.jobs.executor import Doer, Lost, Pool, Process

_ANSWER = 5  # seconds that a cluster has to answer at its address


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
        super().__init__()
        import_ray()
        self._address, self._device, self._remedy, self._count = address, device, remedy, count
        self._packed: tuple[Any, Any] | None = None

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connected to the cluster, with room for the workers; if it is lost, a ``DataError``.

        A cluster that this process is connected to already is used and left as it is.
        """
        ray = self._ray = import_ray()
        ours = not ray.is_initialized()
        if ours:
            self._connect()
        try:
            self.size = self._size()
            yield
        except ray.exceptions.RayError as error:
            raise DataError(
                f"the Ray cluster is lost ({in_a_line(error)}); see that it runs and {self._remedy}"
            ) from error
        finally:
            self._packed = None
            if ours:
                ray.shutdown()

    def _connect(self) -> None:
        _check_answers(self._address)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # older ones tell of Ray's plans
                self._ray.init(
                    address=self._address or "local",
                    num_cpus=self._count if self._address is None else None,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _no_answer(self._address, str(error).strip().partition("\n")[0]) from error

    def _size(self) -> int:
        """How many workers run at the same time, as many as there are GPUs or cores by default.

        A cluster that cannot run so many is refused.
        """
        kind = "GPU" if self._device == "cuda" else "CPU"
        there, workers = int(self._ray.cluster_resources().get(kind, 0)), self._count
        if workers is None and not there:
            raise UsageError(f"the Ray cluster has no {kind}; add one or choose another --device")
        if workers is not None and there < workers:
            raise UsageError(
                f"workers={workers}, but the Ray cluster has {there} {kind}s; give at most "
                f"{there}, or add machines to the cluster"
            )
        return workers or there

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
        needs = {"num_gpus": 1} if device == "cuda" else {"num_cpus": 1}
        self._actor = ray.remote(max_restarts=0, **needs)(RayWorker).remote(packed)
        self.asked = self._actor.whereabouts.remote()

    def ask(self, method: str, *given: Any) -> None:
        self.asked = getattr(self._actor, method).remote(*given)

    def take(self) -> Any:
        try:
            return self._ray.get(self.asked)
        except self._ray.exceptions.RayTaskError as error:  # raised by the work
            return getattr(error, "cause", None) or error
        except self._ray.exceptions.RayError as error:
            return Lost(in_a_line(error))

    def end(self) -> None:
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

    def begin(self, job: Any, beside: int = 1, *where: Any) -> Any:
        """See ``Doer``; those that share a job share the cores of their machine."""
        if where:
            import torch

            torch.set_num_threads(max(1, (os.cpu_count() or 1) // beside))
        return super().begin(job, beside, *where)


def import_ray(asked: str = "engine=ray", instead: str = "leave out --engine ray") -> Any:
    """Ray's module; a ``UsageError`` with what was asked and what to do instead if it is absent."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"{asked}, but Ray is not installed here: pip install 'memohop[ray]', or {instead}"
        ) from error
    return ray


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


def in_a_line(error: Exception) -> str:
    """The kind of error and the first line of its text, which may be a page long."""
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"
