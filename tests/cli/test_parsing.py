"""Parsing of amounts, lists and values from the command line."""

import pytest

from memohop.cli import app, train


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("500mb", 5 * 10**8), ("1000", 1000)],
)
def test_byte_counts(text, expected):
    assert app.byte_count(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("0-2", [0, 1, 2]), ("0,3", [0, 3]), ("5,1-2,1", [5, 1, 2])]
)
def test_lists_of_splits(text, expected):
    assert train._id_list("splits", text) == expected


@pytest.mark.parametrize(("text", "expected"), [("3", [0, 1, 2]), ("3,7", [3, 7]), ("5-5", [5])])
def test_lists_of_seeds(text, expected):
    assert train._id_list("seeds", text, count_alone=True) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1", 0.1),
        ("7", 7),
        ("true", True),
        ("random", "random"),
        ("0.6,0.2,0.2", (0.6, 0.2, 0.2)),
    ],
)
def test_data_options_are_what_they_look_like(text, expected):
    found = train._value_of("any", text)
    assert found == expected
    assert type(found) is type(expected)
