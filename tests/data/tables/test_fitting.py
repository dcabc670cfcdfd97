"""Which kind a column is, and what becomes of its values."""

from __future__ import annotations

import datetime
import json
import tracemalloc
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from memohop.data.tables import column, read_graph, sources
from memohop.data.tables.columns import ColumnEncoder, fit_columns
from memohop.errors import DataError, UsageError


def fitted(table, readings=None):
    return fit_columns(zip(table.column_names, table.columns, strict=True), readings)[0]


def encoded(readings=None, **columns):
    table = pa.table(columns)
    encoder = fitted(table, readings)
    return encoder, encoder.transform(table)[0]


def kind(values, name="v", readings=None):
    encoder, _ = encoded(readings, **{name: values})
    return type(encoder.columns[0]).__name__


class TestSparseColumns:
    def test_counts_are_not_centred_and_a_typical_one_is_1(self):
        encoder, x = encoded(v=[0] * 16 + [2, 2, 6])
        assert encoder.columns[0].scale == 2
        np.testing.assert_allclose(x[-3:, 0], [1, 1, 2])
        assert not x[:-3].any()

    def test_0_and_1_are_a_flag_however_many_there_are(self):
        encoder, x = encoded(v=[0, 1, 1, 1, None])
        assert encoder.feature_names == ["v", "v is missing"]
        assert x.tolist() == [[0, 0], [1, 0], [1, 0], [1, 0], [0, 1]]

    def test_fractions_are_kept_sparse_too(self):
        _, x = encoded(v=[0.0] * 16 + [0.1, 0.3, 0.3])
        np.testing.assert_allclose(x[-3:, 0], np.log2([4 / 3, 2, 2]), rtol=1e-6)

    def test_negative_or_frequent_numbers_are_not_sparse(self):
        assert kind([0] * 16 + [-2, 2, 6]) == "Number"
        assert kind([0.0] * 10 + [0.5 * n for n in range(10)]) == "Number"

    def test_many_features_that_are_mostly_0_are_a_sparse_matrix(self):
        rows = np.zeros((60, 51), dtype=int)
        rows[np.arange(60), np.arange(60) % 51] = 1
        columns = {f"w{n}": rows[:, n] for n in range(51)}
        encoder, x = encoded(**columns)
        assert isinstance(x, sparse.csr_array)
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x.toarray(), rows)
        assert encoder.describe() == [
            "columns 'w0', 'w1', 'w2', 'w3', 'w4' and 46 more: one feature, 1 for true and 0 for "
            "false"
        ]
        del columns["w50"]
        assert isinstance(encoded(**columns)[1], np.ndarray)
        dense = {f"w{n}": 1 - rows[:, n] for n in range(51)}
        assert isinstance(encoded(**dense)[1], np.ndarray)

    def test_a_graph_has_them_as_a_sparse_tensor_and_as_a_matrix(self):
        rows = np.eye(60, dtype=int)
        nodes = {"id": list(range(60)), "k": ["a", "b"] * 30}
        graph = read_graph(
            nodes | {f"w{n}": rows[:, n] for n in range(60)}, {"s": [0], "t": [1]}, label="k"
        )
        assert str(graph.data.x.layout) == "torch.sparse_csr"
        assert graph.data.num_nodes == 60
        np.testing.assert_array_equal(graph.x.toarray(), rows)
        graph = read_graph(nodes | {"v": list(range(60))}, {"s": [0], "t": [1]}, label="k")
        assert graph.x.shape == (60, 1)
        assert graph.x.base is not None or graph.data.x.data_ptr() == graph.x.ctypes.data

    def test_nothing_is_made_dense_on_the_way(self):
        rows, width = 500, 2000
        data = np.zeros((width, rows), dtype=np.int8)
        data[np.arange(width), np.arange(width) % rows] = 1
        data[np.arange(width), (np.arange(width) * 7 + 1) % rows] = 3
        table = pa.table({f"w{n}": column for n, column in enumerate(data)})
        tracemalloc.start()
        x = fitted(table).transform(table)[0]
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert x.nnz == 2 * width
        assert most < rows * width * 4  # bytes of the dense matrix


class TestWideFiles:
    """Small numbers are read as such, and what comes later decides."""

    @pytest.mark.parametrize("last", ["2", "70000", "0.5", "word", "", "2024-05-31"])
    def test_any_value_may_come_after_the_first_rows(self, last, tmp_path, monkeypatch):
        lines = ["id,k,a,b"] + [f"n{n},{'xy'[n % 2]},{n % 3},{n}" for n in range(40)]
        lines.append(f"m,x,{last},7")
        (tmp_path / "n.csv").write_text("\n".join(lines) + "\n")
        (tmp_path / "e.csv").write_text("s,t\nn0,n1\n")
        files = tmp_path / "n.csv", tmp_path / "e.csv"
        expected = read_graph(*files, label="k")
        monkeypatch.setattr(sources, "_WIDE", 2)
        monkeypatch.setattr(sources, "_SAMPLE", 64)
        found = read_graph(*files, label="k")
        assert found.encoder.feature_names == expected.encoder.feature_names
        np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)


class TestLongTails:
    def test_are_on_a_log_scale(self):
        values = np.exp(np.random.default_rng(0).normal(10, 2, 200))
        encoder, x = encoded(v=values)
        (fitted,) = encoder.columns
        assert fitted.log_scale == pytest.approx(np.quantile(values, 0.1))
        expected = np.log1p(values / fitted.log_scale)
        expected = (expected - expected.mean()) / expected.std()
        np.testing.assert_allclose(x[:, 0], expected, rtol=1e-5, atol=1e-6)
        assert "logarithmic scale for its long tail" in encoder.describe()[0]

    def test_numbers_of_both_signs_or_without_a_tail_are_not(self):
        tail = np.exp(np.random.default_rng(0).normal(0, 2, 200))
        assert encoded(v=np.append(tail, -1.5))[0].columns[0].log_scale is None
        assert encoded(v=np.linspace(0.5, 9, 200))[0].columns[0].log_scale is None


class TestCodes:
    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("dorm", [3, 7, 3, 9, 7, 2]),
            ("zip_code", [10115, 20095, 10115, 5]),
            ("schoolType", [1, 2, 1, 3]),
            ("v", [n % 28 + 86 for n in range(280)]),  # begins further from 0 than it goes on
            ("v", [n % 30 * 7 + 1 for n in range(300)]),  # gaps all over
            ("v", [n % 9 + 1 for n in range(90)]),  # few
        ],
    )
    def test_are_read_both_ways(self, name, values):
        encoder, x = encoded(**{name: values})
        (fitted,) = encoder.columns
        assert type(fitted).__name__ == "Code"
        assert encoder.feature_names[0] == name
        found = x if isinstance(x, np.ndarray) else x.toarray()
        array = np.array(values, dtype=float)
        expected = (array - array.mean()) / array.std()
        np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5, atol=1e-6)
        for row, value in enumerate(values):
            others = encoder.feature_names[1:]
            (at,) = np.flatnonzero(found[row, 1:])
            assert others[at] in (f"{name}={value}", f"{name}=other")

    @pytest.mark.parametrize(
        "values",
        [
            [n % 73 + 18 for n in range(730)],  # ages
            [n * n % 41 for n in range(200)],  # a count without gaps
            [int(1.2 ** (n % 40)) for n in range(400)],  # a count with a long tail
            [n % 30 * 7 + 0.5 for n in range(300)],
            [n % 30 * 7 - 50 for n in range(300)],
            list(range(300)),
        ],
    )
    def test_other_numbers_are_numbers(self, values):
        assert kind(values) == "Number"

    def test_gaps_make_floats_of_them_and_a_new_one_is_another(self):
        encoder, x = encoded(dorm=[92.0, None, 92.0, 86.0, 86.0, 7.0])
        assert encoder.feature_names == [
            *("dorm", "dorm=86", "dorm=92", "dorm=other"),
            "dorm is missing",
        ]
        assert x[:, 1:].argmax(axis=1).tolist() == [1, 3, 1, 0, 0, 2]
        later, _ = encoder.transform(pa.table({"dorm": [92, 1000]}))
        assert later[:, 1:].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
        assert "dorm=86" not in encoder.describe()[0]
        assert encoder.describe() == [
            "column 'dorm': one feature for the number, standardised, and one feature for each of "
            "2 values and one for all other values, and one that says where it is missing"
        ]


class TestWordsForTrueAndFalse:
    @pytest.mark.parametrize(
        "cells", [["Yes", "no", "YES "], ["t", "f", "T"], ["TRUE", "false", "True"]]
    )
    def test_are_flags(self, cells):
        encoder, x = encoded(v=[*cells, None])
        assert x.tolist() == [[1, 0], [0, 0], [1, 0], [0, 1]]
        again = ColumnEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
        assert again.text_names == ["v"]
        assert again.transform(pa.table({"v": ["1", None]}))[0].tolist() == [[1, 0], [0, 1]]
        with pytest.raises(DataError, match=r"'v' held true or false .* such as 'maybe'"):
            again.transform(pa.table({"v": ["maybe"]}))

    def test_other_pairs_are_categories(self):
        assert kind(["yes", "f", "yes", "f"]) == "Category"
        assert kind(["yes", "no", "perhaps", "no", "yes"]) == "Category"


class TestTimes:
    def test_as_strings_are_numbers_of_seconds(self):
        strings = ["2024-05-31", "2024-05-31T18:30", "2024-06-02 00:00:10.5Z", None]
        moments = [
            datetime.datetime(2024, 5, 31),
            datetime.datetime(2024, 5, 31, 18, 30),
            datetime.datetime(2024, 6, 2, 0, 0, 10),
            None,
        ]
        encoder, x = encoded(v=strings)
        np.testing.assert_allclose(x, encoded(v=moments)[1], rtol=1e-6)
        assert encoder.describe()[0].startswith("column 'v': one feature, the time, standardised")

    def test_a_zone_is_heeded(self):
        same = ["2024-05-31T12:00Z", "2024-05-31T14:00+02:00", "2024-05-31T06:30-0530"]
        assert encoded(v=same)[0].left_out == ("v",)


class TestAskedFor:
    def test_numbers_as_categories_and_as_text(self):
        encoder, x = encoded({"a": "categorical", "b": "text"}, a=[1, 2, 1, 2], b=[5, 5, 6, 6])
        assert encoder.feature_names == ["a=1", "a=2", "b: 5", "b: 6"]
        assert x[0].tolist() == [1, 0, 1, 0]

    def test_codes_as_numbers_alone(self):
        assert kind([3, 7, 3, 9], "dorm", {"dorm": "numeric"}) == "Number"

    def test_strings_as_numbers(self):
        _, x = encoded({"v": "numeric"}, v=["1", "3", "many", "none"])
        assert x.tolist() == [[-1, 0], [1, 0], [0, 1], [0, 1]]
        with pytest.raises(DataError, match=r"'v' is to be numeric .* such as 'many'"):
            encoded({"v": "numeric"}, v=["many", "few"])

    def test_from_a_text_file_categories_are_as_spelled(self, tmp_path):
        (tmp_path / "n.csv").write_text("id,k,v,w\na,x,007,1\nb,y,7,2\nc,x,007,3\nd,y,7,4\n")
        (tmp_path / "e.csv").write_text("s,t\na,b\n")
        files = tmp_path / "n.csv", tmp_path / "e.csv"
        graph = read_graph(*files, label="k", categorical=["v"], drop=["w"])
        assert graph.encoder.feature_names == ["v=007", "v=7"]
        assert "dropped as asked: column 'w'" in graph.notes
        later = read_graph(*files, label="k", encoder=graph.encoder, classes=graph.classes)
        np.testing.assert_array_equal(later.x, graph.x)

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (
                {"categorical": ["vv"]},
                "no column of nodes for categorical named 'vv'; did you mean v",
            ),
            ({"drop": "v"}, "drop='v' is no list of columns"),
            ({"text": [3]}, "text=3 is no name of a column"),
            ({"numeric": ["v"], "text": ["v"]}, "'v' of nodes cannot be both numeric and text"),
            ({"drop": ["k"]}, "'k' of nodes cannot be both label and drop; .* leave it out of one"),
            ({"group": "v", "numeric": ["v"]}, "'v' of nodes cannot be both group and numeric"),
        ],
    )
    def test_mistakes(self, options, complaint):
        nodes = {"id": list("abcd"), "k": list("xyxy"), "v": [1, 2, 3, 4]}
        with pytest.raises(UsageError, match=complaint):
            read_graph(nodes, {"s": ["a"], "t": ["b"]}, label="k", **options)


CELLS = {
    "count": st.sampled_from([0, 0, 0, 0, 0, 0, 1, 5]),
    "dorm": st.none() | st.integers(0, 5),
    "number": st.none() | st.floats(-1e6, 1e6) | st.integers(0, 10**9),
    "word": st.none() | st.sampled_from(["yes", "no", "1,000", "2024-05-31", "5 %", "a b", "a"]),
    "flag": st.none() | st.booleans(),
    "day": st.none() | st.dates(),
    "category": st.none() | st.text(max_size=3),
    "text": st.none() | st.text("ab ", max_size=9),
}


@st.composite
def random_tables(draw):
    rows = draw(st.integers(1, 80))
    types = {"number": pa.float64(), "flag": pa.bool_(), "day": pa.date32()}
    types |= dict.fromkeys(("word", "category", "text"), pa.string())
    return pa.table(
        {
            name: pa.array(
                draw(st.lists(cell, min_size=rows, max_size=rows)), types.get(name, pa.int64())
            )
            for name, cell in CELLS.items()
        }
    )


READINGS = st.dictionaries(
    st.sampled_from(["count", "dorm", "number", "day"]),
    st.sampled_from(["categorical", "numeric", "text"]),
)


@pytest.mark.fuzz
@given(random_tables(), READINGS)
def test_sparse_and_dense_features_are_the_same_and_survive_json(table, readings):
    encoder = fitted(table, readings)
    x = encoder.transform(table)[0]
    again = ColumnEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    with mock.patch.multiple(column, FEW=0, MOSTLY_ZERO=2):
        other = again.transform(table)[0]
    assert other.shape == (table.num_rows, len(encoder.feature_names))
    if encoder.columns:
        assert isinstance(other, sparse.csr_array)
        assert other.has_canonical_format
        other = other.toarray()
    np.testing.assert_array_equal(other, x)
    assert np.isfinite(x).all()
    assert np.abs(x).max() <= 10
    np.testing.assert_array_equal(encoder.transform(table.slice(0, 1))[0], x[:1])
