"""What structure says of nodes, beside networkx and beside products of dense matrices."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop import GraphClassifier, UsageError, load_model
from memohop.errors import MemohopWarning
from memohop.explain import explain_fit
from memohop.explain._contributions import sizes as contributions
from memohop.fit import _neighbourhood as near_by
from memohop.fit import _structure as structures
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import Neighbourhood
from memohop.fit._saved import Saved, Sizes
from memohop.fit._structure import (
    core_numbers,
    page_rank,
    structure,
    structure_bytes,
    structure_width,
)
from memohop.fit._views import View
from memohop.fit.candidates._fitted_network import Network
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates.catalogue import families
from memohop.training import DEFAULT_RULES
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

NODES = 30
ARCS = st.lists(st.tuples(*[st.integers(0, NODES - 1)] * 2), max_size=120)
EXTRAS = {"models": ["lightgbm+neighbours", "lightgbm+positions"], **QUICK}


def near(arcs, weights=None, directed=False):
    ends = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    return Neighbourhood(ends, NODES, weights, directed)


def of(neighbourhood):
    return neighbourhood.structure(triangles=True)


def walks(matrix):
    total = matrix.sum(axis=1, keepdims=True)
    return np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)


@given(ARCS)
def test_numbers_of_an_undirected_graph_are_those_of_networkx(arcs):
    graph = nx.Graph(arcs)
    graph.add_nodes_from(range(NODES))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    told = of(near(arcs))

    def expected(values):
        return [values[node] for node in range(NODES)]

    ranks = nx.pagerank(graph, tol=1e-12, max_iter=1000)
    assert np.allclose(np.exp(told["page rank"]) / NODES, expected(ranks), rtol=1e-6)
    assert np.allclose(np.expm1(told["core number"]), expected(nx.core_number(graph)))
    assert np.allclose(np.expm1(told["triangles"]), expected(nx.triangles(graph)))
    assert np.allclose(told["clustering"], expected(nx.clustering(graph)))
    parts = [len(nx.node_connected_component(graph, node)) for node in range(NODES)]
    assert np.allclose(np.exp(told["nodes connected"]), parts)
    for node in range(NODES):
        degrees = np.log1p([graph.degree(other) for other in graph[node]] or [0])
        for name, value in {
            "mean degree of neighbours": degrees.mean(),
            "spread of neighbours' degrees": degrees.std(),
            "greatest degree of neighbours": degrees.max(),
        }.items():
            assert told[name][node] == pytest.approx(value, abs=1e-6)


@given(ARCS, st.integers(0, 99))
def test_walks_return_as_often_as_powers_of_their_matrix_say(arcs, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 9, len(arcs)).astype(np.float32)
    both = near(arcs, weights)
    told, step = of(both), walks(both.both.toarray().astype(np.float64))
    for steps, name in ((2, "two"), (3, "three"), (4, "four")):
        expected = np.diag(np.linalg.matrix_power(step, steps))
        assert np.allclose(told[f"return in {name} steps"], expected, atol=1e-12)


@given(ARCS, st.integers(0, 99))
def test_page_ranks_of_directed_graphs_follow_the_weights_of_arcs(arcs, seed):
    arcs = sorted({(begin, end) for begin, end in arcs if begin != end})
    weights = np.random.default_rng(seed).uniform(0.1, 9, len(arcs)).astype(np.float32)
    told = of(near(arcs, weights, directed=True))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(NODES))
    graph.add_weighted_edges_from((*arc, float(w)) for arc, w in zip(arcs, weights, strict=True))
    names = {"page rank": graph, "page rank against the arcs": graph.reverse()}
    for name, followed in names.items():
        ranks = nx.pagerank(followed, tol=1e-12, max_iter=1000)
        expected = [NODES * ranks[node] for node in range(NODES)]
        assert np.allclose(np.exp(told[name]), expected, rtol=1e-5)


def test_long_walks_on_large_graphs_are_estimated(monkeypatch):
    both = near(list(nx.gnm_random_graph(NODES, 90, seed=3).edges))
    exact = of(both)["return in four steps"]
    monkeypatch.setattr(structures, "_EXACT", 0)
    guessed = structure(both.both, [both.both], triangles=True)["return in four steps"]
    assert np.corrcoef(exact, guessed)[0, 1] > 0.95
    assert np.allclose(exact, guessed, rtol=0.5)
    assert (guessed != exact).any()


def test_products_may_be_taken_in_many_parts(monkeypatch):
    both = near(list(nx.gnm_random_graph(NODES, 90, seed=3).edges))
    whole = structure(both.both, [both.both], triangles=True)
    monkeypatch.setattr(structures, "_AT_ONCE", 20)
    parts = structure(both.both, [both.both], triangles=True)
    for name, values in whole.items():
        assert np.allclose(parts[name], values), name


def test_a_graph_without_arcs_says_nothing():
    for name, values in of(near([])).items():
        assert (values == 0).all(), name
    assert core_numbers(near([]).both).tolist() == [0] * NODES
    assert page_rank(near([]).both) == pytest.approx(np.ones(NODES))


class TestViews:
    """Structure, extremes and spread as features."""

    # 0 - 1 - 2 and 1 - 3, arcs both ways
    ARCS = np.array([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])
    X = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 6.0], [9.0, 0.0]], dtype=np.float32)
    Y = np.array([0, 1, 1, 0])

    def view(self, extras, sees="neighbours"):
        inputs = Inputs(self.X, self.ARCS, self.Y, of_fit=4)
        view = View.fit(inputs, sees, 2, extras=extras)
        features = view.features(inputs, self.Y)
        return features, view.names(inputs, ["size", "age"])

    def test_all_have_a_name_and_stand_where_it_says(self):
        features, names = self.view("both")
        assert features.shape == (4, len(names))
        by_name = {name: features[:, number] for number, name in enumerate(names)}
        assert by_name["least", "size"].tolist() == [2, 1, 2, 2]
        assert by_name["greatest", "size"].tolist() == [2, 9, 2, 2]
        assert by_name["spread", "size"] == pytest.approx([0, np.std([1, 4, 9]), 0, 0])
        assert by_name["structure", "core number"] == pytest.approx(np.log([2] * 4))
        assert by_name["structure", "return in two steps"] == pytest.approx(
            [1 / 3, 1, 1 / 3, 1 / 3]
        )
        few, few_names = self.view("none")
        old = [number for number, name in enumerate(names) if name in few_names]
        assert np.array_equal(features[:, old], few)

    @pytest.mark.parametrize("rows", [[1, 3], [0], []])
    def test_some_nodes_have_what_they_have_among_all(self, rows):
        inputs = Inputs(self.X, self.ARCS, self.Y, of_fit=4)
        view, some = View.fit(inputs, "neighbours", 2, extras="both"), np.array(rows, dtype=int)
        shares = inputs.neighbourhood.label_shares(self.Y, 2)
        features = view.with_shares(inputs, [shares[some]], some)
        assert np.allclose(features, view.with_shares(inputs, [shares])[some])

    def test_positions_are_from_both_ends_of_the_spectrum(self):
        features, names = self.view("structure", "positions")
        assert features.shape == (4, len(names))
        ends = [name for source, name in names if source == "position"]
        assert ends == ["1", "2", "3", "other end 1", "other end 2", "other end 3"]
        # A star has the eigenvalues 1, 0, 0 and -1: the last has opposite signs at its ends.
        first = features[:, names.index(("position", "other end 1"))]
        assert first[0] == pytest.approx(first[2]) == pytest.approx(first[3])
        assert first[0] * first[1] < 0

    def test_a_dense_graph_does_without_triangles_and_says_so(self, monkeypatch):
        monkeypatch.setattr(near_by, "COSTLY", 1)
        inputs = tiny_problem(arcs=np.stack(np.triu_indices(60, 1)))
        with pytest.warns(MemohopWarning, match="too dense to count triangles"):
            view = View.fit(inputs, "neighbours", 2, extras="structure")
        names = [name for source, name in view.names(inputs, "abc") if source == "structure"]
        assert "core number" in names
        assert "triangles" not in names
        assert view.features(inputs, inputs.y).shape[1] == len(view.names(inputs, "abc"))

    def test_damaged_ones_are_refused(self):
        inputs = Inputs(self.X, self.ARCS, self.Y, of_fit=4)
        view, sizes = View.fit(inputs, "positions", 2, extras="both"), Sizes(2, 2, 4, False)
        saved = view.saved()
        again = View.from_saved(saved, sizes).features(inputs, self.Y)
        assert np.array_equal(again, view.features(inputs, self.Y))
        for about, arrays in (
            ({"structure": "all"}, {}),
            ({"structure": None}, {}),
            ({}, {"spread_of": np.array([2])}),
            ({}, {"spread_of": np.array([-1])}),
            ({}, {"spread_of": np.zeros(1, dtype=np.float32)}),
            ({}, {"basis": np.zeros((4, 5), dtype=np.float32)}),
        ):
            with pytest.raises(UsageError):
                View.from_saved(Saved(saved.about | about, saved.arrays | arrays), sizes)


class TestModels:
    """Models that see them, on the graph of ``fit``, on one that has grown, and on another."""

    @pytest.fixture
    def model(self):
        """On rings with chords, where those at a chord are the one class."""
        chords = np.array([[0, 9, 20, 34], [5, 15, 27, 41]])
        arcs = np.hstack([ring(60), chords, chords[::-1]])
        y = np.isin(np.arange(60), chords).astype(int)
        data = tiny_data(edge_index=arcs, y=y, x=np.ones((60, 1), dtype=np.float32))
        model = GraphClassifier(models=["linear+neighbours"], trials=2, time=None, splits=2)
        return model.fit(data)

    def test_structure_is_tried_once_by_each_kind_of_neighbours(self):
        problem = tiny_problem()
        for name in ("linear+neighbours", "lightgbm+neighbours", "extra-trees+neighbours"):
            kind, *_ = families([name], rules=DEFAULT_RULES, seed=0, device="cpu", memory=None)
            tried = kind.first(problem)[: kind.openers(problem)]
            assert [setting.options["extras"] for setting in tried] == ["none", "structure"]
            assert {*kind.space(problem)["extras"]} == {"none", "structure", "spread", "both"}
            costs = [kind.cost(problem, setting).bytes for setting in tried]
            assert costs[1] - costs[0] >= structure_bytes(60, 120)

    def test_nodes_with_times_see_no_structure_and_only_what_is_earlier(self):
        problem = tiny_problem(times=np.arange(60.0))
        kind, *_ = families(
            ["linear+neighbours"], rules=DEFAULT_RULES, seed=0, device="cpu", memory=None
        )
        assert {setting.options["extras"] for setting in kind.first(problem)} == {"none"}
        assert kind.openers(problem) == 1
        assert kind.space(problem)["extras"] == ["none", "spread"]
        x = np.where(np.arange(60)[:, None] > 30, 99 - problem.x, problem.x)
        told, scrambled = (
            tiny_problem(times=problem.times, x=each).neighbourhood.spread(each)
            for each in (problem.x, x)
        )
        assert np.array_equal(told[:31], scrambled[:31])
        assert not np.array_equal(told, scrambled)

    @pytest.mark.parametrize("directed", [False, True])
    @pytest.mark.parametrize("few", [True, False])
    def test_networks_may_see_structure(self, directed, few, tmp_path, monkeypatch):
        monkeypatch.setattr(Neighbourhood, "has_few_triangles", few)
        arcs = np.array(nx.gnm_random_graph(60, 150, seed=2).edges).T
        problem = tiny_problem(arcs=np.hstack([arcs, arcs[::-1]]), directed=directed)
        kind = NetworkFamily("gcn-res", epochs=3)
        first = kind.first(problem)
        (setting,) = [each for each in first if each.options.get("extras") == "structure"]
        assert first.index(setting) == kind.openers(problem)
        assert kind.space(problem)["extras"] == ["none", "structure"]
        plain, seeing = (kind.fit(problem, [each], [0])[0][0].part for each in (first[0], setting))
        assert (plain.needs_whole_graph, seeing.needs_whole_graph) == (False, True)
        numbers = structure_width(1 + directed, triangles=few)
        assert seeing.sizes[0] - plain.sizes[0] == numbers == len(seeing.structure_names(problem))
        x = seeing.ready(problem)[1].x[:, -numbers:].numpy()
        told = np.stack([*problem.neighbourhood.structure(triangles=few).values()], axis=1)
        spread = np.where(np.ptp(told, axis=0) > 1e-9, told.std(axis=0), 1)
        assert np.allclose(3 * x, (told - told.mean(axis=0)) / spread, atol=1e-4)
        sizes, saved = Sizes(3, 2, 60, directed), seeing.saved()
        again = Network.from_saved(saved, None, sizes)
        assert np.array_equal(again.outputs(problem), seeing.outputs(problem))
        assert {feature.source for feature in contributions(again, problem, "abc")} == {
            "network",
            "degree",
            "structure",
        }
        for damaged in (np.zeros((2, numbers)), np.ones((2, numbers + 1)), np.ones((1, numbers))):
            forged = saved.arrays | {"structure": damaged.astype(np.float32)}
            with pytest.raises(UsageError):
                Network.from_saved(Saved(saved.about, forged), None, sizes)

    def test_networks_of_parts_or_with_times_see_none(self):
        timed = tiny_problem(times=np.arange(60.0))
        for kind, problem in (
            (NetworkFamily("gcn+mmp", in_parts=2), tiny_problem()),
            (NetworkFamily("gcn-res"), timed),
            (NetworkFamily("mlp"), tiny_problem()),
        ):
            assert "extras" not in kind.space(problem)
            seen = {each.options.get("extras", "none") for each in kind.first(problem)}
            assert seen == {"none"}

    def test_they_follow_new_nodes_and_other_graphs(self, model, tmp_path):
        model.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        assert "structure" in explain_fit(again, node=0).sources
        x = np.ones((2, 1), dtype=np.float32)
        alone, joined = np.array([[60], [61]]), np.array([[60, 60], [61, 5]])
        said = [again.outputs(x, arcs, append=True) for arcs in (alone, joined)]
        assert said[0][0] != pytest.approx(said[1][0])
        grown = np.hstack([model.graph_.arcs, joined])
        y = np.append(model.graph_.y, [-1, -1])
        whole = Inputs(np.ones((62, 1), dtype=np.float32), grown, y, of_fit=60, directed=False)
        assert np.array_equal(model.model_.outputs(whole)[60:], said[1])
        other = again.outputs(np.ones((62, 1), dtype=np.float32), grown)
        assert other.shape == (62, 2)
