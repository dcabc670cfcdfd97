"""What rows of an edge table say of arcs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.data.tables import arc_attributes, read_graph

NODES = {"id": list("abcd"), "v": [1, 2, 3, 5], "kind": ["x", "y", "x", "y"]}
ENDS = {"source": list("aaabb"), "target": list("bcbca")}
HOW = ENDS | {"how": ["car", "car", "bus", "bus", "car"]}
AGAIN = "logarithm of the number of edges"


def read(edges, **options):
    return read_graph(NODES, edges, label="kind", **options)


def of_arcs(graph):
    """The attributes of each arc by their names."""
    names = [attribute.name for attribute in graph.encoder.edges.attributes]
    ends = [("abcd"[u], "abcd"[v]) for u, v in graph.data.edge_index.T.tolist()]
    rows = graph.data.edge_attr.tolist()
    return {arc: dict(zip(names, row, strict=True)) for arc, row in zip(ends, rows, strict=True)}


def test_an_arc_has_the_means_of_its_rows():
    said = of_arcs(read(HOW, directed=True))
    assert said[("a", "b")] == {"how=bus": 0.5, "how=car": 0.5, AGAIN: pytest.approx(math.log(2))}
    assert said[("a", "c")] == {"how=bus": 0, "how=car": 1, AGAIN: 0}
    assert said[("b", "c")] == {"how=bus": 1, "how=car": 0, AGAIN: 0}
    assert said[("b", "a")] == {"how=bus": 0, "how=car": 1, AGAIN: 0}


def test_without_directions_both_arcs_of_a_pair_have_those_of_either():
    said = of_arcs(read(HOW, directed=False))
    assert said[("a", "b")] == said[("b", "a")]
    assert said[("a", "b")]["how=car"] == pytest.approx(2 / 3)
    assert said[("a", "b")][AGAIN] == pytest.approx(math.log(3))


def test_edges_that_are_all_listed_both_ways_do_not_come_again():
    mirrored = {"source": list("abbc"), "target": list("bacb"), "hours": [1.5, 2.5, 1.5, 2.5]}
    graph = read(mirrored)
    assert [attribute.name for attribute in graph.encoder.edges.attributes] == ["hours"]
    twice = read({name: cells * 2 for name, cells in mirrored.items()})
    assert all(said[AGAIN] == pytest.approx(math.log(2)) for said in of_arcs(twice).values())


def test_values_of_a_category_and_of_codes_are_relations():
    graph = read(HOW | {"hours": [1.5, 2.5, None, 8.5, 4.5], "type": [1, 1, 2, 2, 1]})
    kinds = dict(graph.encoder.edges.attributes)
    relations = {name for name, relation in kinds.items() if relation}
    assert relations == {"how=bus", "how=car", "type=1", "type=2"}
    assert {"hours", "hours is missing", "type", AGAIN} <= kinds.keys()


def test_of_many_values_the_most_frequent_are_relations_and_all_others_one():
    values = [f"v{number}" for number in range(50) for _ in range(2 + (number < 20))]
    rows = len(values)
    edges = {"source": ["a"] * rows, "target": list("bcd" * rows)[:rows], "how": values}
    graph = read(edges)
    assert len(graph.encoder.edges.attributes) == 20 + 2
    assert sum(name == "how=other" for name, _ in graph.encoder.edges.attributes) == 1
    shares = graph.data.edge_attr[:, :21].sum(axis=1)
    assert np.allclose(shares, 1)


def test_without_columns_there_is_the_number_or_nothing():
    graph = read(ENDS | {"same": [1] * 5}, directed=True)
    assert graph.data.edge_attr.exp()[:, 0].tolist() == pytest.approx([2, 1, 1, 1])
    assert graph.encoder.edges.columns == ()
    once = {name: cells[:2] for name, cells in ENDS.items()}
    assert "edge_attr" not in read(once).data
    assert read(once).encoder.edges.attributes == ()


def test_later_tables_get_the_same_by_a_saved_encoder(saved):
    first = read(HOW, directed=True)
    encoder = saved(first.encoder)
    again = read(HOW, directed=True, encoder=encoder, classes=first.classes)
    assert again.data.edge_attr.tolist() == first.data.edge_attr.tolist()
    once = {"source": ["a", "c"], "target": ["b", "d"], "how": ["bus", "ship"]}
    later = read(once, directed=True, encoder=encoder, classes=first.classes)
    assert later.data.edge_attr.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert sum("'ship': all features of the column are 0" in note for note in later.notes) == 1


def test_too_many_are_left_out_and_it_is_told(monkeypatch):
    monkeypatch.setattr(arc_attributes, "LARGEST_ATTRIBUTES", 12)
    graph = read(HOW, directed=True)
    assert "edge_attr" not in graph.data
    assert graph.encoder.edges.attributes == ()
    assert any("3 attributes of each of 4 arcs would be too many" in w for w in graph.warnings)
    assert any("edges from it where how is bus" in n for n in graph.encoder.feature_names)
    monkeypatch.setattr(arc_attributes, "LARGEST_ATTRIBUTES", 15)
    assert read(HOW, directed=True).data.edge_attr.shape == (4, 3)


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(-100, 100, width=32)), max_size=12
)


@pytest.mark.fuzz
@given(ROWS, st.booleans())
def test_they_are_the_means_of_rows_one_by_one(rows, directed):
    rows = [*rows, (0, 1, 0.5), (2, 3, -0.5), (2, 2, 1.5)]  # not all alike, and no flags
    begin, end, hours = zip(*rows, strict=True)
    edges = {"source": ["abcd"[u] for u in begin], "target": ["abcd"[v] for v in end]}
    graph = read(edges | {"hours": list(hours)}, directed=directed)
    (column,) = graph.encoder.edges.columns
    features = np.asarray(hours)
    if column.log_scale is not None:
        features = np.sign(features) * np.log1p(np.abs(features) / column.log_scale)
    features = np.clip((features - column.mean) / column.std, -10, 10)
    if column.mean == 0 and column.log_scale is not None:
        return  # mostly 0: another formula, which the tests of numbers have
    for (u, v), said in of_arcs(graph).items():
        mine = [
            feature
            for (a, b, _), feature in zip(rows, features, strict=True)
            if ("abcd"[a], "abcd"[b]) in ([(u, v)] if directed else [(u, v), (v, u)])
        ]
        assert said["hours"] == pytest.approx(np.mean(mine), abs=1e-4)
