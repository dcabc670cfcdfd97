"""The class to find: the positive one of two, by its name or because it is rare."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from memohop import UsageError, load_model
from memohop.fit._scorable import RankingWarning
from memohop.fit.candidates._network_data import as_data
from memohop.fit.estimators import GraphClassifier, MMPClassifier
from memohop.report.fit import rare_text
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification, objective_of
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

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


def test_a_smaller_class_that_can_hardly_be_told_is_to_be_found():
    """Accuracy would choose what says that everyone is of the other one."""
    with pytest.warns(RankingWarning, match="'left' is 19% of .*--metric accuracy") as told:
        model = hardly_told()
    assert len(told) == 1
    report = model.report_
    assert (report.metric, report.positive) == ("average_precision", 0)
    assert 0.15 < report.rare.threshold < 0.5
    assert "by the F1 score, call a node so" in rare_text(report)
    assert (model.predict() == "right").all()  # what accuracy is for
    with pytest.warns(RankingWarning, match="'left' is 19% of"):
        assert hardly_told(positive="left").report_.positive == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"metric": "accuracy"},
        {"class_weight": "balanced"},
        {"positive": "right"},
        {"effect": 4.0},  # which tells it
        {"share": 0.4},
        {"nodes": 40},  # too few nodes of it for every part
        {"names": ("left", "right", "both")},
    ],
)
def test_accuracy_stays_where_it_says_something(changed, recwarn):
    assert hardly_told(**changed).report_.metric == "accuracy"
    assert not any(issubclass(warning.category, RankingWarning) for warning in recwarn)


def hardly_told(share=0.2, effect=0.4, nodes=600, names=("right", "left"), **options):
    generator = np.random.default_rng(0)
    number = (generator.random(nodes) < share).astype(int)
    number[: 30 * (len(names) - 2)] = 2
    x = generator.normal(size=(nodes, 3)).astype(np.float32)
    x[:, 0] += effect * number
    return GraphClassifier(**LINEAR | options).fit(x, np.array(names)[number], edges=ring(nodes))


@pytest.mark.parametrize("told", [True, False])
def test_labels_of_test_nodes_do_not_decide_the_metric(told):
    """However well they fit the columns, or not."""
    generator = np.random.default_rng(0)
    y = (generator.random(600) < 0.2).astype(int)
    test = np.arange(600) % 5 == 0
    x = generator.normal(size=(600, 3)).astype(np.float32)
    x[:, 0] += 9 * y * (test != told)
    masks = {"train_mask": ~test, "test_mask": test}
    data = tiny_data(x=x, y=y, edge_index=ring(600), **masks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        metric = GraphClassifier(**LINEAR).fit(data).report_.metric
    assert metric == ("accuracy" if told else "average_precision")


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
