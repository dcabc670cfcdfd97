"""The search: every kind of model starts cheaply, and the better ones go on until time is up.

Each kind of model gets its first setting and a small share of the time, on one split. From then on
the search continues with the best: the leading candidates are fitted on the splits that they
lack, and variations of the leaders are tried, those of better kinds more often. A fit that has not
finished when its share of the time is up stops there, and its result so far counts. A leader to
which that happened is fitted again with more time, on one split before it gets the others.

On a large graph, splits that the better kinds would not all have time for are left out, as long as
the others have validation nodes enough: an ensemble is made of candidates with the same splits.
"""

from __future__ import annotations

import math
import sys
import time as clock
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from memohop.fit.candidate import (
    Candidate,
    Search,
    Stop,
    best_of_kinds,
    forget_others,
    lacking_for_verdict,
    usual_scores,
)
from memohop.fit.candidates.family import Family, Fits, Look, Setting
from memohop.fit.certainty import paired_interval
from memohop.fit.opening import OPENING, openings, seconds_to_compare
from memohop.fit.problem import Problem
from memohop.fit.threads import Threads
from memohop.interrupts import interrupts_raised, interrupts_wait
from memohop.ram import release_freed_ram
from memohop.training import Enough

Progress = Callable[[float, str], None]
"""Called with the share of the time that has passed, and the current step."""

_LATEST = 0.5  # share of the time after which no other kind is tried
_LITTLE = 0.1  # share of the time left that a variation may take on all splits at once
_MOST = 0.25  # share of the time left that one fit may take
_LEADER = 0.5  # the same for a leader that lacks splits: it is worth more than variations
_GROUP = 3  # variations that are tried at once
_HOPEFUL = 6  # kinds of which the best candidate gets a little time for the splits it lacks
_LEADERS = 3  # candidates that are fitted on all splits
_TRIES = 3  # fits of one candidate, on some splits each
_COMPLETING = 0.3  # share of the time left in which the best of the better kinds have all splits
_ENOUGH = 1000  # validation nodes without which no split is left out
_MORE = 2  # times the seconds that were too few for a leader on one split, to finish there first
_QUICK = 1.0  # seconds: kinds with quicker fits are not tried more often
_FALLING = 0.6  # factor by which each next kind is varied less often
_IN_VAIN = 20  # settings without a better one after which a kind is varied half as often
_PUNCTUAL = 0.95  # of the time: a running fit takes a moment to end, as does the calibration
_ENDING = 0.25  # share of the time for the kept models, at most
_LONGER = 1.4  # time of a final fit, to more nodes, relative to one on a split


def search(
    problem: Problem,
    families: Sequence[Family],
    *,
    time: float | None,
    trials: int | None,
    seed: int,
    progress: Progress = lambda share, doing: None,
    make_run: Callable[..., Run] | None = None,
) -> Search:
    """Try settings of all kinds of model.

    Args:
        problem: The problem to fit them on.
        families: The kinds.
        time: Seconds for the search and the final fits of the chosen; None for no limit.
        trials: The most settings of each kind; None for no limit.
        seed: Decides the variations.
        progress: Called now and then.
        make_run: Makes the running search; by default one in this process.
    """
    run = (make_run or Run)(problem, families, time, trials, np.random.default_rng(seed), progress)
    stopped: Stop
    try:
        with interrupts_raised():
            run.open()
            run.families = {name: one for name, one in run.families.items() if run.count(name)}
            run.comparing = min(seconds_to_compare(run), _ENDING * run.time)
            run.leave_out_splits()
            stopped = run.go_on()
    except KeyboardInterrupt:
        if not any(one.scores for one in run.candidates):
            raise
        stopped = "interrupted"
    return Search(
        run.candidates,
        run.splits(),
        stopped,
        clock.monotonic() - run.started,
        tuple(name for name in run.waiting if not run.count(name)),
    )


class Job(NamedTuple):
    """Candidates with the same options, the splits to fit them on, and the seconds for that."""

    group: list[Candidate]
    splits: list[int]
    seconds: float
    is_for_verdict: bool = False  # and cut off if need be, rather than left out


class Run:
    """A running search, which fits one job after the other in this process."""

    at_once = 1
    """Jobs at the same time."""

    def __init__(
        self,
        problem: Problem,
        families: Sequence[Family],
        time: float | None,
        trials: int | None,
        generator: np.random.Generator,
        progress: Progress,
    ) -> None:
        self.problem, self.trials, self.generator = problem, trials, generator
        self.progress, self.started = progress, clock.monotonic()
        self.time = math.inf if time is None else _PUNCTUAL * time
        self.families = {family.id: family for family in families if family.first(problem)}
        self.waiting = {name: one.first(problem) for name, one in self.families.items()}
        self.candidates: list[Candidate] = []
        self.fitting: set[Candidate] = set()  # by workers, at this moment
        self.usual: dict[int, float] = {}  # see usual_scores
        self.all_splits = list(range(problem.splits))
        self.threads = Threads() if trials is None else None  # with trials, a search is repeatable
        self.comparing = 0.0  # seconds for the comparisons after the search

    # The steps of the search

    def open(self) -> None:
        """The first settings of every kind, on one split; the best on all if that costs little."""
        start, end = openings(self), self.started + OPENING * self.time
        for number, (first, seconds) in enumerate(start):
            box = max(seconds, (end - clock.monotonic()) / (len(start) - number))
            if self.is_late(first, box):
                self.waiting[first.setting.family].append(first.setting)
                continue
            self.fit(Job([first], self.all_splits[:1], box))
            if self.costs_little(first, box):
                self.fit(Job([first], self.lacking_splits(first), 2 * box))

    def is_late(self, first: Candidate, box: float) -> bool:
        """Whether the opening has used up its time, so that only kinds not yet tried go on."""
        if not self.candidates or (box > 0 and self.left() > 0):
            return False
        is_over = clock.monotonic() - self.started > _LATEST * self.time or self.left() <= 0
        return is_over or self.count(first.setting.family) > 0

    def costs_little(self, one: Candidate, box: float) -> bool:
        """Whether it is the best of its kind, and has time for the splits after the first."""
        others = self.all_splits[1:]
        return (
            self.lacking_splits(one) == others != []
            and self.best_by_kind()[one.setting.family] is one
            and one.seconds * len(others) <= box
        )

    def leave_out_splits(self) -> None:
        """Go on with fewer splits where the better kinds could not all have time for more."""
        if self.problem.ranks_few:
            return
        needed = sum(one.seconds * (_MORE if one.unfinished else 1) for one in self.hopeful())
        afforded = _COMPLETING * self.at_once * self.left() / max(needed, 1e-9)
        fewest = math.ceil(_ENOUGH / max(int(self.problem.masks.val[:, 0].sum()), 1))
        self.all_splits = self.all_splits[: int(max(min(afforded, self.problem.splits), fewest))]

    def go_on(self) -> Stop:
        """Complete the leaders and vary them until the time or the trials are used up."""
        while isinstance(job := self.next_job(), Job):
            self.fit(job)
        return job

    def next_job(self) -> Job | Stop:
        """The next candidates to fit, or why there are none."""
        for job in self.lacking():
            needed = job.group[0].seconds * len(job.splits)
            if needed <= self.left() or (job.is_for_verdict and self.left() > 0):
                return job
        name = self.choose_family()
        if name is None:
            return "trials"
        splits = self.splits_at_first(name)
        if not splits:
            return "time"
        group = [Candidate(setting) for setting in self.next_settings(name, len(splits))]
        return Job(group, splits, _MOST * self.left())

    def fit(self, job: Job) -> None:
        """Fit candidates with the same options, within a number of seconds."""
        if self.threads is not None:
            self.threads.adapt()
        family, begin = self.families[job.group[0].setting.family], clock.monotonic()
        end = begin + min(job.seconds, max(self.left(), 0))
        settings = [one.setting for one in job.group]
        look = self._look(end, job.group)
        found = family.fit(self.problem, settings, job.splits, keep=True, look=look)
        release_freed_ram()  # each kind needs blocks of other sizes, which would add up
        now = clock.monotonic()
        self.take(job, found, seconds=now - begin, cut=now > end)

    @interrupts_wait()
    def take(self, job: Job, found: Fits, *, seconds: float, cut: bool) -> None:
        """Take the results of a job, its time, and whether that was too short."""
        group, splits, *_ = job
        for one, fits in zip(group, found, strict=True):
            one.tries += not job.is_for_verdict
            one.spent += seconds / len(group)
            one.seconds = seconds / (len(group) * len(splits))
            failed = {*splits} if cut else {*splits} - fits.keys()
            one.unfinished = one.unfinished - {*splits} | failed
            for split, fit in fits.items():
                one.fits[split] = fit
                one.scores[split] = self.problem.score(fit.val, self.problem.masks.val[:, split])
            if one not in self.candidates:
                self.candidates.append(one)
        self.usual = usual_scores(self.candidates, range(self.problem.splits))
        self.forget()

    # The next step

    def lead(self, one: Candidate) -> float:
        """How far it is above what is usual on the splits that it was fitted on."""
        found = [score - self.usual[split] for split, score in one.scores.items()]
        return sum(found) / len(found) if found else -math.inf

    def ranked(self) -> list[Candidate]:
        """All candidates, the best first."""
        return sorted(self.candidates, key=lambda one: -self.lead(one))

    def lacking(self) -> list[Job]:
        """Candidates that lack splits, or time on some, with a share of the time left.

        These are those that the verdict needs, the leaders, and the best of each of the better
        kinds: the opening may have been too short for it. One that had too little time gets more,
        but not again and again. A leader that had too little on the first split, where it gets far
        more now, gets the others after that: the first tells whether they are worth it.
        """
        ranked, first = self.ranked(), self.all_splits[:1]
        jobs: list[Job] = []
        of_leaders: list[Job] = []  # who get all of their splits before, if there is time
        leaders = [one for one in ranked[:_LEADERS] if one.tries < _TRIES]
        for one, splits in lacking_for_verdict(self.families, ranked, self.all_splits):
            is_leader = one in leaders  # one split at a time, so that each has its share
            seconds = (_LEADER if is_leader else _LITTLE) * self.left() / len(splits)
            (of_leaders if is_leader else jobs).append(Job([one], splits[:1], seconds, True))
        for one in leaders:
            splits, seconds = self.lacking_splits(one), _LEADER * self.left()
            if splits[:1] == first and _MORE * one.seconds <= seconds:
                splits = first
            jobs.append(Job([one], splits, seconds))
        little, hopeful = _LITTLE * self.left(), [one for one in self.hopeful() if one.tries < 2]
        jobs += [Job([one], self.lacking_splits(one), little) for one in hopeful] + of_leaders
        return [job for job in jobs if job.splits and job.group[0] not in self.fitting]

    def hopeful(self) -> list[Candidate]:
        """The best candidate of each of the better kinds, the best first."""
        return [*self.best_by_kind().values()][:_HOPEFUL]

    def best_by_kind(self) -> dict[str, Candidate]:
        """The best candidate of each kind, the best kind first."""
        return best_of_kinds(self.ranked())

    def lacking_splits(self, one: Candidate) -> list[int]:
        """The splits that a candidate lacks, or had too little time for."""
        return [
            split for split in self.all_splits if split not in one.scores or split in one.unfinished
        ]

    def choose_family(self) -> str | None:
        """A kind of model to vary, better and quicker ones more often; None if no trials are left.

        The time of a kind depends on its rank and not on how slow it is, unless it is quick: even
        more settings of it would hardly be better. The same goes for a kind of which many settings
        were tried after its best one. With a number of trials, the seconds do not count: the same
        search is the same again.
        """
        best = self.best_by_kind()
        open_ = [name for name in best if self.trials is None or self.count(name) < self.trials]
        if not open_:
            return None
        open_ = [name for name in open_ if self.splits_at_first(name)] or open_
        odds = _FALLING ** np.arange(len(open_))
        odds /= [1 + self.tried_after(best[name]) / _IN_VAIN for name in open_]
        if self.trials is None:
            odds /= [max(self.usual_seconds(name), _QUICK) for name in open_]
        return str(self.generator.choice(open_, p=odds / odds.sum()))

    def splits_at_first(self, name: str) -> list[int]:
        """All splits for a kind that takes little of the remaining time, and one split otherwise.

        None if there would be no time for all splits after a promising result on one.
        """
        left, on_all = self.left(), self.usual_seconds(name) * len(self.all_splits)
        if on_all <= _LITTLE * left:
            return self.all_splits
        return self.all_splits[:1] if on_all <= left else []

    def next_settings(self, name: str, splits: int) -> list[Setting]:
        """The next of the first settings of a kind, or a group of variations of its best.

        First settings that would take more than a little of the time are left out.
        """
        family, most_seconds = self.families[name], min(_LITTLE * self.left(), sys.float_info.max)
        while self.waiting[name]:
            setting = self.waiting[name].pop(0)
            if family.least_seconds(self.problem, setting) * splits <= most_seconds:
                return [setting]
        best = self.best_by_kind()[name]
        most = int(min(_GROUP, self.left() / max(best.seconds * splits, 1e-9)))
        if self.trials is not None:
            most = min(most, self.trials - self.count(name))
        return family.near(self.problem, best.setting, max(most, 1), self.generator)

    def tried_after(self, best: Candidate) -> int:
        """How many settings of a kind were tried after its best one."""
        own = [one for one in self.candidates if one.setting.family == best.setting.family]
        return len(own) - 1 - own.index(best)

    def usual_seconds(self, name: str) -> float:
        """The mean time of a kind's fits on one split: some options cost far more than the best."""
        return fmean(one.seconds for one in self.candidates if one.setting.family == name)

    def count(self, name: str) -> int:
        """How many settings of a kind were tried, or are being tried."""
        return sum(one.setting.family == name for one in self.fitting.union(self.candidates))

    def splits(self) -> list[int]:
        """The splits for the final comparison of candidates.

        They are those of the candidate with the most splits, unless the leader, which lacked time
        for all of them, is clearly better on the validation nodes of one: then they are its own.
        """
        if not self.deciding():
            return []
        leader, most = self.deciding()
        own, others = map(self.splits_of, (leader, most))
        shared = [split for split in own if split in others]
        if leader is most or not shared:
            return others
        mask, fits = self.problem.masks.val[:, shared[0]], (leader.fits, most.fits)
        gap = paired_interval(self.problem, mask, *(fit[shared[0]].val for fit in fits))
        return own if gap.above_zero else others

    def deciding(self) -> list[Candidate]:
        """The leader, and the best candidate of those with the most splits."""
        ranked = [one for one in self.ranked() if self.splits_of(one)]
        return [ranked[0], max(ranked, key=lambda one: len(self.splits_of(one)))] if ranked else []

    def splits_of(self, one: Candidate) -> list[int]:
        """The splits that it has outputs for, of those that are not left out."""
        return [split for split in self.all_splits if split in one.fits]

    # The clock

    def left(self) -> float:
        """Seconds for the search: the time left after the final fit of the chosen models."""
        leading = self.ranked()[:_LEADERS]
        models = self.problem.masks.end_train.shape[1]
        reserve = _LONGER * models * sum(one.seconds for one in leading)
        passed = clock.monotonic() - self.started + self.comparing
        return self.time - passed - min(reserve, _ENDING * self.time)

    def doing(self, names: str) -> str:
        """The kinds of model that are being fitted, and the best score so far."""
        means = [fmean(one.scores.values()) for one in self.candidates if one.scores]
        score = self.problem.objective.metric.text
        return f"{names}, best so far {score(max(means))}" if means else names

    def _look(self, end: float, group: list[Candidate]) -> Look:
        doing = self.doing(group[0].setting.family)

        def look(share: float) -> None:
            now = clock.monotonic()
            self.progress(min(1.0, (now - self.started) / max(self.time, 1e-9)), doing)
            if now > end:
                raise Enough

        return look

    def forget(self) -> None:
        """Keep the results of candidates that may be chosen or compared alone."""
        rankings, deciding = [self.ranked()], self.deciding()
        for splits in map(self.splits_of, deciding):
            rankings.append(sorted(rankings[0], key=lambda one: -one.mean(splits)))
        forget_others(rankings, {*deciding, *self.hopeful()})
