"""The seam between those who search and those who work: ask for a job, tell what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from memohop.jobs.executor import JobT


class AskTell(Protocol[JobT]):
    """A search, which may be asked for a job while others are out."""

    def ask(self) -> JobT | None:
        """The next job; None if there is none, at least until one that is out has ended."""
        ...

    def tell(self, job: JobT, answer: Any) -> None:
        """Take what came of a job: an answer, or that it is lost."""
        ...


def drive(
    search: AskTell[JobT],
    execute: Callable[[Iterator[JobT]], Iterable[tuple[JobT, Any]]],
    *,
    in_order: int | None = None,
) -> None:
    """Have the jobs of a search done until it has no more.

    Args:
        search: The search.
        execute: Does jobs, as an :class:`~memohop.jobs.executor.Executor` does some work on them.
        in_order: How many jobs are done at once, for a search that is to be the same whichever of
            them is done first. Answers are then told in the order in which the jobs were given,
            each when so many jobs were given since its own; by default as they come.
    """
    jobs = _Asked(search, in_order)
    try:
        for job, answer in execute(jobs):
            jobs.take(job, answer)
    finally:  # after Ctrl-C, what was done counts
        for job in [job for job in jobs.out if job in jobs.answers]:
            jobs.tell(job)


class _Asked(Iterator[JobT]):
    """The jobs of a search, as an executor asks for them: at times there is none for a while."""

    def __init__(self, search: AskTell[JobT], in_order: int | None) -> None:
        self._search, self._in_order, self._is_dry = search, in_order, False
        self.out: list[JobT] = []  # that are not told yet, in the order in which they were given
        self.answers: dict[JobT, Any] = {}

    def __next__(self) -> JobT:
        while True:
            if not (self._in_order and (self._is_dry or len(self.out) >= self._in_order)):
                if (job := self._search.ask()) is not None:
                    self.out.append(job)
                    return job
                self._is_dry = True
            if not self._in_order or not self.out or self.out[0] not in self.answers:
                raise StopIteration
            self.tell(self.out[0])

    def take(self, job: JobT, answer: Any) -> None:
        self.answers[job] = answer
        if self._in_order is None:
            self.tell(job)

    def tell(self, job: JobT) -> None:
        self.out.remove(job)
        self._is_dry = False
        self._search.tell(job, self.answers.pop(job))
