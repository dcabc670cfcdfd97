"""Numbers to predict, and conventions of both estimators of the portfolio."""

import pickle
import re

import numpy as np
import pytest

from memohop import GraphClassifier, GraphRegressor, UsageError
from memohop.fit._views import View
from memohop.fit.candidates import _network as network
from memohop.fit.candidates._linear import Linear
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

FAST = {"models": ("linear",), **QUICK}
X = tiny_problem().x
Y = 1000 + 50 * X[:, 0].astype(float)


def test_numbers_that_the_columns_give_are_found():
    y = np.where(np.arange(60) % 6, Y, np.nan)
    model = GraphRegressor(**FAST | {"trials": 5}).fit(X, y, ring(60))
    report = model.report_
    assert (report.labelled, report.metric, report.class_sizes) == (50, "r2", {})
    assert report.test > 0.9
    assert np.abs(model.predict() - Y).max() < 20
    assert model.score(X, Y, ring(60)) > 0.9
    low, high = model.predict_interval().T
    assert high - low == pytest.approx(np.full(60, 2 * report.residual.distance), abs=1e-3)
    assert "R2" in report.verdict()


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_errors_are_in_the_unit_of_the_target(metric):
    model = GraphRegressor(**FAST, metric=metric).fit(X, Y)
    assert 0 < -model.report_.test < 50
    kept = model.report_.rows()[0]
    assert kept["test"] == pytest.approx(-model.report_.test, rel=1e-4)


def test_networks_learn_numbers_far_from_0(monkeypatch):
    whole = network.train
    monkeypatch.setattr(network, "train", lambda *a, **more: whole(*a, **more | {"epochs": 40}))
    model = GraphRegressor(**FAST | {"models": ("mlp",)}).fit(X, Y)
    assert np.abs(model.predict() - Y).mean() < np.abs(Y - Y.mean()).mean()


def test_a_data_with_numbers_and_masks():
    order = np.arange(60) % 3
    masks = {f"{name}_mask": order == part for part, name in enumerate(("train", "val", "test"))}
    model = GraphRegressor(**FAST).fit(tiny_data(y=Y, **masks))
    assert model.report_.own_test
    assert np.isnan(model.graph_.y[order == 2]).all()


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "b"] * 30, "no numbers"),
        (np.full(60, np.nan), "no number at all"),
        (np.ones(60), "one number everywhere"),
        (np.where(np.arange(60) == 3, np.inf, Y), "infinite"),
        (np.where(np.arange(60) < 3, Y, np.nan), "a test takes 5 labelled nodes, and there are 3"),
        (np.where(np.arange(60) == 3, 2.0, 1), "'r2' needs .* nodes of different numbers"),
        (1e300 * Y, "which single precision cannot hold"),
        (1e9 + 1e-6 * Y, "which single precision cannot hold, or tell apart"),
    ],
)
def test_targets_that_cannot_be_right(y, words):
    with pytest.raises(UsageError, match=words):
        GraphRegressor(**FAST).fit(X, y)


@pytest.mark.parametrize(("kind", "y"), [(GraphClassifier, X[:, 0] > 0), (GraphRegressor, Y)])
def test_what_scikit_learns_checks_do_not_cover(kind, y):
    model, x, before = kind(**FAST), X.copy(), X.copy()
    assert model.get_params() == {**kind().get_params(), **FAST}
    said = model.fit(x, y).predict()
    x[:] = 0
    assert (model.predict() == said).all()
    assert (before == X).all()
    assert (pickle.loads(pickle.dumps(model)).predict() == said).all()
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(np.zeros((4, 5)))
    with pytest.raises(UsageError, match="a search must end"):
        kind(time=None, trials=None).fit(X, y)


@pytest.mark.parametrize("metric", ["r2", "mae", "rmse"])
def test_numbers_that_nothing_tells_are_said_to_be_no_better_than_their_mean(metric):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(100, 2)), generator.normal(size=100)
    model = GraphRegressor(**FAST, metric=metric)
    report = model.fit(x, y, edges=ring(100)).report_
    assert not report.over_constant.above_zero
    assert re.search("than saying the mean of every node: [+-].* to ", report.verdict())
    report = model.fit(x, x[:, 0] + y / 9, edges=ring(100)).report_
    assert "the mean of every node" not in report.verdict()


@pytest.mark.parametrize(("nodes", "features"), [(33, 7), (60, 10), (257, 33)])
def test_the_order_of_rows_does_not_matter_to_a_linear_model(nodes, features):
    """To the last bit: in single precision it would, in a few of ten draws."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(nodes, features)).astype(np.float32)
    for _ in range(10):
        weight = generator.normal(size=(features, 1)).astype(np.float32)
        model = Linear(View("columns", 0, nodes), weight, np.ones(1, dtype=np.float32))
        order = generator.permutation(nodes)
        assert (model.of_features(x)[order] == model.of_features(x[order])).all()
