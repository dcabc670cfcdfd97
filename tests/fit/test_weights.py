"""Weights of arcs, from the graph that a user gives to predictions and explanations."""

import numpy as np
import pytest

from memohop import GraphClassifier, UsageError
from memohop.data.tables import from_arrays
from memohop.explain import explain_fit
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

RING = ring(60)
WEIGHTS = (1 + np.tile(np.arange(60), 2) % 3).astype(np.float32)  # of the edges of a ring


NEW = np.array([[60, 0, 60, 1], [0, 60, 1, 60]])  # arcs of a new node


def as_data(arcs=RING, weights=WEIGHTS):
    return tiny_data(edge_index=arcs, edge_weight=weights)


def new_node(*weights):
    data = as_data(NEW, np.array(weights))
    data.x, data.y = data.x[:1], data.y[:1]
    return data


@pytest.fixture(scope="module", params=["gcn+mmp", "gcn-res", "lightgbm+neighbours"])
def fitted(request, few_epochs):
    return GraphClassifier(models=[request.param], **QUICK).fit(as_data())


def test_other_weights_give_other_outputs(fitted):
    said = fitted.outputs(as_data())
    assert (fitted.outputs(as_data(weights=WEIGHTS[::-1].copy())) != said).any()
    order = np.random.default_rng(0).permutation(120)
    shuffled = as_data(RING[:, order], WEIGHTS[order])
    assert np.allclose(fitted.outputs(shuffled), said, atol=1e-5)


def test_a_saved_model_knows_the_weights(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert (again.graph_.weights == WEIGHTS / 2).all()  # in units of their mean
    assert again.mean_weight_ == 2
    assert np.array_equal(again.outputs(), fitted.outputs())
    assert np.array_equal(again.outputs(as_data()), fitted.outputs(as_data()))


def test_new_nodes_come_with_weights(fitted):
    said = fitted.outputs(new_node(1.0, 1, 9, 9), append=True)
    assert (fitted.outputs(new_node(9.0, 9, 1, 1), append=True) != said).any()


def test_explanations_use_them(fitted):
    explanation = explain_fit(fitted, 7)
    assert {neighbour.id for neighbour in explanation.node.neighbours} == {6, 8}
    assert all(np.isfinite(neighbour.effect) for neighbour in explanation.node.neighbours)


def test_a_matrix_with_weights(fitted):
    problem, matrix = tiny_problem(), np.zeros((60, 60))
    matrix[tuple(RING)] = WEIGHTS
    graph = from_arrays(matrix, problem.x, problem.y, weighted=True)
    assert np.allclose(fitted.outputs(graph), fitted.outputs(as_data()), atol=1e-5)


@pytest.mark.parametrize(("weight", "shown"), [(-1.0, "-1.0"), (1e308, r"1e\+308")])
def test_weights_that_are_negative_or_too_large_are_refused(weight, shown):
    with pytest.raises(UsageError, match=rf"edge_weight\[0\] is {shown} .* from 0 to 1e\+30"):
        GraphClassifier().fit(as_data(weights=np.full(120, weight)))


@pytest.mark.parametrize("name", ["linear+neighbours", "lightgbm+neighbours", "gcn-res"])
@pytest.mark.parametrize("unit", [1e-12, 1e5])
@pytest.mark.usefixtures("few_epochs")
def test_the_unit_of_weights_does_not_matter(name, unit, tmp_path):
    arcs = np.hstack([RING, RING[:, ::7]])
    weights = np.random.default_rng(0).lognormal(size=arcs.shape[1])
    said = []
    for scale in (1.0, unit):
        model = GraphClassifier(models=[name], **QUICK | {"trials": 2})
        model.fit(as_data(arcs, scale * weights)).save(tmp_path / "model")
        model = GraphClassifier.load(tmp_path / "model")
        new = new_node(scale, scale, 9 * scale, 9 * scale)
        report = model.report_
        said.append(
            [
                [report.val, report.test, *(family.test for family in report.families)],
                model.outputs(),
                model.outputs(as_data(arcs[:, ::-1].copy(), scale * weights)),
                model.outputs(new, append=True),
            ]
        )
    for plain, scaled in zip(*said, strict=True):
        assert np.allclose(plain, scaled, atol=1e-4)


def test_an_arc_without_a_weight_counts_as_much_as_an_average_one(fitted):
    new = new_node(*[fitted.mean_weight_] * 4)
    said = fitted.outputs(new, append=True)
    del new.edge_weight
    assert (fitted.outputs(new, append=True) == said).all()


def test_a_model_that_was_fitted_without_weights_counts_none(tmp_path):
    model = GraphClassifier(models=["linear+neighbours"], **QUICK)
    model.fit(tiny_data()).save(tmp_path / "model")
    model = GraphClassifier.load(tmp_path / "model")
    assert (model.outputs(as_data()) == model.outputs(tiny_data())).all()
