"""What trees and linear models see of a node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from memohop import UsageError
from memohop.fit import _views as views
from memohop.fit._graph import Inputs
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._view_family import check_width

# 0 - 1 - 2 and 1 - 3, arcs both ways
ARCS = np.array([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]])
X = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 6.0], [9.0, 0.0]], dtype=np.float32)
Y = np.array([0, 1, 1, 0])


def graph(x=X, y=Y):
    return Inputs(x, ARCS, y, of_fit=4)


def test_columns_alone_are_the_columns():
    inputs = graph()
    assert View.fit(inputs, "columns", 2).features(inputs, Y) is inputs.x


def test_neighbours_give_degree_means_of_two_hops_and_shares_of_labels():
    inputs = graph()
    features = View.fit(inputs, "neighbours", 2).features(inputs, Y)
    one_hop = np.array([[2, 0], [14 / 3, 2], [2, 0], [2, 0]])
    two_hops = np.array([[14 / 3, 2], [2, 0], [14 / 3, 2], [14 / 3, 2]])
    assert np.allclose(features[:, :2], X)
    assert np.allclose(np.expm1(features[:, 2]), [1, 3, 1, 1])
    assert np.allclose(features[:, 3:5], one_hop)
    assert np.allclose(features[:, 5:7], two_hops)
    assert np.allclose(features[:, 7:], inputs.neighbourhood.label_shares(Y, 2))
    assert features.dtype == np.float32


def test_rows_of_the_graph_come_last_and_make_all_sparse():
    inputs = graph()
    features = View.fit(inputs, "rows", 2).features(inputs, Y)
    assert sparse.issparse(features)
    assert (features.toarray()[:, -4:] == inputs.neighbourhood.both.toarray()).all()


def test_another_graph_has_no_rows_of_this_one():
    view = View.fit(graph(), "rows", 2)
    other = Inputs(X[:3], ARCS[:, :4], Y[:3])
    features = view.features(other, Y[:3])
    assert features.shape == (3, view.features(graph(), Y).shape[1])
    assert (features.toarray()[:, -4:] == 0).all()


def test_many_sparse_columns_stay_sparse_and_are_combined_for_two_hops(monkeypatch):
    monkeypatch.setattr(views, "_WIDE", 3)
    monkeypatch.setattr(views, "COMBINED", 2)
    x = sparse.csr_array(np.eye(4, 5, dtype=np.float32))
    inputs = graph(x)
    view = View.fit(inputs, "neighbours", 2)
    features = view.features(inputs, Y)
    assert sparse.issparse(features)
    combined = x.toarray() @ view.components.T
    one_hop = inputs.neighbourhood.mean(combined)
    dense = features.toarray()
    assert np.allclose(dense[:, :5], x.toarray())
    assert np.allclose(dense[:, 6:8], one_hop, atol=1e-6)
    assert np.allclose(dense[:, 8:10], inputs.neighbourhood.mean(one_hop), atol=1e-6)
    assert np.allclose(dense[:, 10:15], inputs.neighbourhood.mean(x.toarray()))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_means_of_numbers_alone_leave_words_to_the_node_itself(form, monkeypatch):
    """A column that is 0 in more than half of the nodes counts as a word here."""
    monkeypatch.setattr(views, "_OFTEN", 0.5)
    inputs = graph(form(X))
    view = View.fit(inputs, "neighbours", 2, means="numbers")
    features, names = view.features(inputs, Y), view.names(inputs, ["number", "word"])
    features = features.toarray() if sparse.issparse(features) else features
    assert names[:5] == [
        ("own", "number"),
        ("own", "word"),
        ("degree", "degree"),
        ("one hop", "number"),
        ("two hops", "number"),
    ]
    assert np.allclose(features[:, 3], [2, 14 / 3, 2, 2])
    assert np.allclose(features[:, 4], [14 / 3, 2, 14 / 3, 14 / 3])
    assert len(names) == features.shape[1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("ways", ["sides", "apart"])
def test_without_means_neighbours_are_their_number_and_their_labels(form, ways):
    inputs = replace(graph(form(X)), arcs=ARCS[:, ::2])  # directed
    view = View.fit(inputs, "neighbours", 2, means="none", ways=ways)
    features = view.features(inputs, Y)
    features = features.toarray() if sparse.issparse(features) else features
    near = inputs.neighbourhood
    assert len(view.ways) == 3
    expected = [X, near.degrees(view.ways), near.label_shares(Y, 2, ways=view.ways)]
    assert np.array_equal(features, np.hstack(expected))
    names = view.names(inputs, ["number", "word"])
    assert len(names) == features.shape[1]
    assert {name.source for name in names} == {"own", "degree", "labels"}


def test_one_graph_after_another_is_never_mistaken_for_the_last():
    """A graph that is gone may leave its address in RAM to the next."""
    view = View.fit(graph(), "neighbours", 2)
    for scale in range(20):
        features = view.features(graph(X * scale), Y)
        assert np.allclose(features[:, :2], X * scale)


def _slow_positions(adjacency):
    """The scaled matrix times its right singular vectors, whose signs are arbitrary."""
    rows, columns = adjacency.sum(axis=1), adjacency.sum(axis=0)
    scaled = adjacency / np.sqrt(np.outer(np.maximum(rows, 1e-30), np.maximum(columns, 1e-30)))
    left, sizes, _ = np.linalg.svd(np.where(adjacency > 0, scaled, 0))
    return left * sizes


def test_positions_are_the_leading_singular_vectors(monkeypatch):
    generator = np.random.default_rng(0)
    arcs = np.unique(generator.integers(9, size=(2, 60)), axis=1)
    arcs = arcs[:, arcs[0] != arcs[1]]
    inputs = Inputs(np.eye(9, 2, dtype=np.float32), arcs, np.arange(9) % 2, of_fit=9)
    monkeypatch.setattr("memohop.fit._positions._VECTORS", 3)
    view = View.fit(inputs, "positions", 2)
    names = view.names(inputs, ["a", "b"])
    features = view.features(inputs, inputs.y)
    at = [number for number, feature in enumerate(names) if feature.source == "position"]
    ends = [f"{end} {number}" for end in ("out", "in") for number in (1, 2, 3)]
    assert [names[number].name for number in at] == ends
    assert len(names) == features.shape[1]
    ends = (inputs.neighbourhood.out, inputs.neighbourhood.into)
    for part, adjacency in zip(np.split(features[:, at], 2, axis=1), ends, strict=True):
        slow = _slow_positions(adjacency.toarray().astype(np.float64))[:, :3]
        assert np.abs(part) == pytest.approx(np.abs(slow), abs=1e-3)


def test_a_later_node_has_the_position_of_one_with_the_same_neighbours():
    view = View.fit(graph(), "positions", 2)
    # Node 4 comes later and is a neighbour of node 1, like nodes 0, 2 and 3.
    later = graph().with_new_nodes(X[:1], np.array([[1, 4], [4, 1]]), np.array([-1]), None)
    names = view.names(later, ["a", "b"])
    at = [number for number, feature in enumerate(names) if feature.source == "position"]
    positions = view.features(later, later.y)[:, at]
    assert positions[4] == pytest.approx(positions[0], abs=1e-6)
    assert np.abs(positions[0]).max() > 0.1
    other = Inputs(X[:3], ARCS[:, :4], Y[:3])
    assert (view.features(other, Y[:3])[:, at] == 0).all()


def test_numbers_beside_many_words_keep_their_means(monkeypatch):
    monkeypatch.setattr(views, "_WIDE", 6)
    monkeypatch.setattr(views, "COMBINED", 2)
    words = sparse.random_array((40, 9), density=0.1, rng=np.random.default_rng(0))
    numbers = np.random.default_rng(1).normal(size=(40, 2))
    x = sparse.csr_array(sparse.hstack([words, numbers]).astype(np.float32))
    ring = np.stack([np.arange(40), np.roll(np.arange(40), 1)])
    inputs = Inputs(x, np.hstack([ring, ring[::-1]]), np.arange(40) % 2, of_fit=40)
    view = View.fit(inputs, "neighbours", 2)
    columns = [f"w{number}" for number in range(9)] + ["age", "size"]
    names = view.names(inputs, columns)
    features = view.features(inputs, inputs.y).toarray()
    assert len(names) == features.shape[1]
    at = [names.index(views.Feature("two hops", name)) for name in ("age", "size")]
    one_hop = (np.roll(numbers, 1, axis=0) + np.roll(numbers, -1, axis=0)) / 2
    two_hops = (np.roll(one_hop, 1, axis=0) + np.roll(one_hop, -1, axis=0)) / 2
    assert np.allclose(features[:, at], two_hops, atol=1e-5)
    assert views.Feature("two hops", "combination 3") in names


def numbers_and_words(words=9, nodes=40):
    """Words, then two numbers, on a ring."""
    x = sparse.random_array((nodes, words), density=0.1, rng=np.random.default_rng(0))
    numbers = np.random.default_rng(1).normal(size=(nodes, 2))
    x = sparse.csr_array(sparse.hstack([x, numbers]).astype(np.float32))
    ring = np.stack([np.arange(nodes), np.roll(np.arange(nodes), 1)])
    y = np.arange(nodes) % 2
    return Inputs(x, np.hstack([ring, ring[::-1]]), y, of_fit=nodes)


NAMES = [f"w{number}" for number in range(9)] + ["age", "size"]


@pytest.mark.parametrize("sees", ["columns", "neighbours", "rows", "positions"])
@pytest.mark.parametrize("columns", ["numbers", "low-rank"])
def test_own_columns_are_numbers_alone_or_beside_a_few_combinations(sees, columns, monkeypatch):
    monkeypatch.setattr(views, "COMBINED", 3)
    inputs = numbers_and_words()
    view = View.fit(inputs, sees, 2, columns=columns)
    x, names = inputs.x.toarray().astype(np.float64), view.names(inputs, NAMES)
    expected, width = x[:, 9:], 2
    if columns == "low-rank":
        left, sizes, _ = np.linalg.svd(x[:, :9], full_matrices=False)
        expected, width = np.hstack([expected, (left * sizes)[:, :3]]), 5
    features = view.features(inputs, inputs.y)
    features = features.toarray() if sparse.issparse(features) else features
    # Singular vectors have arbitrary signs.
    np.testing.assert_allclose(np.abs(features[:, :width]), np.abs(expected), atol=1e-4)
    assert len(names) == features.shape[1]
    assert [name for source, name in names if source == "own"] == [
        *("age", "size"),
        *(f"combination {number}" for number in range(3, width + 1)),
    ]
    assert not any(name.startswith("w") for source, name in names if source != "rows")
    if sees == "neighbours":  # their means are of the same columns
        at = [number for number, name in enumerate(names) if name.source == "one hop"]
        one_hop = (np.roll(expected, 1, axis=0) + np.roll(expected, -1, axis=0)) / 2
        np.testing.assert_allclose(features[:, at[:2]], one_hop[:, :2], atol=1e-6)
        mean = inputs.neighbourhood.mean(features[:, :width])
        np.testing.assert_allclose(features[:, at], mean, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_row_of_few_combinations_is_the_same_wherever_it_stands(form, monkeypatch):
    monkeypatch.setattr(views, "COMBINED", 3)
    inputs = numbers_and_words()
    inputs = Inputs(form(inputs.x.toarray()), inputs.arcs, inputs.y, of_fit=40)
    view = View.fit(inputs, "columns", 2, columns="low-rank")
    whole = view.own_columns(inputs)
    for rows in ([7], [9, 7, 1], np.arange(40)[::-1]):
        np.testing.assert_array_equal(view.own_columns(inputs, np.array(rows)), whole[rows])


def test_words_are_no_numbers_however_frequent():
    words = np.array([True, False])  # of which the first is in every row
    inputs = Inputs(X, ARCS, Y, of_fit=4, words=words)
    assert graph().numbers.tolist() == [0, 1]
    assert inputs.numbers.tolist() == [1]
    view = View.fit(inputs, "neighbours", 2, means="numbers", columns="numbers")
    features = view.features(inputs, Y)
    assert np.array_equal(features[:, 0], X[:, 1])
    assert np.allclose(features[:, 2], [0, 2, 0, 0])  # one hop
    of_edges = Inputs(X, ARCS, Y, of_fit=4, of_edges=1, words=words)
    assert of_edges.numbers.tolist() == []
    assert of_edges.all_numbers.tolist() == [1]


@pytest.mark.parametrize("columns", ["numbers", "low-rank"])
def test_statistics_of_edges_are_none_of_the_columns_alone(columns, monkeypatch):
    monkeypatch.setattr(views, "COMBINED", 3)
    given = numbers_and_words()
    inputs = Inputs(given.x, given.arcs, given.y, of_fit=40, of_edges=1)  # the last number
    without = Inputs(given.x[:, :10], given.arcs, given.y, of_fit=40)
    view, expected = (View.fit(each, "columns", 2, columns=columns) for each in (inputs, without))
    np.testing.assert_array_equal(view.own_columns(inputs), expected.own_columns(without))
    assert view.names(inputs, NAMES) == expected.names(without, NAMES[:10])
    whole = View.fit(inputs, "neighbours", 2, columns=columns)
    names = whole.names(inputs, NAMES)
    assert names[:2] == [("own", "age"), ("edges", "size")]
    assert len(names) == whole.features(inputs, inputs.y).shape[1]
    sizes = Sizes(11, 2, 40, False, 1)
    for each in (view, whole):
        again = View.from_saved(each.saved(), sizes)
        features = each.features(inputs, inputs.y)
        np.testing.assert_array_equal(again.features(inputs, inputs.y), features)
        check_width(again, features.shape[1], sizes)


class TestSavedOwnColumns:
    SIZES = Sizes(11, 2, 40, False)

    def view(self):
        return View.fit(numbers_and_words(), "neighbours", 2, columns="low-rank")

    def test_are_those_of_fit_also_for_another_graph(self):
        view = self.view()
        again = View.from_saved(view.saved(), self.SIZES)
        inputs = numbers_and_words()
        other = Inputs(inputs.x[:5] * 2, np.array([[0, 1], [1, 0]]), np.arange(5) % 2)
        for graph in (inputs, other):
            known = graph.y
            np.testing.assert_array_equal(again.features(graph, known), view.features(graph, known))
        check_width(again, view.features(inputs, inputs.y).shape[1], self.SIZES)

    @pytest.mark.parametrize(
        "own",
        [np.ones((3, 10)), np.ones(11), np.full((3, 11), np.nan), np.ones((3, 11), dtype=int)],
    )
    def test_of_another_shape_or_without_numbers_are_refused(self, own):
        saved = self.view().saved()
        own = own.astype(np.float32) if own.dtype == np.float64 else own
        with pytest.raises(UsageError, match="columns"):
            View.from_saved(Saved(saved.about, {**saved.arrays, "columns": own}), self.SIZES)

    @pytest.mark.parametrize("width", [0, 5, 10**12])
    def test_make_no_other_number_of_features(self, width):
        with pytest.raises(UsageError, match=f"{width} features"):
            check_width(self.view(), width, self.SIZES)
