"""From a search to the kept model: choose, and fit what was chosen to every label.

What is kept is a weighted mean of the best few candidates, with calibrated probabilities.

Greedy selection (R. Caruana and others, *Ensemble selection from libraries of models*, ICML 2004):
starting from the best candidate, the selection repeatedly adds the candidate that improves the
mean most on the validation nodes, possibly one it has added before, until nothing helps. As the
authors advise for many candidates, this is done several times, each with a random half of them, so
the ensemble does not depend on one lucky candidate. The weight of a candidate is its share of all
additions. The ensemble is kept even if the best candidate alone scores a little higher: the best of
hundreds owes some of its score to luck with the validation nodes.

A mean of probabilities improves if its log-loss falls, whatever the score: an accuracy changes by
whole nodes, and the best of many mixtures by accuracy owes more to luck than the best by loss.
Only if classes count alike whatever their size, the score decides, which the loss does not know.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.data.splits import Mask
from memohop.fit._candidate import (
    Candidate,
    Family,
    FittedModel,
    Look,
    Search,
    SearchProgress,
    Setting,
    best_few,
)
from memohop.fit._certainty import UNCHANGED, Calibration, fit_calibration, paired_interval
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Outputs, Problem
from memohop.fit._workers import FitJob, Workers, executing
from memohop.interrupts import interrupts_raised
from memohop.jobs.executor import Lost

FITTING = 0.7
"""The share of the time for the kept models: a fit that is stopped still has to predict."""

_ADDITIONS = 20  # to one ensemble, at most
_BAGS = 8  # random halves of the candidates, ...
_MANY = 6  # ... if there are at least this many
_TINY = 1e-12  # the least probability to take a logarithm of
_LEAST = 0.05  # least weight of a component: a lighter one hardly matters but costs as much


def choose_weights(
    problem: Problem, candidates: Sequence[Candidate], splits: Sequence[int]
) -> NDArray[np.float64]:
    """The weights of candidates in the ensemble, ``[candidates]``, which sum to 1.

    The best one comes first, and each of the splits, on which all were fitted, counts alike.
    """
    by_score = not problem.classes or problem.classes_count_alike
    masks = [problem.masks.val[:, split] for split in splits]

    def needed(outputs: Outputs, mask: Mask) -> NDArray[np.float64]:
        """All outputs, or the probability of the true class alone, which is all of the loss."""
        if not by_score:
            outputs = outputs[np.arange(len(outputs)), problem.y[mask], None]
        return outputs.astype(np.float64)

    def merit(said: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
        """The mean score, if it decides, and then the smaller loss."""
        pairs = list(zip(said, masks, strict=True))
        score = np.mean([problem.score(*pair) for pair in pairs]) if by_score else 0.0
        return float(score), -float(np.mean([_loss(problem, *pair) for pair in pairs]))

    said = [
        [needed(tried.fits[split].val, mask) for split, mask in zip(splits, masks, strict=True)]
        for tried in candidates
    ]
    generator, weights = np.random.default_rng(0), np.zeros(len(candidates))
    bags = _BAGS if len(candidates) >= _MANY else 1
    for _ in range(bags):
        bag = np.arange(len(candidates))
        if bags > 1:
            bag = np.sort(generator.permutation(bag)[: len(bag) // 2])
        weights[bag] += _greedy([said[index] for index in bag], merit)
    return weights / weights.sum()


def _greedy(
    said: Sequence[Sequence[NDArray[np.float64]]],
    merit: Callable[[Sequence[NDArray[np.float64]]], tuple[float, float]],
) -> NDArray[np.float64]:
    """The share of additions of each candidate, the best one first."""
    counts = np.zeros(len(said))
    counts[0], total = 1, said[0]
    best = merit(total)
    for size in range(2, _ADDITIONS + 1):
        trials = [[old + new for old, new in zip(total, more, strict=True)] for more in said]
        merits = [merit([outputs / size for outputs in trial]) for trial in trials]
        leader = max(range(len(said)), key=merits.__getitem__)
        if merits[leader] <= best:
            break
        best, total = merits[leader], trials[leader]
        counts[leader] += 1
    return counts / counts.sum()


def _loss(problem: Problem, outputs: NDArray[np.float64], mask: Mask) -> float:
    """The log-loss, also of the probabilities of the true class alone, or the squared error."""
    y = problem.y[mask]
    if not problem.classes:
        return float(((outputs[:, 0] - y) ** 2).mean())
    of_truth = outputs[np.arange(len(y)), y] if outputs.shape[1] > 1 else outputs[:, 0]
    return -float(np.log(of_truth + _TINY).mean())


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choice by validation.

    Attributes:
        weights: Those of the candidates, which sum to 1.
        calibration: Of the probabilities of their mean.
    """

    weights: Mapping[Candidate, np.float64]
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
        return self.mean(getattr(tried.fits[split], part) for tried in self.weights)

    def mean(self, outputs: Iterable[Outputs]) -> Outputs:
        """The kept model's outputs, from those of the candidates."""
        weighted = map(np.multiply, self.weights.values(), outputs)
        return self.calibration.of(np.asarray(sum(weighted)))


def choose(
    problem: Problem,
    search: Search,
    *,
    single: bool = False,
    balanced: bool = False,
    look: Look = lambda: None,
) -> Chosen:
    """An ensemble of the best candidates by mean validation score, or the best one alone.

    Only candidates whose models are at hand can be chosen: there may be no time to fit them again.
    If classes had equal weight in training (``balanced``), or have it in the score, they are not
    shifted: that would undo it. If ``look`` raises ``Enough``, probabilities are calibrated
    roughly.
    """
    ready = [tried for tried in search.complete() if len(tried.models) == len(tried.fits)]
    considered = ready[:1] if single else best_few(ready)
    weights = choose_weights(problem, considered, search.splits)
    kept = np.flatnonzero(weights >= _LEAST)
    weights = weights[kept] / weights[kept].sum()
    plain = Chosen(dict(zip([considered[index] for index in kept], weights, strict=True)))
    if not problem.classes:
        return plain
    said, y = plain.of_validation(problem, search.splits)
    shifted = not (balanced or problem.classes_count_alike)
    return replace(plain, calibration=fit_calibration(said, y, shifted=shifted, look=look))


@dataclass(frozen=True, eq=False)
class Component:
    """One part of an ensemble: a setting, its weight, and the models that it averages."""

    setting: Setting
    weight: float
    models: tuple[FittedModel, ...]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The model that a fit keeps.

    Attributes:
        components: Parts with weights that sum to 1; often there is only one.
        calibration: Of the probabilities.
    """

    components: tuple[Component, ...]
    calibration: Calibration = UNCHANGED

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Probabilities of the classes, or the number, for some nodes of a graph, or for all."""
        said = sum(
            component.weight
            * np.mean([model.outputs(inputs, rows) for model in component.models], axis=0)
            for component in self.components
        )
        return self.calibration.of(np.asarray(said))


def fit_to_all(
    problem: Problem,
    families: Mapping[str, Family],
    chosen: Chosen,
    *,
    seconds: float,
    progress: SearchProgress = lambda share, doing: None,
    workers: Workers | None = None,
) -> Ensemble:
    """Fit the chosen candidates to every label, the greatest weight first, while there is time.

    If there is no time for a model of every split, each candidate has about as many as the others,
    and goes on where the one before it ended: a split trains on some of the labels, and all of them
    together on every label. If time is too short even for one model, or Ctrl-C ends it, the models
    of the search stay, which have learned from fewer labels.
    """
    ending, end = problem.for_the_end(), clock.monotonic() + FITTING * seconds
    order = sorted(chosen.weights, key=lambda tried: -chosen.weights[tried])
    models = {tried: tried.models for tried in order}
    turns = cycle(range(ending.splits))
    try:
        with interrupts_raised(), executing(workers, ending, families) as execute:
            for place, tried in enumerate(order):
                doing, left = tried.setting.family, end - clock.monotonic()
                needed = sum(later.seconds for later in order[place:])
                afforded = max(left / max(needed, 1e-9), tried.seconds < left)
                count = int(np.clip(afforded, 0, ending.splits))
                splits = [*islice(turns, count)]
                each = 1 if workers is not None else max(count, 1)
                jobs = (
                    FitJob(doing, [tried.setting], splits[first : first + each], left)
                    for first in range(0, count, each)
                )
                again = Candidate(tried.setting)
                for _, answer in execute(partial(progress, 1.0, f"{doing}, every label"), jobs):
                    if not isinstance(answer, Lost):
                        again.fits |= answer[0][0]
                again.fits = dict(sorted(again.fits.items()))
                if _is_as_good(problem, tried, ending, again):
                    models[tried] = again.models
    except KeyboardInterrupt:
        pass  # what has not been fitted keeps the models of the search
    components = (
        Component(tried.setting, float(chosen.weights[tried]), tuple(models[tried]))
        for tried in order
    )
    return Ensemble(tuple(components), chosen.calibration)


def _is_as_good(problem: Problem, candidate: Candidate, ending: Problem, again: Candidate) -> bool:
    """Whether models that learned from more labels are not worse than those of the search.

    They might be, if time ran out or a network diverged. Both are scored on the same nodes, those
    that validated both: the candidate was chosen for its score on some, which is luck in part, and
    a mean over others may well be lower.
    """
    outputs = [outputs for fit in again.fits.values() for outputs in (fit.val, fit.test)]
    if not outputs or not all(np.isfinite(each).all() for each in outputs):
        return False
    before, after = _of_validation(problem, candidate), _of_validation(ending, again)
    both = np.isfinite(before[:, 0]) & np.isfinite(after[:, 0])
    before, after = before[both], after[both]
    if problem.score(after, both) >= problem.score(before, both):
        return True  # without the interval, which takes a hundred scores
    return not paired_interval(problem, both, before, after).above_zero


def _of_validation(problem: Problem, candidate: Candidate) -> Outputs:
    """What each node was said to be when it validated, ``[nodes, outputs]``; NaN if it did not."""
    said = np.full((problem.nodes, max(problem.classes, 1)), np.nan, dtype=np.float32)
    for split, fit in candidate.fits.items():
        said[problem.masks.val[:, split]] = fit.val
    return said
