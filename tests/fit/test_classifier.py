"""The portfolio as an estimator."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from memohop import GraphRegressor, UsageError
from memohop.fit import estimator
from memohop.fit._candidate import Search
from memohop.fit._card import record_card
from memohop.fit.estimators import GraphClassifier
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

pytestmark = pytest.mark.usefixtures("few_epochs")
KINDS = ["linear", "linear+rows", "lightgbm+neighbours", "mlp", "gcn+mmp"]
NODES = np.arange(60)
TRAIN, VAL, TEST = NODES % 3 == 0, NODES % 3 == 1, NODES % 3 == 2


X, Y = tiny_problem().x, tiny_problem().y


def with_masks(y, *, val=True):
    masks = {"train_mask": TRAIN, "test_mask": TEST} | ({"val_mask": VAL} if val else {})
    return tiny_data(y=y, **masks)


def classifier(**options):
    return GraphClassifier(**QUICK | {"models": KINDS} | options)


@pytest.mark.parametrize("val", [True, False])
def test_the_test_nodes_of_a_graph_are_never_learned_from(val):
    scrambled = np.where(TEST, 1 - Y, Y)
    model, scrambled_model = (
        classifier().fit(with_masks(each, val=val)) for each in (Y, scrambled)
    )
    assert (model.predict_proba() == scrambled_model.predict_proba()).all()
    assert model.report_.own_test
    assert f"test: {TEST.sum()} nodes that came with the graph" in model.report_.legend()
    assert model.report_.val == scrambled_model.report_.val
    assert model.report_.test == pytest.approx(1 - scrambled_model.report_.test)
    assert (model.graph_.y[TEST] == -1).all()


def test_a_search_on_named_validation_nodes_has_one_split_and_the_kept_model_all():
    model = classifier(splits=3).fit(with_masks(Y))
    assert model.report_.splits == 1
    assert f"validation: {TRAIN.sum()} training and {VAL.sum()} val" in model.report_.legend()
    assert {len(component.models) for component in model.model_.components} == {3}
    assert "Each was fitted 3 times" in record_card(model)
    whole = model.model_.components[0]
    for counts, times in (((1, 3, 2), "1 to 3 times"), ((1, 1), "once")):
        parts = tuple(replace(whole, models=whole.models[:count]) for count in counts)
        model.model_ = replace(model.model_, components=parts)
        assert f"Each was fitted {times}, to other parts" in record_card(model)


def test_nodes_that_are_in_no_mask_are_not_learned_from():
    graph = with_masks(Y)
    graph.train_mask[:6] = False
    relabelled = graph.clone()
    relabelled.y[:6][torch.from_numpy(TRAIN)[:6]] = 1
    model, same = (classifier(models=["linear+rows"]).fit(each) for each in (graph, relabelled))
    assert (model.predict_proba() == same.predict_proba()).all()


def test_test_nodes_without_labels_are_predicted_and_others_tested():
    fitted = classifier().fit(with_masks(np.where(TEST, -1, Y)))
    assert not fitted.report_.own_test
    assert 0 < fitted.report_.test_nodes < 40
    assert fitted.predict_proba().shape == (60, 2)


@pytest.fixture
def searches(monkeypatch):
    """The problems and the results of all searches; a problem may be changed before its search."""
    original = estimator.search
    seen = SimpleNamespace(problems=[], results=[], change=lambda problem: None)

    def spy(problem, *args, **options):
        seen.change(problem)
        seen.problems.append(problem)
        seen.results.append(original(problem, *args, **options))
        return seen.results[-1]

    monkeypatch.setattr(estimator, "search", spy)
    return seen


def test_labels_of_other_nodes_do_not_change_what_one_split_learns(searches):
    """Without masks, test nodes are learned from in the end, but not in the search."""

    def scramble(problem):
        other = np.where(problem.masks.test, 1 - problem.y, problem.y)
        object.__setattr__(problem, "y", other)

    for searches.change in (lambda problem: None, scramble):
        classifier(models=["linear"]).fit(X, Y, ring(60))
    part, scrambled_part = (result.candidates[0].fits[0].part for result in searches.results)
    assert (part.weight == scrambled_part.weight).all()


def test_the_same_again_with_a_number_of_trials():
    model, again = (classifier(trials=2).fit(X, Y, ring(60)) for _ in range(2))
    assert (model.predict_proba() == again.predict_proba()).all()
    assert model.report_.kept == again.report_.kept
    other = classifier(random_state=7).fit(X, Y, ring(60))
    assert not np.array_equal(model.predict_proba(), other.predict_proba())


def test_an_interrupted_search_keeps_what_it_has():
    calls = []

    def interrupt(share, doing):
        calls.append(doing)
        if "lightgbm+neighbours" in doing:
            raise KeyboardInterrupt

    fitted = classifier().fit(X, Y, ring(60), progress=interrupt)
    assert fitted.report_.stopped == "interrupted"
    assert {part.family for part in fitted.report_.kept} <= {"linear", "linear+rows"}
    assert np.isfinite(fitted.predict_proba()).all()


def test_without_time_for_any_model_there_is_an_error(monkeypatch):
    nothing = Search([], [], "time", 0.1)  # of workers that did not answer in time
    monkeypatch.setattr("memohop.fit.estimator.search", lambda *given, **more: nothing)
    with pytest.raises(UsageError, match="time=0 is too short"):
        classifier(time=0, trials=None).fit(X, Y)


@pytest.mark.parametrize("models", [["linear", "mlp"], ["dir-gcn"], []])
def test_models_that_cannot_be_fitted_to_the_graph_are_named(models):
    message = rf"models={', '.join(models) or None}: none of them can be fitted to this graph"
    for model in (classifier(models=models), GraphRegressor(models=models)):
        with pytest.raises(UsageError, match=message):
            model.fit(np.ones((60, 1)), Y, ring(60))


@pytest.mark.parametrize("name", ["linear", "lightgbm", "mlp"])
def test_the_shortest_time_has_a_model_of_each_kind(name):
    model = classifier(models=[name], time=0, trials=None).fit(X, Y)
    assert set(model.predict(X)) <= set(Y)


def test_a_ranking_needs_both_classes_in_each_part():
    graph = with_masks(np.where((NODES < 9) & ~VAL, 1, 0))
    with pytest.raises(UsageError, match="needs validation nodes of both classes"):
        classifier(metric="roc_auc").fit(graph)


def test_predictions_follow_the_graph_that_is_given():
    """One graph after another: nothing of the last one is left."""
    fitted = classifier(models=["linear+rows", "lightgbm+neighbours"])
    fitted.fit(X, Y, ring(60))
    graphs = [tiny_problem(seed=seed).x for seed in range(6)]
    first = [fitted.predict_proba(x, ring(60)) for x in graphs]
    again = [fitted.predict_proba(x, ring(60)) for x in reversed(graphs)]
    assert all((shares == later).all() for shares, later in zip(first, again[::-1], strict=True))
    assert not (first[0] == first[1]).all()


def test_sparse_columns_and_classes_by_name():
    names = np.array(["ham", "spam"])[Y].astype(object)
    names[:5] = None
    x = sparse.csr_matrix(np.where(X > 0, X, 0))
    fitted = classifier().fit(x, names, ring(60))
    assert set(fitted.predict()) <= {"ham", "spam"}
    assert fitted.report_.labelled == 55
    assert sparse.issparse(fitted.graph_.x)


def test_groups_that_are_the_classes_leave_nothing_to_test():
    with pytest.raises(UsageError, match="no class of a test node has a training node"):
        classifier().fit(X, NODES % 10, groups=NODES % 10)


def test_groups_are_kept_together(searches):
    groups = [f"g{node // 4}" if node > 3 else None for node in NODES]  # four alone
    model = classifier(models=["linear"]).fit(X, Y, groups=groups)
    (problem,) = searches.problems
    numbers, test = problem.groups, problem.masks.test  # by which every interval is made
    assert model.report_.test_groups == len({*numbers[test]}) > 1
    assert len(np.unique(numbers)) == len(groups) // 4 + 3  # None is a group of its own
    for group in np.unique(numbers):
        assert len({groups[node] for node in np.flatnonzero(numbers == group)}) == 1
        assert len(np.unique(test[numbers == group])) == 1
