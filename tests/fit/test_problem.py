"""A problem makes features of labelled nodes alone, and makes nothing twice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from memohop.fit import _problem as problem_module
from memohop.fit import _views as views
from memohop.training.metrics import METRICS
from tiny_problem import ring, tiny_problem


def dense(features):
    return features.toarray() if sparse.issparse(features) else np.asarray(features)


@pytest.mark.parametrize("sees", ["columns", "neighbours", "rows"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_features_of_labelled_nodes_are_rows_of_those_of_all(sees, directed, wide, monkeypatch):
    monkeypatch.setattr(views, "_WIDE", 2 if wide else 256)
    y = np.where(np.arange(40) % 3 == 0, -1, np.arange(40) % 2)
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    form = sparse.csr_array if wide else np.asarray
    problem = tiny_problem(y=y, x=form(x), arcs=ring(40)[:, : 40 if directed else 80])
    assert problem.labelled.tolist() == [node for node in range(40) if node % 3]
    for split in (0, 1, 0):
        every = problem.view(sees).features(problem, problem.known(split))
        features = problem.features(sees, split)
        assert np.allclose(dense(features), dense(every)[problem.labelled], atol=1e-6)


def test_the_problem_of_the_end_has_labels_of_its_own_and_the_same_graph():
    problem = tiny_problem()
    before = dense(problem.features("neighbours", 0))
    ending = problem.for_the_end()
    assert ending.neighbourhood is problem.neighbourhood is problem.with_all_labels().neighbourhood
    expected = ending.view("neighbours").features(ending, ending.known(0))
    assert np.allclose(dense(ending.features("neighbours", 0)), dense(expected))
    assert not np.allclose(before, dense(expected))
    assert np.allclose(dense(problem.features("neighbours", 0)), before)


@pytest.mark.parametrize("metric", [name for name in METRICS if not METRICS[name].is_regression])
def test_scores_of_parts_are_those_of_each_part_alone(metric, monkeypatch):
    monkeypatch.setattr(problem_module, "_AT_ONCE", 3 * 200)  # three parts at once
    ranks = METRICS[metric].is_ranking
    problem = tiny_problem(200, classes=2 if ranks else 5, metric=metric)
    generator = np.random.default_rng(0)
    said = generator.random((200, problem.classes)).astype(np.float32)
    parts = generator.random((7, 200)) < 0.9
    rows = np.arange(200)
    scores = problem.scores(said, rows, parts)
    alone = [problem.score(said[part], rows[part]) for part in parts]
    assert scores == pytest.approx(alone, abs=1e-6)
    assert len(set(scores)) > 1
