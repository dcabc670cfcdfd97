"""Intervals that say something, or nothing."""

import pytest

from memohop.intervals import Interval


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.1, 0.2, (True, False, False)),
        (-0.2, -0.1, (False, True, False)),
        (-0.2, 0.1, (False, False, False)),
        (-1.0, 1.0, (False, False, True)),
        (-7.0, 3.0, (False, False, False)),
    ],
)
def test_what_an_interval_says(low, high, said):
    found = Interval((low + high) / 2, low, high, 0.95)
    assert (found.above_zero, found.below_zero, found.says_nothing) == said
