"""The runs behind the results of a search, found again by its experiment file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain

from memohop.errors import UsageError
from memohop.jobs.named import populations
from memohop.training import Job, Result
from memohop.training.job import digest
from study.runs.experiment import Experiment
from study.runs.export import name_of
from study.runs.halving import RUNG, RungCell
from study.runs.results import Source
from study.runs.runner import Batch
from study.runs.tuned import DIGITS, Tuned, TunedCell


class PublishedRuns:
    """The runs of a search's last rungs, of which validation and test score must be the same.

    A :class:`~study.runs.verify.Record`, so that a table can be verified without the store that
    it came from.

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
