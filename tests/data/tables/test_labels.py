"""Which labels are classes, and which are numbers to predict."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memohop import audit
from memohop.data.tables import from_arrays, read_graph
from memohop.data.tables.labels import read_labels, why_no_classes
from memohop.errors import DataError, UsageError


def read(cells, name="kind", **options):
    return read_labels(pa.chunked_array([pa.array(cells, pa.string())]), name, **options)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([n % 20 for n in range(25)], None),  # few enough, however small
        ([n % 95 for n in range(950)], None),  # ten nodes each
        ([str(n % 42) for n in range(809)], None),  # codes, spelled
        (["1.0", "2.0", "1.0"], None),  # whole, as tables with gaps have them
        ([f"p{n % 100}" for n in range(200)], None),  # two nodes each
        (["x", "y", "z", "z"], None),
        ([True, False, True], None),
        ([n % 95 for n in range(949)], "holds 95 different numbers on 949 nodes"),
        ([str(n % 21) for n in range(60)], "holds 21 different numbers on 60 nodes"),
        ([1950 + n % 71 for n in range(160)], "group them into classes"),
        (["0.5", "1", "0.5", "1"], "holds 2 different numbers on 4 nodes"),
        ([-0.25, 0.5, -0.25], "holds 2 different numbers on 3 nodes"),
        (["a", "b", "c"], "as an id would"),
        ([f"p{n % 101}" for n in range(200)], "as an id would"),
    ],
)
def test_why_labels_are_no_classes(labels, reason):
    judged = why_no_classes(*np.unique(np.array(labels), return_counts=True))
    assert judged is None if reason is None else reason in judged


def test_the_remedy_works():
    numbers = [str(n % 95) for n in range(300)]
    with pytest.raises(DataError, match=r"column 'kind' holds 95 .* such as class 0"):
        read(numbers)
    assert len(read([f"class {number}" for number in numbers]).classes) == 95


class TestNumbersToPredict:
    MARGINS = ("-0.25", "0.5", "1e-3", None, "0.75", "0.125")

    @pytest.mark.parametrize("form", [list, lambda cells: [c and float(c) for c in cells]])
    def test_many_different_fractions_are_numbers_which_is_told(self, form):
        nodes = {"id": list("abcdef"), "v": [1, 2, 3, 4, 5, 6], "margin": form(self.MARGINS)}
        graph = read_graph(nodes, {"s": ["a"], "t": ["b"]}, label="margin")
        assert (graph.task, graph.classes) == ("numbers", [])
        assert graph.data.y.dtype == torch.float64
        np.testing.assert_array_equal(graph.data.y, [-0.25, 0.5, 0.001, np.nan, 0.75, 0.125])
        (told,) = (note for note in graph.notes if "a number to predict" in note)
        assert "from -0.25 to 0.75, 5 nodes with a label and 1 without (task=classes" in told

    def test_the_user_decides(self):
        ages = [str(n % 95) for n in range(300)]
        assert len(read(ages, task="classes").classes) == 95
        labels = read(ages, task="numbers")
        assert (labels.y.dtype, labels.y[94]) == (np.float64, 94)
        halves = pa.chunked_array([[0.5, 1.0, 0.5, None]])
        assert read_labels(halves, "v", "classes").classes == ["0.5", "1"]
        with pytest.raises(DataError, match=r"few numbers, not all of them whole.* task=numbers"):
            read_labels(halves, "v")

    @pytest.mark.parametrize(
        ("cells", "complaint"),
        [
            (["1", "2", "three"], r"'v' holds 'three' in row 3, which is not a number \(1 such"),
            (["1", "1"], "holds 1 in every row"),
            ([None, ""], "'v' is empty in every row"),
            (["1", "1e99"], r"holds 1e\+99 in row 2"),
        ],
    )
    def test_that_are_none(self, cells, complaint):
        with pytest.raises(DataError, match=complaint):
            read(cells, "v", task="numbers")

    def test_of_arrays_may_be_negative_and_of_a_later_graph_unknown(self):
        graph = from_arrays(np.eye(3), np.eye(3), [-1, 2, 7], task="numbers")
        assert graph.data.y.tolist() == [-1, 2, 7]
        later = from_arrays(np.eye(3), np.eye(3), task="numbers")
        assert later.data.y.isnan().all()
        with pytest.raises(UsageError, match="an audit is for classes"):
            audit(graph)


class TestSpellingsOfAClass:
    def test_spaces_round_a_label_are_not_part_of_it(self):
        labels = read(["x", " x", "y\t", "y", " ", " NA"])
        assert (labels.classes, labels.y.tolist()) == (["x", "y"], [0, 0, 1, 1, -1, -1])
        assert any("spaces around 4 label(s), such as ' x'" in text for text in labels.warnings)

    def test_labels_that_differ_in_case_are_two_classes_and_told(self):
        labels = read(["Low risk", "low  Risk", "high", "high"])
        assert labels.classes == ["Low risk", "high", "low  Risk"]
        (told,) = (text for text in labels.warnings if "differ only in case or spaces" in text)
        assert "'Low risk' and 'low  Risk'" in told
        assert "2 classes; spell them alike" in told

    def test_classes_of_an_earlier_graph_are_found_whatever_the_spaces(self):
        labels = read([" x", "y ", "z", "x"], classes=["x ", "y"])
        assert labels.y.tolist() == [0, 1, -1, 0]
        assert "1 label(s) of an unknown class" in "\n".join(labels.warnings)


class TestPlaceholders:
    def test_obvious_ones_are_no_labels_and_told(self):
        labels = read([*"abab", "?", "-", " None ", "<NA>", "n/a", "", None])
        assert labels.classes == ["a", "b"]
        assert labels.y.tolist() == [0, 1, 0, 1, -1, -1, -1, -1, -1, -1, -1]
        assert labels.warnings[0] == (
            "label 'kind': 4 cells with '?', '-', 'None', '<NA>' taken for empty (if one is a "
            "class, spell it as a word, such as 'class ?')"
        )

    @pytest.mark.parametrize("word", ["unknown", "none", "No label", "missing"])
    def test_doubtful_ones_are_classes_and_told(self, word):
        labels = read(["a", "b", word] * 3)
        assert word in labels.classes
        (told,) = labels.warnings
        assert f"{word!r} (3 nodes) is taken for a class; leave these cells empty if" in told

    def test_minus_one_before_other_whole_numbers_is_doubtful(self):
        (told,) = read(["-1", "0", "1", "2"] * 3).warnings
        assert "'-1' (3 nodes) is taken for a class" in told
        assert not read(["-1", "1"] * 3).warnings
        assert not read(["-1", "0", "1"] * 3).warnings

    def test_plus_and_minus_are_classes(self):
        labels = read(["+", "-", "?"] * 3)
        assert (labels.classes, len(labels.warnings)) == (["+", "-"], 1)

    def test_among_numbers_all_are_missing(self):
        cells = ["1.5", "2.25", "?", "3.5", "4.125", "9.5", "unknown"]
        for task in ("auto", "numbers"):
            labels = read(cells, task=task)
            assert labels.task == "numbers"
            np.testing.assert_array_equal(labels.y, [1.5, 2.25, np.nan, 3.5, 4.125, 9.5, np.nan])
            assert labels.warnings == ["label 'kind': 2 cells with '?', 'unknown' taken for empty"]

    def test_classes_of_an_earlier_graph_stay_classes(self):
        labels = read(["a", "?", "-"], classes=["?", "a"])
        assert labels.y.tolist() == [1, 0, -1]
        assert "1 cell with '-' taken for empty" in labels.warnings[0]

    def test_an_error_says_what_was_taken_for_empty(self):
        with pytest.raises(DataError, match=r"one class, 'yes'.* 2 cells with '-' taken for empty"):
            read(["yes", "-", "yes", "-"])


@pytest.mark.fuzz
@given(st.lists(st.none() | st.floats(-1e6, 1e6) | st.integers(-9, 9), min_size=1, max_size=40))
def test_numbers_are_read_as_they_are_or_refused(values):
    cells = [None if value is None else str(value) for value in values]
    for task in ("auto", "numbers", "classes"):
        try:
            labels = read(cells, task=task)
        except DataError:
            continue
        if labels.task == "numbers":
            expected = [np.nan if value is None else value for value in values]
            np.testing.assert_array_equal(labels.y, np.array(expected, dtype=float))
        else:
            assert [k < 0 for k in labels.y] == [value is None for value in values]
