"""How the rivals of benchmarks/tables.py read two tables."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from analyst import read_columns, read_ways
from rivals import joined
from table_case import Case

NAN = np.nan


def table(*columns: list[str | None]) -> pa.Table:
    return pa.table({f"c{place}": pa.array(c, pa.string()) for place, c in enumerate(columns)})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["5,282 ft", "20 ft", "-3 ft"], [5282, 20, -3]),
        (["$1,200", "$.5", None], [1200, 0.5, NAN]),
        (["36 %", "7%", "1e-3"], [36, 7, 0.001]),
    ],
)
def test_numbers_as_people_write_them(written, read):
    columns = read_columns(table(written))
    assert np.array_equal(columns.numbers, np.array(read)[:, None], equal_nan=True)
    assert columns.codes.shape == (3, 0)


def test_codes_are_no_numbers():
    columns = read_columns(table(["S1", "S10", "2B"]))
    assert columns.numbers.shape == (3, 0)
    assert columns.codes[:, 0].tolist() == [1, 2, 0], "in alphabetical order"


def test_the_day_is_first_if_it_is_somewhere():
    columns = read_columns(table(["01/02/2023 05:00", "31/01/2023 05:30", None]))
    seconds, weekdays, months = columns.numbers.T
    assert seconds[0] - seconds[1] == 23.5 * 3600
    assert np.array_equal(weekdays, [2, 1, NAN], equal_nan=True)
    assert np.array_equal(months, [2, 1, NAN], equal_nan=True), "an hour that never moves is none"


def test_many_values_are_read_by_their_first_letters_too():
    codes = [f"{'AB'[row % 2]}{row:03}" for row in range(200)]
    columns = read_columns(table(codes))
    assert [len(names) for names in columns.names] == [200, 2, 4, 40]
    assert columns.codes[:3, 1].tolist() == [0, 1, 0]


def test_ways_are_all_edges_then_directions_then_kinds():
    ends = np.array([[0, 0, 1, 2], [1, 1, 2, 2]])
    ways = read_ways(ends, table(["x", "x", "y", "y"], ["0.5", "1.5", None, "9.5"]), 3)
    assert len(ways) == 1 + 2 + 2 * 2
    merged, out, into, *kinds = (way.counts.toarray().tolist() for way in ways)
    assert merged == [[0, 2, 0], [2, 0, 1], [0, 1, 0]], "none from a node to itself"
    assert out == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert into == np.transpose(out).tolist()
    assert kinds[0] == [[0, 2, 0], [0, 0, 0], [0, 0, 0]], "x, out"
    assert kinds[3] == [[0, 0, 0], [0, 0, 0], [0, 1, 0]], "y, in"
    assert np.array_equal(ways[0].edges, [[1], [1], [NAN]], equal_nan=True)
    assert ways[1].mean(np.array([[1.0], [2.0], [4.0]])).tolist() == [[2], [4], [0]]


@pytest.mark.parametrize("classes", [["a", "b"], []])
def test_a_label_says_nothing_of_its_own_node(classes):
    draw = np.random.default_rng(0)
    rows = 60
    nodes = table([f"{draw.integers(5)}{'xyz'[row % 3]}" for row in range(rows)])
    ways = read_ways(draw.integers(rows, size=(2, 200)), table(["k"] * 200), rows)
    columns = read_columns(nodes)
    y = draw.integers(2, size=rows)
    y = y if classes else y + 0.2
    every = np.arange(rows)
    case = Case(
        "made up", "y", columns, ways, columns.sparse(), ways[0].counts, y, every, every, y,
        classes, [str(row) for row in every],
    )  # fmt: skip
    seen = every[:50]
    for node in (0, 7):
        before = joined(case, seen, "ways")
        case.y[node] = 1 - y[node]
        after = joined(case, seen, "ways")
        assert np.array_equal(before[node], after[node], equal_nan=True)
        assert not np.array_equal(before, after, equal_nan=True)
