"""Linear models, and logistic regression by itself, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MaxAbsScaler

from memohop.fit._candidate import Setting
from memohop.fit.candidates import _linear as linear
from memohop.fit.candidates._linear import LinearFamily, logistic_regression
from memohop.training import Enough
from tiny_problem import tiny_problem

SETTING = Setting("linear", {}, {"freedom": 1.0})


def fit(problem, sees="columns", **options):
    ((fits, *_),) = [LinearFamily("linear", sees, **options).fit(problem, [SETTING], [0, 1])]
    return fits


def sklearn_says(problem, split, model):
    train = problem.masks.train[:, split]
    scaler = MaxAbsScaler().fit(problem.x[train])
    model.fit(scaler.transform(problem.x[train]), problem.y[train])
    return model, scaler.transform(problem.x)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("balanced", [False, True])
def test_probabilities_are_those_of_scikit_learn(classes, balanced):
    y = np.array([0] * 30 + [1] * 20 + [classes - 1] * 10)
    problem = tiny_problem(y=y)
    fits = fit(problem, balanced=balanced)
    for split in (0, 1):
        regression = LogisticRegression(max_iter=300, class_weight="balanced" if balanced else None)
        model, x = sklearn_says(problem, split, regression)
        expected = model.predict_proba(x)
        assert np.allclose(fits[split].val, expected[problem.masks.val[:, split]], atol=1e-3)
        assert np.allclose(fits[split].test, expected[problem.masks.test], atol=1e-3)
        assert np.allclose(fits[split].part.outputs(problem), expected, atol=1e-3)


def test_sparse_columns_give_the_same():
    problem = tiny_problem()
    thin = tiny_problem(x=sparse.csr_array(problem.x))
    assert np.allclose(fit(problem)[0].val, fit(thin)[0].val, atol=1e-5)


@pytest.mark.parametrize("present", [[0, 2], [1]])
def test_classes_that_the_training_nodes_lack_are_never_likely(present):
    problem = tiny_problem(classes=3)
    train = problem.masks.train & np.isin(problem.y, present)[:, None]
    problem = tiny_problem(classes=3, masks=problem.masks._replace(train=train))
    said = fit(problem)[0].part.outputs(problem)
    assert np.allclose(said.sum(axis=1), 1)
    assert (said[:, np.setdiff1d(range(3), present)] < 1e-6).all()
    assert (said[:, present].max(axis=1) > 0.4).all()


def test_numbers_are_those_of_ridge_regression():
    y = np.linspace(-1, 5, 40)
    problem = tiny_problem(y=y)
    said = fit(problem)[0].part.outputs(problem)
    model, x = sklearn_says(problem, 0, Ridge(alpha=1.0))
    assert np.allclose(said[:, 0], model.predict(x), atol=1e-5)


def table(classes):
    generator = np.random.default_rng(classes)
    x = generator.normal(size=(80, 4))
    return x, (x[:, :classes] + generator.normal(size=(80, classes))).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("freedom", [0.1, 10.0])
def test_logistic_regression_is_that_of_scikit_learn(classes, form, freedom, monkeypatch):
    monkeypatch.setattr(linear, "_FLAT", 1e-9)
    x, y = table(classes)
    counts = np.linspace(0.5, 2, len(y))
    weight, bias = logistic_regression(form(x), y, counts, freedom, lambda: None)
    model = LogisticRegression(C=freedom, tol=1e-9, max_iter=1000).fit(x, y, sample_weight=counts)
    probabilities = softmax(x @ weight.T + bias, axis=1)
    assert np.allclose(probabilities, model.predict_proba(x), atol=1e-6)


def test_logistic_regression_stops_when_asked_to_with_the_weights_so_far():
    x, y = table(3)
    steps = []

    def stop_at_two():
        steps.append(1)
        if len(steps) == 2:
            raise Enough

    weight, bias = logistic_regression(x, y, np.ones(len(y)), 10.0, stop_at_two)
    assert len(steps) == 2
    right = (x @ weight.T + bias).argmax(axis=1) == y
    assert right.mean() > 0.5
