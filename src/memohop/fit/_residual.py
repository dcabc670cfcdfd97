r"""How far numbers are from their prediction.

The distance from a prediction within which nine of ten new numbers are is that of rank
:math:`\lceil (n + 1) p \rceil` among the :math:`n` distances between prediction and truth of
validation nodes: a new node is within it with probability :math:`p` or more, as it is as likely to
have any rank among them. If there is no such rank, as for fewer than 9 nodes, it is infinite.

If nodes have groups, those of a new group are as far from these as they are from each other. So
each group counts once, in equal parts for its nodes (Y. Lee, R. F. Barber and R. Willett,
*Distribution-free inference with hierarchical data*, 2023): of :math:`K` groups, :math:`(K + 1) p`
must be within the distance.

Skewed numbers are farther from their prediction where it is higher. If none is negative, distances
are therefore those of square roots, or of logarithms if all numbers are above 0: the share of such
nodes within the distance is the same, and the interval grows with the prediction and does not reach
below the least number that was learned from. The one that is narrower on average is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from memohop.fit._problem import Outputs, Problem

_WITHIN = 0.9  # share of numbers in their interval
_ROUNDING = 1e-12
_TINY = 1e-12


@dataclass(frozen=True)
class Residual:
    """How far nine of ten new numbers are from their prediction, at most.

    Attributes:
        distance: Infinite if it is not known.
        grows: Whether with the prediction: it is a distance of numbers, of their square roots or of
            their logarithms.
        least: The least number that was learned from, below which no interval ends if it grows.
        typical: The median prediction.
    """

    distance: float
    grows: Literal["no", "root", "log"] = "no"
    least: float = 0.0
    typical: float = 0.0

    def ends(self, predicted: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lower and the upper end of the interval of each prediction."""
        if self.grows == "no":
            return predicted - self.distance, predicted + self.distance
        if self.distance == math.inf:
            return np.full_like(predicted, self.least), np.full_like(predicted, math.inf)
        numbers = np.maximum(predicted.astype(np.float64), self.least)
        if self.grows == "log":
            low, high = numbers * math.exp(-self.distance), numbers * math.exp(self.distance)
        else:
            roots = np.sqrt(numbers)
            low, high = np.maximum(roots - self.distance, 0) ** 2, (roots + self.distance) ** 2
        return np.maximum(low, self.least).astype(np.float32), high.astype(np.float32)

    @property
    def is_sound(self) -> bool:
        """Whether these values can belong together."""
        finite = math.isfinite(self.least) and math.isfinite(self.typical)
        return self.distance >= 0 and finite and self.least >= (self.grows == "log") * _TINY

    def text(self) -> str:
        """In a part of a sentence; nothing if it is not known."""
        if self.distance == math.inf:
            return ""
        if self.grows == "no":
            return f"nine of ten numbers are within {self.distance:.4g} of their prediction"
        ends = self.ends(np.array([self.typical], np.float32))
        typical, low, high = (
            np.format_float_positional(number, 3, fractional=False, trim="-")
            for number in (self.typical, *(float(end[0]) for end in ends))
        )
        return (
            f"where {typical} is predicted, nine of ten numbers are from {low} to {high}, and the "
            "interval grows with the prediction"
        )


def residual_of(
    problem: Problem, said: Outputs, y: NDArray[np.float64], groups: NDArray[Any] | None
) -> Residual:
    """That of outputs for validation nodes with the numbers ``y``, each perhaps with a group."""
    predicted = said[:, 0]
    if "log" not in problem.curves:
        return Residual(reach(np.abs(predicted - y), groups))
    masks = problem.masks
    least = float(problem.y[(masks.train | masks.val).any(axis=1)].min())
    typical, numbers = float(np.median(predicted)), np.maximum(predicted.astype(np.float64), least)
    far = reach(np.abs(np.sqrt(numbers) - np.sqrt(y)), groups)
    kinds = [Residual(far, "root", least, typical)]
    if least > 0:
        far = reach(np.abs(np.log(numbers) - np.log(y)), groups)
        kinds.append(Residual(far, "log", least, typical))

    def width(kind: Residual) -> float:
        low, high = kind.ends(predicted)
        return float(np.mean(high - low))

    return min(kinds, key=width)


def reach(distances: NDArray[np.float64], groups: NDArray[Any] | None = None) -> float:
    """The distance that holds for new nodes; infinite if these are too few.

    ``distances`` are those between prediction and truth, of nodes that were not learned from.
    Without ``groups``, each node is one by itself.
    """
    each = np.arange(len(distances)) if groups is None else groups
    group = np.unique(each, return_inverse=True)[1]
    order, sizes = np.argsort(distances), np.bincount(group)
    within = np.cumsum(1 / sizes[group[order]])
    needed = (len(sizes) + 1) * _WITHIN * (1 - _ROUNDING)
    rank = int(np.searchsorted(within, needed))
    return float(distances[order[rank]]) if rank < len(order) else math.inf
