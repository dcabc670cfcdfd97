"""Times of nodes and edges: how they are read, and who learns from whom."""

from __future__ import annotations

import datetime

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import memohop
from memohop.data.arcs import collects
from memohop.data.tables import read_graph
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.edge_columns import EdgeStatistics
from memohop.errors import DataError, UsageError

DAYS = ["2024-01-05", "2024-01-01", "2024-01-09", "2024-01-02", "2024-01-02", None]
NODES = {"id": list("abcdef"), "size": [3.0, 1.0, 4.0, 1.5, 9.0, 2.0], "kind": list("xyxyxy")}
EDGES = {
    "source": ["a", "b", "c", "d", "f", "a", "c"],
    "target": ["b", "c", "a", "e", "a", "f", "b"],
    "amount": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
    "since": ["2024-01-05", "2024-01-20", None, None, None, "2024-01-06", "2024-01-03"],
}


def read(days=DAYS, edges=EDGES, **options):
    how = {"label": "kind", "time_column": "day", "directed": True} | options
    return read_graph(NODES | {"day": days}, edges, **how)


def test_times_are_kept_and_are_no_features():
    graph = read()
    assert graph.times[:5].tolist() == [
        datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() for day in DAYS[:5]
    ]
    assert np.isnan(graph.times[5])
    assert not any("day" in name for name in graph.encoder.feature_names)


def test_who_may_collect_from_whom():
    nan = np.nan
    times, since = np.array([2.0, 1.0, 2.0, nan, nan]), np.array([2.0, 3.0, 1.0, nan, 1.0, nan])
    arcs = np.array([[0, 0, 0, 0, 3, 3], [1, 1, 2, 3, 4, 4]])
    assert collects(arcs, times, since).tolist() == [
        [True, False, False, True, False, True],  # 2 is as late as 0, and 3 has no time
        [False, False, False, False, False, True],
    ]
    assert collects(arcs, times).tolist() == [
        [True, True, False, True, True, True],
        [False, False, False, False, True, True],
    ]


@pytest.mark.parametrize(
    "seasons",
    [
        ["1998/1999", "1999/2000", "2000/2001", None, "2001/2002", "2010/2011"],
        ["1998-99", "1999-00", "2000-01", None, "2001-02", "2010-11"],
        ["1998\u201399", "1999 \u2013 00", "2000-2001", None, "2001/02", "2010/11"],
    ],
)
def test_seasons_are_their_first_years(seasons):
    graph = read(seasons)
    assert graph.times.tolist()[:3] + graph.times.tolist()[4:] == [1998, 1999, 2000, 2001, 2010]
    assert "column 'day' is read as the first year of each season" in graph.warnings
    later = NODES | {"day": seasons[::-1]}
    again = read_graph(later, EDGES, **{**graph.reading, "encoder": graph.encoder})
    assert again.times[0] == 2010
    whole = NODES | {"day": seasons[:3] * 2}
    assert read_graph(whole, EDGES, label="kind", time_column="day").times[5] == 2000
    for wrong in ("2010/2012", "2010/2111", "10/11", "2010-2011-12"):
        with pytest.raises(DataError, match="neither a time such as"):
            read([*seasons[:5], wrong])


@pytest.mark.parametrize("directed", [True, False])
def test_statistics_of_a_node_are_those_of_the_edges_that_it_knows(directed):
    generator = np.random.default_rng(3)
    days = [None if day > 7 else int(day) for day in generator.integers(0, 9, 30)]
    days[:5] = range(5)
    nodes = {"id": list(range(30)), "kind": ["x", "y"] * 15, "day": days}
    ends = generator.integers(0, 30, (2, 120))
    edges = {
        "from": ends[0].tolist(),
        "to": ends[1].tolist(),
        "amount": generator.normal(size=120).tolist(),
        "how": generator.choice(["cash", "card"], 120).tolist(),
        "since": [None if day > 7 else int(day) for day in generator.integers(0, 9, 120)],
    }
    how = {"label": "kind", "time_column": "day", "edge_time": "since", "directed": directed}
    graph = read_graph(nodes, edges, **how)
    encoder, edge_columns = graph.encoder, graph.encoder.edges
    columns = tuple(column for column in encoder.columns if "age at" not in column.name)
    made = tuple(name for name in edge_columns.made if "age at" not in name)
    timeless = replace(
        encoder,
        columns=columns,
        time=None,
        edges=replace(edge_columns, time=None, aged=False, made=made),
    )
    ageless = [place for place, name in enumerate(encoder.feature_names) if "age at" not in name]
    assert {"at"} == {*graph.encoder.edges.ways} or directed
    assert len(graph.encoder.edges.made) > 5
    assert not any("since" in name for name in graph.encoder.edges.made)

    def knows(own, other, since):
        if days[own] is None:
            return days[other] is None and since is None
        earlier = days[other] is None or days[other] < days[own] or own == other
        return earlier and (since is None or since <= days[own])

    for node in range(30):
        rows = [
            row
            for row, (u, v) in enumerate(ends.T.tolist())
            if node in (u, v) and knows(node, v if node == u else u, edges["since"][row])
        ]
        some = {name: [column[row] for row in rows] for name, column in edges.items()}
        some = {name: column or [1] for name, column in some.items()}  # a table has rows
        if not rows:
            some |= {"from": [(node + 1) % 30], "to": [(node + 2) % 30], "how": ["cash"]}
        own = read_graph(nodes, some, **{**graph.reading, "encoder": timeless}).x[node]
        assert own == pytest.approx(graph.x[node, ageless], abs=1e-6)


@pytest.mark.parametrize(
    ("edge_time", "least", "greatest"),
    [
        ("since", [None, 0, 0, 8, None, None, None], [None, 3, 0, 8, None, None, None]),
        (None, [None, 4, 4, 8, None, 16, None], [None, 4, 4, 8, None, 16, None]),
    ],
)
def test_edges_have_an_age_for_a_node_that_knows_them(monkeypatch, edge_time, least, greatest):
    made, real = [], EdgeStatistics.of
    monkeypatch.setattr(EdgeStatistics, "of", lambda *args: made.append(real(*args)) or made[0])
    nodes = {"id": list("abcdefg"), "kind": list("xyxyxyx"), "day": [1, 5, 9, 13, 17, 21, None]}
    edges = {"source": list("bbcdefg"), "target": list("aabbfbb"), "since": [2, 5, 9, 5, 3, 30, 1]}
    read_graph(nodes, edges, label="kind", time_column="day", edge_time=edge_time, directed=True)
    for statistic, expected in (("least", least), ("greatest", greatest)):
        ages = made[0].made[f"age at its time of edges from it: {statistic}"]
        assert ages.to_pylist() == expected


def test_what_statistics_are_made_of_is_told():
    for edge_time, told in (
        ("since", "columns 'since', 'amount'"),
        (None, "the times of both ends and"),
    ):
        some = read(edge_time=edge_time, drop=["since"] * (edge_time is None))
        assert any(f"from {told}" in warning for warning in some.warnings)
    bare = read(edges={name: EDGES[name] for name in ("source", "target")})
    assert any("from the times of both ends, " in warning for warning in bare.warnings)


def test_an_edge_that_no_end_comes_after_is_left_out_and_told():
    graph = read(edge_time="since")
    arcs = {(NODES["id"][u], NODES["id"][v]) for u, v in graph.data.edge_index.T.tolist()}
    assert arcs == {("a", "b"), ("c", "a"), ("d", "e"), ("f", "a"), ("c", "b")}
    line = (
        "column 'day': a node learns only from what is earlier than itself, so that positions and "
        "the structure of the whole graph are left out"
    )
    assert (
        f"{line}; 1 of 7 edges join nodes of one time, of no use to either; 2 of 7 edges left out, "
        "as neither end comes after them"
    ) in graph.warnings
    assert line in read(DAYS[:4] + DAYS[5:] * 2).warnings


def test_weights_are_those_of_the_edges_that_are_left():
    edges = {name: [*column, column[0]] for name, column in EDGES.items()}
    edges["since"][-1] = "2024-01-06"
    weights = read(edges=edges, edge_time="since", weight="amount").data.edge_weight
    assert sorted(weights.tolist()) == [1.0, 4.0, 8.0, 16.0, 64.0]


@given(st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=6, max_size=6), st.data())
def test_of_two_nodes_at_most_one_learns_of_an_edge_and_only_the_later_one(days, data):
    times = np.array([np.nan if day is None else day for day in days])
    ends = st.lists(st.integers(0, 5), min_size=9, max_size=9)
    arcs = np.array([data.draw(ends), data.draw(ends)])
    since = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 2, 4, np.nan]), min_size=9, max_size=9))
    )
    for (u, v), time, learns in zip(arcs.T, since, collects(arcs, times, since).T, strict=True):
        for own, other, does in ((u, v, learns[0]), (v, u, learns[1])):
            t, s = days[own], days[other]
            earlier = s is None or (t is not None and s < t) or own == other
            assert does == (earlier and (np.isnan(time) or (t is not None and time <= t)))


class TestLaterTables:
    def test_are_read_by_the_same_columns(self):
        graph = read(edge_time="since")
        encoder = msgspec.json.decode(msgspec.json.encode(graph.encoder), type=ColumnEncoder)
        nodes = {name: column for name, column in NODES.items() if name != "kind"} | {"day": DAYS}
        again = read_graph(nodes, EDGES, **{**graph.reading, "encoder": encoder})
        assert np.array_equal(again.x, graph.x)
        assert np.array_equal(again.times, graph.times, equal_nan=True)
        assert again.data.edge_index.tolist() == graph.data.edge_index.tolist()
        assert again.masks is None

    def test_have_the_order_of_day_and_month_of_the_first(self):
        graph = read(["13.01.2024", "01.02.2024", "02.02.2024", "03.02.2024", "01.03.2024", None])
        later = NODES | {
            "day": ["01.02.2024", "02.02.2024", None, None, "01.03.2024", "03.02.2024"]
        }
        again = read_graph(later, EDGES, **{**graph.reading, "encoder": graph.encoder})
        assert again.times[[0, 1, 5, 4]].tolist() == graph.times[[1, 2, 3, 4]].tolist()

    @pytest.mark.parametrize(
        ("days", "complaint"),
        [
            (["2024-01-05"] * 5 + ["soon"], "'day' holds 'soon' in row 6, which is neither"),
            ([2024] * 6, "'day' held dates or times when it was fitted"),
            (None, "there is no column of nodes for time_column named 'day'"),
        ],
    )
    def test_without_the_times_are_refused(self, days, complaint):
        graph = read()
        nodes = NODES if days is None else NODES | {"day": days}
        with pytest.raises((DataError, UsageError), match=complaint):
            read_graph(nodes, EDGES, **{**graph.reading, "encoder": graph.encoder})

    def test_may_have_one_time_or_none(self):
        graph = read()
        for days in (["2024-01-05"] * 6, [None] * 6):
            nodes = NODES | {"day": days}
            again = read_graph(nodes, EDGES, **{**graph.reading, "encoder": graph.encoder})
            assert len(again.x) == 6


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"time_column": None, "edge_time": "since"}, "no time_column that says when a node came"),
        ({"edge_time": "until"}, "no column of edges for edge_time named 'until'"),
        ({"edge_time": "source"}, "cannot be both source and edge_time"),
        ({"edge_time": "amount"}, "'day' holds dates or times, and edge time 'amount' numbers"),
        (
            {"edge_time": "when"},
            r"edge time 'when' holds 'soon' \(1 such\), which is neither a time",
        ),
        ({"edge_time": "open"}, "edge time 'open' holds true and false"),
    ],
)
def test_an_edge_time_that_cannot_be_one(options, complaint):
    edges = EDGES | {"when": [*EDGES["since"][:6], "soon"], "open": [True] * 7}
    with pytest.raises((DataError, UsageError), match=complaint):
        read(edges=edges, **options)


def test_columns_are_fitted_to_rows_that_are_not_later_than_the_training_part():
    count = 20
    nodes = {
        "id": list(range(count)),
        "kind": ["x", "y"] * (count // 2),
        "year": [2000 + year for year in range(count)],
        "size": [float(row % 3) + 1000 * (row >= 12) for row in range(count)],
        "colour": [["red", "green"][row % 2] if row < 12 else "blue" for row in range(count)],
    }
    edges = {"source": [0, 1], "target": [1, 2]}
    graph = read_graph(nodes, edges, label="kind", time_column="year")
    assert np.flatnonzero(graph.masks.train).tolist() == list(range(12))
    assert not any("blue" in name for name in graph.encoder.feature_names)
    assert graph.x[:12, graph.encoder.feature_names.index("size")].mean() == pytest.approx(
        0, abs=1e-6
    )


def test_a_prepared_graph_keeps_no_times_and_says_so(files, tmp_path):
    nodes = "id,kind,day\n" + "".join(f"n{row},{'xy'[row % 2]},{row}\n" for row in range(10))
    paths = files(nodes, "s,t,since\nn0,n1,3\n")
    prepared = memohop.prepare(*paths, tmp_path / "g", label="kind", time_column="day")
    assert any("'day' decides the split alone" in warning for warning in prepared.warnings)
    assert prepared.in_ram().times is None
    with pytest.raises(UsageError, match="a prepared graph does not keep times"):
        memohop.prepare(*paths, tmp_path / "h", label="kind", time_column="day", edge_time="since")
    encoder = read_graph(*paths, label="kind", time_column="day").encoder
    with pytest.raises(UsageError, match="learned with times, column 'day'"):
        memohop.prepare(*paths, tmp_path / "h", label="kind", encoder=encoder)
