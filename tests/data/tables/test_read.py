"""Tables of nodes and edges against what they literally say."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commands import write_parquet
from memohop.data.tables import read_graph
from memohop.errors import DataError

NODES = "id,age,kind\na,1,x\nb,2,y\nc,3,x\nd,,\n"
EDGES = "source,target\na,b\nb,c\nd,a\n"


def arcs(graph):
    return sorted(map(tuple, graph.data.edge_index.T.tolist()))


def test_ids_labels_features_and_arcs_are_those_of_the_files(files):
    graph = read_graph(*files(NODES, EDGES), label="kind")
    spread = (2 / 3) ** 0.5
    assert graph.ids.tolist() == ["a", "b", "c", "d"]
    assert graph.classes == ["x", "y"]
    assert graph.data.y.tolist() == [0, 1, 0, -1]
    assert graph.encoder.feature_names == ["age", "age is missing"]
    torch.testing.assert_close(
        graph.data.x, torch.tensor([[-1 / spread, 0], [0, 0], [1 / spread, 0], [0, 1]])
    )
    assert arcs(graph) == [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (3, 0)]
    assert graph.data.y.dtype == graph.data.edge_index.dtype == torch.int64
    assert graph.data.x.dtype == torch.float32
    directed = read_graph(*files(NODES, EDGES), label="kind", directed=True)
    assert arcs(directed) == [(0, 1), (1, 2), (3, 0)]
    assert "3 edges, one arc for each" in directed.notes


@pytest.mark.parametrize("form", ["tsv", "semicolon", "bar", "crlf"])
def test_every_form_of_text_gives_the_same_graph(form, files):
    expected = read_graph(*files(NODES, EDGES), label="kind")
    separator = {"tsv": "\t", "semicolon": ";", "bar": "|"}.get(form, ",")
    nodes, edges = (text.replace(",", separator) for text in (NODES, EDGES))
    if form == "crlf":
        nodes, edges = nodes.replace("\n", "\r\n"), edges.replace("\n", "\r\n")
    suffix = ".tsv" if form == "tsv" else ".csv"
    graph = read_graph(*files(nodes, edges, suffix), label="kind")
    same(graph, expected)
    assert any("separated by" in note for note in graph.notes) == (form in ("semicolon", "bar"))


@pytest.mark.parametrize(("cell", "number"), [("1,5", True), ("1.5", True), ("1,5,5", False)])
def test_a_decimal_comma_goes_with_semicolons(cell, number, files):
    nodes = f"id;v;k\na;{cell};x\nb;2;y\nc;3;x\nd;2;y\n"
    graph = read_graph(*files(nodes, "s;t\na;b\n"), label="k")
    expected = np.array([1.5, 2, 3, 2])
    if number:
        expected = (expected - expected.mean()) / expected.std()
        np.testing.assert_allclose(graph.data.x[:, 0].numpy(), expected, rtol=1e-6)
    else:
        assert graph.encoder.feature_names == ["v=2", "v=other"]
    assert any("the decimal point is a comma" in note for note in graph.notes) == (cell == "1,5")


def test_parquet_table_objects_and_anything_arrow_give_the_same_graph(files, tmp_path):
    expected = read_graph(*files(NODES, EDGES), label="kind")
    nodes = {"id": ["a", "b", "c", "d"], "age": [1, 2, 3, None], "kind": ["x", "y", "x", None]}
    edges = {"source": ["a", "b", "d"], "target": ["b", "c", "a"]}
    tables = pa.table(nodes), pa.table(edges)

    class Frame:
        """As a frame of pandas or polars is seen from here."""

        def __init__(self, table):
            self.__arrow_c_stream__ = table.__arrow_c_stream__

    same(read_graph(*tables, label="kind"), expected)
    same(read_graph(*map(Frame, tables), label="kind"), expected)
    same(read_graph(nodes, edges, label="kind"), expected)
    # An index without a name, as pandas writes it, is no column.
    name = "__index_level_0__"
    tables = [table.append_column(name, [list(range(len(table)))]) for table in tables]
    same(read_graph(*map(str, write_parquet(tmp_path, *tables)), label="kind"), expected)


def same(graph, expected):
    assert graph.ids.tolist() == expected.ids.tolist()
    assert graph.classes == expected.classes
    assert graph.encoder == expected.encoder
    for key in ("x", "y", "edge_index"):
        assert torch.equal(graph.data[key], expected.data[key])


def test_whole_numbers_are_ids_and_labels_as_numbers_but_leading_zeros_are_kept(files):
    plain = read_graph(*files("id,k\n10,3\n9,20\n11,3\n", "s,t\n10,9\n"), label="k")
    assert plain.ids.tolist() == [10, 9, 11]
    assert plain.ids.dtype == np.int64
    assert plain.classes == [3, 20]
    padded = read_graph(*files("id,k\n010,3\n9,20\n11,3\n", "s,t\n010,9\n"), label="k")
    assert padded.ids.tolist() == ["010", "9", "11"]


def test_ids_match_whatever_their_type():
    nodes = {"id": pa.array([1, 2, 3], pa.uint8()), "k": [1.0, 2.0, 2.0]}
    graph = read_graph(nodes, {"from": [1.0, 2.0], "to": ["2", "3"]}, label="k")
    assert (graph.ids.tolist(), graph.classes) == ([1, 2, 3], [1, 2])
    assert arcs(graph) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    with pytest.raises(DataError, match="ids must be strings or whole numbers"):
        read_graph(nodes, {"from": [1.5], "to": [2]}, label="k")


def test_columns_are_found_by_name_and_then_by_place(files):
    paths = files("kind,v,ID\nx,1,a\ny,2,b\nx,3,c\n", "weight,to,from\n9,b,a\n9,c,b\n")
    graph = read_graph(*paths, label="kind", directed=True)
    assert graph.ids.tolist() == ["a", "b", "c"]
    assert arcs(graph) == [(0, 1), (1, 2)]
    named = read_graph(*paths, label="kind", source="to", target="from", directed=True)
    assert arcs(named) == [(1, 0), (2, 1)]
    paths = files("name,kind\na,x\nb,y\nc,x\n", "p,q\na,b\n")
    assert read_graph(*paths, label="kind", id="name").ids.tolist() == ["a", "b", "c"]


def test_repeated_edges_count_once_and_loops_stay(files):
    paths = files(NODES, "s,t\na,b\nb,a\na,b\nc,c\n")
    for directed, again in (
        (None, "2 edge(s) come again, the other way round included; each counts once"),
        (True, "1 edge(s) come again; each counts once"),
    ):
        graph = read_graph(*paths, label="kind", directed=directed)
        assert arcs(graph) == [(0, 1), (1, 0), (2, 2)]
        assert {again, "1 edge(s) from a node to itself, kept"} <= set(graph.notes)


def test_edges_that_name_unknown_nodes(files):
    edges = "s,t\na,b\nq,b\na,z z\nq,\n"
    with pytest.raises(DataError, match=r"3 of 4 edges .* 'q' \(row 2\), 'z z' \(row 3\).*drop"):
        read_graph(*files(NODES, edges), label="kind")
    graph = read_graph(*files(NODES, edges), label="kind", drop_unknown=True)
    assert arcs(graph) == [(0, 1), (1, 0)]
    assert any(note.startswith("3 edge(s) dropped") for note in graph.notes)
    with pytest.raises(DataError, match="1 of 1 edges name a node"):
        read_graph(*files(NODES, "s,t\nq,r\n"), label="kind", drop_unknown=True)


def test_a_class_of_one_node_is_told_and_no_error(files):
    graph = read_graph(*files("id,k\na,x\nb,x\nc,y\nd,x\n"), label="k")
    assert graph.data.y.tolist() == [0, 0, 1, 0]
    assert any(
        note.startswith("too few labelled nodes") and "'y' (1)" in note for note in graph.notes
    )


class TestASecondTable:
    """With the encoder and the classes of a first one."""

    @pytest.fixture
    def first(self, files):
        nodes = "id,v,city,k\n" + "".join(
            f"{n},{n},{('Rome', 'Bonn')[n % 2]},{'xyx'[n % 3]}\n" for n in range(12)
        )
        return read_graph(*files(nodes, "s,t\n0,1\n"), label="k")

    def read(self, files, nodes, first, **more):
        paths = files(nodes, "s,t\np,q\n")
        return read_graph(*paths, encoder=first.encoder, classes=first.classes, **more)

    def test_is_encoded_as_the_first_was_whatever_the_order_of_its_columns(self, files, first):
        nodes = "city,id,v,k\nBonn,p,3,y\nRome,q,4,x\n"
        graph = self.read(files, nodes, first, label="k")
        assert torch.equal(graph.data.x, first.data.x[[3, 4]])
        assert graph.data.y.tolist() == [1, 0]
        assert graph.encoder is first.encoder

    def test_needs_no_labels(self, files, first):
        graph = self.read(files, "id,city,v\np,Bonn,3\nq,Rome,4\n", first, label="k")
        assert graph.data.y.tolist() == [-1, -1]
        assert graph.classes == ["x", "y"]
        assert "no node has a label" in graph.notes

    def test_with_strange_values(self, files, first):
        nodes = "id,city,v,k,new\np,Ulm,1000,z,1\nq,Rome,,x,2\n"
        graph = self.read(files, nodes, first, label="k")
        names = first.encoder.feature_names
        assert names == ["v", "city=Bonn", "city=Rome"]
        assert graph.data.x.tolist() == [[10, 0, 0], [0, 0, 1]]
        assert graph.data.y.tolist() == [-1, 0]
        told = "\n".join(graph.notes)
        assert "'city': 1 row with a value that has no feature, such as 'Ulm': all" in told
        assert "'v': 1 value more than 10 standard deviations" in told
        assert "'v': 1 value missing, but none was" in told
        assert "1 label(s) of an unknown class" in told
        assert "not used: column 'new'" in told

    def test_with_words_where_numbers_were(self, files, first):
        with pytest.raises(DataError, match=r"'v' held numbers .* such as 'many'"):
            self.read(files, "id,city,v\np,Bonn,many\nq,Rome,4\n", first, label=None)

    def test_with_categories_that_look_like_numbers(self, files):
        nodes = "id,zip,k\n" + "".join(f"{n},{('01', 'x')[n % 2]},{n % 2}\n" for n in range(6))
        first = read_graph(*files(nodes, "s,t\n0,1\n"), label="k")
        graph = self.read(files, "id,zip\np,01\nq,01\n", first, label=None)
        assert graph.data.x.tolist() == [[1, 0], [1, 0]]


IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
LABELS = st.sampled_from(["x", "y y", 'q"', "ü,;", None])


@st.composite
def tables(draw):
    """Nodes with odd ids, a number that may be missing and a label that may be; and edges.

    No number is 0: a column of mostly 0, or of 0 and 1, would not be standardised.
    """
    ids = draw(st.lists(IDS, min_size=4, max_size=12, unique=True))
    numbers = st.none() | st.integers(-(10**6), -1) | st.integers(1, 10**6)
    values = draw(st.lists(numbers, min_size=len(ids), max_size=len(ids)))
    labels = draw(st.lists(LABELS, min_size=len(ids), max_size=len(ids)))
    labels[:3] = ["x", "y y", "x"]
    ends = st.tuples(st.sampled_from(ids), st.sampled_from(ids))
    return ids, values, labels, draw(st.lists(ends, min_size=1, max_size=20))


@pytest.mark.fuzz
@given(tables(), st.sampled_from([",", ";", "\t"]), st.booleans())
def test_a_round_trip_through_a_text_file_keeps_every_id_value_label_and_edge(
    tmp_path, table, separator, directed
):
    ids, values, labels, edges = table
    for name, header, rows in (
        ("nodes.csv", ("the id", "number", "label"), zip(ids, values, labels, strict=True)),
        ("edges.csv", ("an end", "another end"), edges),
    ):
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator)
            writer.writerow(header)
            writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    graph = read_graph(
        tmp_path / "nodes.csv", tmp_path / "edges.csv", label="label", directed=directed
    )
    assert [str(id) for id in graph.ids] == ids
    known = sorted({label for label in labels if label is not None})
    assert graph.classes == known
    assert graph.data.y.tolist() == [
        -1 if label is None else known.index(label) for label in labels
    ]
    expected = {(ids.index(u), ids.index(v)) for u, v in edges}
    if not directed:
        expected |= {(v, u) for u, v in expected}
    assert arcs(graph) == sorted(expected)
    there = np.array([value for value in values if value is not None], dtype=float)
    if there.size and there.min() < there.max():
        feature = [0 if v is None else (v - there.mean()) / there.std() for v in values]
        np.testing.assert_allclose(graph.data.x[:, 0].numpy(), feature, rtol=1e-5, atol=1e-6)
        assert graph.data.x.shape[1] == 1 + (None in values)
        if None in values:
            assert graph.data.x[:, 1].tolist() == [float(value is None) for value in values]
    else:
        assert graph.data.x.tolist() == [[1]] * len(ids)
