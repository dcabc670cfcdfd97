"""The corrected interval, compared with Student's and with the corrected test."""

import math

import numpy as np
import pytest
from scipy import stats

from memohop.bench.statistics import corrected_t_test
from memohop.intervals import corrected_interval

DIFFERENCES = [0.031, -0.012, 0.044, 0.02, 0.008, 0.027, -0.003, 0.019, 0.036, 0.011]


def test_without_overlap_it_is_students_interval():
    found = corrected_interval(DIFFERENCES, test_to_train=0)
    expected = stats.t.interval(0.95, 9, np.mean(DIFFERENCES), stats.sem(DIFFERENCES))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(DIFFERENCES))


def test_overlap_widens_it_as_nadeau_and_bengio_say():
    plain = corrected_interval(DIFFERENCES, test_to_train=0)
    wide = corrected_interval(DIFFERENCES, test_to_train=1 / 3)
    ratio = (wide.high - wide.low) / (plain.high - plain.low)
    assert ratio == pytest.approx(math.sqrt((1 / 10 + 1 / 3) / (1 / 10)))


@pytest.mark.parametrize("shift", np.linspace(-0.06, 0.06, 13))
def test_zero_is_outside_exactly_where_the_corrected_test_says_so(shift):
    sample = [difference + shift for difference in DIFFERENCES]
    found = corrected_interval(sample, test_to_train=20 / 48)
    p = corrected_t_test(sample, test_to_train=20 / 48)
    assert (found.above_zero or found.below_zero) == (p < 0.05)


def test_a_single_split_says_nothing():
    single = corrected_interval([0.1], test_to_train=0.5)
    assert (single.low, single.high) == (-1, 1)
    assert single.says_nothing


def test_splits_that_happen_to_agree_prove_no_more_than_their_test_nodes():
    found = corrected_interval([-0.053, -0.053], test_to_train=1 / 3, node_reach=0.08)
    assert (found.low, found.high) == pytest.approx((-0.133, 0.027))
    assert not found.below_zero


def test_the_wider_of_both_counts():
    plain = corrected_interval(DIFFERENCES, test_to_train=1 / 3)
    reach = plain.high - plain.mean
    same = corrected_interval(DIFFERENCES, test_to_train=1 / 3, node_reach=0.9 * reach)
    wide = corrected_interval(DIFFERENCES, test_to_train=1 / 3, node_reach=1.1 * reach)
    assert same == plain
    assert wide.high - wide.mean == pytest.approx(1.1 * reach)


def test_ends_are_cut_where_scores_end():
    found = corrected_interval([-0.3, -0.2], test_to_train=1 / 3)
    assert (found.mean, found.low) == (pytest.approx(-0.25), -1)
    assert 0.5 < found.high < 0.6
    assert not found.says_nothing
    assert corrected_interval([-0.3, 0.04], test_to_train=1 / 3).says_nothing
