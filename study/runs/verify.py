"""Are recorded runs what this code gives? Random ones are trained again and compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import msgspec

from memohop.errors import UsageError
from memohop.jobs.executor import Executor, Lost, here
from memohop.jobs.named import Settings, populations
from memohop.training import NUMBERS, Job, Result
from memohop.training.job import digest
from study.runs.cell import Cell
from study.runs.experiment import Experiment
from study.runs.export import name_of
from study.runs.halving import RUNG, RungCell
from study.runs.provenance import source
from study.runs.results import Source
from study.runs.runner import Batch, Resources, attempt
from study.runs.store import Store
from study.runs.stored import StoredRun
from study.runs.tuned import DIGITS, Tuned, TunedCell

COMPARED = ("train", "val", "test", "best_epoch", "epochs", "packed")
"""The columns of a stored run that must be the same."""

_CHANGED = "this version of memohop would train something else"


@dataclass
class Verdict:
    """What became of a sample.

    Attributes:
        same: How many runs gave the same to the bit.
        different: By id, the runs that did not, with what they are and what differs.
        lost: By id, why a run could not be trained again.
        elsewhere: How many runs of the record were made on another kind of device.
    """

    same: int = 0
    different: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    elsewhere: int = 0


def verify(
    record: StoredRuns | PublishedRuns,
    count: int,
    *,
    seed: int = 0,
    resources: Resources,
    executor: Executor | None = None,
    watcher: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Train random runs of a record again.

    Rounding depends on the device: only runs that were made on the same kind are taken.

    Args:
        record: The runs.
        count: How many of them.
        seed: Decides which ones.
        resources: What to train with.
        executor: Who trains; this process by default.
        watcher: Called as ``watcher(done, total)``.
    """
    present, verdict = source(resources.device), Verdict()
    device, version_of = present.device, {}
    for key, made in record.sources():
        if made.device == device:
            version_of[key] = made.versions["memohop"]
        else:
            verdict.elsewhere += 1
    if not version_of:
        raise UsageError(
            f"no complete cell of {record.name} was made on this kind of device ({device}); verify "
            "it where it was made, or name another --device"
        )
    chosen = set(Random(seed).sample(sorted(version_of), min(count, len(version_of))))
    seen: set[str] = set()
    jobs = record.jobs(chosen)
    work = partial(attempt, resources=resources)
    for job, end in (executor or here)(work, jobs):
        wanted = {run.id for run in job.runs} & chosen
        seen |= wanted
        if isinstance(end, Lost) or end.failure:
            why = end.reason if isinstance(end, Lost) else str(end.failure).splitlines()[-1]
            verdict.lost |= dict.fromkeys(wanted, why)
            continue
        for run, result in zip(job.runs, end.results, strict=True):
            if run.id not in wanted:
                continue
            if differs := record.difference(run, result):
                what = f"{job.cell.name} split={run.member.split} seed={run.member.seed}"
                if version_of[run.id] != present.versions["memohop"]:
                    what += f", made by version {version_of[run.id]}"
                verdict.different[run.id] = f"{what}: {differs}"
            else:
                verdict.same += 1
        if watcher is not None:
            watcher(len(seen), len(chosen))
    verdict.lost |= dict.fromkeys(chosen - seen, _CHANGED)
    return verdict


class StoredRuns:
    """The runs of a store; of each, scores, epochs and curves must be the same."""

    def __init__(self, store: Store) -> None:
        self._store, self._company = store, store.trained_together()

    @property
    def name(self) -> str:
        """The path of the store."""
        return str(self._store.path)

    def sources(self) -> Iterator[tuple[str, Source]]:
        """Without runs of a cell that was interrupted, and is not complete yet."""
        return (pair for pair in self._store.sources_of_runs() if pair[0] in self._company)

    def jobs(self, ids: Collection[str]) -> Iterator[Batch]:
        """The populations of the first cell that has a run."""
        chosen = sorted((run for run, _ in self._store.runs(ids)), key=_place)
        for company in dict.fromkeys(self._company[run.id] for run in chosen):
            runs = {one.id: run_of(one.content) for one, _ in self._store.runs(company)}
            sound = [runs[key] for key in company if runs[key].id == key]
            for population in populations(sound):
                if any(run.id in ids for run in population):
                    first = population[0]
                    name = ("verify", first.id, first.data.name, str(first.model))
                    yield Batch(Cell(*name, {}, Settings(), {}, ()), tuple(population))

    def difference(self, run: Job, result: Result) -> str:
        """The columns of its row that differ."""
        (before, _), again = self._store.run(run.id), StoredRun.of(run, result, source="")
        pairs = {name: (getattr(before, name), getattr(again, name)) for name in COMPARED}
        return ", ".join(
            "curves" if name == "packed" else f"{name} {one} -> {other}"
            for name, (one, other) in pairs.items()
            if one != other
        )


class PublishedRuns:
    """The runs of a search's last rungs, of which validation and test score must be the same.

    So a table can be verified without the store that it came from.

    Args:
        tuned: The results.
        experiment: The experiment that they are of.
    """

    def __init__(self, tuned: Tuned, experiment: Experiment) -> None:
        self.name = f"the results of {tuned.experiment}"
        self._ladders: list[list[RungCell]] = []
        self._made: dict[str, Source] = {}
        self._scores: dict[str, tuple[float, float]] = {}
        first = {name_of(cell): cell for cell in experiment.cells()}
        for cell in tuned.cells:
            ladder = _ladder(cell, first.get(name_of(cell)))
            scores = zip(chain(*cell.val), chain(*cell.test), strict=True)
            for run, pair in zip(ladder[-1].runs, scores, strict=True):
                self._made[run.id], self._scores[run.id] = tuned.sources[cell.source], pair
            self._ladders.append(ladder)

    def sources(self) -> Iterator[tuple[str, Source]]:
        """The id of each run, and where it was made."""
        yield from self._made.items()

    def jobs(self, ids: Collection[str]) -> Iterator[Batch]:
        """The populations that some runs were trained in, on the first rung that has them."""
        for ladder in self._ladders:
            if not any(run.id in ids for run in ladder[-1].runs):
                continue
            trained: set[str] = set()
            for rung in ladder:
                new = [run for run in rung.runs if run.id not in trained]
                trained |= {run.id for run in new}
                for population in populations(new):
                    if any(run.id in ids for run in population):
                        yield Batch(rung, tuple(population))

    def difference(self, run: Job, result: Result) -> str:
        """The scores that differ, with as many digits as the results have."""
        again = round(result.val, DIGITS), round(result.test, DIGITS)
        pairs = zip(("val", "test"), self._scores[run.id], again, strict=True)
        return ", ".join(f"{name} {one} -> {other}" for name, one, other in pairs if one != other)


def run_of(content: Mapping[str, Any]) -> Job:
    """The job that a stored content describes."""
    data = content["data"]
    policy, noise, draw = data.get("noise", ("undirected", 0.0, 0))
    settings = msgspec.convert(
        {
            "features": data["features"],
            "split": data["split"],
            "data": data["options"],
            "noise_policy": policy,
            "noise": noise,
            "draw": draw,
            "options": content["options"],
            "rules": content["rules"],
            "epochs": content["epochs"],
            "patience": content["patience"],
            **{name: content[name] for name in NUMBERS},
        },
        Settings,
    )
    job = settings.job(data["dataset"], content["model"])
    return job.at(content["split"], content["seed"])


def _place(run: StoredRun) -> tuple[str, str, str]:
    """Runs on one graph are neighbours, so that it is loaded once."""
    return run.content["data"]["dataset"], run.content["model"], run.id


def _ladder(cell: TunedCell, first: object) -> list[RungCell]:
    """The rungs of a search, from the one that the experiment file has."""
    if not isinstance(first, RungCell) or digest(first.drawn)[:12] != cell.space:
        raise UsageError(
            f"{cell.row} on {cell.column} is not what the experiment file says now; take results "
            "of this version, or the version that made them"
        )
    return [
        replace(first, tried=rung.settings, axes=first.axes | {RUNG: number})
        for number, rung in enumerate(cell.rungs, start=1)
    ]
