"""Columns of the edge table become columns of the nodes."""

from __future__ import annotations

import math
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.edge_columns import EdgeStatistics
from memohop.data.tables.links import EdgeRows, Links
from memohop.errors import DataError, UsageError

NODES = {"id": list("abcd"), "v": [1, 2, 3, 5], "kind": ["x", "y", "x", "y"]}
ENDS = {"source": list("aaabb"), "target": list("bcbcb")}
HOURS = ENDS | {"hours": [1.5, 2.5, None, 8.5, 4.5]}


def read(edges, nodes=NODES, **options):
    return read_graph(nodes, edges, label="kind", **options)


def made(columns, ends, ways=("from", "to"), nodes=4):
    """The statistics by their names, before they become features."""
    ends = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    rows = EdgeRows(pa.table(columns), ends)
    links = Links.of(ends, None, nodes=nodes, directed=ways != ("at",))
    roles = SimpleNamespace(edge_readings={}, edges=SimpleNamespace(name="edges"))
    statistics = EdgeStatistics.of(rows, links, roles, None, nodes)
    assert statistics.fitted.ways == ways
    return {name: column.to_pylist() for name, column in statistics.made.items()}


PAIRS = [(0, 1), (0, 2), (0, 1), (1, 2), (1, 1)]


class TestStatistics:
    def test_of_a_number(self):
        statistics = made({"hours": HOURS["hours"]}, PAIRS)
        assert statistics == {
            "edges from it: number": [3, 2, 0, 0],
            "edges to it: number": [0, 3, 2, 0],
            "hours of edges from it: mean": [2, 6.5, None, None],
            "hours of edges from it: least": [1.5, 4.5, None, None],
            "hours of edges from it: greatest": [2.5, 8.5, None, None],
            "hours of edges to it: mean": [None, 3, 5.5, None],
            "hours of edges to it: least": [None, 1.5, 2.5, None],
            "hours of edges to it: greatest": [None, 4.5, 8.5, None],
        }

    def test_without_a_direction_are_of_all_edges_and_loops_count_once(self):
        statistics = made({"hours": HOURS["hours"]}, PAIRS, ways=("at",))
        assert statistics == {
            "edges at it: number": [3, 4, 2, 0],
            "hours of edges at it: mean": [2, pytest.approx(14.5 / 3), 5.5, None],
            "hours of edges at it: least": [1.5, 1.5, 2.5, None],
            "hours of edges at it: greatest": [2.5, 8.5, 8.5, None],
        }

    def test_of_a_category(self):
        statistics = made({"how": ["car", "car", "bus", None, "bus"]}, PAIRS)
        assert statistics == {
            "edges from it: number": [3, 2, 0, 0],
            "edges to it: number": [0, 3, 2, 0],
            "edges from it where how is bus: number": [1, 1, 0, 0],
            "edges from it where how is car: number": [2, 0, 0, 0],
            "edges to it where how is bus: number": [0, 2, 0, 0],
            "edges to it where how is car: number": [0, 1, 1, 0],
        }

    def test_of_a_number_within_a_category(self):
        hours, how = [1.5, 2.5, 3.5, 8.5, 4.5], ["car", "car", "bus", "bus", "bus"]
        statistics = made({"hours": hours, "how": how}, PAIRS)
        assert statistics["hours of edges from it where how is car: mean"] == [2, None, None, None]
        assert statistics["hours of edges to it where how is bus: mean"] == [None, 4, 8.5, None]

    def test_of_a_flag_are_shares(self):
        statistics = made({"late": [True, False, None, True, True]}, PAIRS)
        assert statistics == {
            "edges from it: number": [3, 2, 0, 0],
            "edges to it: number": [0, 3, 2, 0],
            "late of edges from it: mean": [0.5, 1, None, None],
            "late of edges to it: mean": [None, 1, 0.5, None],
        }

    def test_of_codes_are_those_of_a_number_and_of_a_category(self):
        statistics = made({"type": [1, 1, 2, 2, 1]}, PAIRS)
        assert statistics["type of edges from it: greatest"] == [2, 2, None, None]
        assert statistics["edges from it where type is 1: number"] == [2, 1, 0, 0]

    def test_of_times_are_times(self):
        days = ["2024-05-31", "2024-06-02", None, "2024-06-03", "2024-06-03 12:00"]
        statistics = made({"day": days}, PAIRS)
        assert statistics["day of edges from it: mean"][0] == datetime(2024, 6, 1)
        assert statistics["day of edges to it: greatest"][1:] == [
            datetime(2024, 6, 3, 12),
            datetime(2024, 6, 3),
            None,
        ]

    def test_of_numbers_with_separators(self):
        statistics = made({"price": ["1,500", "12", "?", "1,000", "n/a"]}, PAIRS)
        assert statistics["price of edges from it: mean"] == [756, 1000, None, None]

    def test_of_many_values_are_of_the_most_frequent(self):
        values = [f"v{number}" for number in range(50) for _ in range(2 + (number < 20))]
        statistics = made({"how": values}, [(0, 1)] * len(values), ways=("at",))
        assert len(statistics) == 1 + 20
        assert statistics.pop("edges at it: number") == [120, 120, 0, 0]
        assert all(column == [3, 3, 0, 0] for column in statistics.values())

    def test_of_equal_numbers_in_a_category_are_equal(self):
        """A sum over their number may be a little less, which would look like information."""
        ends = [(n % 7, 7) for n in range(300)]
        how, hours = ["car", "bus"] * 150, [0.1, 0.7] * 150
        statistics = made({"hours": hours, "how": how}, ends, nodes=8)
        name = "hours of edges from it where how is bus: mean"
        assert np.ptp([value for value in statistics[name] if value is not None]) < 1e-15

    def test_are_not_more_than_fit(self):
        columns = {f"n{number}": np.arange(5) + number / 3 for number in range(200)}
        graph = read(ENDS | columns)
        assert len(graph.encoder.edges.columns) == (500 - 2) // 6
        assert sum("not used" in line and "'n83'" in line for line in graph.warnings) == 1


VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5).map(float))
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), VALUES), min_size=1)


@pytest.mark.fuzz
@given(ROWS, st.sampled_from([("at",), ("from", "to")]))
def test_statistics_are_those_of_each_node_by_itself(rows, ways):
    begin, end, values = zip(*rows, strict=True)
    values = [*values, 0.5, -0.5]  # not all alike, and no flags
    begin, end = np.array([*begin, 3, 3]), np.array([*end, 3, 3])
    statistics = made({"n": pa.array(values, pa.float64())}, np.stack([begin, end]).T, ways)
    for node in range(4):
        there = {"from": begin == node, "to": end == node, "at": (begin == node) | (end == node)}
        for way in ways:
            here = [value for value, is_mine in zip(values, there[way], strict=True) if is_mine]
            here = [value for value in here if value is not None]
            for name, of in {"mean": np.mean, "least": np.min, "greatest": np.max}.items():
                statistic = statistics[f"n of edges {way} it: {name}"][node]
                assert statistic == (pytest.approx(of(here), abs=1e-6) if here else None)


class TestReading:
    def test_features_follow_those_of_the_node_table(self):
        graph = read(HOURS)
        names = graph.encoder.feature_names
        mean = "hours of edges from it: mean"
        assert names[:4] == ["v", "edges from it: number", mean, f"{mean} is missing"]
        assert graph.data.x[:, 3].tolist() == [0, 0, 1, 1]
        assert not any("not used" in line for line in graph.warnings)
        told = "edges: from column 'hours', 8 statistics of each node's edges become columns of"
        assert any(line.startswith(told) for line in graph.warnings)

    def test_edges_listed_both_ways_or_said_to_have_no_direction_are_taken_together(self):
        mirrored = {"source": list("abbc"), "target": list("bacb"), "hours": [1.5, 1.5, 2.5, 2.5]}
        for graph in (read(mirrored), read(HOURS, directed=False)):
            assert graph.encoder.edges.ways == ("at",)
        for graph in (read(mirrored, directed=True), read(HOURS), read(HOURS, directed=True)):
            assert graph.encoder.edges.ways == ("from", "to")

    def test_dropped_edges_do_not_count(self):
        more = {name: [*cells, "zz" if name == "target" else "a"] for name, cells in ENDS.items()}
        graph = read(more | {"hours": [*HOURS["hours"], 1000]}, drop_unknown=True)
        assert graph.data.x.tolist() == read(HOURS).data.x.tolist()

    def test_several_tables_are_one_and_what_some_lack_is_not_used(self):
        first = {name: cells[:3] for name, cells in HOURS.items()} | {"more": [1, 2, 3]}
        second = {name: cells[3:] for name, cells in HOURS.items()}
        graph = read([first, second])
        assert graph.data.x.tolist() == read(HOURS).data.x.tolist()
        (told,) = (line for line in graph.warnings if "not used" in line)
        assert told.startswith("edges[0]: from column 'hours', 8")
        assert told.endswith("not used: column 'more'")

    def test_tables_with_columns_of_several_types(self):
        whole = {"source": ["a", "b"], "target": ["b", "c"], "how": [1, 2]}
        two = {"source": ["c", "d"], "target": ["d", "a"], "how": ["2", "x"]}
        graph = read([whole, two])
        assert any("how is 2: number" in name for name in graph.encoder.feature_names)
        read([whole, two | {"how": pa.nulls(2)}])

    def test_texts_and_what_tells_no_edges_apart_are_not_used(self):
        ends = {"source": list("abcd") * 20, "target": list("bcda") * 20}
        texts = [f"about {number} and more things" for number in range(80)]
        graph = read(ends | {"note": texts, "same": [1] * 80, "id": [f"e{n}" for n in range(80)]})
        (told,) = (line for line in graph.warnings if "not used" in line)
        again = "edges: fit also tries to count a neighbour as often as its edge comes"
        assert told == f"{again}; not used: columns 'note', 'same', 'id'"
        assert graph.encoder.feature_names == ["v"]
        assert graph.encoder.edges.columns == ()


class TestOptions:
    EDGES = ENDS | {"how": ["car", "car", "bus", "car", "bus"], "code": [1, 2, 3, 5, 7]}

    def test_drop_names_columns_of_either_table(self):
        graph = read(self.EDGES, drop=["how", "v"])
        assert not any("how" in name for name in graph.encoder.feature_names)
        assert "v" not in graph.encoder.feature_names
        assert "dropped as asked: columns 'v', 'how'" in graph.notes
        assert not any("not used" in line for line in graph.warnings)
        nothing = read(self.EDGES, drop=["how", "code"])
        assert nothing.data.x.tolist() == read(ENDS).data.x.tolist()
        assert nothing.warnings == read(ENDS).warnings

    def test_categorical_and_numeric(self, files):
        names = read(self.EDGES, numeric=["code"]).encoder.feature_names
        assert "code of edges from it: mean" in names
        text = "s,t,code\n" + "a,b,007\nb,c,7\nc,d,007\nd,a,7\n" * 2
        graph = read_graph(
            *files("id,v,kind\na,1,x\nb,2,y\nc,3,x\nd,5,y\n", text),
            label="kind",
            categorical=["code"],
        )
        assert "edges from it where code is 007: number" in graph.encoder.feature_names

    def test_a_name_of_both_tables_means_both_but_an_end_is_no_column(self):
        both = read(self.EDGES | {"v": [1.5, 2, 3, 4, 5]}, drop=["v"])
        assert not any("v" in name.split() for name in both.encoder.feature_names)
        nodes = NODES | {"source": [7, 3, 9, 1]}
        graph = read(self.EDGES, nodes, drop=["source"])
        assert "source" not in graph.encoder.feature_names

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"drop": ["source"]}, "'source' of edges cannot be both source and drop"),
            ({"drop": ["code"], "weight": "code"}, "'code' of edges cannot be both weight and"),
            ({"drop": ["code"], "numeric": ["code"]}, "cannot be both numeric and drop"),
            ({"drop": ["hou"]}, "no column of either table for drop named 'hou'.*'?how'?"),
        ],
    )
    def test_that_cannot_be(self, options, complaint):
        with pytest.raises(UsageError, match=complaint):
            read(self.EDGES, **options)

    def test_a_weight_is_a_weight(self):
        graph = read(self.EDGES, weight="code")
        assert [column.name for column in graph.encoder.edges.columns] == ["how"]

    def test_a_column_of_the_node_table_may_not_have_the_name_of_a_statistic(self):
        nodes = NODES | {"hours of edges from it: mean": [1, 2, 3, 4]}
        with pytest.raises(UsageError, match=r"'hours of edges from it: mean'.*rename it"):
            read(HOURS, nodes)

    @pytest.mark.parametrize(
        ("cells", "complaint"),
        [
            ([1.0, 2, 3, math.inf, 5], "'hours' holds inf in row 4"),
            ([[1], [2], [3], [4], [5]], r"edges: column 'hours' is of type list.* leave it out"),
        ],
    )
    def test_what_cannot_be_read_is_refused_and_may_be_dropped(self, cells, complaint):
        with pytest.raises(DataError, match=complaint):
            read(ENDS | {"hours": cells})
        assert read(ENDS | {"hours": cells}, drop=["hours"]).warnings == read(ENDS).warnings


class TestLaterTables:
    EDGES = ENDS | {
        "hours": ["1,500", "12", "?", "1,000", "7"],
        "how": ["car", "car", "bus", "car", "bus"],
        "day": ["2024-05-31", "2024-06-02", "", "2024-06-03", "2024-06-03"],
    }

    @pytest.fixture
    def first(self):
        return read(self.EDGES)

    def test_get_the_same_columns_by_a_saved_encoder(self, first, saved):
        encoder = saved(first.encoder)
        assert encoder == first.encoder
        again = read(self.EDGES, encoder=encoder, classes=first.classes)
        assert again.data.x.tolist() == first.data.x.tolist()
        assert not any("statistics" in line for line in again.warnings)

    @pytest.mark.parametrize("directed", [None, True, False])
    def test_get_them_by_the_same_ways_and_values_however_edges_are_listed(self, first, directed):
        edges = {"source": list("abc"), "target": list("baa"), "hours": [12, 7, 7]}
        more = {"how": ["ship", "bus", "bus"], "day": ["2024-06-03"] * 3}
        later = read(edges | more, encoder=first.encoder, classes=first.classes, directed=directed)
        names = first.encoder.feature_names
        assert not any("ship" in name for name in names)
        x = dict(zip(names, later.data.x.T.tolist(), strict=True))
        buses = x["edges to it where how is bus: number"]
        assert buses[0] > buses[1] == buses[2] == buses[3]
        assert x["hours of edges from it: mean is missing"] == [0, 0, 0, 1]
        assert x["hours of edges to it: mean is missing"] == [0, 0, 1, 1]

    def test_must_have_the_columns(self, first):
        edges = {name: cells for name, cells in self.EDGES.items() if name != "how"}
        with pytest.raises(UsageError, match=r"edges lacks the column\(s\) 'how', from which"):
            read(edges, encoder=first.encoder, classes=first.classes)
        with pytest.raises(DataError, match=r"edges\[1\] has no column 'hours'"):
            read([self.EDGES, ENDS], encoder=first.encoder, classes=first.classes)

    def test_with_words_for_numbers_are_refused(self, first):
        with pytest.raises(DataError, match="'hours' held numbers when it was fitted"):
            read(self.EDGES | {"hours": ["many"] * 5}, encoder=first.encoder, classes=first.classes)


def test_a_prepared_graph_leaves_them_out_and_says_so(files, tmp_path):
    paths = files(
        "id,v,kind\na,1,x\nb,2,y\nc,3,x\nd,5,y\n", "s,t,hours,how\na,b,1.5,x\nb,c,2.5,y\nc,d,4,x\n"
    )
    graph = memohop.prepare(*paths, tmp_path / "graph", label="kind")
    assert any(line.endswith("not used: columns 'hours', 'how'") for line in graph.warnings)
    dropped = memohop.prepare(*paths, tmp_path / "more", label="kind", drop=["hours", "how"])
    assert not any("not used" in line for line in dropped.warnings)
    encoder = read_graph(*paths, label="kind").encoder
    with pytest.raises(UsageError, match=r"'hours', 'how' of its edge table.*--drop hours,how"):
        memohop.prepare(*paths, tmp_path / "other", label="kind", encoder=encoder)
    plain = read_graph(*paths, label="kind", drop=["hours", "how"])
    again = memohop.prepare(*paths, tmp_path / "last", label="kind", encoder=plain.encoder)
    assert again.x.tolist() == plain.data.x.tolist()
