"""The settings that a search has tried, with their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from memohop.fit.candidates.family import Family, Fitted, Setting

Stop = Literal["trials", "time", "interrupted"]
"""Why a search ended."""

_KEPT = 12  # candidates for an ensemble; their models are kept during the search
_ALIKE = 3  # of one kind, unless there are too few others


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
        tries: How often it was fitted, each time on some splits.
    """

    setting: Setting
    fits: dict[int, Fitted] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    spent: float = 0.0
    unfinished: frozenset[int] = frozenset()
    tries: int = 0

    def mean(self, splits: Sequence[int]) -> float:
        """The mean validation score over some splits; minus infinity if it lacks one."""
        found = [self.scores.get(split, -math.inf) for split in splits]
        return float(np.mean(found)) if found else -math.inf

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
        found = [one for one in self.candidates if self.splits and {*self.splits} <= {*one.fits}]
        return sorted(found, key=lambda one: -one.mean(self.splits))


def best_few(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates for an ensemble, the best first: the best of every kind before more of one.

    Variations of one candidate err alike, and a mean of them gains little.

    Args:
        ranked: All candidates, the best first.
    """
    of_kind: dict[str, int] = {}
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for one in ranked:
        of_kind[one.setting.family] = of_kind.get(one.setting.family, 0) + 1
        (first if of_kind[one.setting.family] <= _ALIKE else rest).append(one)
    return sorted((first + rest)[:_KEPT], key=ranked.index)


def best_of_kinds(ranked: Iterable[Candidate]) -> dict[str, Candidate]:
    """The best candidate of each kind, the best kind first.

    Args:
        ranked: All candidates, the best first.
    """
    found: dict[str, Candidate] = {}
    for one in ranked:
        found.setdefault(one.setting.family, one)
    return found


def forget_others(rankings: Sequence[Sequence[Candidate]], kept: set[Candidate]) -> None:
    """Forget models, and outputs, which fill the RAM if there are many candidates and classes.

    Models stay of candidates that may be chosen, and outputs of the best of each kind, which are
    compared after the search.

    Args:
        rankings: All candidates, the best first: by what may decide in the end.
        kept: Those that keep everything in any case.
    """
    kept = kept.union(*map(best_few, rankings))
    best = {one for ranked in rankings for one in best_of_kinds(ranked).values()}
    for one in {*rankings[0]} - kept:
        outputs = {split: replace(fit, part=None) for split, fit in one.fits.items()}
        one.fits = outputs if one in best else {}


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
    usual = {first: _mean([one.scores[first] for one in candidates if first in one.scores])}
    for split in others:
        both = [one.scores for one in candidates if {first, split} <= one.scores.keys()]
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
