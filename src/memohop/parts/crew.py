"""The order of work of a run, whoever does it: this process with others, or actors elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from memohop.parts.checkpoints import Checkpoints
from memohop.training.member import MemberResult
from memohop.training.trainer import Enough

EVERY = 10  # epochs between two checkpoints


class Crew(Protocol):
    """Workers that take the same steps together; see :class:`~memohop.parts.worker.Worker`."""

    size: int
    chunks: int

    def start(self, chunk: int, snapshot: Mapping[str, Tensor] | None = None) -> None:
        """Make a population ready."""

    def advance(self, epochs: int) -> tuple[int, bool]:
        """Take up to so many steps; how many were taken so far, and whether these are all."""

    def snapshot(self) -> dict[str, Tensor]:
        """The state of the population."""

    def results(self) -> list[MemberResult]:
        """The results of the population."""


def work(
    crew: Crew, checkpoints: Checkpoints, report: Callable[[int, int], None]
) -> list[MemberResult]:
    """Train all populations of a job, from the latest checkpoint on.

    Args:
        crew: the workers, who have their blocks.
        checkpoints: what is done already.
        report: called with the number of the population and its epochs, after each checkpoint; if
            it raises :class:`Enough`, later populations take one step.
    """
    found: list[MemberResult] = []
    is_enough = False
    for chunk in range(crew.chunks):
        crew.start(chunk, checkpoints.snapshots.get(chunk))
        done = False
        while not done:
            epochs, done = crew.advance(1 if is_enough else EVERY)
            checkpoints.keep(chunk, crew.snapshot(), crew.size)
            try:
                report(chunk, epochs)
            except Enough:
                is_enough = True
            done |= is_enough
        found += crew.results()
    return found
