"""The order of work of a run, whoever does it: this process with others, or actors elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from torch import Tensor

from memohop.errors import DataError
from memohop.parts.checkpoints import Checkpoints
from memohop.training.member import Result
from memohop.training.trainer import Enough

EVERY = 10  # epochs between two checkpoints
_TRIES = 3  # with a worker lost at the same epoch every time

_Found = TypeVar("_Found")


class LostError(Exception):
    """A worker is gone; the others cannot go on without it."""


class NoPlaceError(Exception):
    """There is no place for as many workers as there are blocks."""


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

    def results(self) -> list[Result]:
        """The results of the population."""

    def dismiss(self) -> None:
        """End them."""


def work(crew: Crew, checkpoints: Checkpoints, report: Callable[[int, int], None]) -> list[Result]:
    """Train all populations of a job, from the latest checkpoint on.

    Args:
        crew: the workers, who have their blocks.
        checkpoints: what is done already.
        report: called with the number of the population and its epochs, after each checkpoint; if
            it raises :class:`Enough`, later populations take one step.
    """
    found: list[Result] = []
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


def with_crew(
    hire: Callable[[], Crew], task: Callable[[Crew], _Found], progress: Callable[[], int]
) -> _Found:
    """Do a task with a crew, and with a new crew after the loss of a worker.

    Args:
        hire: makes a crew; raises :class:`NoPlaceError` if that is impossible.
        task: what to do; it goes on where the last crew stopped.
        progress: a number that grows while the task advances.
    """
    losses, before = 0, -1
    while True:
        crew: Crew | None = None
        try:
            crew = hire()
            return task(crew)
        except NoPlaceError as error:
            lost = f"a worker was lost at epoch {before} and cannot be replaced: " if losses else ""
            raise DataError(f"{lost}{error}") from error
        except LostError as error:
            losses = 1 if progress() > before else losses + 1
            before = progress()
            if losses == _TRIES:
                raise DataError(
                    f"a worker was lost {_TRIES} times at epoch {before} ({error}), and replacing "
                    "it does not help; see the logs of Ray, and whether its machine has RAM enough"
                ) from error
        finally:
            if crew is not None:
                crew.dismiss()
