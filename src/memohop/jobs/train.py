"""Training with several processes: members are dealt out, or the graph is cut."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from memohop.data.check import check_one_kind
from memohop.data.sparse_features import is_sparse, stored_values
from memohop.errors import DataError, UsageError, check_choice, whole_number
from memohop.ram import in_units
from memohop.training import Job, Member, Result
from memohop.training.device import available_bytes
from memohop.training.task import in_default_type
from memohop.training.trainer import Progress, warn_of_diverged
from memohop.training.trainer import train as train_here

if TYPE_CHECKING:
    from memohop.jobs.executor import Executor, Pool
    from memohop.parts.halo import Group
    from memohop.parts.partition import Partition
    from memohop.parts.run import PartsRun
    from memohop.pyg import Data

# Bytes of an arc as given, which may count both ways: 16 of edge_index, and at the peak of training
# 46 (gcn+mmp, sage) to 67 (dir-gcn+mmp), measured with 10 M of them on a CPU.
_PER_ARC = 85


def train(
    data: Data,
    model: str | Callable[[], nn.Module],
    members: Sequence[Member],
    *,
    workers: int | None = None,
    ray: str | None = None,
    cut: str = "contiguous",
    checkpoints: Path | str | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    **budget: Any,
) -> list[Result]:
    """Train a population of networks and keep each one's best epoch.

    A member's result depends on the data, the model and the member alone, not on the other members
    or on the chunks. It is the same to the bit wherever the matrix library rounds a product alike
    in batches of any size; on one thread of a CPU that held for all models but ``acm-gcn``,
    ``gatv2`` and ``gatv2+de``. The exception is a call with a single member on a CPU: it goes
    without ``vmap``, which saves a tenth to a half of the time, and rounds differently. Its first
    losses agree to 1e-6, but training can magnify the difference until another epoch is kept. To
    repeat the exact figures of a population, pass a second member.

    A member whose loss or outputs stop being finite has diverged: its scores are NaN,
    :func:`memohop.select` does not choose it, and a warning counts such members.

    With workers, members are dealt out to them if there are two for each of at least two workers,
    and the graph fits each worker. Otherwise the graph is cut into blocks, one for each worker,
    and all of them train all members together. Either way the results are those of one process,
    up to rounding.

    Workers are actors of a Ray cluster (``pip install 'memohop[ray]'``). If one is lost, the run
    goes on with another from the latest checkpoint. Under ``torchrun``, which sets ``RANK`` and
    ``WORLD_SIZE``, this process is one of the workers, and each of them returns the results.

    Args:
        data: the result of :func:`memohop.load`, or any PyG ``Data`` with ``x``, ``y``,
            ``edge_index`` and ``train_mask``, ``val_mask``, ``test_mask`` of shape ``[N]`` or
            ``[N, splits]``; without ``test_mask``, test scores are NaN. ``y`` holds class numbers
            (int64), or numbers to predict (floating point, best
            :func:`~memohop.training.standardised`). ``data.metric`` names the score, one of
            :data:`~memohop.training.metrics.METRICS`; by default accuracy, or R2. Features are
            converted to PyTorch's default type. Sparse features, a tensor or a matrix of SciPy,
            stay sparse up to the kernel, except for modules that are not of this library.
        model: an id from :func:`memohop.models`, or a function that makes a module called as
            ``module(x, edge_index)``; for a graph in blocks, a network of this library.
        members: the runs, see :class:`memohop.Member` and :func:`memohop.grid`.
        workers: how many processes train; by default this one alone.
        ray: the address of a running Ray cluster, or ``auto``; by default one is started on this
            machine and ended with the run.
        cut: how the graph is cut: ``"contiguous"``, in the order of its nodes, or ``"metis"``,
            so that few arcs run between blocks (``pip install 'memohop[metis]'``).
        checkpoints: a folder in which a run on a graph in blocks is kept every 10 epochs; given
            again, the same run continues from there, with any number of workers.
        say: called with sentences on what is done and why.
        progress: called as ``progress(done, total)`` with counts of member-epochs. If it raises
            :class:`~memohop.training.Enough`, the training ends: members of the current chunk
            count with the epochs that they have run; those of later chunks have run none, and
            their scores are NaN.
        **budget: attributes of :class:`~memohop.training.Job`: ``options``, ``epochs``,
            ``patience``, ``rules``, ``device``, ``memory`` (of each worker) and so on.

    Returns:
        One result per member, in the order of ``members``.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> members = memohop.grid(split=range(2), lam=(0.0, 0.2))
        >>> results = memohop.train(data, "gcn+mmp", members, epochs=3)
        >>> [len(result.loss_curve) for result in results]
        [3, 3, 3, 3]
    """
    job = Job(data=data, model=model, members=tuple(members), **budget)
    return train_job(
        job,
        workers=workers,
        ray=ray,
        cut=cut,
        checkpoints=checkpoints,
        say=say,
        progress=progress,
    )


def train_job(
    job: Job,
    *,
    workers: int | None = None,
    ray: str | None = None,
    cut: str = "contiguous",
    checkpoints: Path | str | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Train the members of a job; see :func:`train`."""
    check_one_kind(job.data, "data")
    in_group = under_torchrun()
    if in_group:
        workers = _started(workers, ray)
    if workers is None:
        unlike = None if cut == "contiguous" else cut
        for name, value in {"ray": ray, "checkpoints": checkpoints, "cut": unlike}.items():
            if value is not None:
                raise UsageError(f"{name}={value} goes with workers; give their number too")
        return train_here(replace(job, data=_in_ram(job.data)), progress)
    from memohop.parts.partition import METHODS, partition
    from memohop.parts.run import PartsRun

    check_choice("cut", cut, METHODS)
    workers = whole_number("workers", workers, least=1)
    say = say or (lambda sentence: None)
    data, device = job.data, str(job.device)
    blocks: Partition | int = workers
    if cut != "contiguous" or "folder" not in data:
        data = in_default_type(_in_ram(data))
        job = replace(job, data=data)
        shares = max(1, min(workers, len(job.members) // 2))  # one alone would round differently
        whole = whole_bytes(data.x, data.edge_index.shape[1])
        fits = fits_each(whole, workers, job.memory)
        if shares > 1 and fits and checkpoints is None:
            say(
                f"{len(job.members)} members are dealt out to {shares} workers: the graph, "
                f"about {in_units(whole)} in training, fits each of them"
            )
            if in_group:
                return _deal_in_group(_joined(device), shares, job, progress)
            return deal(_cluster(ray, device, shares, workers), shares, job, progress)
        blocks = partition(data.edge_index, len(data.y), workers, method=cut)
        why = "a run with checkpoints is one for all workers"
        if not fits:
            why = f"as a whole, about {in_units(whole)} in training, it fits none of them"
        elif shares == 1:
            why = "there are too few members to deal them out"
        if workers > 1:
            say(f"the graph is cut for {workers} workers ({why}): {blocks}")
    elif workers > 1:
        say(f"each of {workers} workers reads a block of {data.folder}")
    run = PartsRun(job, blocks, checkpoints, progress)
    if in_group:
        return run.in_group(_joined(device))
    return run_on(_cluster(ray, device, workers, workers), run)


def _cluster(address: str | None, device: str, count: int, workers: int) -> Pool:
    """Workers of a Ray cluster."""
    from memohop.jobs.ray_workers import RayWorkers, import_ray

    import_ray(f"workers={workers}", "start the processes by torchrun")
    return RayWorkers(address, device, "give the command again", count=count)


def run_on(pool: Pool, run: PartsRun) -> list[Result]:
    """Train on a graph in blocks with the processes of a pool."""
    from memohop.jobs.executor import Lost
    from memohop.parts.run import PartsRun
    from memohop.parts.worker import train_share

    ((_, results),) = pool(train_share, [run], together=run.size, told=PartsRun.keep)
    epoch = run.checkpoints.done
    if isinstance(results, Lost) and results.late:
        lost = f"a worker was lost at epoch {epoch} and cannot be replaced: " if epoch else ""
        raise DataError(f"{lost}{results.reason}")
    if isinstance(results, Lost):
        raise DataError(
            f"a worker was lost 3 times at epoch {epoch} ({results.reason}), and replacing it does "
            "not help; see the logs of Ray, and whether its machine has RAM enough"
        )
    warn_of_diverged(results, run.name)
    return results


def deal(
    executor: Executor, shares: int, job: Job, progress: Progress | None = None
) -> list[Result]:
    """Deal out the members of a job, and train each share as a job of an executor."""
    from memohop.jobs.executor import Lost

    results: list[Any] = [None] * len(job.members)
    work = partial(_train_share, shares=shares, job=job)
    for done, (share, answer) in enumerate(executor(work, range(shares)), 1):
        if isinstance(answer, Lost):
            raise answer.error
        results[share::shares] = answer
        if progress is not None:
            progress(done, shares)
    return results


def _deal_in_group(group: Group, shares: int, job: Job, progress: Progress | None) -> list[Result]:
    """Train this process's share of the members, and collect the others'."""
    from memohop.parts.block import digest_of
    from memohop.parts.worker import agree

    agree(group, digest_of(job.data))
    is_idle = group.rank >= shares
    answers = group.gather([] if is_idle else _train_share(group.rank, shares, job, progress))
    return deal(lambda _, numbers: zip(numbers, answers, strict=False), shares, job)


def _train_share(
    share: int, shares: int, job: Job, progress: Progress | None = None
) -> list[Result]:
    return train_here(replace(job, members=job.members[share::shares]), progress)


def _in_ram(data: Data) -> Data:
    """The data with features and arcs, which may still be in the folder of a prepared graph."""
    if "folder" not in data:
        return data
    from memohop.jobs.folder import in_ram

    return in_ram(data)


def under_torchrun() -> bool:
    """Whether ``torchrun`` has started this process and others."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def whole_bytes(x: Any, arcs: int) -> int:
    """About how much RAM a graph and its features take in training, without the states."""
    return int(_PER_ARC * arcs + (stored_values(x) if is_sparse(x) else x).nbytes)


def fits_each(whole: int, workers: int, memory: int | None) -> bool:
    """Whether so many bytes fit each worker; without a limit, workers share this machine's RAM."""
    return whole <= (memory or available_bytes(torch.device("cpu")) // workers)


def _joined(device: str) -> Group:
    """The processes of torchrun, which stay together until they end."""
    import torch.distributed as dist

    from memohop.parts.halo import Group

    if not dist.is_initialized():
        if device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        atexit.register(Group.join(device).leave)
    return Group()


def _started(workers: int | None, ray: str | None) -> int:
    size = int(os.environ["WORLD_SIZE"])
    if workers not in (None, size) or ray is not None:
        given = f"ray={ray}" if ray is not None else f"workers={workers}"
        raise UsageError(
            f"{given}, but torchrun has started {size} processes, and these are the workers; leave "
            "it out"
        )
    return size
