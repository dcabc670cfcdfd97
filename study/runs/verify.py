"""Are recorded runs what this code gives? Random ones are trained again and compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from memohop.errors import UsageError
from memohop.jobs.executor import Executor, Lost, here
from memohop.jobs.named import Settings, populations
from memohop.training import NUMBERS, Job, Result
from study.runs.cell import Cell
from study.runs.experiment import Experiment
from study.runs.export import name_of, space_id
from study.runs.results import Source
from study.runs.runner import Batch, attempt, source
from study.runs.store import Store
from study.runs.stored import StoredRun
from study.runs.tuned import DIGITS, Tuned

COMPARED = ("train", "val", "test", "best_epoch", "epochs", "packed")
"""The columns of a stored run that must be the same."""

_CHANGED = "this version of memohop would train something else"


@dataclass(frozen=True)
class Record:
    """Runs that were made before.

    Attributes:
        sources: By the id of a run, where it was made.
        companies: For each cell with a run of some ids, gives those that were trained for it, and
            the cell itself where it is known.
        expected: Gives what must be the same again, as columns of a stored run.
        digits: To how many digits scores are known; to the bit if None.
    """

    name: str
    sources: Mapping[str, Source]
    companies: Callable[[Collection[str]], Iterable[tuple[Sequence[Job], Cell | None]]]
    expected: Callable[[str], Mapping[str, Any]]
    digits: int | None = None

    def batches(self, ids: Collection[str]) -> Iterator[Batch]:
        """The populations that some runs were trained in."""
        for company, cell in self.companies(ids):
            for population in populations(company):
                if any(run.id in ids for run in population):
                    yield Batch(tuple(population), cell)

    def difference(self, run: Job, result: Result) -> str:
        """The columns that differ."""
        texts, again = [], StoredRun.of(run, result, source="")
        for name, value in self.expected(run.id).items():
            new = getattr(again, name)
            new = new if self.digits is None else round(new, self.digits)
            if new != value:
                texts.append("curves" if name == "packed" else f"{name} {value} -> {new}")
        return ", ".join(texts)


@dataclass
class Verdict:
    """What became of a sample.

    Attributes:
        elsewhere: How many runs of the record were made on another kind of device.
        lost: By id, why a run could not be trained again.
        same: How many runs gave the same to the bit.
        different: By id, the runs that did not, with what they are and what differs.
    """

    elsewhere: int
    lost: dict[str, str]
    same: int = 0
    different: dict[str, str] = field(default_factory=dict)


def verify(
    record: Record,
    count: int,
    *,
    seed: int = 0,
    root: Path | None = None,
    device: str = "cpu",
    executor: Executor = here,
    watcher: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Train so many random runs of a record again; the seed decides which ones.

    Rounding depends on the device: only runs that were made on the same kind are taken.
    """
    present = source(device)
    ours = sorted(key for key, made in record.sources.items() if made.device == present.device)
    if not ours:
        raise UsageError(
            f"no complete cell of {record.name} was made on this kind of device ({present.device});"
            " verify it where it was made, or name another --device"
        )
    chosen = set(Random(seed).sample(ours, min(count, len(ours))))
    verdict = Verdict(len(record.sources) - len(ours), lost=dict.fromkeys(chosen, _CHANGED))
    done = 0
    for batch, end in executor(partial(attempt, root=root, device=device), record.batches(chosen)):
        for place, run in enumerate(batch.runs):
            if run.id not in chosen:
                continue
            done += 1
            if isinstance(end, Lost) or end.failure:
                why = end.reason if isinstance(end, Lost) else str(end.failure).splitlines()[-1]
                verdict.lost[run.id] = why
                continue
            del verdict.lost[run.id]
            if differs := record.difference(run, end.results[place]):
                name = batch.cell.name if batch.cell else f"{run.data.name} {run.model}"
                what = f"{name} split={run.member.split} seed={run.member.seed}"
                version = record.sources[run.id].versions["memohop"]
                if version != present.versions["memohop"]:
                    what += f", made by version {version}"
                verdict.different[run.id] = f"{what}: {differs}"
            else:
                verdict.same += 1
        watcher(done, len(chosen))
    return verdict


def stored_runs(store: Store) -> Record:
    """The runs of a store; of each, scores, epochs and curves must be the same.

    Without runs of a cell that was interrupted, and is not complete yet.
    """
    known = store.companies()

    def place(run: StoredRun) -> tuple[str, str, str]:
        """Runs on one graph are neighbours, so that it is loaded once."""
        return run.content["data"]["dataset"], run.content["model"], run.id

    def companies(ids: Collection[str]) -> Iterator[tuple[Sequence[Job], None]]:
        chosen = sorted((run for run, _ in store.runs(ids)), key=place)
        for company in dict.fromkeys(known[run.id][0] for run in chosen):
            jobs = {run.id: run_of(run.content) for run, _ in store.runs(company)}
            yield [jobs[key] for key in company if jobs[key].id == key], None

    def expected(key: str) -> Mapping[str, Any]:
        run, _ = store.run(key)
        return {name: getattr(run, name) for name in COMPARED}

    sources = {key: made for key, (_, made) in known.items()}
    return Record(str(store.path), sources, companies, expected)


def published_runs(tuned: Tuned, experiment: Experiment) -> Record:
    """The runs of a search's last rungs, of which validation and test score must be the same.

    So a table can be verified without the store that it came from.
    """
    ladders: list[list[Cell]] = []
    sources: dict[str, Source] = {}
    scores: dict[str, dict[str, float]] = {}
    first_rungs = {name_of(cell): cell for cell in experiment.cells()}
    for cell in tuned.cells:
        first = first_rungs.get(name_of(cell))
        if first is None or not first.halving or space_id(first) != cell.space:
            raise UsageError(
                f"{cell.row} on {cell.column} is not what the experiment file says now; take "
                "results of this version, or the version that made them"
            )
        ladders.append([first.on_rung(n, rung.settings) for n, rung in enumerate(cell.rungs)])
        columns = (ladders[-1][-1].runs, chain(*cell.val), chain(*cell.test))
        for run, val, test in zip(*columns, strict=True):
            sources[run.id] = tuned.sources[cell.source]
            scores[run.id] = {"val": val, "test": test}

    def companies(ids: Collection[str]) -> Iterator[tuple[Sequence[Job], Cell]]:
        """What each rung was the first one to train."""
        for ladder in ladders:
            if any(run.id in ids for run in ladder[-1].runs):
                trained: set[str] = set()
                for rung in ladder:
                    yield [run for run in rung.runs if run.id not in trained], rung
                    trained |= {run.id for run in rung.runs}

    name = f"the results of {tuned.experiment}"
    return Record(name, sources, companies, scores.__getitem__, DIGITS)


def run_of(content: Mapping[str, Any]) -> Job:
    """The job that a stored content describes."""
    data = content["data"]
    policy, noise, draw = data.get("noise", ("undirected", 0.0, 0))
    settings = msgspec.convert(
        {
            **{name: data[name] for name in ("features", "split")},
            "data": data["options"],
            "noise_policy": policy,
            "noise": noise,
            "draw": draw,
            **{name: content[name] for name in ("options", "rules", "epochs", "patience")},
            **{name: content[name] for name in NUMBERS},
        },
        Settings,
    )
    job = settings.job(data["dataset"], content["model"])
    return job.at(content["split"], content["seed"])
