"""Intervals of scores and of differences, against formulas and against what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from memohop.fit.paired import paired_interval, score_interval, too_high
from memohop.training.metrics import METRICS
from memohop.training.objective import Regression
from tiny_problem import tiny_problem


def outputs(right, y):
    said = np.where(right, y, 1 - y)
    return np.stack([1 - said, said], axis=1).astype(np.float32)


def every_node_tested(y, groups=None, **given):
    """A problem of which all nodes are tested."""
    problem = tiny_problem(y=y, groups=groups, **given)
    return replace(problem, masks=problem.masks._replace(test=np.ones(len(y), dtype=bool)))


def test_nodes_of_a_group_count_as_one():
    """Each node three times, in a group, has the interval of groups, not that of three times as
    many nodes."""
    y, one, other = np.arange(12) % 2, np.arange(12) % 4 != 0, np.arange(12) % 3 != 0
    once = every_node_tested(y)
    expected = paired_interval(once, once.masks.test, outputs(one, y), outputs(other, y))
    alone = score_interval(once, once.masks.test, outputs(one, y))
    y, one, other, groups = (np.repeat(each, 3) for each in (y, one, other, np.arange(12)))
    thrice = every_node_tested(y, groups)
    found = paired_interval(thrice, thrice.masks.test, outputs(one, y), outputs(other, y))
    assert (found.mean, found.low, found.high) == pytest.approx(
        (expected.mean, expected.low, expected.high), rel=1e-5
    )
    score = score_interval(thrice, thrice.masks.test, outputs(one, y))
    assert (score.low, score.high) == pytest.approx((alone.low, alone.high), rel=1e-5)


@pytest.mark.parametrize(("groups", "says_nothing"), [(4, True), (5, False), (1, True)])
def test_a_few_groups_say_nothing_however_many_their_nodes(groups, says_nothing):
    y = np.arange(300) % 2
    problem = every_node_tested(y, np.arange(300) // 2 % groups)
    right = np.arange(300) % 7 != 0
    found = paired_interval(problem, problem.masks.test, outputs(right, y), outputs(y >= 0, y))
    assert found.says_nothing is says_nothing
    assert (found.low, found.high) == (-1, 1) or not says_nothing
    score = score_interval(problem, problem.masks.test, outputs(right, y))
    assert ((score.low, score.high) == (0, 1)) is (groups == 1)


def test_a_group_with_most_of_the_nodes_leaves_few_degrees_of_freedom():
    """They are those of equal blocks that would be worth as much."""
    y, groups = np.arange(60) % 2, np.maximum(np.arange(60) - 40, 0)
    problem = every_node_tested(y, groups)
    right = np.ones(60, dtype=bool)
    (again,) = [score_interval(problem, problem.masks.test, outputs(right, y))]
    worth = 60**2 / (41**2 + 19)
    square = stats.t.ppf(0.975, worth - 1) ** 2
    assert again.low == pytest.approx(worth / (worth + square))


@pytest.mark.parametrize("grouped", [True, False])
def test_what_random_labels_of_groups_claim(grouped):
    """Two models that guess the label of each group: their difference is chance.

    5 % of the intervals should miss 0. If nodes are taken for independent, many more do.
    """
    generator, missed, draws = np.random.default_rng(0), 0, 120
    for _ in range(draws):
        groups = np.repeat(np.arange(25), generator.integers(4, 9, 25))
        y, *said = (generator.integers(2, size=25)[groups] for _ in range(3))
        problem = every_node_tested(y, groups if grouped else None)
        one, other = (outputs(each == y, y) for each in said)
        found = paired_interval(problem, problem.masks.test, one, other)
        missed += found.above_zero or found.below_zero
    if grouped:
        assert missed <= 0.07 * draws
    else:
        assert missed > 0.15 * draws


@pytest.mark.parametrize("right", [12, 11, 6, 0])
def test_the_interval_of_an_accuracy_is_that_of_wilson(right):
    y = np.arange(12) % 2
    problem = every_node_tested(y)
    found = score_interval(problem, problem.masks.test, outputs(np.arange(12) < right, y))
    share, t = right / 12, stats.t.ppf(0.975, 11)
    nodes = 11 if 0 < right < 12 else 12  # the jackknife's variance is s (1 - s) / (m - 1)
    reach = t * np.sqrt(share * (1 - share) / nodes + t**2 / (4 * nodes**2))
    ends = [(share + t**2 / (2 * nodes) + side * reach) / (1 + t**2 / nodes) for side in (-1, 1)]
    assert (found.mean, found.low, found.high) == pytest.approx((share, *ends), abs=1e-6)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.97])
def test_intervals_of_scores_hold_the_truth_in_nearly_all_draws(share):
    generator, held, y = np.random.default_rng(0), 0, np.arange(60) % 2
    problem = every_node_tested(y)
    for _ in range(200):
        right = generator.random(60) < share
        found = score_interval(problem, problem.masks.test, outputs(right, y))
        held += found.low <= share <= found.high
    assert 0.92 <= held / 200 <= 0.99  # numbers of right nodes are whole: few can be 95 % sure


def test_an_error_has_an_interval_in_its_own_unit():
    """A mean over nodes: the jackknife is the standard error; it says something, however wide."""
    generator = np.random.default_rng(0)
    y = 1000 * generator.normal(size=40)
    problem = replace(
        every_node_tested(np.arange(40) % 2), y=y, objective=Regression(METRICS["mae"])
    )
    one, other = ((y + 900 * generator.normal(size=40)).astype("f4")[:, None] for _ in range(2))
    far = [np.abs(said[:, 0] - y) for said in (one, other)]
    t = stats.t.ppf(0.975, 39)
    found = score_interval(problem, problem.masks.test, one)
    factor = np.exp(t * far[0].std(ddof=1) / np.sqrt(40) / far[0].mean())
    assert (found.low, found.high) == pytest.approx((found.mean * factor, found.mean / factor))
    gap = paired_interval(problem, problem.masks.test, one, other)
    assert gap.high - gap.mean == pytest.approx(t * (far[1] - far[0]).std(ddof=1) / np.sqrt(40))
    assert gap.low < -1
    assert gap.high > 1
    assert not gap.says_nothing
    few = np.arange(40) < 9
    unknown = paired_interval(problem, few, one[:9], other[:9])
    assert unknown.says_nothing
    assert METRICS["mae"].gap_in_unit(unknown.low) is None


def test_nodes_of_many_numbers_are_left_out_at_random():
    """Blocks with as many high as low numbers would not vary as the error does."""
    y = np.random.default_rng(0).normal(size=400)
    problem = every_node_tested(np.arange(400) % 2)
    problem = replace(problem, y=y, objective=Regression(METRICS["mae"]))
    found = score_interval(problem, problem.masks.test, np.zeros((400, 1), dtype=np.float32))
    reach = stats.t.ppf(0.975, 49) * np.abs(y).std() / 20
    assert found.high - found.low == pytest.approx(2 * reach, rel=0.25)


def test_average_precision_of_few_positive_nodes_is_too_high():
    """As far as is said, at most: normal margins, a tenth of the nodes positive."""
    generator, y = np.random.default_rng(0), np.arange(100) % 10 == 9
    score = METRICS["average_precision"].weighted

    def draw(nodes, truth):
        return score(truth, generator.normal(size=nodes) + truth, None)

    truth = draw(200_000, np.arange(200_000) % 10 == 9)
    few = np.mean([draw(100, y) for _ in range(300)])
    assert 0.03 < few - truth < too_high(10) / 100
    assert too_high(50) == 0
