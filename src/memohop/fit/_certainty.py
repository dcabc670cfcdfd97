r"""How certain a score is, the difference of two models, and a probability.

The variance of a score, or of a difference, is estimated by leaving nodes out: they are dealt
to :math:`G` blocks, those of every class alike, and without block :math:`g` the score
is :math:`d_g`. The jackknife's variance is then

.. math::
    v = \frac{G - 1}{G} \sum_g \left(d_g - \bar{d}\right)^2 .

If the nodes have groups, whole groups are dealt: nodes of a group may all be right or wrong
together, and other groups are as far from them as they are from each other. Where blocks or groups
have :math:`m_1, m_2, \ldots` nodes, they count as :math:`(\sum_k m_k)^2 / \sum_k m_k^2` (L. Kish,
*Survey Sampling*, 1965), their number if all are alike. For the blocks this takes the place of
:math:`G` in the degrees of freedom, :math:`G - 1`, of Student's :math:`t`, by which
:math:`\sqrt{v}` is multiplied.

Two models are scored on the same nodes, so nodes that are hard for both do not count. If they
agree on every node, the variance of their difference is 0; after A. Agresti and Y. Min, *Effects
and non-effects of paired identical observations in comparing proportions with binary matched-pairs
data* (Statistics in Medicine 2004), half a node is added to either side, :math:`v + 1 / (m + 2)^2`
for :math:`m` nodes. In groups they are worth fewer: :math:`m` is divided by :math:`v / v_1`, where
:math:`v_1` is the variance without groups, but is at least the number of groups. If numbers are
predicted, models with the same outputs for every node are the same, and nothing is added.

A single score :math:`s` between 0 and 1 has Wilson's interval (*Probable inference, the law of
succession, and statistical inference*, JASA 1927) for as many nodes as it is worth,
:math:`m = s(1 - s)/v`, which are at most those that there are:

.. math:: \frac{m s + t^2/2 \pm t \sqrt{m s (1 - s) + t^2/4}}{m + t^2} .

For accuracy without groups this is the usual one. If :math:`v = 0`, as when every node is right,
:math:`m` is the number of nodes, or groups. R2 has the interval :math:`s \pm t \sqrt{v}`, and an
error :math:`e` has :math:`e \exp(\pm t \sqrt{v} / e)`, which does not end below 0.

The mean of several models is rarely as sure as the share of nodes on which it is right, and it may
lean towards a class, often the most frequent one. A temperature :math:`T` and a shift :math:`b_c`
of each class turn probabilities :math:`p_c` into :math:`p_c^{1/T} e^{b_c}`, divided by their sum.
They are those with the smallest

.. math::
    -\sum_i \log \frac{p_{i y_i}^{1/T} e^{b_{y_i}}}{\sum_c p_{ic}^{1/T} e^{b_c}}
    + \frac{1}{2} \sum_c b_c^2

over the validation nodes :math:`i` with class :math:`y_i`. The second term keeps a class with few
nodes from being shifted far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from memohop.data.splits import Mask
from memohop.fit._problem import Outputs, Problem
from memohop.training import Enough
from memohop.training.metrics import Interval

_BLOCKS = 50  # of nodes; more of them hardly change the variance
_LEVEL = 0.95
_FEWEST = 10  # nodes that count; fewer show no spread
_FEWEST_GROUPS = 5  # of nodes that all count: their means are finer than single nodes
_FEW = 50  # positive nodes; from here on, 2 points
_TINY = 1e-12  # the least probability to take a logarithm of
_SHARPNESS = (-2.0, 2.0)  # natural logarithms of the least and the greatest 1 / T
_BINS = 10  # of probabilities, in the reliability plot


def paired_interval(problem: Problem, mask: Mask, first: Outputs, second: Outputs) -> Interval:
    """The difference of two models on some nodes, with its interval for other nodes.

    ``first`` and ``second`` are their outputs for these nodes, from which neither has learned.
    """
    rows = np.flatnonzero(mask)
    gap, spread = _left_out(
        problem,
        rows,
        lambda kept: problem.scores(first, rows, kept) - problem.scores(second, rows, kept),
    )
    most = 1.0 if problem.classes else math.inf
    if spread is None:
        return Interval(gap, -most, most, _LEVEL)
    variance = spread.variance
    if problem.classes:
        variance += (spread.worth + 2) ** -2
    reach = spread.quantile * math.sqrt(variance)
    return Interval(gap, max(gap - reach, -most), min(gap + reach, most), _LEVEL)


def score_interval(problem: Problem, mask: Mask, said: Outputs) -> Interval:
    """The score of a model on some nodes, with its interval for other nodes.

    ``said`` is its outputs for these nodes, from which it has not learned.
    """
    rows = np.flatnonzero(mask)
    score, spread = _left_out(
        problem, rows, lambda kept: problem.scores(said, rows, kept), fewest=2
    )
    if problem.classes:
        if spread is None or not math.isfinite(score):
            return Interval(score, 0.0, 1.0, _LEVEL)
        worth, odds = spread.units, score * (1 - score)
        if odds > 0 and spread.variance > 0:
            worth = min(odds / spread.variance, len(rows))
        square = spread.quantile**2
        reach = spread.quantile * math.sqrt(worth * odds + square / 4)
        low, high = (
            (worth * score + square / 2 + side * reach) / (worth + square) for side in (-1, 1)
        )
        return Interval(score, max(low, 0.0), min(high, 1.0), _LEVEL)
    if spread is None:
        return Interval(score, -math.inf, math.inf, _LEVEL)
    reach = spread.quantile * math.sqrt(spread.variance)
    if problem.objective.metric.is_error:
        factor = math.exp(reach / -score) if score else 1.0
        return Interval(score, score * factor, score / factor, _LEVEL)
    return Interval(score, score - reach, min(score + reach, 1.0), _LEVEL)


def too_high(positives: int) -> int:
    """How many points average precision is too high on average, at most; 0 if that is little.

    Each positive node counts in the precision at its own rank. Of two classes with normal margins,
    with 1 to 30 % positive nodes and up to three deviations apart, sets of 3, 5, 10, 20, 30 and 50
    positive nodes have a mean up to 15, 12, 7, 4, 3 and 2 points above the value of a large set.
    """
    return 0 if positives >= _FEW else round(100 / (positives + 3))


class _Spread(NamedTuple):
    """How a score varies.

    Attributes:
        variance: The jackknife's.
        quantile: Of Student's distribution, by which its root is multiplied.
        units: How many nodes, or groups, count.
        worth: How many independent nodes these are worth.
    """

    variance: float
    quantile: float
    units: float
    worth: float


def _left_out(
    problem: Problem,
    rows: NDArray[Any],
    scores: Callable[[NDArray[np.bool_]], NDArray[np.float64]],
    fewest: float | None = None,
) -> tuple[float, _Spread | None]:
    """A score and its spread; None instead if the nodes that count are too few to show one.

    ``scores`` gives those of parts of the nodes, ``[parts, rows]``, and ``fewest`` is how many must
    count: by default, as many as make a difference certain.
    """
    whole, y = float(scores(np.ones((1, len(rows)), dtype=bool))[0]), problem.y[rows]
    is_mean = problem.objective.metric.is_mean or not problem.classes

    def counting(unit: NDArray[np.int64]) -> float:
        """All for a mean over nodes; otherwise as many of each class as the rarest has."""
        if is_mean:
            return _worth(unit)
        of_class = [_worth(unit[y == number]) for number in np.unique(y)]
        return len(of_class) * min(of_class, default=0)

    def variance(block: NDArray[np.int64]) -> float:
        without = scores(block != np.unique(block)[:, None])
        without = np.where(np.isfinite(without), without, whole)
        return (len(without) - 1) * float(np.var(without))

    alone = np.arange(len(rows))
    unit = alone
    if problem.groups is not None:
        unit = np.unique(problem.groups[rows], return_inverse=True)[1]
        fewest = fewest or (_FEWEST_GROUPS if is_mean else _FEWEST)
    units, block = counting(unit), _dealt(unit, y)
    if units < (fewest or _FEWEST) or _worth(block) < 2:
        return whole, None
    worth, of_units = units, variance(block)
    if unit is not alone and of_units > 0:
        nodes = counting(alone)
        worth = float(np.clip(nodes * variance(_dealt(alone, y)) / of_units, units, nodes))
    quantile = float(stats.t.ppf((1 + _LEVEL) / 2, _worth(block) - 1))
    return whole, _Spread(of_units, quantile, units, worth)


def _dealt(unit: NDArray[np.int64], y: NDArray[Any]) -> NDArray[np.int64]:
    """The block of each node, whole units in each: nodes by class, as test nodes are drawn.

    Numbers and groups are dealt at random, which they are drawn by: blocks with the same share of
    high and low numbers would vary less than test nodes do.
    """
    count = int(unit.max(initial=-1)) + 1
    by_class = count == len(y) and y.dtype.kind != "f"
    order = (
        np.argsort(y, kind="stable") if by_class else np.random.default_rng(0).permutation(count)
    )
    block = np.empty(count, dtype=np.int64)
    block[order] = np.arange(count) % _BLOCKS
    return block[unit]


def _worth(unit: NDArray[np.int64]) -> float:
    """How many units of equal size these would be: their number if they are of one size."""
    sizes = np.bincount(unit).astype(np.float64)
    return float(sizes.sum() ** 2 / max((sizes**2).sum(), 1))


@dataclass(frozen=True)
class Reliability:
    """Validation nodes with a similar probability of their most probable class.

    Attributes:
        said: The mean of that probability.
        right: The share of them that have that class.
        nodes: Their number.
    """

    said: float
    right: float
    nodes: int


@dataclass(frozen=True)
class Calibration:
    """How probabilities are corrected.

    Attributes:
        temperature: Above 1 if models were too sure.
        shifts: Of the logit of each class; none if classes stay as they are.
    """

    temperature: float = 1.0
    shifts: tuple[float, ...] = ()

    def of(self, outputs: Outputs) -> Outputs:
        """Calibrated probabilities; numbers ``[rows, 1]`` stay as they are."""
        if outputs.shape[1] == 1 or self == UNCHANGED:
            return outputs.astype(np.float32)
        logits = _log_probabilities(outputs) / self.temperature + np.array(self.shifts or 0.0)
        calibrated: Outputs = softmax(logits, axis=1).astype(np.float32)
        return calibrated


UNCHANGED = Calibration()
"""Probabilities as they are."""


def fit_calibration(
    probabilities: Outputs,
    y: NDArray[np.int64],
    *,
    shifted: bool,
    look: Callable[[], None] = lambda: None,
) -> Calibration:
    """The calibration that suits validation nodes with the class numbers ``y`` best.

    If ``look``, called at each step, raises ``Enough``, the calibration so far counts.
    """
    logarithms, rows = _log_probabilities(probabilities), np.arange(len(y))
    classes = probabilities.shape[1]
    # Of a class that is not validated nothing is known, except that none of these nodes is in it.
    validated = np.bincount(y, minlength=classes) > 0

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The mean loss and its gradient."""
        sharpness, shifts = np.exp(theta[0]), theta[1:]
        said = log_softmax(sharpness * logarithms + (shifts if shifted else 0.0), axis=1)
        wrong = np.exp(said)
        wrong[rows, y] -= 1
        slope = [sharpness * float((wrong * logarithms).sum(axis=1).mean())]
        if shifted:
            slope += (validated * (wrong.mean(axis=0) + shifts / len(y))).tolist()
        held = float(shifts @ shifts) / 2 / len(y)
        return held - float(said[rows, y].mean()), np.array(slope)

    start = np.zeros(1 + classes * shifted)
    bounds = [_SHARPNESS] + [(None, None)] * (len(start) - 1)
    best = minimize(loss, start, jac=True, bounds=bounds, callback=stopping(look)).x
    return Calibration(float(np.exp(-best[0])), tuple(best[1:].tolist()))


def _log_probabilities(probabilities: Outputs) -> NDArray[np.float64]:
    """Their natural logarithms, which are finite."""
    return np.log(probabilities.astype(np.float64).clip(_TINY))


def reliability(probabilities: Outputs, y: NDArray[np.int64]) -> list[Reliability]:
    """Nodes with the class numbers ``y``, by the probability of their most probable class."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    return [
        Reliability(float(sure[inside].mean()), float(right[inside].mean()), int(inside.sum()))
        for inside in (bins == number for number in range(_BINS))
        if inside.any()
    ]


def stopping(look: Callable[[], None]) -> Callable[[Any], None]:
    """A callback for SciPy, which ends with its result so far if ``look`` raises ``Enough``."""

    def at_each_step(intermediate_result: Any) -> None:
        try:
            look()
        except Enough:
            raise StopIteration from None

    return at_each_step
