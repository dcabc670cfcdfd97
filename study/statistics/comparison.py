r"""Which differences between models are more than noise.

Over several datasets, after J. Demšar, *Statistical comparisons of classifiers over multiple data
sets* (JMLR 2006), and A. Benavoli, G. Corani and F. Mangili, *Should we really use post-hoc tests
based on mean-ranks?* (JMLR 2016): the Friedman test shows whether the models differ at all, and
Wilcoxon's signed-rank test with Holm's correction shows which pairs do. Nemenyi's test is given
beside them: two average ranks differ if they are further apart than the critical difference

.. math:: CD = q / \sqrt{2} \cdot \sqrt{k (k + 1) / (6 n)}

with :math:`q` the quantile of the studentised range for :math:`k` models, over :math:`n` datasets.

Within one dataset the splits overlap, so that their scores are not independent and an ordinary
t-test finds differences where there are none. C. Nadeau and Y. Bengio, *Inference for the
generalization error* (Machine Learning 2003), correct the variance of the mean of :math:`n`
differences :math:`d`:

.. math:: t = \bar d / \sqrt{(1 / n + n_{test} / n_{train}) \cdot var(d)}

with :math:`n - 1` degrees of freedom. That a difference is not significant shows nothing. That a
model is worse by less than a margin :math:`r` is shown by the same test, to one side, of
:math:`d + r`: the lower one of the two one-sided tests of equivalence (D. J. Schuirmann, 1987).

Every standard deviation is that of a sample (ddof=1), as in the paper: on its small datasets most
of those printed follow from ten whole numbers of nodes with ddof=1 alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from memohop.training.metrics import Interval

ALPHA = 0.05
TEST_TO_TRAIN = 20 / 48  # of the published splits, whose files are named 0.6_0.2
_DIGITS = 9  # beyond these, scores differ by rounding alone
_MOST_COUNTED = 13  # datasets, as in SciPy

Array = NDArray[np.float64]
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Comparison:
    """Models compared over datasets.

    Attributes:
        models: The best average rank first.
        datasets: How many there are.
        ranks: The average rank of each model; 1 is best, and equals share theirs.
        friedman, friedman_p: Friedman's chi-square, corrected for ties, and its p-value.
        p: For each pair of indices of ``models``, Wilcoxon's p-value after Holm's correction.
        smallest_p: The least ``p`` that any scores can give.
        critical_difference: Nemenyi's.
        cliques: The longest runs of two or more models, in the order of their ranks, in which no
            pair differs by ``p``.
    """

    models: tuple[str, ...]
    datasets: int
    ranks: tuple[float, ...]
    friedman: float
    friedman_p: float
    p: Mapping[tuple[int, int], float]
    smallest_p: float
    critical_difference: float
    cliques: tuple[tuple[str, ...], ...]

    @property
    def by_model(self) -> dict[str, float]:
        """The average rank of each model, the best first."""
        return dict(zip(self.models, self.ranks, strict=True))

    def differ(self) -> list[tuple[str, str]]:
        """The pairs that differ by Wilcoxon's test, the better one first."""
        return [(self.models[i], self.models[j]) for (i, j), p in self.p.items() if p < ALPHA]

    def apart(self) -> list[tuple[str, str]]:
        """The pairs that differ by Nemenyi's test, the better one first."""
        far = [
            (i, j) for i, j in self.p if self.ranks[j] - self.ranks[i] > self.critical_difference
        ]
        return [(self.models[i], self.models[j]) for i, j in far]


def compare(scores: Mapping[str, Sequence[float]]) -> Comparison:
    """Compare three models or more by their scores on the same datasets; higher is better."""
    ranks = average_ranks(scores)
    models = sorted(scores, key=lambda model: ranks[model])
    table = np.array([scores[model] for model in models]).round(_DIGITS)
    count, datasets = table.shape
    differ = bool(np.ptp(table, axis=0).any())  # if all are equal there is nothing to test
    friedman, friedman_p = stats.friedmanchisquare(*table) if differ else (0.0, 1.0)
    pairs = list(combinations(range(count), 2))
    of_pairs = wilcoxon(np.array([table[i] - table[j] for i, j in pairs]))
    p = dict(zip(pairs, holm(of_pairs.tolist()), strict=True))
    return Comparison(
        models=tuple(models),
        datasets=datasets,
        ranks=tuple(ranks[model] for model in models),
        friedman=float(friedman),
        friedman_p=float(friedman_p),
        p=p,
        smallest_p=min(1.0, len(pairs) * 2 / 2**datasets),
        critical_difference=critical_difference(count, datasets),
        cliques=tuple(tuple(models[i:j]) for i, j in _runs(count, p)),
    )


def average_ranks(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean over datasets of each model's rank; 1 is best, and equals share theirs."""
    table = np.array(list(scores.values())).round(_DIGITS)
    ranks = stats.rankdata(-table, axis=0).mean(axis=1)
    return dict(zip(scores, ranks.tolist(), strict=True))


@cache  # an integral, a tenth of a second
def critical_difference(models: int, datasets: int, *, alpha: float = ALPHA) -> float:
    """Nemenyi's: how far apart two average ranks must be."""
    quantile = float(stats.studentized_range.ppf(1 - alpha, models, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(models * (models + 1) / (6 * datasets))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the least of m p-values times m, the next times m - 1, never falling."""
    order, adjusted = np.argsort(p), np.empty(len(p))
    rising = np.maximum.accumulate(np.arange(len(p), 0, -1) * np.take(p, order))
    adjusted[order] = np.minimum(1, rising)
    return adjusted.tolist()


def corrected_t_test(
    differences: Sequence[float], *, test_to_train: float = TEST_TO_TRAIN
) -> float:
    """The two-sided p-value of Nadeau and Bengio's corrected resampled t-test.

    The differences are those of the scores of two models, one for each split; a single one shows
    nothing. There are so many test nodes for each training node.
    """
    if len(differences) == 1:
        return 1.0
    distance = abs(float(np.mean(differences)))
    return min(1.0, 2 * _one_sided_p(distance, differences, test_to_train))


def non_inferiority_test(
    differences: Sequence[float], *, margin: float, test_to_train: float = TEST_TO_TRAIN
) -> float:
    """The one-sided p-value of the corrected t-test against a mean of ``-margin`` or less.

    The margin is what counts as no difference in practice, in the unit of the differences.
    """
    return _one_sided_p(float(np.mean(differences)) + margin, differences, test_to_train)


def _one_sided_p(mean: float, differences: Sequence[float], test_to_train: float) -> float:
    """The p-value of a mean with the spread of these differences being above 0."""
    error = _corrected_error(differences, test_to_train)
    if error == 0:
        return 0.0 if round(mean, _DIGITS) > 0 else 1.0
    return float(stats.t.sf(mean / error, len(differences) - 1))


def corrected_interval(differences: Sequence[float], *, test_to_train: float) -> Interval:
    """The interval that leaves out 0 where the corrected t-test is below ``ALPHA``.

    That of a single difference holds everything.
    """
    count, mean, reach = len(differences), float(np.mean(differences)), math.inf
    if count > 1:
        error = _corrected_error(differences, test_to_train)
        reach = float(stats.t.isf(ALPHA / 2, count - 1)) * error
    return Interval(mean, max(mean - reach, -1.0), min(mean + reach, 1.0), 1 - ALPHA)


def _corrected_error(differences: Sequence[float], test_to_train: float) -> float:
    """The corrected standard error of the mean; 0 if the differences agree but for rounding."""
    sample = np.asarray(differences, dtype=float).round(_DIGITS)
    if np.ptp(sample) == 0:
        return 0.0
    return math.sqrt((1 / len(sample) + test_to_train) * sample.var(ddof=1))


def corrected_p(
    differences: Mapping[_Key, Sequence[float]],
    test: Callable[[Sequence[float]], float] = corrected_t_test,
) -> dict[_Key, float]:
    """The p-values of several tests after Holm's correction for their number."""
    p = holm([test(of_splits) for of_splits in differences.values()])
    return dict(zip(differences, p, strict=True))


def against(
    scores: Mapping[str, Sequence[float]],
    reference: str | None = None,
    *,
    test_to_train: float = TEST_TO_TRAIN,
) -> dict[str, float]:
    """The p-value of each model's distance to a reference, within one dataset.

    By the corrected resampled t-test after Holm's correction for the number of models; 1 for the
    reference itself. Without one it is the best mean: below ``ALPHA`` a model is worse than it. The
    scores are those of each model on two splits or more, in the same order.
    """
    reference = reference or max(scores, key=lambda model: np.mean(scores[model]))
    own = np.asarray(scores[reference])
    differences = {m: (own - of_model).tolist() for m, of_model in scores.items() if m != reference}
    test = partial(corrected_t_test, test_to_train=test_to_train)
    return dict.fromkeys(scores, 1.0) | corrected_p(differences, test)


def wilcoxon(differences: Array) -> Array:
    """The two-sided p-values of the signed-rank test for rows ``[pairs, datasets]``.

    Ranks of zero differences are split evenly, as Demšar does. For a few datasets every way to give
    the differences their signs is counted. SciPy does the same, but with ties one pair at a time,
    and for a dozen datasets that takes half a second each.
    """
    differences = differences.round(_DIGITS)
    datasets = differences.shape[1]
    if datasets > _MOST_COUNTED:
        p = stats.wilcoxon(differences, zero_method="zsplit", axis=1).pvalue
        return np.where(differences.any(axis=1), p, 1.0)
    ranks = np.where(differences == 0, 0, stats.rankdata(np.abs(differences), axis=1))
    signs = 1 - 2 * (np.arange(2**datasets)[:, None] >> np.arange(datasets) & 1)
    sums = np.abs((np.sign(differences) * ranks).sum(axis=1))
    as_far = [np.mean(np.abs(signs @ row) >= total) for row, total in zip(ranks, sums, strict=True)]
    return np.array(as_far)


def _runs(count: int, p: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
    """First index and end of each longest run without a pair that differs."""
    runs: list[tuple[int, int]] = []
    for start in range(count):
        end = start + 1
        while end < count and all(p[i, end] >= ALPHA for i in range(start, end)):
            end += 1
        if end - start > 1 and (not runs or end > runs[-1][1]):
            runs.append((start, end))
    return runs
