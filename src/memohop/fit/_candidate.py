"""Kinds of model, their settings, and what a search has made of them."""

from __future__ import annotations

import math
import time as clock
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import psutil

from memohop.fit._certainty import paired_interval
from memohop.fit._curve import CurveKind
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved
from memohop.jobs.space import Space, near_numbers, near_options
from memohop.training import Enough
from memohop.training.device import resident_bytes

Look = Callable[[], None]
"""Called now and then; if it raises :class:`~memohop.training.Enough`, the result so far counts."""

Fits = list[dict[int, "Fit"]]
"""The results of each setting by split, in order; a fit that ended early may lack some."""

SearchProgress = Callable[[float, str], None]
"""Called with the share of the time that has passed, and the current step."""

Stop = Literal["trials", "time", "interrupted"]
"""Why a search ended."""

TARGET, AS_IT_IS = "target", "plain"
"""The option that says on which curve a kind of any model learns numbers, and its first choice."""

_KEPT = 12  # candidates for an ensemble; their models are kept during the search
_ALIKE = 3  # of one kind, unless there are too few others


@dataclass(frozen=True)
class Setting:
    """A kind of model with everything that decides how it is fitted.

    Attributes:
        family: The id of its kind.
        options: The structure; candidates that share it can be fitted together.
        numbers: Learning rate, penalties and so on.
    """

    family: str
    options: Mapping[str, Any]
    numbers: Mapping[str, float]

    @property
    def target(self) -> CurveKind | None:
        """The curve on which numbers are learned; None if as they are."""
        target = self.options.get(TARGET, AS_IT_IS)
        return None if target == AS_IT_IS else target

    @property
    def without_target(self) -> Setting:
        """The same with what concerns its kind alone."""
        options = {name: value for name, value in self.options.items() if name != TARGET}
        return Setting(self.family, options, self.numbers)


class FittedModel(Protocol):
    """A fitted model, which predicts and can be saved."""

    @property
    def has_rows(self) -> bool:
        """Whether it has weights or features for each node of the graph of ``fit``."""

    @property
    def takes_labels(self) -> bool:
        """Whether it uses known labels."""

    @property
    def takes_attributes(self) -> bool:
        """Whether it uses attributes of arcs."""

    @property
    def needs_whole_graph(self) -> bool:
        """Whether it sees more of the graph than a block and what that can fetch from others."""

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Its outputs for some nodes of a graph, given the targets that ``inputs`` holds."""

    def saved(self) -> Saved:
        """The data from which ``from_saved`` of its class makes it again, without its view."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A candidate on one split.

    Attributes:
        val: Its outputs for the validation nodes, ``[nodes, outputs]``.
        test: Its outputs for the test nodes.
        part: The model; None if the search has forgotten it.
    """

    val: Outputs
    test: Outputs
    part: FittedModel | None = None


class Cost(NamedTuple):
    """What a fit takes at least: seconds to be worth starting, and bytes of RAM."""

    seconds: float
    bytes: float

    def within(self, memory: int | None) -> Cost:
        """The same, with infinite seconds if there is not so much RAM."""
        return self if self.bytes <= room_in_ram(memory) else self._replace(seconds=math.inf)


def room_in_ram(memory: int | None) -> float:
    """The bytes that may be taken beside what the process holds; by default all that are free."""
    if memory is None:
        return float(psutil.virtual_memory().available)
    return float(memory - resident_bytes())


def kept_bytes(problem: Problem) -> float:
    """What is kept of every fit: the outputs for validation and test nodes."""
    rows = problem.masks.val[:, 0].sum() + problem.masks.test.sum()
    return 4.0 * max(problem.classes, 1) * int(rows)


@dataclass(frozen=True)
class Family(ABC):
    """A kind of model.

    Attributes:
        id: Its name.
        memory: The most bytes that the process may hold; by default what is free.
    """

    id: str
    memory: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def sees_graph(self) -> bool:
        """Whether it uses arcs."""

    @property
    def has_memory(self) -> bool:
        """Whether it passes messages through a memory."""
        return self.id.endswith("+mmp")

    @abstractmethod
    def first(self, problem: Problem) -> list[Setting]:
        """The settings to try first, the most promising first; none if it cannot be fitted."""

    @abstractmethod
    def openers(self, problem: Problem) -> int:
        """How many of these differ so much that a search starts with all of them."""

    @abstractmethod
    def space(self, problem: Problem) -> Space:
        """What the options and numbers of further settings are drawn from."""

    @abstractmethod
    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """What a fit to one split takes at least; its seconds are infinite if there is no RAM."""

    @abstractmethod
    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        look: Look = lambda: None,
    ) -> Fits:
        """Fit settings with the same options, each on each of some splits."""


@dataclass(eq=False)
class Candidate:
    """A setting that was tried.

    Attributes:
        setting: The setting.
        fits: Its results, by split; a search forgets those of candidates that fell behind.
        scores: The validation score of each.
        seconds: Roughly the time for one split.
        spent: The time of all its fits.
        unfinished: The splits on which time was too short for it, or it failed.
        failures: How many of its fits did not finish, and brought no split that it lacked.
    """

    setting: Setting
    fits: dict[int, Fit] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    spent: float = 0.0
    unfinished: frozenset[int] = frozenset()
    failures: int = 0

    def mean(self, splits: Sequence[int]) -> float:
        """The mean validation score over some splits; minus infinity if it lacks one."""
        scores = [self.scores.get(split, -math.inf) for split in splits]
        return float(np.mean(scores)) if scores else -math.inf

    @property
    def models(self) -> list[FittedModel]:
        """Its models, as far as the search has not forgotten them."""
        return [fit.part for fit in self.fits.values() if fit.part is not None]


@dataclass(eq=False)
class Search:
    """What a search has tried, and how that compares.

    Attributes:
        candidates: All candidates that were tried, in their order.
        splits: Those that they are compared on: some may be left out for lack of time, and at the
            end they are those that all candidates to choose from were fitted on.
        stopped: Whether all ``trials`` were made, the ``time`` was up, or it was ``interrupted``.
        seconds: How long it took.
        left_out: The kinds of model that there was no time or RAM for.
        ranked: All candidates, the best first: by how far they are above what is usual.
    """

    candidates: list[Candidate]
    splits: list[int]
    stopped: Stop = "time"
    seconds: float = 0.0
    left_out: tuple[str, ...] = ()
    ranked: list[Candidate] = field(default_factory=list)

    def hopeful(self) -> list[Candidate]:
        """The best candidate of each of the better kinds."""
        best = [*best_of_kinds(self.ranked).values()]
        return best[: math.ceil(len(best) / 2)]

    def complete(self) -> list[Candidate]:
        """The candidates to choose from, the best first."""
        splits = {*self.splits}
        whole = [tried for tried in self.candidates if splits and splits <= {*tried.fits}]
        return sorted(whole, key=lambda tried: -tried.mean(self.splits))

    def update(self, group: Sequence[Candidate]) -> None:
        """Rank all candidates anew, some with new results, and forget what fills the RAM.

        Models are kept of candidates that may be chosen or completed, and outputs of the best of
        each kind, which are compared after the search.
        """
        self.candidates += [tried for tried in group if tried not in self.candidates]
        usual = usual_scores(self.candidates)

        def lead(tried: Candidate) -> float:
            leads = [score - usual[split] for split, score in tried.scores.items()]
            return sum(leads) / len(leads) if leads else -math.inf

        self.ranked = ranked = sorted(self.candidates, key=lead, reverse=True)
        most = max(map(self._fitted_on, ranked), key=len)
        whole = [tried for tried in ranked if most and {*most} <= {*tried.fits}]
        kept = {*best_few(ranked), *best_few(whole), *self.hopeful()}
        best = {*best_of_kinds(ranked).values(), *best_of_kinds(whole).values()}
        for tried in {*ranked} - kept:
            outputs = {split: replace(fit, part=None) for split, fit in tried.fits.items()}
            tried.fits = outputs if tried in best else {}

    def decide(self, problem: Problem) -> None:
        """Choose the splits for the final comparison.

        They are those of the candidate with the most splits, unless the leader, which lacked time
        for all of them, is clearly better on the validation nodes of one: then they are its own.
        """
        ranked = [tried for tried in self.ranked if self._fitted_on(tried)]
        most = max(ranked, key=lambda tried: len(self._fitted_on(tried)), default=None)
        if most is None:
            self.splits = []
            return
        own, self.splits = self._fitted_on(ranked[0]), self._fitted_on(most)
        shared = [split for split in own if split in self.splits]
        if ranked[0] is not most and shared:
            outputs = (tried.fits[shared[0]].val for tried in (ranked[0], most))
            if paired_interval(problem, problem.masks.val[:, shared[0]], *outputs).above_zero:
                self.splits = own

    def _fitted_on(self, tried: Candidate) -> list[int]:
        """The splits that it has outputs for, of those that are not left out."""
        return [split for split in self.splits if split in tried.fits]


def firsts(family: Family, problem: Problem) -> list[Setting]:
    """The first settings of a kind; if numbers are skewed, one opener more, on a curve, first."""
    settings, opening = family.first(problem), family.openers(problem)
    if not (settings and problem.curves):
        return settings
    plain, *others = (
        [replace(each, options={**each.options, TARGET: target}) for each in settings]
        for target in (AS_IT_IS, *problem.curves)
    )
    first, *more = (each[0] for each in others)
    return [first, *plain[:opening], *more, *plain[opening:]]


def variations(
    family: Family, problem: Problem, best: Setting, count: int, generator: np.random.Generator
) -> list[Setting]:
    """Settings near a good one: at most one choice of the structure changed, and numbers close by.

    All of them have the same options.
    """
    space = family.space(problem)
    if problem.curves:
        space = {**space, TARGET: [AS_IT_IS, *problem.curves]}
    choices = {name: space[name] for name in space if name not in best.numbers}
    ranges = {name: space[name] for name in space if name in best.numbers}
    options = near_options(choices, best.options, generator)
    if family.cost(problem, replace(best, options=options)).seconds == math.inf:
        options = dict(best.options)  # the others are larger than the RAM
    return [
        Setting(best.family, options, near_numbers(ranges, best.numbers, generator))
        for _ in range(count)
    ]


def best_few(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates for an ensemble, the best first: the best of every kind before more of one.

    Variations of one candidate err alike, and a mean of them gains little.
    """
    seen: Counter[str] = Counter()
    parts: tuple[list[Candidate], list[Candidate]] = [], []
    for tried in ranked:
        parts[seen[tried.setting.family] >= _ALIKE].append(tried)
        seen[tried.setting.family] += 1
    return sorted([*parts[0], *parts[1]][:_KEPT], key=ranked.index)


def best_of_kinds(ranked: Iterable[Candidate]) -> dict[str, Candidate]:
    """The best candidate of each kind, the best kind first."""
    best: dict[str, Candidate] = {}
    for tried in ranked:
        best.setdefault(tried.setting.family, tried)
    return best


def usual_scores(candidates: Sequence[Candidate]) -> dict[int, float]:
    """The mean score of all candidates on each split, as if all had been fitted on it.

    Poor candidates stay on the first split, so that the plain mean on the others is that of good
    ones: it would make candidates that were fitted on all splits look worse. On another split it
    is therefore the mean on the first, plus the mean difference of candidates on both.
    """
    scores = [tried.scores for tried in candidates if 0 in tried.scores]
    usual = {0: float(np.mean([own[0] for own in scores] or 0))}
    for split in {split for tried in candidates for split in tried.scores} - {0}:
        gaps = [own[split] - own[0] for own in scores if split in own]
        usual[split] = usual[0] + float(np.mean(gaps or 0))
    return usual


def until(end: float) -> Look:
    """What raises ``Enough`` from a time on, by ``time.monotonic``."""

    def look() -> None:
        if clock.monotonic() >= end:
            raise Enough

    return look


def by_the_clock(progress: SearchProgress, begin: float, seconds: float) -> SearchProgress:
    """The same with the share of these seconds that has passed; without a limit, as it is told."""

    def tell(share: float, doing: str) -> None:
        passed = (clock.monotonic() - begin) / max(seconds, 1e-9)
        progress(share if seconds == math.inf else min(passed, 1.0), doing)

    return tell
