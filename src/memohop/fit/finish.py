"""From a search to the kept model: choose, score the test nodes once, fit to every label."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.fit.candidate import Candidate, Search, best_few
from memohop.fit.candidates.family import Family, Fitted
from memohop.fit.certainty import UNCHANGED, Calibration, fit_calibration, paired_interval
from memohop.fit.ensemble import Component, Ensemble, choose_weights, mix
from memohop.fit.portfolio import Progress
from memohop.fit.problem import Outputs, Problem
from memohop.interrupts import interrupts_raised
from memohop.ram import release_freed_ram
from memohop.training import Enough

_FITTING = 0.7  # of the time for the kept models: a fit that is stopped still has to predict
_LEAST = 0.05  # least weight of a component: a lighter one hardly matters but costs as much


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choice by validation.

    Attributes:
        candidates: One or several.
        weights: Their weights, which sum to 1.
        calibration: Of the probabilities of their mean.
    """

    candidates: tuple[Candidate, ...]
    weights: NDArray[np.float64]
    calibration: Calibration = UNCHANGED

    def val(self, problem: Problem, splits: Sequence[int]) -> float:
        """The mean validation score over splits."""
        masks = problem.masks.val
        return float(np.mean([problem.score(self._said(s, "val"), masks[:, s]) for s in splits]))

    def of_validation(
        self, problem: Problem, splits: Sequence[int]
    ) -> tuple[Outputs, NDArray[Any]]:
        """The outputs of the search's models for all validation nodes, and the truth."""
        said = [self._said(split, "val") for split in splits]
        truth = [problem.y[problem.masks.val[:, split]] for split in splits]
        return np.vstack(said), np.concatenate(truth)

    def of_test(self, splits: list[int]) -> Outputs:
        """The outputs of the search's models for the test nodes, which none of them has seen."""
        return np.mean([self._said(split, "test") for split in splits], axis=0)

    def _said(self, split: int, part: str) -> Outputs:
        return self.calibration.of(mix(self.candidates, self.weights, split, part))


def choose(
    problem: Problem,
    found: Search,
    *,
    single: bool = False,
    balanced: bool = False,
    look: Callable[[], None] = lambda: None,
) -> Chosen:
    """An ensemble of the best candidates by mean validation score, or the best one alone.

    Only candidates whose models are at hand can be chosen: there may be no time to fit them again.

    Args:
        problem: The problem that the candidates were fitted on.
        found: The search.
        single: Whether to choose a single candidate.
        balanced: Whether the classes had equal weight in training. As if they have it in the
            score, they are not shifted then: that would undo it.
        look: Called now and then; if it raises ``Enough``, probabilities are calibrated roughly.
    """
    ready = [one for one in found.complete() if one.has_models]
    considered = ready[:1] if single else best_few(ready)
    weights = choose_weights(problem, considered, found.splits)
    weights = np.where(weights < _LEAST, 0, weights)
    kept = np.flatnonzero(weights)
    candidates = tuple(considered[index] for index in kept)
    weights = weights[kept] / weights[kept].sum()
    plain = Chosen(candidates, weights)
    if not problem.classes:
        return plain
    said, y = plain.of_validation(problem, found.splits)
    shifted = not (balanced or problem.classes_count_alike)
    return replace(plain, calibration=fit_calibration(said, y, shifted=shifted, look=look))


def fit_to_all(
    problem: Problem,
    families: Mapping[str, Family],
    chosen: Chosen,
    *,
    seconds: float,
    progress: Progress = lambda share, doing: None,
) -> Ensemble:
    """Fit the chosen candidates to every label, the greatest weight first, while there is time.

    If there is no time for a model of every split, each candidate has about as many as the others,
    and goes on where the one before it ended: a split trains on some of the labels, and all of them
    together on every label. If time is too short even for one model, or Ctrl-C ends it, the models
    of the search stay, which have learned from fewer labels.

    Args:
        problem: The problem of the search.
        families: The kinds of model, by id.
        chosen: The choice by validation.
        seconds: Time for all of it.
        progress: Called now and then.
    """
    ending, end = problem.for_the_end(), clock.monotonic() + _FITTING * seconds
    components, interrupted, turn = [], False, 0
    order = np.argsort(-chosen.weights, kind="stable")
    for place, index in enumerate(order):
        candidate, weight = chosen.candidates[index], float(chosen.weights[index])
        setting = candidate.setting
        models = [fit.part for fit in candidate.fits.values() if fit.part is not None]

        def look(share: float, doing: str = setting.family) -> None:
            progress(1.0, f"{doing}, every label")
            if clock.monotonic() > end:
                raise Enough

        left = end - clock.monotonic()
        needed = sum(chosen.candidates[later].seconds for later in order[place:])
        afforded = max(left / max(needed, 1e-9), candidate.seconds < left)
        count = int(np.clip(afforded, 0, ending.splits))
        splits = [(turn + number) % ending.splits for number in range(count)]
        turn += count
        try:
            if splits and not interrupted:
                family = families[setting.family]
                with interrupts_raised():
                    (fits,) = family.fit(ending, [setting], splits, keep=True, look=look)
                if _is_as_good(problem, candidate, ending, fits):
                    models = [fit.part for fit in fits.values() if fit.part is not None]
        except KeyboardInterrupt:
            interrupted = True
        components.append(Component(setting, weight, tuple(models)))
        release_freed_ram()  # each kind needs blocks of other sizes, which would add up
    return Ensemble(tuple(components), chosen.calibration)


def _is_as_good(
    problem: Problem, candidate: Candidate, ending: Problem, fits: Mapping[int, Fitted]
) -> bool:
    """Whether models that learned from more labels are not worse than those of the search.

    They might be, if time ran out or a network diverged. Both are scored on the same nodes, those
    that validated both: the candidate was chosen for its score on some, which is luck in part, and
    a mean over others may well be lower.

    Args:
        problem: The problem of the search.
        candidate: A candidate with its fits in the search.
        ending: The problem of the kept models.
        fits: Its fits to that.
    """
    if not fits or not all(fit.is_sound for fit in fits.values()):
        return False
    before, after = _of_validation(problem, candidate.fits), _of_validation(ending, fits)
    both = np.isfinite(before[:, 0]) & np.isfinite(after[:, 0])
    before, after = before[both], after[both]
    if problem.score(after, both) >= problem.score(before, both):
        return True  # without the interval, which takes a hundred scores
    return not paired_interval(problem, both, before, after).above_zero


def _of_validation(problem: Problem, fits: Mapping[int, Fitted]) -> Outputs:
    """What each node was said to be when it validated, ``[nodes, outputs]``; NaN if it did not."""
    width = next(iter(fits.values())).val.shape[1]
    said = np.full((problem.nodes, width), np.nan, dtype=np.float32)
    for split, fit in fits.items():
        said[problem.masks.val[:, split]] = fit.val
    return said
