"""Intervals of scores, differences and numbers, and calibrated probabilities."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from memohop import GraphRegressor
from memohop.fit._certainty import (
    Calibration,
    fit_calibration,
    paired_interval,
    score_interval,
    too_high,
)
from memohop.fit._residual import reach
from memohop.training import Enough
from memohop.training.metrics import METRICS
from memohop.training.objective import Regression
from tiny_problem import ring, tiny_problem
from toy_kind import says

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import intervals  # the widest check of them, here on a few graphs


def every_node_tested(y, groups=None, **given):
    """A problem of which all nodes are tested."""
    problem = tiny_problem(y=y, groups=groups, **given)
    return replace(problem, masks=problem.masks._replace(test=np.ones(len(y), dtype=bool)))


def gap_of(problem, first_right, second_right):
    """The difference of models that are right on these nodes."""
    test = problem.masks.test
    said = (says(problem, right, 1.0)[test] for right in (first_right, second_right))
    return paired_interval(problem, test, *said)


def score_of(problem, right):
    test = problem.masks.test
    return score_interval(problem, test, says(problem, right, 1.0)[test])


def test_the_interval_of_few_test_nodes_leaves_out_one_at_a_time():
    m = 12
    first_right, second_right = np.arange(m) % 4 != 0, np.arange(m) % 3 != 0
    gap = gap_of(every_node_tested(np.arange(m) % 2), first_right, second_right)
    differences = first_right.astype(float) - second_right
    left_out = np.array([np.delete(differences, node).mean() for node in range(m)])
    variance = (m - 1) / m * ((left_out - left_out.mean()) ** 2).sum() + 1 / (m + 2) ** 2
    reach = stats.t.ppf(0.975, m - 1) * np.sqrt(variance)
    expected = (differences.mean(), differences.mean() - reach, differences.mean() + reach)
    assert (gap.mean, gap.low, gap.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "sizes", "high"),
    [
        ("accuracy", (30, 30), stats.t.ppf(0.975, 11) / (12 + 2)),
        ("roc_auc", (50, 25), stats.t.ppf(0.975, 14) / (2 * 5 + 2)),
        ("roc_auc", (50, 5), 1.0),  # one test node of a class says nothing; five say a little
    ],
)
def test_a_model_against_itself_may_be_ahead_by_a_node_of_the_rarer_class(metric, sizes, high):
    problem = tiny_problem(y=np.repeat([0, 1], sizes), metric=metric)
    assert np.bincount(problem.y[problem.masks.test]).tolist() == [size // 5 for size in sizes]
    right = problem.y >= 0
    gap = gap_of(problem, right, right)
    assert (gap.mean, gap.low, gap.high) == pytest.approx((0, -high, high))


def test_nodes_of_a_group_count_as_one():
    """Each node three times, in a group, has the interval of groups, not that of three times as
    many nodes."""
    y, first_right, second_right = np.arange(12) % 2, np.arange(12) % 4 != 0, np.arange(12) % 3 != 0
    once = every_node_tested(y)
    y, first_thrice, second_thrice, groups = (
        np.repeat(each, 3) for each in (y, first_right, second_right, np.arange(12))
    )
    thrice = every_node_tested(y, groups)
    for interval, expected in (
        (gap_of(thrice, first_thrice, second_thrice), gap_of(once, first_right, second_right)),
        (score_of(thrice, first_thrice), score_of(once, first_right)),
    ):
        ends = (expected.mean, expected.low, expected.high)
        assert (interval.mean, interval.low, interval.high) == pytest.approx(ends, rel=1e-5)


@pytest.mark.parametrize(("groups", "says_nothing"), [(4, True), (5, False), (1, True)])
def test_a_few_groups_say_nothing_however_many_their_nodes(groups, says_nothing):
    nodes = np.arange(300)
    problem = every_node_tested(nodes % 2, nodes // 2 % groups)
    gap = gap_of(problem, nodes % 7 != 0, nodes >= 0)
    assert gap.says_nothing is says_nothing
    assert (gap.low, gap.high) == (-1, 1) or not says_nothing
    score = score_of(problem, nodes % 7 != 0)
    assert ((score.low, score.high) == (0, 1)) is (groups == 1)


def test_a_group_with_most_of_the_nodes_leaves_few_degrees_of_freedom():
    """They are those of equal blocks that would be worth as much."""
    nodes = np.arange(60)
    score = score_of(every_node_tested(nodes % 2, np.maximum(nodes - 40, 0)), nodes >= 0)
    worth = 60**2 / (41**2 + 19)
    square = stats.t.ppf(0.975, worth - 1) ** 2
    assert score.low == pytest.approx(worth / (worth + square))


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
        gap = gap_of(problem, *(each == y for each in said))
        missed += gap.above_zero or gap.below_zero
    assert missed <= 0.07 * draws if grouped else missed > 0.15 * draws


@pytest.mark.parametrize("right", [12, 11, 6, 0])
def test_the_interval_of_an_accuracy_is_that_of_wilson(right):
    score = score_of(every_node_tested(np.arange(12) % 2), np.arange(12) < right)
    share, t = right / 12, stats.t.ppf(0.975, 11)
    nodes = 11 if 0 < right < 12 else 12  # the jackknife's variance is s (1 - s) / (m - 1)
    reach = t * np.sqrt(share * (1 - share) / nodes + t**2 / (4 * nodes**2))
    ends = [(share + t**2 / (2 * nodes) + side * reach) / (1 + t**2 / nodes) for side in (-1, 1)]
    assert (score.mean, score.low, score.high) == pytest.approx((share, *ends), abs=1e-6)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.97])
def test_intervals_of_scores_hold_the_truth_in_nearly_all_draws(share):
    generator, problem = np.random.default_rng(0), every_node_tested(np.arange(60) % 2)
    scores = [score_of(problem, generator.random(60) < share) for _ in range(200)]
    held = np.mean([interval.low <= share <= interval.high for interval in scores])
    assert 0.92 <= held <= 0.99  # numbers of right nodes are whole: few can be 95 % sure


def of_numbers(y):
    """A problem of numbers to predict, scored by their mean absolute error."""
    problem = every_node_tested(np.arange(len(y)) % 2)
    return replace(problem, y=y, objective=Regression(METRICS["mae"]))


def test_an_error_has_an_interval_in_its_own_unit():
    """A mean over nodes: the jackknife is the standard error; it says something, however wide."""
    generator = np.random.default_rng(0)
    y = 1000 * generator.normal(size=40)
    problem = of_numbers(y)
    first_said, second_said = (
        (y + 900 * generator.normal(size=40)).astype("f4")[:, None] for _ in range(2)
    )
    far = [np.abs(said[:, 0] - y) for said in (first_said, second_said)]
    t = stats.t.ppf(0.975, 39)
    score = score_interval(problem, problem.masks.test, first_said)
    factor = np.exp(t * far[0].std(ddof=1) / np.sqrt(40) / far[0].mean())
    assert (score.low, score.high) == pytest.approx((score.mean * factor, score.mean / factor))
    gap = paired_interval(problem, problem.masks.test, first_said, second_said)
    assert gap.high - gap.mean == pytest.approx(t * (far[1] - far[0]).std(ddof=1) / np.sqrt(40))
    assert gap.low < -1 < 1 < gap.high
    assert not gap.says_nothing
    unknown = paired_interval(problem, np.arange(40) < 9, first_said[:9], second_said[:9])
    assert unknown.says_nothing
    assert METRICS["mae"].gap_in_unit(unknown.low) is None


def test_nodes_of_many_numbers_are_left_out_at_random():
    """Blocks with as many high as low numbers would not vary as the error does."""
    y = np.random.default_rng(0).normal(size=400)
    problem = of_numbers(y)
    score = score_interval(problem, problem.masks.test, np.zeros((400, 1), dtype=np.float32))
    reach = stats.t.ppf(0.975, 49) * np.abs(y).std() / 20
    assert score.high - score.low == pytest.approx(2 * reach, rel=0.25)


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


@pytest.mark.parametrize("nodes", [1, 8, 9, 18, 19, 29, 100])
def test_it_is_the_distance_of_the_rank_that_nine_of_ten_new_nodes_do_not_exceed(nodes):
    """A new node has any of ``nodes + 1`` ranks with the same probability."""
    distances = np.random.default_rng(0).permutation(nodes) + 1.0
    least = next((rank for rank in range(nodes + 1) if 10 * rank >= 9 * (nodes + 1)), math.inf)
    assert reach(distances) == least


def test_each_group_counts_once():
    far = np.array([1.0] * 30 + [*range(2, 10)])  # a group of 30 nodes and eight of one
    assert reach(far, np.minimum(np.arange(38)[::-1], 8)) == 9
    assert reach(far) == 7  # 36 of the 38 nodes are within it
    assert reach(far[:-1], np.minimum(np.arange(37)[::-1], 7)) == math.inf
    spread = np.arange(40.0)  # ten groups of four: 9.9 of them, all nodes but one at most
    assert reach(spread, np.arange(40) % 10) == 39
    assert reach(np.tile(spread, 2), np.arange(80) // 4) == 37  # 18.9 of twenty groups


def test_groups_of_numbers_that_belong_together_are_covered():
    """Numbers that a group shares, and a new group: too few nodes are within the distance of nodes
    that are taken for independent."""
    generator, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(300):
        groups = np.repeat(np.arange(15), generator.integers(1, 12, 15))
        shared = generator.normal(size=16)
        far = np.abs(shared[groups] + 0.1 * generator.normal(size=len(groups)))
        new = abs(shared[15] + 0.1 * generator.normal())
        covered += new <= np.array([reach(far, groups), reach(far)])
    assert covered[0] >= 0.9 * 300 - 3 * np.sqrt(300 * 0.09)
    assert covered[0] > covered[1]


@pytest.mark.parametrize("given", ["nodes", "groups"])
def test_too_few_for_an_interval_are_told(given, tmp_path):
    x = tiny_problem().x
    y = np.where(np.arange(60) < (10 if given == "nodes" else 60), 7.0 * x[:, 0], np.nan)
    groups = None if given == "nodes" else np.arange(60) % 10
    model = GraphRegressor(models=["linear"], trials=1, time=None, splits=2)
    model.fit(x, y, ring(60), groups=groups).save(tmp_path / "model")
    report = GraphRegressor.load(tmp_path / "model").report_
    assert report.residual.distance == math.inf
    few = "validation nodes" if given == "nodes" else "groups of validation nodes"
    assert f"too few {few} to tell how close" in report.verdict()
    assert np.isinf(model.predict_interval()).all()


def draw(classes: int, rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Honest probabilities, and classes drawn by them."""
    generator = np.random.default_rng(0)
    honest = generator.dirichlet(np.ones(classes), rows).clip(0.01)
    honest /= honest.sum(axis=1, keepdims=True)
    y = (generator.random(rows)[:, None] > honest.cumsum(axis=1)).sum(axis=1)
    return honest, y.clip(max=classes - 1)


@pytest.mark.parametrize(
    ("classes", "wrong", "shifts", "off"),
    [
        (2, Calibration(1 / 3), (), 1e-3),
        # Raised to a power, the shifts are halved as well.
        (3, Calibration(0.5, (0.8, -0.4, -0.4)), (-0.4, 0.2, 0.2), 0.03),
    ],
)
def test_what_is_too_sure_or_leans_towards_a_class_is_undone(classes, wrong, shifts, off):
    honest, y = draw(classes)
    said = wrong.of(honest)
    calibration = fit_calibration(said, y, shifted=bool(shifts))
    assert calibration.temperature == pytest.approx(1 / wrong.temperature, rel=0.05)
    centred = np.subtract(calibration.shifts, np.mean(calibration.shifts or 0))
    assert centred == pytest.approx(np.array(shifts), abs=0.05)
    assert np.allclose(Calibration(1 / wrong.temperature, shifts).of(said), honest, atol=off)
    assert np.allclose(calibration.of(said), honest, atol=0.03)


def test_it_is_the_minimum_that_a_search_without_gradients_finds():
    honest, y = draw(3, rows=60)
    wrong = Calibration(0.4, (1.0, 0.0, -1.0)).of(honest).astype(np.float64)

    def loss(theta: np.ndarray) -> float:
        """The formula of the module, written out."""
        raised = wrong ** np.exp(theta[0]) * np.exp(theta[1:])
        right = raised[np.arange(60), y] / raised.sum(axis=1)
        return -np.log(right).sum() + (theta[1:] ** 2).sum() / 2

    slow = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000})
    calibration = fit_calibration(wrong, y, shifted=True)
    theta = np.array([-np.log(calibration.temperature), *calibration.shifts])
    assert loss(theta) == pytest.approx(slow.fun, rel=1e-4)
    assert loss(theta) <= slow.fun * (1 + 1e-6)


def test_few_nodes_shift_little_and_a_class_that_is_not_validated_not_at_all():
    honest, y = draw(3)
    assert fit_calibration(honest[y < 2], y[y < 2], shifted=True).shifts[2] == 0
    calibration = fit_calibration(np.full((2, 2), 0.5), np.zeros(2, dtype=int), shifted=True)
    assert 0 < calibration.shifts[0] < 1


def test_numbers_stay_as_they_are():
    numbers = np.array([[3.0], [-7.0]], dtype=np.float32)
    assert (Calibration(2.0).of(numbers) == numbers).all()


def test_what_time_is_too_short_for_is_calibrated_roughly():
    """One step instead of many: better than nothing, and worse than all of them."""
    honest, y = draw(3)
    leaning = Calibration(0.5, (0.8, -0.4, -0.4)).of(honest)

    def enough():
        raise Enough

    calibrations = [fit_calibration(leaning, y, shifted=True, look=look) for look in (enough, list)]
    losses = [
        -np.log(calibration.of(leaning)[np.arange(len(y)), y]).mean()
        for calibration in (Calibration(), *calibrations)
    ]
    assert losses[0] > losses[1] > losses[2]


def test_random_labels_of_groups_are_rarely_taken_for_a_gain(capsys):
    intervals.claims(6)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "each" in line]
    assert [row[1] for row in rows] == ["6", "6"]
    assert all(float(cell.strip(" |%")) < 20 for row in rows for cell in row[2:])


@pytest.mark.parametrize("grouped", [True, False])
def test_hidden_nodes_are_in_no_group_that_was_learned_from(grouped):
    problem, hidden = intervals.with_hidden("accuracy", 0, grouped=grouped)
    assert (problem.masks.test == hidden).all()
    assert hidden.sum() >= 4000
    if grouped:
        assert not set(problem.groups[hidden]) & set(problem.groups[~hidden])
    learned = problem.masks.train.any(axis=1) | problem.masks.val.any(axis=1)
    assert not (learned & hidden).any()
    assert np.bincount(problem.y).min() > 0
