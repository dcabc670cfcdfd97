"""Units, and what converts them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.data.tables.spelling import NumberSpelling, numbers_in
from memohop.data.tables.units import _UNITS, factor


@pytest.mark.parametrize(
    ("number", "unit", "same"),
    [
        (1, "mi", (1609.344, "m")),
        (1, "mile", (5280, "ft")),
        (1, "stone", (14, "lb")),
        (16, "oz", (1, "pound")),
        (1, "t", (1000, "KG")),
        (90, "min", (1.5, "hour")),
        (2, "year", (24, "month")),
        (1, "GiB", (1024, "MiB")),
        (1, "acre", (43_560, "sq ft")),
        (100, "km/h", (62.1371192, "mph")),
        (5, "‰", (0.5, "%")),
        (7, "€", (7, "EUR")),
    ],
)
def test_factors_are_right(number, unit, same):
    other, into = same
    assert number * factor(unit, into) == pytest.approx(other)
    assert other * factor(into, unit) == pytest.approx(number)


@pytest.mark.parametrize(
    "pair", ["m kg", "m min", "M m", "m h", "$ €", "°C °F", "t T", "Mb MB", "apples pears", " m"]
)
def test_what_has_no_fixed_factor_is_not_converted(pair):
    unit, other = pair.split(" ")
    assert factor(unit, other) is None
    assert factor(other, unit) is None


def test_every_unit_is_read_as_it_is_spelled():
    spelled = pa.chunked_array([[f"5 {unit}" for unit in _UNITS]])
    read = numbers_in(spelled, decimal_comma=False).units.to_pylist()
    assert [factor(unit, own) for unit, own in zip(read, _UNITS, strict=True)] == [1.0] * len(read)


def test_conversions_go_round():
    for units in (("mm", "ft", "mi"), ("g", "lb", "t"), ("s", "week", "month")):
        for a, b, c in itertools.permutations(units):
            assert factor(a, b) * factor(b, c) == pytest.approx(factor(a, c))


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.sampled_from(["ft", "m", "km", "in"]))))
def test_the_most_frequent_unit_is_that_of_all(cells):
    text = pa.chunked_array(
        [pa.array([f"{value:.6f} {unit}" for value, unit in cells], pa.string())]
    )
    spelling = NumberSpelling.of(text)
    units = [unit for _, unit in cells]
    assert units.count(spelling.unit) == max(map(units.count, units), default=0)
    metres = {"ft": 0.3048, "m": 1, "km": 1000, "in": 0.0254}
    expected = [value * metres[unit] / metres[spelling.unit] for value, unit in cells]
    np.testing.assert_allclose(spelling.read(text).to_numpy(), expected, rtol=1e-3)
