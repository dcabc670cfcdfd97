"""Nodes that come after a model was fitted: attached to its graph, or in a graph of their own."""

import numpy as np
import pytest
from scipy import sparse

from memohop import GraphClassifier, UsageError, load_model
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

KINDS = ("linear", "linear+rows", "lightgbm+neighbours", "linkx", "gcn-res")
NEW = tiny_problem(seed=7).x[:2]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request, few_epochs):
    return GraphClassifier(models=[request.param], **QUICK).fit(tiny_data())


def both_ways(*edges):
    return np.array([*edges, *(edge[::-1] for edge in edges)]).T


def test_nodes_without_arcs_to_it_do_not_change_the_graph(fitted):
    apart = both_ways((60, 61))
    old = fitted.graph_
    joined = fitted.outputs(NEW, apart, append=True)
    assert joined.shape == (2, 2)
    assert np.isfinite(joined).all()
    again = fitted.outputs(NEW, np.hstack([apart, ring(60)]), append=True)  # arcs that are there
    assert (again == joined).all()
    assert fitted.own_graph() is old


def test_a_new_node_hears_its_neighbours(fitted):
    here, there = (
        fitted.outputs(NEW, both_ways((60, node), (61, 5)), append=True) for node in (10, 11)
    )
    if fitted.models == ["linear"]:
        assert (here == there).all()
    else:
        assert (here[0] != there[0]).any()


def test_a_copy_of_an_old_node_is_predicted_like_it(fitted):
    """It has the same columns, and arcs to the same old nodes; the old one's label is its own."""
    if fitted.models[0] in ("linear", "linkx"):
        copy = fitted.outputs(fitted.graph_.x[7:8], both_ways((60, 6), (60, 8)), append=True)
        assert copy[0] == pytest.approx(fitted.outputs()[7], abs=1e-5)


def test_another_graph_of_the_same_size_is_not_taken_for_that_of_fit(fitted):
    graph, own = fitted.graph_, fitted.outputs()
    other = graph.x.copy()
    other[7] += 1e-3
    for x, arcs in ((other, ring(60)), (graph.x, (2 * ring(60)) % 60), (graph.x, ring(60)[:, 1:])):
        assert not fitted.is_graph_of_fit(x, arcs)
    outputs = fitted.outputs(graph.x, ring(60), as_another_graph=True)
    assert np.isfinite(outputs).all()
    if fitted.models[0] in ("linear+rows", "linkx"):
        assert (outputs != own).any()


def test_the_graph_of_fit_is_predicted_with_its_labels_however_it_is_given(fitted, tmp_path):
    problem, own = tiny_problem(), fitted.outputs()
    arcs = ring(60)[:, np.random.default_rng(0).permutation(120)]
    ones = np.ones(120)
    fitted.save(tmp_path / "model")
    for model in (fitted, load_model(tmp_path / "model")):
        for x, edges in (
            (problem.x.astype(np.float64), ring(60)),
            (sparse.csr_array(problem.x), arcs),
            (problem.x, sparse.coo_array((ones, arcs))),
            (tiny_data(edge_index=arcs), None),
        ):
            assert (model.outputs(x, edges) == own).all()
            assert (model.predict(x, edges) == model.predict()).all()
    unlike = fitted.outputs(as_another_graph=True)
    assert (unlike == fitted.outputs(problem.x, arcs, as_another_graph=True)).all()
    labels = np.where(np.arange(60) % 2, problem.y, 1 - problem.y)  # others than those of fit
    right = own.argmax(axis=1) == labels
    assert fitted.score(problem.x, labels, arcs) == right.mean()
    assert fitted.score() == (own.argmax(axis=1) == problem.y).mean()
    right = unlike.argmax(axis=1) == labels
    assert fitted.score(problem.x, labels, arcs, as_another_graph=True) == right.mean()


def test_directions_that_did_not_count_in_fit_do_not_count_later(fitted):
    one_way, two_ways = ring(60)[:, :60], ring(60)
    if "gcn" not in fitted.models[0]:  # which makes its own graph from the arcs
        outputs = fitted.outputs(fitted.graph_.x, one_way)
        same = fitted.outputs(fitted.graph_.x, two_ways, as_another_graph=True)
        assert outputs == pytest.approx(same, abs=1e-5)


def test_calls_that_cannot_be_right(fitted):
    with pytest.raises(UsageError, match="append=True, but X is None"):
        fitted.predict(append=True)
    with pytest.raises(UsageError, match="append=True, but as_another_graph=True"):
        fitted.predict(NEW, both_ways((60, 61)), append=True, as_another_graph=True)
    with pytest.raises(UsageError, match="points outside the graph"):
        fitted.predict(NEW, [[62], [0]], append=True)
    with pytest.raises(UsageError, match="edges is None"):
        fitted.predict(NEW, append=True)
