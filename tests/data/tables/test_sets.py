"""Splits and groups that the user's own columns name."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.data.tables import read_graph
from memohop.data.tables.cells import Cells
from memohop.data.tables.labels import sets_by_time
from memohop.errors import DataError

KINDS = ["x", "y", "x", "y", "x", "y", None, "x"]
NODES = {"id": list("abcdefgh"), "v": [1, 5, 3, 4, 9, 6, 7, 8], "kind": KINDS}
EDGES = {"source": ["a", "b"], "target": ["b", "c"]}


def read(label="kind", **options):
    more = {name: options.pop(name) for name in ("when", "part") if name in options}
    return read_graph(NODES | more, EDGES, label=label, **options)


def test_a_column_of_words_is_the_split_and_no_feature():
    words = ["Train", "training", "VAL", "valid", "Test", " test", "train", None]
    graph = read(part=words, split="part")
    train, val, test = graph.masks
    assert train.tolist() == [True, True] + [False] * 6  # g has no label
    assert np.flatnonzero(val).tolist() == [2, 3]
    assert np.flatnonzero(test).tolist() == [4, 5]
    assert graph.data.train_mask.tolist() == train.tolist()
    assert graph.encoder.feature_names == ["v"]
    told = "2 training, 2 validation and 2 test nodes; 1 labelled node(s) are in none of them"
    assert f"column 'part': {told}" in graph.notes


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["train", "tset"] * 4, r"'part': row 2 says 'tset'; write train, val or test"),
        (["train", "val"] * 4, "names no labelled node for test"),
        ([None] * 6 + ["train", "test"], "names no labelled node for train"),
        ([1, 2] * 4, "row 1 says '1', '2'"),
    ],
)
def test_a_split_that_is_none(words, complaint):
    with pytest.raises(DataError, match=complaint):
        read(part=words, split="part")


def test_the_latest_are_for_testing():
    days = [datetime.date(2024, 1, day) for day in (5, 1, 9, 2, 3, 4, 30, 8)]
    for when in (days, [str(day) for day in days], [day.day for day in days]):
        train, val, test = read(when=when, time_column="when").masks
        # Of seven labelled nodes, d, e, b and f come first, then a, and h and c.
        assert np.flatnonzero(test).tolist() in ([2], [2, 7])
        assert not (train & val | val & test | train & test).any()
        assert (train | val | test).tolist() == [kind is not None for kind in KINDS]


@pytest.mark.parametrize(
    ("when", "complaint"),
    [
        (["2024-01-01"] * 7 + ["soon"], r"'when' holds 'soon' in row 8, which is neither a time"),
        (list("abcdefgh"), "holds 'a' in row 1, which is neither"),
        ([True, False] * 4, "holds true and false"),
        ([1, 2] * 4, r"has 2 different time\(s\)"),
        ([None] * 8, r"has 0 different time\(s\)"),
    ],
)
def test_times_that_are_none(when, complaint):
    with pytest.raises(DataError, match=complaint):
        read(when=when, time_column="when")


def test_groups_are_numbered_and_a_node_without_one_is_alone():
    graph = read(part=["p", "q", "p", None, "q", None, "p", "r"], group="part")
    assert graph.groups.tolist() == [0, 1, 0, 3, 1, 4, 0, 2]
    assert graph.masks is None
    assert "column 'part': 5 groups of nodes" in graph.notes
    with pytest.raises(DataError, match="one group, 'p'"):
        read(part=["p"] * 8, group="part")


def test_a_later_table_needs_none_of_them():
    first = read(part=["train", "test"] * 4, split="part")
    assert not first.masks.val.any()  # there need be none
    reading = {"label": "kind", "split": "part", "drop": ["w"], "task": first.task}
    graph = read_graph(NODES, EDGES, encoder=first.encoder, classes=first.classes, **reading)
    np.testing.assert_array_equal(graph.x, first.x)
    assert graph.masks is None


@pytest.mark.fuzz
@given(st.lists(st.none() | st.integers(0, 12), min_size=1, max_size=60))
def test_what_is_tested_is_later_than_what_is_learned(times):
    cells = Cells("when", pa.chunked_array([pa.array(times, pa.int64())]))
    labelled = np.ones(len(times), bool)
    known = np.array([np.nan if time is None else time for time in times])
    if len({time for time in times if time is not None}) < 3:
        with pytest.raises(DataError, match="different time"):
            sets_by_time(cells, labelled)
        return
    train, val, test = sets_by_time(cells, labelled)
    assert known[train].max() < known[val].min() <= known[val].max() < known[test].min()
    assert (train | val | test).tolist() == [time is not None for time in times]
