"""A weighted mean of the best few candidates, with calibrated probabilities.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memohop.fit.candidate import Candidate
from memohop.fit.candidates.family import Fitted, Part, Setting
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.trees import Trees
from memohop.fit.certainty import UNCHANGED, Calibration
from memohop.fit.neighbourhood import EVERY, Rows
from memohop.fit.problem import Inputs, Outputs, Problem

_ADDITIONS = 20  # to one ensemble, at most
_BAGS = 8  # random halves of the candidates, ...
_MANY = 6  # ... if there are at least this many
_TINY = 1e-12  # the least probability to take a logarithm of


@dataclass(frozen=True, eq=False)
class Component:
    """One part of an ensemble: a setting, its weight, and the models that it averages."""

    setting: Setting
    weight: float
    models: tuple[Part, ...]


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
            * np.mean([outputs_of(model, inputs, rows) for model in component.models], axis=0)
            for component in self.components
        )
        return self.calibration.of(np.asarray(said))


def outputs_of(part: Part, inputs: Inputs, rows: Rows) -> Outputs:
    """What a model says of some nodes of a graph; trees take long for all of them."""
    if rows is EVERY or not isinstance(part, Linear | Trees):
        return part.outputs(inputs)[rows]
    return part.of_features(part.view.features(inputs, inputs.y)[rows])


def choose_weights(
    problem: Problem, candidates: Sequence[Candidate], splits: Sequence[int]
) -> NDArray[np.float64]:
    """The weights of candidates in the ensemble, ``[candidates]``, which sum to 1.

    Args:
        problem: The problem that they were fitted on.
        candidates: The best first; all of them were fitted on these splits.
        splits: The splits to validate on, with equal weight.
    """
    by_score = not problem.classes or problem.classes_count_alike
    rows = [problem.masks.val[:, split] for split in splits]

    def needed(fit: Fitted, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """All outputs, or the probability of the true class alone, which is all of the loss."""
        found = fit.val if by_score else fit.val[np.arange(len(fit.val)), problem.y[mask]]
        return found.astype(np.float64)

    said = [
        [needed(one.fits[split], mask) for split, mask in zip(splits, rows, strict=True)]
        for one in candidates
    ]

    def merit(outputs: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
        """The smaller loss, or the mean score and then the loss."""
        if not by_score:
            return (-float(np.mean([_log_loss(one) for one in outputs])), 0.0)
        pairs = list(zip(outputs, rows, strict=True))
        score = float(np.mean([problem.score(one, mask) for one, mask in pairs]))
        loss = float(np.mean([_loss(problem, one, mask) for one, mask in pairs]))
        return (score, -loss)

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
        trials = [[old + new for old, new in zip(total, one, strict=True)] for one in said]
        merits = [merit([one / size for one in trial]) for trial in trials]
        leader = max(range(len(said)), key=merits.__getitem__)
        if merits[leader] <= best:
            break
        best, total = merits[leader], trials[leader]
        counts[leader] += 1
    return counts / counts.sum()


def mix(
    candidates: Sequence[Candidate], weights: NDArray[np.float64], split: int, part: str
) -> Outputs:
    """The outputs of weighted candidates for the ``val`` or ``test`` nodes of a split."""
    return np.asarray(
        sum(
            weight * getattr(one.fits[split], part)
            for one, weight in zip(candidates, weights, strict=True)
            if weight
        )
    )


def _loss(problem: Problem, outputs: NDArray[np.float64], rows: NDArray[np.bool_]) -> float:
    """The log-loss, or the squared error."""
    y = problem.y[rows]
    if problem.classes:
        return _log_loss(outputs[np.arange(len(y)), y])
    return float(((outputs[:, 0] - y) ** 2).mean())


def _log_loss(of_truth: NDArray[np.float64]) -> float:
    return -float(np.log(of_truth + _TINY).mean())
