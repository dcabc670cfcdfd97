"""Training on a graph in blocks, and the state of a run, from which it can be continued."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from memohop.data.check import check
from memohop.data.prepared import open_prepared
from memohop.errors import DataError, UsageError
from memohop.outputs import check_writable, whole_file
from memohop.parts.block import Cut, Targets, checked_network
from memohop.parts.halo import Group
from memohop.parts.partition import Partition, check_blocks
from memohop.parts.worker import Share, Step, Worker
from memohop.ram import reporting_out_of_memory
from memohop.training import Enough, Job, Result
from memohop.training.task import in_default_type
from memohop.training.trainer import Progress, check_splits, warn_of_diverged
from memohop.version import __version__


class PartsRun:
    """Members to be trained on a graph in blocks.

    Args:
        job: the members, the data and so on. Of data whose ``folder`` is that of a prepared graph,
            each process reads a block by itself. Steps that communicate are not captured;
            ``states`` and ``recompute`` are refused: a graph in blocks is cut into more of them.
        blocks: one for each worker; their number for a prepared graph.
        checkpoints: the folder of the checkpoint, if there is one.
        progress: see :func:`memohop.train`.
    """

    def __init__(
        self,
        job: Job,
        blocks: Partition | int,
        checkpoints: Path | str | None = None,
        progress: Progress | None = None,
    ) -> None:
        if job.states is not None or job.recompute:
            given = "recompute=True" if job.states is None else f"states={job.states!r}"
            raise UsageError(f"{given} is for a whole graph on one device; give more workers")
        if not isinstance(job.model, str) and checkpoints is not None:
            raise UsageError("checkpoints need a model that is an id, not a function")
        data = job.data
        if isinstance(blocks, Partition):
            data = in_default_type(data)
            check(data)
        self.name = job.name
        self.job = replace(replace(job, data=data).sized(), data=None)
        with reporting_out_of_memory(f"cutting the graph for {self.name}", lower="the features"):
            network = checked_network(self.job.build())
            self.targets = Targets.of(data)
            if isinstance(blocks, Partition):
                self.size, self._folder = len(blocks), None
                self.cut = Cut(data, network, blocks, job.features)
                digest = self.cut.digest
            else:
                self.size, self._folder = check_blocks(blocks, len(data.y)), data.folder
                digest = open_prepared(data.folder, check=False).digest
        check_splits(job.members, self.targets.y, self.targets.masks, self.targets.objective)
        folder = None if checkpoints is None else Path(checkpoints)
        self.checkpoints = Checkpoints(_digest(self.job, digest, self.targets), folder)
        self._progress = progress

    def share(self, rank: int) -> Share:
        """What a process is given to start, or to go on from the latest checkpoint.

        Populations are as large as they were there.
        """
        job = replace(self.job, at_once=self.checkpoints.size)
        block = self._folder or self.cut[rank]
        snapshots, dtype = self.checkpoints.snapshots, torch.get_default_dtype()
        return Share(job, block, self.targets, snapshots, dtype)

    def keep(self, step: Step) -> bool:
        """Keep what was reached in a step, and report it; whether that is enough."""
        self.checkpoints.keep(step.chunk, step.snapshot, step.size)
        if self._progress is None:
            return False
        members, epochs = len(self.job.members), self.job.epochs
        before = step.chunk * step.size
        here = min(step.size, members - before)
        try:
            self._progress(before * epochs + here * step.epochs, members * epochs)
        except Enough:
            return True
        return False

    def in_group(self, group: Group) -> list[Result]:
        """Train as one of a group of processes; the first one writes the checkpoints."""
        kept = self.checkpoints
        kept.snapshots, kept.size = group.of_first((kept.snapshots, kept.size))
        steps, is_enough = Worker(self.share(group.rank), group).train(kept.snapshots), None
        while True:
            try:
                step = steps.send(is_enough)  # type: ignore[arg-type]  # None begins
            except StopIteration as end:
                results: list[Result] = end.value
                break
            is_enough = group.of_first(group.rank == 0 and self.keep(step))
        if group.rank == 0:
            warn_of_diverged(results, self.name)
        return results


def _digest(job: Job, data: str, targets: Targets) -> str:
    """Identifies what a run's result depends on."""
    content = replace(job, device="", memory=None, at_once=None, capture=True)
    digest = hashlib.sha256(f"{data} {content!r}".encode())
    for part in (targets.nodes, targets.y, targets.masks):
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


class Checkpoints:
    """The latest snapshot of each population of a run: in RAM, and in a file if there is a folder.

    The file is named after the run's digest, so that a folder may have those of several runs, and
    a run with other data, members or options starts anew.

    Args:
        run: the digest of the run.
        folder: the folder of the file; None for no file.

    Attributes:
        snapshots: by the number of the population.
        size: the members of a population, which a resumed run keeps; None before the first one.
    """

    def __init__(self, run: str, folder: Path | None = None) -> None:
        self.run, self.file = run, None
        self.snapshots: dict[int, Mapping[str, Tensor]] = {}
        self.size: int | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            check_writable(folder, f"checkpoints={folder}")
            self.file = folder / f"{run[:16]}.safetensors"
            if self.file.exists():
                self._read(self.file)

    @property
    def done(self) -> int:
        """The epochs that all populations have behind them."""
        return sum(int(snapshot["epoch"]) for snapshot in self.snapshots.values())

    def keep(self, chunk: int, snapshot: Mapping[str, Tensor], size: int) -> None:
        """Keep a population's snapshot in place of its earlier one."""
        self.snapshots[chunk], self.size = snapshot, size
        if self.file is None:
            return
        tensors = {
            f"{number}:{name}": value
            for number, kept in self.snapshots.items()
            for name, value in kept.items()
        }
        about = {"run": self.run, "size": str(size), "memohop": __version__}
        with whole_file(self.file) as part:
            save_file(tensors, part, metadata=about)

    def _read(self, file: Path) -> None:
        remedy = "remove it, and the run starts anew"
        try:
            with safe_open(file, framework="pt") as opened:
                about = opened.metadata() or {}
                for key in opened.keys():  # noqa: SIM118  # not a dictionary
                    number, _, name = key.partition(":")
                    kept = dict(self.snapshots.get(int(number), {}))
                    self.snapshots[int(number)] = kept | {name: opened.get_tensor(key)}
            self.size = int(about["size"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise DataError(f"{file} is no checkpoint of a run ({error}); {remedy}") from None
        if about["run"] != self.run or about.get("memohop") != __version__:
            raise DataError(
                f"{file} was written by another run or by memohop {about.get('memohop')}, and this "
                f"is {__version__}; {remedy}"
            )
