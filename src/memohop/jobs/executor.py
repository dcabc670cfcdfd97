"""Who does some work on jobs: this process, several of this machine, or workers of a Ray cluster.

All of them are executors, and behave alike. What the work raises ends everything, and is raised
here. A process that is lost says nothing about its job: the job is tried again after the others,
with nothing beside it, and after three losses it is answered by :class:`Lost`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

JobT = TypeVar("JobT")
AnswerT = TypeVar("AnswerT")
Progress = Callable[[float], None]
"""Called with the share of a job that is done, by executors that can tell."""

_TRIES = 3


@dataclass(frozen=True)
class Lost:
    """Instead of an answer: why the processes that had the job were lost."""

    reason: str


class Executor(Protocol):
    """Does some work on jobs, and gives the answers as they come."""

    def __call__(
        self,
        work: Callable[[JobT, Progress], AnswerT],
        jobs: Iterator[JobT],
        progress: Callable[[JobT, float], None],
    ) -> Iterator[tuple[JobT, AnswerT | Lost]]:
        """Answer the jobs, in any order.

        Args:
            work: What to do with a job; other processes import it by its name.
            jobs: Asked for the next one whenever a process is free, also after it had none left.
            progress: Called with a job and the share of it that is done.
        """
        ...


def here(
    work: Callable[[JobT, Progress], AnswerT],
    jobs: Iterator[JobT],
    progress: Callable[[JobT, float], None],
) -> Iterator[tuple[JobT, AnswerT | Lost]]:
    """The executor that does one job after the other in this process."""
    for job in jobs:

        def of_job(share: float, job: JobT = job) -> None:
            progress(job, share)

        yield job, work(job, of_job)


@dataclass(eq=False)
class Tried(Generic[JobT]):
    """A job, and how many processes were lost with it."""

    job: JobT
    losses: int = 0


class Places(Protocol):
    """Processes that work at the same time, each on one job."""

    size: int

    def start(self, tried: Tried[Any]) -> None:
        """Give a job to a free process."""

    def ended(self) -> tuple[Tried[Any], Any]:
        """Wait for an answer, or for the loss of a process."""


def keep_busy(places: Places, jobs: Iterator[JobT]) -> Iterator[tuple[JobT, Any]]:
    """Give all processes something to do, and replace those that are lost."""
    lost, running = deque[Tried[JobT]](), 0
    while True:
        for job in islice(jobs, places.size - running):
            places.start(Tried(job))
            running += 1
        if lost and not running:
            places.start(lost.popleft())
            running = 1
        if not running:
            return
        tried, answer = places.ended()
        running -= 1
        tried.losses += isinstance(answer, Lost)
        if isinstance(answer, Lost) and tried.losses < _TRIES:
            lost.append(tried)
        else:
            yield tried.job, answer
