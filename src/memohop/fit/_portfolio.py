"""The search: every kind of model starts cheaply, and the better ones go on until time is up.

Each kind of model gets its first settings and a small share of the time, on one split: kinds of
columns first, then one network with memory, then everything else, so that the verdict on the graph
and on memory has something to compare, whatever the others take. From then on the search continues
with the best: the leading candidates, and the best of each kind, are fitted on the splits that they
lack, and variations of the best are tried, those of better kinds more often. A fit that has not
finished when its share of the time is up stops there, and its result so far counts.

On a large graph, splits that the better kinds would not all have time for are left out, as long as
the others have validation nodes enough: an ensemble is made of candidates with the same splits.
"""

from __future__ import annotations

import math
import sys
import time as clock
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

import numpy as np

from memohop.errors import DataError
from memohop.fit._candidate import (
    Candidate,
    Family,
    Fits,
    Search,
    SearchProgress,
    Setting,
    best_of_kinds,
    firsts,
    variations,
)
from memohop.fit._certainty import paired_interval
from memohop.fit._ensemble import FITTING
from memohop.fit._opening import Opener, openers
from memohop.fit._problem import Problem
from memohop.fit._workers import FitJob, Threads, Workers, executing
from memohop.interrupts import interrupts_raised, interrupts_wait
from memohop.jobs.executor import Lost
from memohop.jobs.search import drive
from memohop.training import Enough

# Shares of the time, or of what is left of it.
_OPENING = 0.35  # for the first settings of every kind
_HALF = 0.5  # for the splits that the best lack: a leader is worth more than variations of it
_QUARTER = 0.25  # for one fit, for the comparisons after the search, for the kept models
_LITTLE = 0.1  # what a variation may take on all splits to get them at once
_PUNCTUAL = 0.95  # of the time: a running fit takes a moment to end, as does the calibration

_LEADERS = 3  # candidates that get all splits, whatever their kind; an ensemble has about as many
_ANEW = 2  # factor of the time of a fit that was cut off, for it to begin anew
_TRIES = 3  # fits of a candidate that does not finish
_GROUP = 3  # variations at once: on a small graph, they take little more time than one
_FALLING = 0.6  # factor by which each next kind is varied less often
_IN_VAIN = 20  # settings without a better one after which a kind is varied half as often
_ENOUGH = 1000  # validation nodes without which no split is left out
_COMPARED = 10  # comparisons of two models after the search, beside one of each kind


def search(
    problem: Problem,
    families: Sequence[Family],
    *,
    time: float | None,
    trials: int | None,
    seed: int,
    progress: SearchProgress = lambda share, doing: None,
    workers: Workers | None = None,
) -> Search:
    """Try settings of all kinds of model, here or by workers.

    ``time`` is seconds for the search and the final fits of the chosen, ``trials`` the most
    settings of each kind; None is no limit. With ``trials``, a search is the same however long its
    fits take, as long as the time is not up.
    """
    at_once = 1 if workers is None else workers.count
    running = Portfolio(
        problem,
        {family.id: family for family in families},
        math.inf if time is None else _PUNCTUAL * time,
        trials,
        np.random.default_rng(seed),
        at_once,
        Threads() if trials is None and workers is None else None,
    )

    def look() -> None:
        passed = running.passed()
        progress(min(1.0, passed / max(running.limit, 1e-9)), running.doing())
        if workers is not None and passed > 1.02 * running.limit:
            raise Enough  # of workers that have not started, or were lost

    result = running.search
    try:
        with (
            suppress(Enough),
            interrupts_raised(),
            executing(workers, problem, running.families) as execute,
        ):
            drive(running, partial(execute, look), in_order=None if trials is None else at_once)
    except KeyboardInterrupt:
        if running.best_score == -math.inf:
            raise
        result.stopped = "interrupted"
    if running.lost is not None and running.best_score == -math.inf:
        raise DataError(
            f"the workers of the Ray cluster are lost ({running.lost.reason}); see that they have "
            "this version of memohop and enough RAM, or leave out --workers"
        )
    result.decide(problem)
    result.seconds = running.passed()
    result.left_out = tuple(name for name in running.waiting if not running.count(name))
    return result


@dataclass(eq=False)
class Portfolio:
    """A search that may be asked for jobs, and told what came of them.

    Attributes:
        families: The kinds, by id.
        limit: Seconds.
        trials: The most settings of each kind; None for no limit.
        at_once: How many jobs are done at the same time.
        threads: Adapted to the load of the machine before each job, if given.
        out: What is being fitted.
        best_score: The best mean score so far.
        lost: Why a job had no answer.
    """

    problem: Problem
    families: dict[str, Family]
    limit: float
    trials: int | None
    generator: np.random.Generator
    at_once: int = 1
    threads: Threads | None = None
    out: dict[FitJob, list[Candidate]] = field(default_factory=dict)
    best_score: float = -math.inf
    lost: Lost | None = None

    def __post_init__(self) -> None:
        self.started, self.comparing = clock.monotonic(), 0.0
        self.search = Search([], list(range(self.problem.splits)))
        first = {name: firsts(family, self.problem) for name, family in self.families.items()}
        self.waiting = {name: settings for name, settings in first.items() if settings}
        self.families = {name: self.families[name] for name in self.waiting}
        self.openers: deque[Opener] | None = deque(
            openers(self.problem, self.families, self.waiting, self.limit, self.trials)
        )

    def ask(self) -> FitJob | None:
        """The next candidates to fit; None if there are none, at least until others have ended."""
        if self.threads is not None:
            self.threads.adapt()
        if self.openers is not None:
            job = self._next_opener(self.openers)
            if job is not None or self.out:
                return job
            self._go_on()
        return self._completion() or self._variations() or self._completion(at_last=True)

    @interrupts_wait()
    def tell(self, job: FitJob, answer: tuple[Fits, float] | Lost) -> None:
        """Take the results of a job, and whether its time was too short."""
        group, splits = self.out.pop(job), {*job.splits}
        if isinstance(answer, Lost):
            self.lost, answer = answer, ([{} for _ in group], 0.0)
        results, seconds = answer
        for tried, fits in zip(group, results, strict=True):
            tried.spent += seconds / len(group)
            tried.seconds = seconds / (len(group) * len(splits))
            failed = splits if seconds > job.seconds else splits - fits.keys()
            tried.unfinished = tried.unfinished - splits | failed
            tried.failures += bool(failed) and fits.keys() <= tried.fits.keys()
            for split, fit in fits.items():
                tried.fits[split] = fit
                tried.scores[split] = self.problem.score(fit.val, self.problem.masks.val[:, split])
            if tried.scores:
                self.best_score = max(self.best_score, fmean(tried.scores.values()))
        self.search.update(group)

    # The opening

    def _next_opener(self, openers: deque[Opener]) -> FitJob | None:
        """The next of them; once their time is over, only of kinds that had none.

        A second one is put off where it would have less time than others of its kind took.
        """
        late: list[Setting] = []
        while openers:
            setting, least, is_first = openers.popleft()
            left = _OPENING * self.limit - self.passed()
            sharing = 1 + sum(opener.is_first == is_first for opener in openers)
            seconds = max(least, left * min(1, self.at_once / (sharing + 1)))
            begins = not self.search.candidates and not self.out
            own = [] if is_first or self.trials is not None else self._of_kind(setting.family)
            if own and seconds < fmean(tried.seconds for tried in own):
                late.append(setting)
                continue
            if begins or (self.left() > 0 and (seconds > 0 or not self.count(setting.family))):
                seconds = seconds if seconds > 0 else _LITTLE * self.left()
                return self._job([Candidate(setting)], self.search.splits[:1], seconds)
            late.append(setting)
        for setting in reversed(late):
            self.waiting[setting.family].insert(0, setting)
        return None

    def _go_on(self) -> None:
        """From the opening to the rest: with the kinds and the splits that there is time for."""
        self.openers = None
        self.families = {name: kind for name, kind in self.families.items() if self.count(name)}
        self.comparing = min(self._seconds_to_compare(), _QUARTER * self.limit)
        if self.problem.ranks_few:
            return
        best = [*best_of_kinds(self.search.ranked).values()]
        memory = [tried for tried in best if self.families[tried.setting.family].has_memory]
        needed = sum(tried.seconds for tried in dict.fromkeys([*best[:_LEADERS], *memory[:1]]))
        afforded = _QUARTER * self.at_once * max(self.left(), 0) / max(needed, 1e-9)
        fewest = math.ceil(_ENOUGH / max(int(self.problem.masks.val[:, 0].sum()), 1))
        count = max(min(afforded, self.problem.splits), fewest)
        self.search.splits = self.search.splits[: int(count)]

    def _seconds_to_compare(self) -> float:
        """How long the comparisons after the search will take, by one on validation nodes."""
        masks, begin = self.problem.masks, clock.monotonic()
        ranked = self.search.ranked
        said = next((tried.fits[0].val for tried in ranked if 0 in tried.fits), None)
        if said is None:
            return 0.0
        paired_interval(self.problem, masks.val[:, 0], said, said)
        each = (clock.monotonic() - begin) * max(masks.test.sum() / len(said), 1)
        return (len(self.families) + _COMPARED) * float(each)

    # The rest

    def _completion(self, *, at_last: bool = False) -> FitJob | None:
        """A candidate with the splits that it is to have next."""
        out = {tried for group in self.out.values() for tried in group}
        for tried, splits, seconds in self._lacking(at_last):
            if splits and tried not in out and self.left() > 0:
                return self._job([tried], splits, 2 * seconds)
        return None

    def _lacking(self, at_last: bool) -> Iterator[tuple[Candidate, list[int], float]]:
        """Candidates that lack splits, or time on some; those to have next, and seconds for them.

        The leaders get them, and the best of each kind: of the better kinds, if that takes a
        quarter of the time left, and of the others, if it takes less; at last, any of them that
        there is time for. One that had too little time on the first split gets that alone, if there
        is far more time now: it tells whether the others are worth it. Those that the verdict needs
        come first, cut off if need be; but if they lead, only if there was no time for them as
        leaders.
        """
        ranked, left, all_splits = self.search.ranked, self.left(), self.search.splits
        leaders, hopeful = ranked[:_LEADERS], self.search.hopeful()
        needed = self._needed(_LITTLE * left)
        yield from [lack for lack in needed if lack[0] not in leaders]
        best = dict.fromkeys([*leaders, *best_of_kinds(ranked).values()])
        for place, tried in enumerate(best, start=1):
            splits = [s for s in all_splits if s not in tried.scores or s in tried.unfinished]
            share = _HALF if tried in leaders else _QUARTER if tried in hopeful else _HALF / place
            seconds = left if at_last else share * left
            count = _affordable(seconds, tried.seconds)
            if place == 1 and tried.seconds <= left:
                count = max(count, 1)
            if splits[:1] == all_splits[:1]:
                # A job gets twice its seconds; there is to be time for the other splits as well.
                seconds = min(seconds, left / len(all_splits) / 2)
                if 2 * seconds <= _ANEW * tried.seconds:
                    splits = [split for split in splits if split not in tried.scores]
                splits, count = splits[:1], max(count, tried in leaders)
            if tried.failures < _TRIES and (count >= len(splits) or tried in leaders):
                yield tried, splits[:count], seconds
        yield from [lack for lack in needed if lack[0] in leaders]

    def _needed(self, seconds: float) -> list[tuple[Candidate, list[int], float]]:
        """What the verdict needs: candidates, and those of the splits they lack there is time for.

        The columns alone, and memory, are each compared with others on splits that both have. Where
        no candidate of theirs has them all, it is the one that lacks the fewest, unless it failed
        on one.
        """
        ranked = [tried for tried in self.search.ranked if tried.scores]
        memory = [tried for tried in ranked if self.families[tried.setting.family].has_memory]
        columns = [tried for tried in ranked if not self.families[tried.setting.family].sees_graph]
        lacks = {t: [s for s in self.search.splits if s not in t.scores] for t in ranked}
        needed = []
        for group in (memory, columns):
            hopeful = [tried for tried in group if tried.unfinished.isdisjoint(lacks[tried])]
            if hopeful and all(lacks[tried] for tried in group):
                best = min(hopeful, key=lambda tried: len(lacks[tried]))
                count = max(1, _affordable(seconds, best.seconds))
                needed.append((best, lacks[best][:count], seconds))
        return needed

    def _variations(self) -> FitJob | None:
        """The next of the first settings of a kind, or variations of its best.

        A kind that takes little of the time left gets all splits at once, and another one the first
        split. First settings that would take more than a little are left out.
        """
        name = self._choose_family()
        if name is None:
            return None
        left, on_all = self.left(), self._usual_seconds(name) * len(self.search.splits)
        splits = self.search.splits if on_all <= _LITTLE * left else self.search.splits[:1]
        family, best = self.families[name], best_of_kinds(self.search.ranked)[name]
        while self.waiting[name]:
            setting = self.waiting[name].pop(0)
            least = family.cost(self.problem, setting).seconds * len(splits)
            if least < math.inf and least <= _LITTLE * left:
                return self._job([Candidate(setting)], splits, _QUARTER * left)
        count = min(_GROUP, max(1, _affordable(left, best.seconds * len(splits))))
        if self.trials is not None:
            count = min(count, self.trials - self.count(name))
        settings = variations(family, self.problem, best.setting, count, self.generator)
        return self._job([*map(Candidate, settings)], splits, _QUARTER * left)

    def _choose_family(self) -> str | None:
        """A kind of model to vary, better and quicker ones more often; None if none can be.

        The time of a kind depends on its rank and not on how slow it is, unless a fit takes less
        than a second: even more settings of it would hardly be better. The same goes for a kind of
        which many settings were tried after its best one. With a number of trials, the seconds do
        not count.
        """
        best, left = best_of_kinds(self.search.ranked), self.left()
        names = [name for name in best if self.trials is None or self.count(name) < self.trials]
        self.search.stopped = "time" if names else "trials"
        # After a promising result on one split there must be time for all of them.
        count = len(self.search.splits)
        names = [name for name in names if self._usual_seconds(name) * count <= left]
        if not names or left <= 0:
            return None
        odds = _FALLING ** np.arange(len(names))
        for place, name in enumerate(names):
            own = self._of_kind(name)
            odds[place] /= 1 + (len(own) - 1 - own.index(best[name])) / _IN_VAIN
        if self.trials is None:
            odds /= [max(self._usual_seconds(name), 1) for name in names]
        return str(self.generator.choice(names, p=odds / odds.sum()))

    def _usual_seconds(self, name: str) -> float:
        """The mean time of a kind's fits on one split: some options cost far more than the best."""
        return fmean(tried.seconds for tried in self._of_kind(name))

    def _of_kind(self, name: str) -> list[Candidate]:
        return [tried for tried in self.search.candidates if tried.setting.family == name]

    def _job(self, group: list[Candidate], splits: Sequence[int], seconds: float) -> FitJob:
        settings = [tried.setting for tried in group]
        job = FitJob(settings[0].family, settings, splits, min(seconds, max(self.left(), 0)))
        self.out[job] = group
        return job

    def count(self, name: str) -> int:
        """How many settings of a kind were tried, or are being tried."""
        tried = {*self.search.candidates}.union(*self.out.values())
        return sum(candidate.setting.family == name for candidate in tried)

    # The clock

    def passed(self) -> float:
        """Seconds since the search began."""
        return clock.monotonic() - self.started

    def left(self) -> float:
        """Seconds for the search: the time left after the final fit of the chosen models."""
        models = self.problem.masks.end_train.shape[1]
        leading = self.search.ranked[:_LEADERS]
        final = models * sum(tried.seconds for tried in leading) / FITTING
        return self.limit - self.passed() - self.comparing - min(final, _QUARTER * self.limit)

    def doing(self) -> str:
        """The kinds of model that are being fitted, and the best score so far."""
        names = ", ".join(dict.fromkeys(job.family for job in self.out))
        if self.best_score == -math.inf:
            return names
        return f"{names}, best so far {self.problem.objective.metric.text(self.best_score)}"


def _affordable(seconds: float, each: float) -> int:
    """How many splits there are seconds for."""
    return int(min(seconds / max(each, 1e-9), sys.maxsize))
