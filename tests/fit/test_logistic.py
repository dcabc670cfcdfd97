"""Logistic regression against scikit-learn, in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from memohop.fit.candidates import _linear as linear
from memohop.fit.candidates._linear import logistic_regression
from memohop.training import Enough


def table(classes):
    generator = np.random.default_rng(classes)
    x = generator.normal(size=(80, 4))
    return x, (x[:, :classes] + generator.normal(size=(80, classes))).argmax(axis=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("freedom", [0.1, 10.0])
def test_probabilities_are_those_of_scikit_learn(classes, form, freedom, monkeypatch):
    monkeypatch.setattr(linear, "_FLAT", 1e-9)
    x, y = table(classes)
    counts = np.linspace(0.5, 2, len(y))
    weight, bias = logistic_regression(form(x), y, counts, freedom, lambda: None)
    model = LogisticRegression(C=freedom, tol=1e-9, max_iter=1000).fit(x, y, sample_weight=counts)
    found = softmax(x @ weight.T + bias, axis=1)
    assert np.allclose(found, model.predict_proba(x), atol=1e-6)


def test_it_stops_when_asked_to_with_the_weights_so_far():
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
