"""The search with workers: several jobs run at once, and what is next is decided as they end."""

from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from memohop.errors import DataError
from memohop.fit.candidate import Search, Stop
from memohop.fit.candidates.family import Family
from memohop.fit.opening import OPENING, openings
from memohop.fit.portfolio import Job, Run, search
from memohop.fit.problem import Problem
from memohop.fit.workers import Answer, Order, Workers

_LATE = 2.0  # seconds over its time after which a job is given up


def search_with(
    workers: Workers | None, problem: Problem, families: Sequence[Family], **options: Any
) -> Search:
    """Try settings of all kinds of model, as :func:`~memohop.fit.portfolio.search` does.

    Args:
        workers: The workers that fit them; None for this process.
        problem: The problem to fit them on.
        families: The kinds.
        **options: The other arguments of ``search``.
    """
    if workers is None:
        return search(problem, families, **options)
    workers.begin(problem, families)
    return search(problem, families, **options, make_run=partial(ParallelRun, workers))


class ParallelRun(Run):
    """A running search whose jobs are fitted by workers.

    With a number of trials, the results are taken in the order in which the jobs were given, each
    when as many jobs as there are workers were given after it: what is next does not depend on how
    long a job takes, and the same search is the same again.
    """

    def __init__(self, workers: Workers, *args: Any) -> None:
        super().__init__(*args)
        self.workers, self.at_once = workers, workers.count
        self.jobs: dict[Order, Job] = {}  # that were given, the oldest first
        self.answers: dict[Order, Answer] = {}  # that are not taken yet

    def open(self) -> None:
        """The first settings of every kind, on one split; the best on all if that costs little."""
        start = openings(self)
        box = OPENING * self.time * min(1, self.workers.count / max(len(start), 1))
        waiting = deque(
            Job([first], self.all_splits[:1], max(seconds, box)) for first, seconds in start
        )
        while self.jobs or (waiting and self.left() > 0):
            while waiting and self.workers.idle:
                self.give(waiting.popleft())
            for job in self.collect():
                (one,), splits, *_ = job
                if splits == self.all_splits[:1] and self.costs_little(one, box):
                    waiting.append(Job([one], self.lacking_splits(one), 2 * box))
        if self.workers.lost and not any(one.scores for one in self.candidates):
            raise DataError(
                f"the workers of the Ray cluster are lost ({self.workers.lost}); see that they "
                "have enough RAM, or leave out --workers"
            )

    def go_on(self) -> Stop:
        """Complete the leaders and vary them until the time or the trials are used up."""
        while self.jobs or self.left() > 0:
            has_room = self.workers.idle and len(self.jobs) < self.at_once
            job = self.next_job() if has_room else None
            if isinstance(job, Job):
                self.give(job)
            elif job is None or self.jobs:
                self.collect()
            else:
                return job
        return "time"

    def give(self, job: Job) -> None:
        """Have a worker fit it."""
        settings = [one.setting for one in job.group]
        seconds = min(job.seconds, max(self.left(), 0))
        order = Order(settings[0].family, settings, job.splits, seconds)
        self.jobs[order] = job
        self.fitting.update(job.group)
        self.workers.give(order)

    def collect(self) -> list[Job]:
        """The jobs that end within a moment, after their results are taken."""
        try:
            if not self.due():
                answers = self.workers.take()
                stuck = self.left() < 0 and not self.workers.working
                answers += self.workers.give_up(None if stuck else _LATE)
                self.answers |= {answer.order: answer for answer in answers}
        except KeyboardInterrupt:
            self.settle([*self.answers])
            raise
        ended = self.settle(self.due())
        names = dict.fromkeys(order.family for order in self.jobs)
        passed = (clock.monotonic() - self.started) / max(self.time, 1e-9)
        self.progress(min(1.0, passed), self.doing(", ".join(names)))
        return ended

    def due(self) -> list[Order]:
        """The orders whose answers are there and may be taken now."""
        if self.trials is None:
            return [*self.answers]
        oldest = [*self.jobs][:1]
        none_is_to_be_given_before = self.workers.idle or len(self.jobs) >= self.at_once
        return oldest if none_is_to_be_given_before and {*oldest} <= self.answers.keys() else []

    def settle(self, orders: Sequence[Order]) -> list[Job]:
        """Take the answers to some orders; their jobs."""
        jobs = [self.jobs.pop(order) for order in orders]
        for order, job in zip(orders, jobs, strict=True):
            _, fits, seconds = self.answers.pop(order)
            self.fitting.difference_update(job.group)
            self.take(job, fits, seconds=seconds, cut=seconds > order.seconds)
        return jobs
