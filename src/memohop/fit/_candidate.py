"""Kinds of model, their settings, and what a search has made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
import psutil

from memohop.fit._certainty import paired_interval
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Inputs, Outputs, Problem
from memohop.fit._saved import Saved
from memohop.jobs.space import Space, near_numbers, near_options
from memohop.training.device import resident_bytes

if TYPE_CHECKING:
    pass

Look = Callable[[float], None]
"""Called now and then with the share of the work that is done.

It may raise :class:`~memohop.training.Enough`: the fit then ends with its result so far.
"""

Fits = list[dict[int, "Fitted"]]
"""The results of each setting by split, in order; a fit that ended early may lack some."""

Progress = Callable[[float, str], None]
"""Called with the share of the time that has passed, and the current step."""

Stop = Literal["trials", "time", "interrupted"]
"""Why a search ended."""

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


class Part(Protocol):
    """A fitted model, which predicts and can be saved."""

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Its outputs for some nodes of a graph, given the targets that ``inputs`` holds."""

    def saved(self) -> Saved:
        """The data from which ``from_saved`` of its class makes it again, without its view."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate on one split.

    Attributes:
        val: Its outputs for the validation nodes, ``[nodes, outputs]``.
        test: Its outputs for the test nodes.
        part: The model; None if the search has forgotten it.
    """

    val: Outputs
    test: Outputs
    part: Part | None = None

    @property
    def is_sound(self) -> bool:
        """Whether all outputs are finite."""
        return bool(np.isfinite(self.val).all() and np.isfinite(self.test).all())


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


class Family(Protocol):
    """A kind of model."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def sees_graph(self) -> bool:
        """Whether it uses arcs."""

    @property
    def has_memory(self) -> bool:
        """Whether it passes messages through a memory."""

    def first(self, problem: Problem) -> list[Setting]:
        """The settings to try first, the most promising first; none if it cannot be fitted."""

    def openers(self, problem: Problem) -> int:
        """How many of these differ so much that a search starts with all of them."""

    def space(self, problem: Problem) -> Space:
        """What the options and numbers of further settings are drawn from."""

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """What a fit to one split takes at least; its seconds are infinite if there is no RAM."""

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        look: Look = lambda share: None,
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
        failures: How many of its fits did not finish.
    """

    setting: Setting
    fits: dict[int, Fitted] = field(default_factory=dict)
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
    def has_models(self) -> bool:
        """Whether its models are at hand: a search forgets those of candidates that fell behind."""
        return all(fit.part is not None for fit in self.fits.values())


@dataclass(eq=False)
class Search:
    """The result of a search.

    Attributes:
        candidates: All candidates that were tried.
        splits: The splits on which all candidates to choose from were fitted.
        stopped: Whether all ``trials`` were made, the ``time`` was up, or it was ``interrupted``.
        seconds: How long it took.
        left_out: The kinds of model that there was no time or RAM for.
    """

    candidates: list[Candidate]
    splits: list[int]
    stopped: Stop
    seconds: float
    left_out: tuple[str, ...] = ()

    def complete(self) -> list[Candidate]:
        """The candidates to choose from, the best first."""
        splits = {*self.splits}
        whole = [tried for tried in self.candidates if splits and splits <= {*tried.fits}]
        return sorted(whole, key=lambda tried: -tried.mean(self.splits))


def variations(
    family: Family, problem: Problem, best: Setting, count: int, generator: np.random.Generator
) -> list[Setting]:
    """Settings near a good one: at most one choice of the structure changed, and numbers close by.

    Args:
        family: The kind of model.
        problem: The problem to fit them on.
        best: The good one.
        count: How many; all have the same options.
        generator: Decides.
    """
    space = family.space(problem)
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

    Args:
        ranked: All candidates, the best first.
    """
    of_kind: dict[str, int] = {}
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for tried in ranked:
        of_kind[tried.setting.family] = of_kind.get(tried.setting.family, 0) + 1
        (first if of_kind[tried.setting.family] <= _ALIKE else rest).append(tried)
    return sorted((first + rest)[:_KEPT], key=ranked.index)


def best_of_kinds(ranked: Iterable[Candidate]) -> dict[str, Candidate]:
    """The best candidate of each kind, the best kind first.

    Args:
        ranked: All candidates, the best first.
    """
    best: dict[str, Candidate] = {}
    for tried in ranked:
        best.setdefault(tried.setting.family, tried)
    return best


def usual_scores(candidates: Sequence[Candidate], splits: Sequence[int]) -> dict[int, float]:
    """The mean score of all candidates on each split, as if all had been fitted on it.

    Poor candidates stay on the first split, so that the plain mean on the others is that of good
    ones: it would make candidates that were fitted on all splits look worse. On another split it
    is therefore the mean on the first, plus the mean difference of candidates on both.

    Args:
        candidates: The candidates.
        splits: All splits; every candidate begins with the first.
    """
    first, *others = splits
    usual = {first: _mean([tried.scores[first] for tried in candidates if first in tried.scores])}
    for split in others:
        both = [tried.scores for tried in candidates if {first, split} <= tried.scores.keys()]
        usual[split] = usual[first] + _mean([scores[split] - scores[first] for scores in both])
    return usual


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def lacking_for_verdict(
    families: Mapping[str, Family], ranked: Sequence[Candidate], splits: Sequence[int]
) -> list[tuple[Candidate, list[int]]]:
    """What the verdict needs and a search may leave out: candidates, and splits they lack.

    The columns alone, and memory, are each compared with others on splits that both have. Where no
    candidate of theirs has them all, it is the one that lacks the fewest, unless it failed on one.

    Args:
        families: The kinds of model, by id.
        ranked: The candidates that were tried, the best first.
        splits: The splits to have.
    """
    tried = [candidate for candidate in ranked if candidate.scores]
    columns = [each for each in tried if not families[each.setting.family].sees_graph]
    memory = [each for each in tried if families[each.setting.family].has_memory]
    needed = []
    for group in (columns, memory):
        lacking = [[split for split in splits if split not in each.scores] for each in group]
        if all(lacking):
            pairs = zip(group, lacking, strict=True)
            hopeful = [(each, own) for each, own in pairs if each.unfinished.isdisjoint(own)]
            needed += sorted(hopeful, key=lambda pair: len(pair[1]))[:1]
    return needed


class Standings:
    """All candidates of a search, and how they compare.

    Attributes:
        candidates: In the order in which they were tried.
        splits: Those that they are compared on; a search may leave out the last ones.
    """

    def __init__(self, problem: Problem) -> None:
        self.candidates: list[Candidate] = []
        self.splits = list(range(problem.splits))
        self._problem, self._usual = problem, dict[int, float]()

    def update(self, group: Sequence[Candidate]) -> None:
        """Compare candidates with the others, and forget what fills the RAM.

        Models are kept of candidates that may be chosen or completed, and outputs of the best of
        each kind, which are compared after the search.
        """
        self.candidates += [tried for tried in group if tried not in self.candidates]
        self._usual = usual_scores(self.candidates, range(self._problem.splits))
        ranked, deciding = self.ranked(), self._deciding()
        rankings = [ranked] + [
            sorted(ranked, key=lambda tried: -tried.mean(splits))
            for splits in map(self._splits_of, deciding)
        ]
        kept = {*deciding, *self.hopeful()}.union(*map(best_few, rankings))
        best = {tried for order in rankings for tried in best_of_kinds(order).values()}
        for tried in {*ranked} - kept:
            outputs = {split: replace(fit, part=None) for split, fit in tried.fits.items()}
            tried.fits = outputs if tried in best else {}

    def lead(self, tried: Candidate) -> float:
        """How far it is above what is usual on the splits that it was fitted on."""
        leads = [score - self._usual[split] for split, score in tried.scores.items()]
        return sum(leads) / len(leads) if leads else -math.inf

    def ranked(self) -> list[Candidate]:
        """All candidates, the best first."""
        return sorted(self.candidates, key=lambda tried: -self.lead(tried))

    def best(self) -> dict[str, Candidate]:
        """The best candidate of each kind, the best kind first."""
        return best_of_kinds(self.ranked())

    def hopeful(self) -> list[Candidate]:
        """The best candidate of each of the better kinds."""
        best = [*self.best().values()]
        return best[: math.ceil(len(best) / 2)]

    def deciding_splits(self) -> list[int]:
        """The splits for the final comparison of candidates.

        They are those of the candidate with the most splits, unless the leader, which lacked time
        for all of them, is clearly better on the validation nodes of one: then they are its own.
        """
        if not self._deciding():
            return []
        leader, most = self._deciding()
        own, others = map(self._splits_of, (leader, most))
        shared = [split for split in own if split in others]
        if leader is most or not shared:
            return others
        mask, fits = self._problem.masks.val[:, shared[0]], (leader.fits, most.fits)
        gap = paired_interval(self._problem, mask, *(fit[shared[0]].val for fit in fits))
        return own if gap.above_zero else others

    def _deciding(self) -> list[Candidate]:
        """The leader, and the best candidate of those with the most splits."""
        ranked = [tried for tried in self.ranked() if self._splits_of(tried)]
        most = max(ranked, key=lambda tried: len(self._splits_of(tried)), default=None)
        return [] if most is None else [ranked[0], most]

    def _splits_of(self, tried: Candidate) -> list[int]:
        """The splits that it has outputs for, of those that are not left out."""
        return [split for split in self.splits if split in tried.fits]
