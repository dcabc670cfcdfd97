"""Are stored runs what this code gives? Random ones are trained again and compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from memohop.bench.cell import Cell, Recipe, Run
from memohop.bench.execute import populations
from memohop.bench.provenance import source
from memohop.bench.runner import Engine, Job, Resources, local_engine
from memohop.bench.settings import Settings
from memohop.bench.store import Store
from memohop.bench.stored import StoredRun
from memohop.errors import UsageError
from memohop.training.numbers import NUMBERS

COMPARED = ("train", "val", "test", "best_epoch", "epochs", "packed")
"""The columns of a run that must be the same."""


@dataclass
class Verdict:
    """What became of a sample.

    Attributes:
        same: How many runs gave the same scores, epochs and curves to the bit.
        different: By id, the runs that did not, with what they are and what differs.
        lost: By id, why a run could not be trained again.
        elsewhere: How many runs of the store were made on another kind of device.
    """

    same: int = 0
    different: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    elsewhere: int = 0


def verify(
    store: Store,
    count: int,
    *,
    seed: int = 0,
    resources: Resources,
    engine: Engine | None = None,
    watcher: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Train random runs of a store again, by their ids alone.

    Rounding depends on the device: only runs that were made on the same kind are taken.

    Args:
        store: The store.
        count: How many runs.
        seed: Decides which ones.
        resources: What to train with.
        engine: Trains jobs; this process by default.
        watcher: Called as ``watcher(done, total)``.
    """
    present, verdict = source(resources.device), Verdict()
    here, groups, version_of = present.device, store.trained_together(), {}
    for key, made in store.sources_of_runs():
        if key not in groups:  # its cell was interrupted, and is not complete yet
            continue
        if made.device == here:
            version_of[key] = made.versions["memohop"]
        else:
            verdict.elsewhere += 1
    if not version_of:
        raise UsageError(
            f"{store.path} has no complete cell that was made on this kind of device ({here}); "
            "verify it where it was made, or name another --device"
        )
    chosen = Random(seed).sample(sorted(version_of), min(count, len(version_of)))
    stored = {run.id: run for run, _ in store.runs(chosen)}
    jobs = _jobs(stored, groups, store, verdict)
    for job, attempt in (engine or local_engine)(jobs, resources, lambda job, share: None):
        if attempt.failure or attempt.lost:
            why = attempt.lost or str(attempt.failure).splitlines()[-1]
            verdict.lost |= {run.id: why for run in job.runs if run.id in stored}
        for run, result in zip(job.runs, attempt.results, strict=False):
            if run.id not in stored:
                continue
            again, before = StoredRun.of(run, result, source=""), stored[run.id]
            differ = [n for n in COMPARED if getattr(again, n) != getattr(before, n)]
            if differ:
                what = f"{job.cell.name} split={run.split} seed={run.seed}"
                if version_of[run.id] != present.versions["memohop"]:
                    what += f", made by version {version_of[run.id]}"
                verdict.different[run.id] = f"{what}: {_in_words(differ, before, again)}"
            else:
                verdict.same += 1
        if watcher is not None:
            watcher(verdict.same + len(verdict.different) + len(verdict.lost), len(stored))
    return verdict


def run_of(content: Mapping[str, Any]) -> Run:
    """The run that a stored content describes."""
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
    recipe = Recipe(data["dataset"], content["model"], settings)
    return Run(recipe, {}, content["split"], content["seed"])


def _jobs(
    chosen: Mapping[str, StoredRun],
    groups: Mapping[str, tuple[str, ...]],
    store: Store,
    verdict: Verdict,
) -> Iterator[Job]:
    """Each run in the company in which it was trained: some networks round differently in another.

    That is the population of the first cell that has it.
    """
    ordered = sorted(chosen, key=lambda key: _place(chosen[key]))
    cells = dict.fromkeys(groups[key] for key in ordered)
    for ids in cells:
        runs = {one.id: run_of(one.content) for one, _ in store.runs(ids)}
        for key, run in runs.items():
            if key in chosen and run.id != key:
                verdict.lost[key] = "this version of memohop would train something else"
        sound = [runs[key] for key in ids if runs[key].id == key]
        for population in populations(sound):
            if any(run.id in chosen for run in population):
                recipe = population[0].recipe
                name = ("verify", population[0].id, recipe.dataset, recipe.model)
                yield Job(Cell(*name, {}, recipe.settings, {}, ()), tuple(population))


def _place(run: StoredRun) -> tuple[str, str, str]:
    """Runs on one graph are neighbours, so that it is loaded once."""
    return run.content["data"]["dataset"], run.content["model"], run.id


def _in_words(names: list[str], before: StoredRun, again: StoredRun) -> str:
    pairs = {name: (getattr(before, name), getattr(again, name)) for name in names}
    if pairs.pop("packed", None):
        return ", ".join([*(f"{name} {a} -> {b}" for name, (a, b) in pairs.items()), "curves"])
    return ", ".join(f"{name} {a} -> {b}" for name, (a, b) in pairs.items())
