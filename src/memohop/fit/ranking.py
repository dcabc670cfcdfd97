"""The value of the top of a ranking, where the nodes of one class are to be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

from memohop.fit.problem import Outputs, Problem

_TOPS = (0.01, 0.05, 0.1)
_TINY = 1e-12
_RARE = 0.1  # share of the positive class below which the top of the ranking matters


@dataclass(frozen=True)
class RarePositives:
    """The value of the top of the ranking, for two classes of which the positive one is rare.

    Attributes:
        share: The share of positive nodes among the validation nodes.
        threshold: The probability from which a node is best called positive, by the F1 score on
            the validation nodes.
        tops: Shares of the test nodes, ``0.01`` for the top 1 %.
        precision: The share of positive nodes in each of them.
    """

    share: float
    threshold: float
    tops: tuple[float, ...]
    precision: tuple[float, ...]


def rare_positives(
    problem: Problem, said: Outputs, y: NDArray[Any], tested: Outputs, *, named: bool
) -> RarePositives | None:
    """What the ranking of the test nodes is worth; None if there is no class to be found.

    Args:
        problem: The problem of the search.
        said: The outputs of the chosen models for validation nodes.
        y: The classes of these.
        tested: The outputs of the chosen models for the test nodes.
        named: Whether the user named the positive class, so that it matters even if it is not rare.
    """
    if problem.classes != 2:
        return None
    positive = problem.objective.metric.positive
    share = float((y == positive).mean())
    if share >= _RARE and not named:
        return None
    truth = problem.y[problem.masks.test] == positive
    ranked = truth[np.argsort(-tested[:, positive], kind="stable")]
    counts = [max(1, round(top * len(ranked))) for top in _TOPS]
    return RarePositives(
        share=share,
        threshold=_threshold(said[:, positive], y == positive),
        tops=_TOPS,
        precision=tuple(float(ranked[:count].mean()) for count in counts),
    )


def _threshold(probability: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """The probability above which calling a node positive gives the best F1 score."""
    precision, recall, thresholds = precision_recall_curve(positive, probability)
    f1 = 2 * precision * recall / np.maximum(precision + recall, _TINY)
    return float(thresholds[int(np.argmax(f1[:-1]))])
