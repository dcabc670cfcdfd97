"""The corrected error, compared with the ordinary one, and intervals that say something or not."""

import math

import pytest
from scipy import stats

from memohop.intervals import Interval, corrected_error

DIFFERENCES = [0.031, -0.012, 0.044, 0.02, 0.008, 0.027, -0.003, 0.019, 0.036, 0.011]


def test_without_overlap_it_is_the_standard_error_of_the_mean():
    found = corrected_error(DIFFERENCES, test_to_train=0)
    assert found == pytest.approx(stats.sem(DIFFERENCES))


def test_overlap_widens_it_as_nadeau_and_bengio_say():
    plain = corrected_error(DIFFERENCES, test_to_train=0)
    wide = corrected_error(DIFFERENCES, test_to_train=1 / 3)
    assert wide / plain == pytest.approx(math.sqrt((1 / 10 + 1 / 3) / (1 / 10)))


def test_differences_that_are_equal_but_for_rounding_have_none():
    assert corrected_error([0.1 + 0.2, 0.3, 0.3], test_to_train=0.5) == 0


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.1, 0.2, (True, False, False)),
        (-0.2, -0.1, (False, True, False)),
        (-0.2, 0.1, (False, False, False)),
        (-1.0, 1.0, (False, False, True)),
    ],
)
def test_what_an_interval_says(low, high, said):
    found = Interval((low + high) / 2, low, high, 0.95)
    assert (found.above_zero, found.below_zero, found.says_nothing) == said
