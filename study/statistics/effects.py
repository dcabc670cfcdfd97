r"""What a plug-in adds to its backbone, dataset by dataset and over all of them.

The Bayesian signed-rank test of A. Benavoli, G. Corani, J. Demšar and M. Zaffalon, *Time for a
change: a tutorial for comparing multiple classifiers through Bayesian analysis* (JMLR 2017). The
differences :math:`z_1, \dots, z_n` of the two models, one for each dataset, are a sample of an
unknown distribution with a Dirichlet process as its prior: one pseudo-observation :math:`z_0 = 0`
of strength :math:`s`. Given the differences, the weights of all of them are

.. math:: (w_0, w_1, \dots, w_n) \sim \mathrm{Dirichlet}(s, 1, \dots, 1)

and the probabilities that the mean of two differences drawn from that distribution is above a
margin :math:`r`, below :math:`-r`, or between the two, are

.. math::
    \theta_{better} = \sum_{i,j} w_i w_j\,[z_i + z_j > 2r], \quad
    \theta_{worse} = \sum_{i,j} w_i w_j\,[z_i + z_j < -2r], \quad
    \theta_{same} = 1 - \theta_{better} - \theta_{worse}.

The verdict is how probable it is, over the weights, that each of the three is the largest. It is
computed from draws of the weights, with a standard error below 0.004.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean

import numpy as np
from scipy import stats

from memohop.data.datasets.registry import describe
from memohop.training.metrics import Interval
from study.runs.results import grouped
from study.statistics.comparison import ALPHA, corrected_interval, corrected_p, corrected_t_test
from study.statistics.leaderboard import BACKBONES, Leaderboard, family_of

PLUG_INS: Mapping[str, str] = {
    "+jk": "",
    "+de": "",
    "+mmp": "",
    "+mmp labels=memory": "",
    "+mmp address=rows": "",
    " labels=memory": "+mmp",
    " address=rows": "+mmp",
}
"""What is added to a model, and what that model has beside its backbone."""

ALL = "all seven"
"""The mean over backbones."""

RESIDUALS = "-res"
"""What a backbone with residual connections has in its name, in place of a plug-in."""

MARGIN = 1.0
"""What counts as no difference in practice, in points."""

PRIOR = 1.0
"""The strength of the prior, as the authors advise."""

_DRAWS = 20_000


@dataclass(frozen=True)
class Posterior:
    """The probabilities that a model is worse, practically the same, or better; their sum is 1."""

    worse: float
    same: float
    better: float


def bayesian_signed_rank(differences: Sequence[float], *, margin: float) -> Posterior:
    """How likely a model is better than another one by more than a margin.

    The differences are those of their scores, one for each dataset.
    """
    z = np.array([0.0, *differences])
    sums = z[:, None] + z[None, :]
    above, below = (sums > 2 * margin).astype(float), (sums < -2 * margin).astype(float)
    strength = [PRIOR, *[1.0] * len(differences)]
    weights = np.random.default_rng(0).dirichlet(strength, size=_DRAWS)
    better = ((weights @ above) * weights).sum(axis=1)
    worse = ((weights @ below) * weights).sum(axis=1)
    largest = np.stack([worse, 1 - worse - better, better]).argmax(axis=0)
    return Posterior(*(float(np.mean(largest == place)) for place in range(3)))


@dataclass(frozen=True)
class Gain:
    """What a plug-in adds on one dataset, in points.

    With the homophily of the graph, the mean gain over the splits, its corrected resampled interval
    in shares of 1, and its p-value, after Holm's correction for all plug-ins and backbones on the
    dataset.
    """

    backbone: str
    plug_in: str
    column: str
    homophily: float
    points: float
    interval: Interval
    p: float

    @property
    def verdict(self) -> int:
        """1 for a win, -1 for a loss, 0 for neither."""
        return 0 if self.p >= ALPHA else (1 if self.points > 0 else -1)


@dataclass(frozen=True)
class Effect:
    """What a plug-in adds to a backbone, on each dataset; there is more on these in ``gains``.

    That is empty for the mean over backbones.
    """

    backbone: str
    plug_in: str
    points: Mapping[str, float]
    gains: tuple[Gain, ...] = ()

    @cached_property
    def posterior(self) -> Posterior:
        """How likely it makes the backbone worse, the same or better, by a point."""
        return bayesian_signed_rank([*self.points.values()], margin=MARGIN)

    @property
    def mean(self) -> float:
        """The gain on average over the datasets."""
        return fmean(self.points.values())

    @property
    def base(self) -> str:
        """What the plug-in is added to."""
        return self.backbone + PLUG_INS[self.plug_in]

    def count(self, verdict: int) -> int:
        """How many wins (1), ties (0) or losses (-1) there are."""
        return sum(gain.verdict == verdict for gain in self.gains)


def effects(board: Leaderboard) -> list[Effect]:
    """Of each plug-in on each backbone, and on the mean over backbones that all datasets have."""
    gains = [gain for column in board.columns for gain in _gains(board, column)]
    of_all = []
    for plug_in in PLUG_INS:
        own = [gain for gain in gains if gain.plug_in == plug_in]
        own.sort(key=lambda gain: BACKBONES.index(gain.backbone))
        by_backbone = grouped(own, lambda gain: gain.backbone)
        for backbone, each in by_backbone.items():
            points = {gain.column: gain.points for gain in each}
            of_all.append(Effect(backbone, plug_in, points, tuple(each)))
        means = {
            column: fmean(gain.points for gain in each)
            for column, each in grouped(own, lambda gain: gain.column).items()
            if len(each) == len(BACKBONES)
        }
        if means:
            of_all.append(Effect(ALL, plug_in, means))
    return of_all


def beside_residuals(board: Leaderboard, plug_in: str) -> list[Effect]:
    """What a plug-in gives more than residual connections give, on each backbone that has both."""
    of_all = []
    for backbone in BACKBONES:
        pair = (backbone + plug_in, backbone + RESIDUALS)
        points = {
            column: 100 * fmean(_differences(scores, *pair))
            for column, scores in board.scores.items()
            if {*pair} <= scores.keys()
        }
        if points:
            of_all.append(Effect(backbone, plug_in, points))
    return of_all


def on_other_real_graphs(board: Leaderboard, effect: Effect) -> Effect:
    """An effect on real graphs without the web graphs, on which it is largest."""
    points = {
        column: points
        for column, points in effect.points.items()
        if family_of(board.of_column[column].dataset) not in ("web", "synthetic")
    }
    return Effect(effect.backbone, effect.plug_in, points)


def homophily_correlation(board: Leaderboard, effect: Effect) -> tuple[float, float]:
    """Spearman's rank correlation of gain and homophily over the datasets, and its p-value."""
    homophily = [board.of_column[column].homophily for column in effect.points]
    rho, p = stats.spearmanr(homophily, [*effect.points.values()])
    return float(rho), float(p)


def _differences(
    scores: Mapping[str, tuple[float, ...]], model: str, reference: str
) -> list[float]:
    """How far one model is ahead of another on each split, in shares of 1."""
    return [(a - b) / 100 for a, b in zip(scores[model], scores[reference], strict=True)]


def _gains(board: Leaderboard, column: str) -> Iterator[Gain]:
    """Those of all plug-ins on all backbones on one dataset."""
    scores, cell = board.scores[column], board.of_column[column]
    ratio = describe(cell.dataset).test_to_train
    differences = {
        (backbone, plug_in): _differences(scores, base + plug_in, base)
        for plug_in, beside in PLUG_INS.items()
        for backbone, base in ((name, name + beside) for name in BACKBONES)
        if base in scores and base + plug_in in scores
    }
    p = corrected_p(differences, partial(corrected_t_test, test_to_train=ratio))
    for pair, of_splits in differences.items():
        interval = corrected_interval(of_splits, test_to_train=ratio)
        yield Gain(*pair, column, cell.homophily, 100 * fmean(of_splits), interval, p[pair])
