"""The class to find: the positive one of two, by its name or because it is rare."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from memohop import UsageError, load_model
from memohop.fit.candidates._network_data import as_data
from memohop.fit.estimators import GraphClassifier, MMPClassifier
from memohop.report.fit import rare_text
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification, objective_of
from tiny_problem import QUICK, ring, tiny_problem

NODES = 400
LINEAR = {"models": ["linear"], **QUICK}


def rare_graph(share=0.06):
    """Columns, arcs, and which nodes are rare; the first column tells something of it."""
    generator = np.random.default_rng(0)
    is_rare = generator.permutation(NODES) < share * NODES
    x = generator.normal(size=(NODES, 3)).astype(np.float32)
    x[:, 0] += 1.5 * is_rare
    return x, ring(NODES), is_rare


def fitted(names=("common", "rare"), share=0.06, **options):
    x, arcs, is_rare = rare_graph(share)
    return GraphClassifier(**LINEAR | options).fit(
        x, np.array(names)[is_rare.astype(int)], edges=arcs
    )


def test_a_rare_class_counts_as_rare_whichever_name_sorts_first():
    last, first = fitted(("common", "rare")).report_, fitted(("rest", "fraud")).report_
    assert (last.metric, last.positive) == ("average_precision", 1)
    assert (first.metric, first.positive) == ("average_precision", 0)
    assert first.test == pytest.approx(last.test, abs=1e-6)
    assert first.val == pytest.approx(last.val, abs=1e-6)
    assert first.rare.share == last.rare.share
    assert first.rare.precision == last.rare.precision
    assert first.rare.threshold == pytest.approx(last.rare.threshold, rel=1e-4)
    assert rare_text(first) == rare_text(last).replace("rare", "fraud")
    assert fitted(("common", "rare"), share=0.4).report_.metric == "accuracy"


@pytest.mark.parametrize("name", ["average_precision", "roc_auc"])
@pytest.mark.parametrize("positive", ["a", "b"])
def test_scores_are_those_of_the_class_that_was_named(name, positive, tmp_path):
    model = fitted(("a", "b"), share=0.3, metric=name, positive=positive)
    x, arcs, is_rare = rare_graph(0.3)
    truth = is_rare == (positive == "b")
    said = model.predict_proba()[:, "ab".index(positive)]
    function = {"average_precision": average_precision_score, "roc_auc": roc_auc_score}[name]
    y = np.array(["a", "b"])[is_rare.astype(int)]
    expected = function(truth, said)
    assert model.score(x, y, edges=arcs) == pytest.approx(expected)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.positive, again.report_) == (positive, model.report_)
    assert again.report_.rare is not None
    assert again.score(x, y, edges=arcs) == pytest.approx(expected)
    assert rare_text(model.report_).startswith(f"To find {positive}, ")


def test_a_name_may_be_any_spelling_of_the_class(tmp_path):
    x, arcs, is_rare = rare_graph(0.3)
    for y, names in ((is_rare, (False, "False")), (is_rare.astype(float), (0, "0.0", np.int64(0)))):
        for name in names:
            model = GraphClassifier(positive=name, **LINEAR).fit(x, y, edges=arcs)
            assert model.report_.positive == 0
            model.save(tmp_path / "model")


def test_what_is_no_class_to_find():
    with pytest.raises(UsageError, match="no class named 'fraud'; known: common, rare"):
        fitted(positive="fraud")
    problem = tiny_problem(classes=3)
    model = GraphClassifier(**LINEAR, positive=1)
    with pytest.raises(UsageError, match="positive=1 is for two classes and there are 3; leave"):
        model.fit(problem.x, problem.y, edges=problem.arcs)


@pytest.mark.parametrize("name", ["average_precision", "roc_auc", "accuracy"])
def test_a_metric_of_the_other_class_is_that_of_swapped_classes(name):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 50, 2, generator=generator)
    y = torch.randint(2, (50,), generator=generator)
    masks = (torch.rand(2, 3, 50, generator=generator) < 0.7).float()
    metric = pickle.loads(pickle.dumps(METRICS[name].of_class(0).score))
    swapped = METRICS[name].score(logits.flip(-1), 1 - y, masks)
    torch.testing.assert_close(metric(logits, y, masks), swapped)


def test_networks_are_validated_by_the_score_of_the_same_class():
    objective = Classification(METRICS["average_precision"].of_class(0))
    problem = tiny_problem(y=np.arange(60) % 4 % 2, objective=objective)
    data = as_data(problem, "gcn+mmp", 1.0)
    metric = objective_of(data).metric
    said = np.random.default_rng(0).random((60, 2)).astype(np.float32)
    score = metric.score(torch.from_numpy(said)[None], data.y, torch.ones(1, 1, 60))
    assert float(score) == pytest.approx(problem.score(said, np.arange(60)))
    expected = average_precision_score(problem.y == 0, said[:, 0] - said[:, 1])
    assert float(score) == pytest.approx(expected, abs=1e-6)


def test_memory_alone_finds_it_too():
    x, arcs, is_rare = rare_graph(0.3)
    how = {"metric": "average_precision", "positive": False, "epochs": 2}
    model = MMPClassifier(**QUICK, **how)
    assert model.fit(x, is_rare, edges=arcs).report_.positive == 0
