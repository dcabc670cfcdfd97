"""Features that come sparse stay sparse: the results of dense ones, without their room."""

import numpy as np
import pytest
import torch
from scipy import sparse

from memohop import Member, UsageError, grid, train
from memohop.nn import SparseFeatures
from memohop.pyg import Data
from memohop.training import Job
from memohop.training.population import Population
from numerics import seeded
from plain_loop import RowByRow, assert_alike

CPU = torch.device("cpu")


def in_single_precision(words):
    data = words.clone()
    data.x = words.x.float()
    return data


def in_scipy(dense):
    return sparse.csr_array(dense.numpy())


def read_only(dense):
    matrix = in_scipy(dense)
    matrix.data.setflags(write=False)
    return matrix


FORMS = [
    torch.Tensor.to_sparse,
    torch.Tensor.to_sparse_csr,
    torch.Tensor.to_sparse_csc,
    lambda dense: dense.to(torch.int8).to_sparse(),
    lambda dense: dense.bool().to_sparse_csr(),
    lambda dense: dense.half().to_sparse(),
    in_scipy,
    read_only,
    lambda dense: sparse.coo_matrix(dense.double().numpy()),
    lambda dense: sparse.lil_array(dense.numpy()),
    torch.Tensor.double,
    torch.Tensor.half,
    torch.Tensor.bfloat16,
]


MEMBERS = [Member(seed=seeded(1), lam=0.2), Member(split=1, lr=0.05)]


@pytest.fixture(scope="module")
def expected(words):
    data = in_single_precision(words)
    return train(data, "gcn+mmp", MEMBERS, epochs=4, features="sparse", keep_models=True)


@pytest.mark.parametrize("to", FORMS)
def test_every_form_gives_the_very_results_of_dense_features(to, words, expected):
    given = words.clone()
    given.x = to(words.x.float())  # ones and zeros, which all types hold
    results = train(given, "gcn+mmp", MEMBERS, epochs=4, keep_models=True)
    assert_alike(results, expected)


@pytest.mark.parametrize("model", ["mlp", "gat", "mixhop", "geom-gcn", "linkx", "fsgnn", "sgc"])
def test_other_models_take_them_too(model, words):
    data, given = in_single_precision(words), in_single_precision(words)
    given.x = in_scipy(data.x)
    expected = train(data, model, [Member()], epochs=2, features="sparse")
    assert_alike(train(given, model, [Member()], epochs=2), expected)


def test_dense_on_request_and_for_modules_of_others(words):
    data, given = in_single_precision(words), in_single_precision(words)
    given.x = in_scipy(data.x)

    def build():
        return RowByRow(data.num_features, int(data.y.max()) + 1)

    for model, features in (("gcn", "dense"), (build, "auto")):
        expected = train(data, model, grid(split=(0, 1)), epochs=3, features=features)
        results = train(given, model, grid(split=(0, 1)), epochs=3, features=features)
        assert_alike(results, expected)
    dense = Job(data=given, model="gcn", features="dense")
    assert torch.equal(Population.of(dense).task.inputs[0], data.x)


def test_dense_features_are_taken_by_their_density_as_ever():
    def inputs(x):
        data = graph_with(x)
        return Population.of(Job(data=data, model="mlp")).task.inputs[0]

    few, many = torch.eye(6), torch.eye(6) + torch.eye(6).roll(1, 0)  # a sixth and a third
    assert isinstance(inputs(few), SparseFeatures)
    assert inputs(many) is many
    assert isinstance(inputs(many.to_sparse()), SparseFeatures)  # as it was given


def graph_with(x):
    """Features of a path of nodes with two classes, a third of them in each part."""
    nodes = x.shape[0]
    node = torch.arange(nodes)
    parts = {
        name: node % 3 == part for part, name in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    arcs = torch.stack([node[:-1], node[1:]])
    return Data(x=x, y=node // 3 % 2, edge_index=arcs, **parts)


def test_a_matrix_that_would_not_fit_takes_a_step():
    rows, columns = 2_000_000, 50_000  # 400 GB
    row, col = np.array([0, 1, 2, rows - 1]), np.array([0, columns - 1, 7, 7])
    values = np.array([1, 2, 3, 4], dtype=np.float32)
    data = graph_with(sparse.csr_array((values, (row, col)), shape=(rows, columns)))
    population = Population.of(Job(data=data, model="mlp", options={"hidden_channels": 2}))
    assert population.task.inputs[0].values.tolist() == [1, 2, 3, 4]
    population.step()
    (result,) = population.results([0])
    assert np.isfinite(result.loss_curve).all()
    assert 0 < result.test < 1


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (torch.eye(6, dtype=torch.complex64).to_sparse(), "type torch.complex64"),
        (sparse.csr_array((6, 0)), r"shape \[6, 0\]"),
        (torch.eye(6).to_sparse() * torch.inf, "inf at node 0, column 0"),
    ],
)
def test_sparse_features_that_cannot_be_right(x, complaint):
    data = graph_with(torch.eye(6))
    data.x = x
    with pytest.raises(UsageError, match=complaint):
        train(data, "gcn", [Member()], epochs=1)


@pytest.mark.skipif(np.longdouble(0).itemsize == 8, reason="longdouble is float64 here")
def test_sparse_features_of_a_type_that_pytorch_has_not():
    data = graph_with(torch.eye(6))
    data.x = sparse.csr_array(np.eye(6, dtype=np.longdouble))
    with pytest.raises(UsageError, match=r"data.x has type \w+; give floating-point features"):
        train(data, "gcn", [Member()], epochs=1)
