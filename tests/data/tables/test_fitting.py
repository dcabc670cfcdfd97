"""Which kind a column is, and how features are stored."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from memohop.data.tables import column, read_graph, sources
from memohop.data.tables.columns import fit_columns
from memohop.errors import DataError


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0] * 16 + [-2, 2, 6], "Number"),  # mostly 0, and negative
        ([0.0] * 10 + [0.5 * n for n in range(10)], "Number"),  # not mostly 0
        ([n % 73 + 18 for n in range(730)], "Number"),  # ages
        ([n * n % 41 for n in range(200)], "Number"),  # a count without gaps
        ([int(1.2 ** (n % 40)) for n in range(400)], "Number"),  # a count with a long tail
        ([n % 30 * 7 + 0.5 for n in range(300)], "Number"),
        ([n % 30 * 7 - 50 for n in range(300)], "Number"),
        (list(range(300)), "Number"),
        (["yes", "f", "yes", "f"], "Category"),
        (["yes", "no", "perhaps", "no", "yes"], "Category"),
        ([f"name{n // 2}" for n in range(200)], "Category"),
        ([f"the {n % 50} of many words" for n in range(200)], "Category"),  # few texts
    ],
)
def test_kinds(values, kind, encoded):
    encoder, *_ = encoded(v=values)
    assert [type(fitted).__name__ for fitted in encoder.columns] == [kind]


def test_whether_a_column_is_text_does_not_depend_on_its_first_rows(encoded, monkeypatch):
    monkeypatch.setattr("memohop.data.tables._text_columns._ROWS", 100)
    words = [f"word{n}" for n in range(100)]
    sentences = [f"a longer sentence, number {n}" for n in range(900)]
    late, early, few = words + sentences, sentences + words, sentences[:100] + words * 9
    encoder, *_ = encoded(late=late, early=early, few=few)
    kinds = [type(fitted).__name__ for fitted in encoder.columns]
    assert kinds == ["Words", "Words", "Category"]


class TestSparseFeatures:
    def test_many_that_are_mostly_0_are_a_sparse_matrix(self, encoded):
        rows = np.zeros((60, 51), dtype=int)
        rows[np.arange(60), np.arange(60) % 51] = 1
        columns = {f"w{n}": rows[:, n] for n in range(51)}
        _, x, _ = encoded(**columns)
        assert isinstance(x, sparse.csr_array)
        assert x.dtype == np.float32
        np.testing.assert_array_equal(x.toarray(), rows)
        dense = {name: 1 - values for name, values in columns.items()}
        assert isinstance(encoded(**dense)[1], np.ndarray)
        del columns["w50"]
        assert isinstance(encoded(**columns)[1], np.ndarray)

    def test_a_graph_has_them_as_a_sparse_tensor_and_as_a_matrix(self):
        rows, edges = np.eye(60, dtype=int), {"s": [0], "t": [1]}
        nodes = {"id": list(range(60)), "k": ["a", "b"] * 30}
        graph = read_graph(nodes | {f"w{n}": rows[:, n] for n in range(60)}, edges, label="k")
        assert str(graph.data.x.layout) == "torch.sparse_csr"
        assert graph.data.num_nodes == 60
        np.testing.assert_array_equal(graph.x.toarray(), rows)
        graph = read_graph(nodes | {"v": list(range(60))}, edges, label="k")
        assert graph.x.shape == (60, 1)
        assert graph.x.base is not None or graph.data.x.data_ptr() == graph.x.ctypes.data

    def test_nothing_is_made_dense_on_the_way(self, encoded):
        rows, width = 500, 2000
        data = np.zeros((width, rows), dtype=np.int8)
        data[np.arange(width), np.arange(width) % rows] = 1
        data[np.arange(width), (np.arange(width) * 7 + 1) % rows] = 3
        columns = {f"w{n}": values for n, values in enumerate(data)}
        tracemalloc.start()
        _, x, _ = encoded(**columns)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert x.nnz == 2 * width
        assert most < rows * width * 4  # bytes of the dense matrix


@pytest.mark.parametrize("last", ["2", "70000", "0.5", "word", "", "2024-05-31"])
def test_small_numbers_of_a_wide_file_may_be_followed_by_any_value(last, files, monkeypatch):
    lines = ["id,k,a,b"] + [f"n{n},{'xy'[n % 2]},{n % 3},{n}" for n in range(40)]
    paths = files("\n".join([*lines, f"m,x,{last},7\n"]), "s,t\nn0,n1\n")
    expected = read_graph(*paths, label="k")
    monkeypatch.setattr(sources, "_WIDE", 2)
    monkeypatch.setattr(sources, "_SAMPLE", 64)
    graph = read_graph(*paths, label="k")
    assert graph.encoder.feature_names == expected.encoder.feature_names
    np.testing.assert_allclose(graph.x, expected.x, rtol=1e-6)


class TestAskedFor:
    def test_numbers_as_categories_and_as_text(self, encoded):
        readings = {"a": "categorical", "b": "text"}
        encoder, x, _ = encoded(readings, a=[1, 2, 1, 2], b=[5, 5, 6, 6])
        assert encoder.feature_names == ["a=1", "a=2", "b: 5", "b: 6"]
        assert x[0].tolist() == [1, 0, 1, 0]

    def test_codes_as_numbers_alone(self, encoded):
        encoder, *_ = encoded({"dorm": "numeric"}, dorm=[3, 7, 3, 9])
        assert encoder.feature_names == ["dorm"]

    def test_strings_as_numbers(self, encoded):
        _, x, _ = encoded({"v": "numeric"}, v=["1", "3", "many", "none"])
        assert x.tolist() == [[-1, 0], [1, 0], [0, 1], [0, 1]]
        with pytest.raises(DataError, match=r"'v' is to be numeric .* such as 'many'"):
            encoded({"v": "numeric"}, v=["many", "few"])

    def test_from_a_text_file_categories_are_as_spelled(self, files):
        paths = files("id,k,v,w\na,x,007,1\nb,y,7,2\nc,x,007,3\nd,y,7,4\n")
        graph = read_graph(*paths, label="k", categorical=["v"], drop=["w"])
        assert graph.encoder.feature_names == ["v=007", "v=7"]
        assert "dropped as asked: column 'w'" in graph.notes
        later = read_graph(*paths, label="k", encoder=graph.encoder, classes=graph.classes)
        np.testing.assert_array_equal(later.x, graph.x)


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
def test_sparse_and_dense_features_are_the_same_and_survive_json(saved, table, readings):
    encoder = fit_columns(zip(table.column_names, table.columns, strict=True), readings)[0]
    again = saved(encoder)
    assert again == encoder
    with mock.patch.object(column, "FEW", 10**6):
        x = encoder.transform(table)[0]
        first = encoder.transform(table.slice(0, 1))[0]
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
    np.testing.assert_array_equal(first, x[:1])
