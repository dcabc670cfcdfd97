"""Weights of edges, several files of edges, and whether edges have a direction."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from memohop.data.tables import read_graph
from memohop.errors import DataError

NODES = {"id": list("abcd"), "v": [1, 2, 3, 5], "kind": ["x", "y", "x", "y"]}


def read(edges, **options):
    return read_graph(NODES, edges, label="kind", **options)


def weights(graph):
    arcs = map(tuple, graph.data.edge_index.T.tolist())
    return dict(zip(arcs, graph.data.edge_weight.tolist(), strict=True))


def edges(pairs, *weight):
    ends = {"source": [pair[0] for pair in pairs], "target": [pair[1] for pair in pairs]}
    return ends | ({"w": list(weight)} if weight else {})


class TestWeights:
    def test_of_repeated_edges_add_up(self):
        table = edges(["ab", "ab", "bc", "dd"], 1, 2.5, 0, 4)
        graph = read(table, weight="w")
        expected = {(0, 1): 3.5, (1, 0): 3.5, (1, 2): 0, (2, 1): 0, (3, 3): 4}
        assert weights(graph) == expected
        assert graph.data.edge_weight.dtype == graph.data.x.dtype
        assert "1 edge(s) come again, the other way round included; their weights add up" in (
            graph.notes
        )
        assert not any("not used" in note for note in graph.notes)
        directed = read(table, weight="w", directed=True)
        assert weights(directed) == {(0, 1): 3.5, (1, 2): 0, (3, 3): 4}
        mirrored = read(edges(["ab", "ba"], 2, 2), weight="w")  # count once
        assert weights(mirrored) == {(0, 1): 2, (1, 0): 2}

    @pytest.mark.parametrize(
        ("cells", "complaint"),
        [
            (["1", "-2"], r"e\.csv: column 'w' has the weight '-2' in row 2 \(1 such row"),
            (["", "2"], r"e\.csv: column 'w' has no weight in row 1"),
            (["1", "heavy"], r"e\.csv: column 'w' has the weight 'heavy' in row 2"),
            (["1", "inf"], r"e\.csv: column 'w' has the weight 'inf' in row 2"),
            (
                ["1", "1e308"],
                r"weight '1e.308' in row 2 .* give every edge a number from 0 to 1e\+30",
            ),
            (["true", "false"], r"e\.csv: column 'w' holds no weights, but bool"),
            (["2024-05-31"] * 2, r"e\.csv: column 'w' holds no weights, but date"),
        ],
    )
    def test_that_are_none(self, cells, complaint, files):
        _, path = files("", f"source,target,w\na,b,{cells[0]}\nb,c,{cells[1]}\n")
        with pytest.raises(DataError, match=complaint):
            read(path, weight="w")

    def test_with_thousands_separators(self):
        assert weights(read(edges(["ab"], "1,500"), weight="w"))[0, 1] == 1500


class TestSeveralTables:
    def test_are_one(self, tmp_path):
        (tmp_path / "one.csv").write_text("source,target,w\na,b,1\n")
        (tmp_path / "two.csv").write_text("w,more,target,source\n2,?,c,b\n3,?,b,a\n")
        graph = read([tmp_path / "one.csv", tmp_path / "two.csv"], weight="w", directed=True)
        assert weights(graph) == {(0, 1): 4, (1, 2): 2}
        assert any("two.csv: not used: column 'more'" in text for text in graph.warnings)

    def test_mistakes_name_the_table(self):
        with pytest.raises(DataError, match=r"edges\[1\] has no column 'target', which edges\[0\]"):
            read([edges(["ab"]), {"source": ["a"], "to": ["b"]}])
        with pytest.raises(DataError, match=r"edges\[1\]: 1 of 1 edges name a node"):
            read([edges(["ab"]), edges(["aq"])])


@pytest.mark.parametrize(
    ("pairs", "directed", "arcs", "told"),
    [
        (["ab", "bc"], False, 4, r"listed once.*fit tries both .directed=True"),
        (["ab", "ba", "bc", "cb", "dd"], False, 5, "listed both ways, so they have no direction"),
        (["ab", "ba", "bc", "cd"], True, 4, "^50% of the edges are listed the other"),
    ],
)
def test_whether_edges_have_a_direction_is_seen_and_told(pairs, directed, arcs, told):
    graph = read(edges(pairs))
    assert (graph.directed, graph.data.num_edges) == (directed, arcs)
    assert any(re.search(told, note) for note in graph.notes)
    assert not read(edges(pairs), directed=False).directed


class TestIdsInTwoSpellings:
    """Text files may have 007 or 7.0 in one table, and 7 in the other."""

    @pytest.fixture
    def path(self, files):
        """Writes nodes, and edges from each of some ids to the next."""

        def write(ids, ends):
            rows = [f"{name},{number},{'xy'[number % 2]}\n" for number, name in enumerate(ids)]
            pairs = [f"{begin},{end}\n" for begin, end in pairwise(ends)]
            return files("id,v,kind\n" + "".join(rows), "source,target\n" + "".join(pairs))

        return write

    @pytest.mark.parametrize(
        ("ids", "ends", "pair"),
        [
            (["7", "8", "19"], ["007", "008", "019"], "'007' as '7'"),
            (["007", "008", "019"], ["7", "8", "19"], "'7' as '007'"),
            (["7", "8", "19"], ["7.0", "8.0", "19.0"], "'7.0' as '7'"),
            (["7.0", "8.0", "19.0"], ["7", "8", "19"], "'7' as '7.0'"),
            (["007", "008", "019"], ["7.0", "8.0", "19.0"], "'7.0' as '007'"),
            (["a", "b", "c"], [" a", "b ", "c "], "' a' as 'a'"),
        ],
    )
    def test_are_suggested_in_ram_and_prepared(self, ids, ends, pair, path, tmp_path):
        files = path(ids, ends)
        for options in ({}, {"drop_unknown": True}):
            with pytest.raises(DataError, match="2 of 2 edges name a node") as caught:
                read_graph(*files, label="kind", **options)
            assert f"3 of 3 unknown ids would be known, {pair}: spell them" in str(caught.value)
            assert "--drop-unknown" not in str(caught.value)  # it would leave none
            with pytest.raises(DataError) as again:
                memohop.prepare(*files, tmp_path / "graph", label="kind", **options)
            assert str(again.value) == str(caught.value)

    def test_are_suggested_where_some_edges_remain(self, path):
        files = path(["7", "8", "9"], ["7", "8", "9", "007", "08"])
        graph = read_graph(*files, label="kind", drop_unknown=True)
        (told,) = (line for line in graph.warnings if "dropped" in line)
        assert "2 of 2 unknown ids would be known, '007' as '7'" in told
        with pytest.raises(DataError, match=r"'007' as '7'.*or drop these edges"):
            read_graph(*files, label="kind")

    def test_are_not_where_ids_are_simply_unknown(self, path):
        files = path(["7", "8", "9"], ["7", "8", "10", "20", "x", "007"])
        graph = read_graph(*files, label="kind", drop_unknown=True)
        assert not any("spell" in line for line in graph.warnings)


ROWS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(0, 9)), min_size=1
)


@pytest.mark.fuzz
@given(ROWS, st.sampled_from([None, True, False]), st.integers(0, 5))
def test_arcs_and_weights_are_those_of_the_sum_of_all_rows(rows, directed, cut):
    parts = [part for part in (rows[:cut], rows[cut:]) if part]
    tables = [
        pa.table(edges([row[:2] for row in part], *(row[2] for row in part))) for part in parts
    ]
    graph = read(tables, weight="w", directed=directed)
    listed, there = np.zeros((4, 4)), np.zeros((4, 4), dtype=bool)
    for begin, end, weight in rows:
        listed["abcd".index(begin), "abcd".index(end)] += weight
        there["abcd".index(begin), "abcd".index(end)] = True
    if not graph.directed:
        there |= there.T
        if not np.array_equal(listed, listed.T):
            listed = listed + listed.T - np.diag(np.diag(listed))
    assert weights(graph) == {(u, v): listed[u, v] for u, v in np.argwhere(there).tolist()}
