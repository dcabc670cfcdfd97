"""Jobs on graphs that have a name: how they are described in a file, loaded, and trained."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memohop.data.datasets.fetch import known_digests
from memohop.data.datasets.load import load
from memohop.data.datasets.registry import describe, is_folder
from memohop.data.noise import NoisePolicy, add_noise
from memohop.errors import UsageError, whole_number
from memohop.jobs.train import train_job
from memohop.pyg import Data
from memohop.training import DEFAULT_RULES, Job, Member, Result, Rules
from memohop.training.member import Numbers
from memohop.training.trainer import Progress

Scalar = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class GraphSettings:
    """How a dataset or a prepared graph is loaded.

    Attributes:
        features: ``raw`` as published, ``row`` or ``scaled``; see :func:`memohop.load`.
        split: ``published``; ``public``, ``random`` or ``class-wise`` as in :func:`memohop.load`.
        data: Further options of :func:`memohop.load`.
        noise: Arcs to add, in percent; see :mod:`memohop.data.noise`.
        draw: Seed of the noise.
        noise_policy: Which arcs may be added.
    """

    features: Literal["raw", "row", "scaled"] = "raw"
    split: Literal["published", "public", "random", "class-wise"] = "published"
    data: dict[str, Any] = field(default_factory=dict)
    noise: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    draw: Annotated[int, Meta(ge=0)] = 0
    noise_policy: NoisePolicy = "undirected"

    def __post_init__(self) -> None:
        for name in ("features", "split", "root", "progress", "name"):
            if name in self.data:
                raise UsageError(f"data cannot hold {name}, which is no option")


@dataclass(frozen=True, kw_only=True)
class NamedGraph(GraphSettings):
    """A dataset by its id, or a prepared graph by its folder."""

    name: str

    @property
    def splits(self) -> int:
        """How many splits it has."""
        if self.split == "public":
            return 1
        default = describe(self.name).splits if self.split == "published" else 10
        return whole_number("data.splits", self.data.get("splits", default), least=1)

    def content(self, *, noise: bool, latent: bool) -> dict[str, Any]:
        """Everything the data depends on, with the digests of its files.

        Args:
            noise: Whether added arcs matter.
            latent: Whether the published neighbours of Geom-GCN do.
        """
        if is_folder(self.name):
            from memohop.data.prepared import open_prepared

            files = {self.name: open_prepared(self.name, check=False).digest}
        else:
            info = describe(self.name)
            neighbours = info.neighbours if latent and not self.noise else None
            paths = (*info.files, *([neighbours] if neighbours else []))
            files = {path: known_digests()[path] for path in paths}
        content: dict[str, Any] = {
            "dataset": self.name,
            "files": files,
            "features": self.features,
            "split": self.split,
            "options": self.data,
        }
        if noise and self.noise:
            content["noise"] = [self.noise_policy, self.noise, self.draw]
        return content

    def load(self, root: Path | None = None) -> Data:
        """The graph, from a local folder with the data files; the last two are kept."""
        return _loaded(msgspec.json.encode(self), root)


@lru_cache(maxsize=2)
def _loaded(encoded: bytes, root: Path | None) -> Data:
    graph = msgspec.json.decode(encoded, type=NamedGraph)
    split = None if graph.split == "published" else graph.split
    if is_folder(graph.name):
        from memohop.jobs.folder import load_folder

        return load_folder(graph.name, graph.data | ({"split": split} if split else {}))
    data = load(graph.name, root=root, features=graph.features, split=split, **graph.data)
    if not graph.noise:
        return data
    return add_noise(data, graph.noise, draw=graph.draw, policy=graph.noise_policy)


@dataclass(frozen=True, kw_only=True)
class Settings(GraphSettings, Numbers):
    """What a table of an experiment file says of a job.

    Attributes:
        epochs: The most epochs.
        patience: See ``Rules.stop``; never by default.
        options: Options of the model.
        rules: Optimiser, schedule, stop, and which epoch counts.
        lr, weight_decay, lam, dropout, input_dropout: See :class:`memohop.Member`.
    """

    epochs: Annotated[int, Meta(ge=1, le=10**9)] = 500
    patience: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    rules: Rules = DEFAULT_RULES

    @classmethod
    @cache
    def names(cls) -> list[str]:
        """What can be set."""
        return [attribute.name for attribute in fields(cls)]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Settings:
        """The settings that a table of an experiment file gives."""
        for name in raw:
            if name not in cls.names():
                raise UsageError(f"Object contains unknown field `{name}`")
        return msgspec.convert(raw, cls)

    def having(self, values: Mapping[str, Any]) -> Settings:
        """The same with other values of its attributes, or else of options of the model."""
        raw = msgspec.to_builtins(self)
        for name, value in values.items():
            (raw if name in self.names() else raw["options"])[name] = value
        try:
            return msgspec.convert(raw, Settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"{error} of the settings") from error

    def graph(self, name: str) -> NamedGraph:
        """The dataset or prepared graph of that name."""
        how = {setting.name: getattr(self, setting.name) for setting in fields(GraphSettings)}
        return NamedGraph(name=name, **how)

    def member(self, *, split: int = 0, seed: int = 0) -> Member:
        """A member of a population with these settings."""
        return Member(split=split, seed=seed, **self.numbers)

    def job(
        self, graph: str, model: str, setting: Mapping[str, Scalar] | None = None, **machine: Any
    ) -> Job:
        """One network to train, on split 0 with seed 0.

        What a search chose, ``setting``, is part of these settings; ``machine`` are attributes of
        the job such as the device.
        """
        return Job(
            data=self.graph(graph),
            model=model,
            members=(self.member(),),
            options=self.options,
            epochs=self.epochs,
            patience=self.patience,
            rules=self.rules,
            setting=setting or {},
            **machine,
        )


def combinations(values: dict[str, list[Scalar]]) -> list[dict[str, Scalar]]:
    """One value of each name, in all ways; the last name changes fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def execute(
    jobs: Sequence[Job],
    *,
    root: Path | None = None,
    progress: Progress | None = None,
    **workers: Any,
) -> list[Result]:
    """Train jobs of one model on one named graph, in as few populations as possible.

    Args:
        jobs: The jobs, each one once, with one member each.
        root: A local folder with the data files.
        progress: Called as ``progress(done, total)`` with counts of member-epochs.
        **workers: See :func:`memohop.jobs.train.train_job`.

    Returns:
        One result for each job, in their order, with the seconds that it took.
    """
    results: dict[int, Result] = {}  # of each of these very jobs
    finished, total = 0, sum(job.epochs for job in jobs)

    def of_all(done: int, _: int) -> None:
        assert progress is not None
        progress(finished + done, total)

    for group in populations(jobs):
        first, start = group[0], time.perf_counter()
        trained = train_job(
            replace(first, data=first.data.load(root), members=[job.member for job in group]),
            progress=progress and of_all,
            **workers,
        )
        finished += first.epochs * len(group)
        seconds = (time.perf_counter() - start) / len(group)
        for job, result in zip(group, trained, strict=True):
            results[id(job)] = replace(result, seconds=seconds)
    return [results[id(job)] for job in jobs]


def populations(jobs: Sequence[Job]) -> list[list[Job]]:
    """Groups of jobs that are the same, apart from the numbers of each member.

    Jobs without dropout are apart: some networks take a shorter way then, which all members must
    take together.
    """
    groups: dict[tuple[bytes, bool], list[Job]] = {}
    for job in jobs:
        shared = (job.data, job.model, job.options, job.epochs, job.patience, job.rules)
        key = msgspec.json.encode(shared), job.member.dropout == 0
        groups.setdefault(key, []).append(job)
    return list(groups.values())
