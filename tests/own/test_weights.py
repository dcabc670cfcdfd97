"""Weights of arcs, from the graph that a user gives to predictions and explanations."""

import numpy as np
import pytest
import torch

from memohop import GraphClassifier, UsageError
from memohop.data.tables import from_arrays
from memohop.explain import explain_fit
from memohop.own.candidates import networks
from memohop.pyg import Data
from tiny_problem import ring, tiny_problem

WEIGHTS = (1 + np.tile(np.arange(60), 2) % 3).astype(np.float32)  # of the edges of a ring


def as_data(arcs=None, weights=WEIGHTS):
    problem = tiny_problem()
    return Data(
        x=torch.from_numpy(problem.x),
        y=torch.from_numpy(problem.y),
        edge_index=torch.from_numpy(ring(60) if arcs is None else arcs),
        edge_weight=torch.from_numpy(weights),
    )


@pytest.fixture(scope="module", params=["gcn+mmp", "gcn-res", "lightgbm+neighbours"])
def fitted(request):
    whole = networks.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "train", lambda *args, **more: whole(*args, **more | {"epochs": 5}))
        found = GraphClassifier(models=[request.param], trials=1, time=None, splits=2)
        return found.fit(as_data())


def test_other_weights_give_other_outputs(fitted):
    said = fitted.outputs(as_data())
    assert (fitted.outputs(as_data(weights=WEIGHTS[::-1].copy())) != said).any()
    order = np.random.default_rng(0).permutation(120)
    shuffled = as_data(ring(60)[:, order], WEIGHTS[order])
    assert np.allclose(fitted.outputs(shuffled), said, atol=1e-5)


def test_a_saved_model_knows_the_weights(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert (again.graph_.weights == WEIGHTS).all()
    assert np.array_equal(again.outputs(), fitted.outputs())
    assert np.array_equal(again.outputs(as_data()), fitted.outputs(as_data()))


def test_new_nodes_come_with_weights(fitted):
    arcs = np.array([[60, 0, 60, 1], [0, 60, 1, 60]])
    new = as_data(arcs, np.array([1, 1, 9, 9], dtype=np.float32))
    new.x, new.y = new.x[:1], new.y[:1]
    said = fitted.outputs(new, append=True)
    new.edge_weight = torch.tensor([9.0, 9, 1, 1])
    assert (fitted.outputs(new, append=True) != said).any()


def test_explanations_use_them(fitted):
    found = explain_fit(fitted, 7)
    assert {one.id for one in found.node.neighbours} == {6, 8}
    assert all(np.isfinite(one.effect) for one in found.node.neighbours)


def test_a_matrix_with_weights(fitted):
    problem, matrix = tiny_problem(), np.zeros((60, 60))
    matrix[tuple(ring(60))] = WEIGHTS
    graph = from_arrays(matrix, problem.x, problem.y, weighted=True)
    assert np.allclose(fitted.outputs(graph), fitted.outputs(as_data()), atol=1e-5)


@pytest.mark.parametrize(("weight", "shown"), [(-1.0, "-1.0"), (1e308, r"1e\+308")])
def test_weights_that_are_negative_or_too_large_are_refused(weight, shown):
    with pytest.raises(UsageError, match=rf"edge_weight\[0\] is {shown} .* from 0 to 1e\+30"):
        GraphClassifier().fit(as_data(weights=np.full(120, weight)))
