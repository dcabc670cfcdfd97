"""Ways to collect from other nodes: by direction, by relation, as often as an edge comes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import memohop
from memohop import DataError, GraphClassifier, load_model
from memohop.data.arcs import NUMBER_OF_EDGES, ArcAttribute
from memohop.explain import explain_fit
from memohop.fit import _neighbourhood as neighbourhood
from memohop.fit._candidate import Setting
from memohop.fit._given import given_to_fit
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import MERGED, Way
from memohop.fit._views import View
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._trees import TreeFamily
from memohop.fit.candidates.catalogue import families
from memohop.training import Rules
from saved_models import tables
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

# 0 -> 1 twice, 0 -> 2, 1 -> 2, 3 -> 1, and a self-loop
ARCS = np.array([[0, 0, 1, 3, 2], [1, 2, 2, 1, 2]])
DESCRIBED = (
    ArcAttribute("how=car", True),
    ArcAttribute("how=bus", True),
    ArcAttribute("hours"),
    ArcAttribute(NUMBER_OF_EDGES),
)
ATTRIBUTES = np.array(
    [
        [0.5, 0.5, 0.1, np.log(2)],
        [1, 0, -1, 0],
        [0, 1, 2, 0],
        [0, 1, 0, 0],
        [1, 0, 0, 0],
    ],
    dtype=np.float32,
)
WEIGHTS = np.array([3.0, 1, 2, 1, 1], dtype=np.float32)
X = np.array([[1.0, 0.5], [2.0, -1.0], [4.0, 6.0], [9.0, 0.25]], dtype=np.float32)
Y = np.array([0, 1, -1, 0])
ALL = [Way(side, number) for side in ("both", "out", "in") for number in (None, 0, 1, 3)]


def graph(y=Y, **more):
    more = {"attributes": ATTRIBUTES, "described": DESCRIBED} | more
    return Inputs(X, ARCS, y, of_fit=4, **more)


def slow_matrix(inputs, way):
    """Entry by entry: what row ``i`` collects from column ``j``."""
    rows = np.zeros((inputs.nodes, inputs.nodes))
    for number, (source, target) in enumerate(inputs.arcs.T.tolist()):
        weight = 1.0 if inputs.weights is None else float(inputs.weights[number])
        if way.attribute is not None:
            value = float(inputs.attributes[number, way.attribute])
            weight *= value if inputs.described[way.attribute].is_relation else np.exp(value)
        if source == target:
            continue
        if way.direction in ("both", "out"):
            rows[source, target] = max(rows[source, target], weight)
        if way.direction in ("both", "in"):
            rows[target, source] = max(rows[target, source], weight)
    return rows


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("way", ALL)
def test_the_matrix_of_a_way(way, weights):
    inputs = graph(weights=weights)
    assert np.allclose(inputs.neighbourhood.matrix(way).toarray(), slow_matrix(inputs, way))


def test_with_times_only_what_is_earlier_counts_along_every_way():
    times = np.array([3.0, 1, 2, np.nan])
    near = graph(times=times).neighbourhood
    for way in ALL:
        for row, column in zip(*near.matrix(way).nonzero(), strict=True):
            assert np.isnan(times[column]) or times[column] < times[row]
    assert near.matrix(Way("out", 0)).nnz
    assert near.matrix(Way("in", 1)).nnz


def slow_shares(inputs, y, way, classes):
    """Labels one hop away by a way: their shares, and the logarithm of the number."""
    rows, marked = slow_matrix(inputs, way), y >= 0
    overall = np.bincount(y[marked], minlength=classes) / marked.sum()
    features = []
    for row in rows:
        counts = np.array([row[y == label].sum() for label in range(classes)])
        features.append([*((counts + overall) / (counts.sum() + 1)), np.log1p(counts.sum())])
    return np.array(features)


def test_features_of_the_view():
    inputs = graph()
    ways = (MERGED, Way("out"), Way("in"), Way("in", 1))
    view = View("neighbours", 2, 4, ways=ways, apart=np.array([1]))
    features = view.features(inputs, Y)
    names = view.names(inputs, ["size", "age"])
    assert features.shape == (4, len(names))
    by_name = [f"{source}: {name}" for source, name in names]
    of = {name: features[:, [i for i, n in enumerate(by_name) if n == name]] for name in by_name}
    for way in ways:
        rows, name = slow_matrix(inputs, way), way.named(DESCRIBED)
        assert np.allclose(of[f"degree: {name}degree"][:, 0], np.log1p(rows.sum(axis=1)))
        expected = slow_shares(inputs, Y, way, 2)
        assert np.allclose(of[f"labels: {name}one hop"], expected, atol=1e-6)
    assert "labels: out two hops" in of
    assert "labels: in how=bus two hops" not in of
    assert of["one hop: size"].shape == (4, 1)
    for number, way in enumerate(ways):
        rows = slow_matrix(inputs, way)
        total = rows.sum(axis=1, keepdims=True)
        means = np.divide(rows @ X[:, 1:], total, out=np.zeros((4, 1)), where=total > 0)
        assert np.allclose(of["one hop: age"][:, number], means[:, 0], atol=1e-6)


@pytest.mark.fuzz
@given(
    arcs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12),
    labels=st.lists(st.integers(-1, 1), min_size=4, max_size=4),
    node=st.integers(0, 3),
    numbers=st.booleans(),
    seed=st.integers(0, 9),
)
def test_a_nodes_own_label_changes_none_of_its_features(arcs, labels, node, numbers, seed):
    generator = np.random.default_rng(seed)
    arcs = np.unique(np.array(arcs).T, axis=1)
    shares = generator.uniform(0, 1, (arcs.shape[1], 4)).astype(np.float32)
    y = np.array(labels, dtype=np.float64 if numbers else np.int64)
    inputs = Inputs(X, arcs, y, attributes=shares, described=DESCRIBED, directed=True)
    view = View("neighbours", 0 if numbers else 2, 4, ways=tuple(ALL), apart=np.array([0, 1]))
    overall = np.array([0.0]) if numbers else np.array([0.5, 0.5])
    inputs = replace(inputs, overall=overall)
    rows = []
    for own in (1e6, np.nan) if numbers else (0, 1, -1):
        changed = y.copy()
        changed[node] = own
        rows.append(view.features(inputs, changed)[node])
    assert all(np.array_equal(row, rows[0]) for row in rows)


class TestChoice:
    def test_relations_are_the_most_frequent_by_side(self, monkeypatch):
        monkeypatch.setattr(neighbourhood, "_RARE", 1)
        view = View.fit(graph(), "neighbours", 2, ways="apart")
        assert view.ways == (
            MERGED,
            *(Way(side, n) for n in (None, 3, 0, 1) for side in ("out", "in")),
        )
        one_way = View.fit(graph(directed=False), "neighbours", 2, ways="apart")
        assert one_way.ways == (MERGED, *(Way("both", n) for n in (3, 0, 1)))

    def test_those_of_few_arcs_or_of_all_and_those_that_make_too_many_features_are_not(
        self, monkeypatch
    ):
        assert {way.attribute for way in View.fit(graph(), "neighbours", 2, ways="apart").ways} == {
            None,
            3,
        }
        monkeypatch.setattr(neighbourhood, "_RARE", 1)
        alike = ATTRIBUTES.copy()
        alike[:, 0], alike[:, 1] = 1, 0
        ways = View.fit(graph(attributes=alike), "neighbours", 2, ways="apart").ways
        assert {way.attribute for way in ways} == {None, 3}
        monkeypatch.setattr(neighbourhood, "APART", 1)
        ways = View.fit(graph(), "neighbours", 2, ways="apart").ways
        assert {way.attribute for way in ways} == {None, 3, 0}

    def test_where_nothing_tells_neighbours_apart_there_is_none(self):
        problem = tiny_problem()
        assert problem.ways == ("sides",)
        kind = TreeFamily("lightgbm+neighbours", "neighbours")
        assert not any("ways" in setting.options for setting in kind.first(problem))
        assert "ways" not in kind.space(problem)

    def test_directions_and_relations_take_one_more_opener(self):
        one_way = ring(60)[:, :60]
        kinds = {"described": DESCRIBED[:1], "attributes": np.ones((120, 1), dtype=np.float32)}
        for more, first in [
            ({"arcs": one_way}, "sides"),
            ({"arcs": one_way, "undecided": True}, "merged"),
            (kinds, "sides"),
        ]:
            problem = tiny_problem(**more)
            assert problem.ways == (first, "apart")
            kind = LinearFamily("linear+neighbours", "neighbours")
            opened = [setting.options["ways"] for setting in kind.first(problem)]
            opened = opened[: kind.openers(problem)]
            assert opened.count("apart") == 1
            assert set(opened) == {first, "apart"}
            assert opened[0] == first
            (apart,) = (each for each in kind.first(problem) if each.options["ways"] == "apart")
            assert apart.options["means"] == "none"
            assert kind.space(problem)["ways"] == [first, "apart"]

    def test_merged_is_an_undirected_graph(self):
        undirected = tiny_problem()
        one_way = tiny_problem(arcs=ring(60)[:, :60], undecided=True)
        for sees in ("neighbours", "rows", "positions"):
            expected = undirected.features(sees, 0)
            features = one_way.features(sees, 0, ways="merged")
            if sparse.issparse(expected):
                features, expected = features.toarray(), expected.toarray()
            assert np.allclose(features, expected, atol=1e-6)

    def test_networks_begin_without_a_direction_that_is_not_sure(self):
        rules, count = Rules(), 0
        undirected = tiny_problem()
        undecided = tiny_problem(arcs=ring(60)[:, :60], undecided=True)
        for kind in families(None, rules=rules, seed=0, device="cpu", memory=None):
            if isinstance(kind, NetworkFamily) and kind.first(undirected):
                openers = kind.openers(undirected)
                first = kind.first(undecided)
                assert first[:openers] == kind.first(undirected)[:openers]
                directions = [setting.options.get("direction") for setting in first]
                count += "out" in directions[openers:]
        assert count > 2


class TestListedOnce:
    @pytest.fixture
    def graph(self):
        nodes, edges = tables()
        more = {"source": [*edges["source"], "n1"], "target": [*edges["target"], "n0"]}
        return nodes, more | {"hours": [number % 7 + 0.5 for number in range(61)]}

    def test_a_graph_has_both_forms(self, graph):
        read = memohop.read_graph(*graph, label="kind")
        listed = memohop.read_graph(*graph, label="kind", directed=True)
        without = memohop.read_graph(*graph, label="kind", directed=False)
        assert not read.directed
        assert read.data.edge_index.tolist() == without.data.edge_index.tolist()
        for name in ("edge_index", "edge_attr"):
            assert read.listed[name].tolist() == listed.data[name].tolist()
        assert listed.listed is without.listed is None
        assert any("taken to have no direction, but fit tries both" in note for note in read.notes)
        mirrored = {"source": list("abbc"), "target": list("bacb")}
        small = {"id": list("abcd"), "kind": ["x", "y", "x", "y"], "v": [1, 2, 3, 4]}
        assert memohop.read_graph(small, mirrored, label="kind").listed is None

    def test_fit_keeps_the_direction_and_knows_the_graph_again(self, graph, tmp_path):
        model = GraphClassifier(models=["lightgbm+neighbours", "sage-res"], **QUICK)
        model.fit(memohop.read_graph(*graph, label="kind"))
        assert model.directed_
        assert model.graph_.arcs.shape == (2, 61)
        model.save(tmp_path / "model")
        for again in (model, load_model(tmp_path / "model")):
            assert again.reading_["directed"] is True
            assert again.is_graph_of_fit(*graph)
            assert (again.outputs(*graph) == model.outputs()).all()

    def test_what_the_user_says_holds(self, graph):
        for directed in (True, False):
            read = memohop.read_graph(*graph, label="kind", directed=directed)
            given = given_to_fit(read, None, None)
            assert not given.undecided
            assert given.reading["directed"] is directed


@pytest.fixture(scope="module")
def fitted():
    """Models of trees, linear models and positions with all ways, mixed."""
    data = tiny_data(
        edge_index=ring(60)[:, :60],
        edge_type=np.arange(60) % 3,
        edge_attr=np.random.default_rng(0).normal(size=60),
    )
    settings = [
        Setting(name, {"ways": "apart"}, dict(kind.first(tiny_problem())[0].numbers))
        for name, kind in {
            "linear+rows": LinearFamily("linear", "rows"),
            "lightgbm+positions": TreeFamily("lightgbm", "positions"),
        }.items()
    ]
    with pytest.MonkeyPatch.context() as patch:
        for kind, setting in zip((LinearFamily, TreeFamily), settings, strict=True):
            patch.setattr(kind, "first", lambda self, problem, setting=setting: [setting])
        models = [setting.family for setting in settings]
        return data, [GraphClassifier(models=[name], **QUICK).fit(data) for name in models]


def test_a_saved_model_collects_as_before(fitted, tmp_path):
    data, models = fitted
    for number, model in enumerate(models):
        ways = model.model_.components[0].models[0].view.ways
        assert {way.attribute for way in ways} == {None, 1, 2, 3}
        model.save(tmp_path / f"{number}")
        again = load_model(tmp_path / f"{number}")
        assert again.model_.components[0].models[0].view.ways == ways
        assert np.array_equal(again.outputs(), model.outputs())
        assert np.array_equal(
            again.outputs(data, as_another_graph=True), model.outputs(data, as_another_graph=True)
        )


def test_explanations_name_the_ways(fitted):
    _, models = fitted
    for model in models:
        explanation = explain_fit(model, 7)
        assert sum(explanation.sources.values()) == pytest.approx(1)
    labels = {name for source, name in explanation.node.reasons if source == "labels"}
    assert labels <= {
        f"{side}{kind}one hop"
        for side, kind in product(("", "out ", "in "), ("", *(f"edge type {n} " for n in range(3))))
    } | {f"{side}two hops" for side in ("", "out ", "in ")}


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ([[0, -1], [3, -1]], "which the graph does not have"),
        ([[0, -1], [1, 4]], "which the graph does not have"),
        ([[0, -1], [1, -2]], "which the graph does not have"),
        ([[0, -1], [1, 0]], "'edge attribute 0', which is no relation"),
        ([[1, -1], [0, -1]], "do not begin with all neighbours"),
        ([[0, -1], [1, 1], [1, 1]], "or come again"),
        ([[0, -1], [1, 1]], "which its view does not make"),
        ([], "do not begin"),
    ],
)
def test_forged_ways_are_refused(fitted, ways, words, tmp_path):
    *_, model = fitted[1]
    view = model.model_.components[0].models[0].view
    saved = view.saved()
    forged = replace(saved, arrays={**saved.arrays, "ways": np.array(ways, int).reshape(-1, 2)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(View, "saved", lambda self: forged)
        model.save(tmp_path / "model")
    with pytest.raises(DataError, match=words):
        load_model(tmp_path / "model")


def test_what_the_kept_models_do_without_is_asked_of_no_later_graph(tmp_path):
    nodes, edges = tables()
    edges |= {"how": ["car", "bus", "boat"] * 20}
    model = GraphClassifier(models=["lightgbm+positions"], **QUICK)
    model.fit(memohop.read_graph(nodes, edges, label="kind", directed=False))
    assert model.arc_attributes_ == []
    assert model.graph_.attributes is None
    assert model.encoder_.edges.attributes == ()
    assert model.outputs(model.graph_.x, model.graph_.arcs).shape == (60, 2)
