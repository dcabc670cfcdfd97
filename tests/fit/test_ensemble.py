"""From a search to what is kept: weights of an ensemble, the choice, and the final fits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import toy_kind
from memohop.data.folds import make_masks
from memohop.data.splits import OwnSplit
from memohop.fit import _ensemble as ensemble
from memohop.fit._candidate import Search
from memohop.fit._ensemble import Chosen, choose, choose_weights, fit_to_all
from tiny_problem import tiny_problem
from toy_kind import fits_of, says


def candidate(problem, name, right, sure=0.8, seconds=0.0):
    return toy_kind.candidate(problem, says(problem, right, sure), name, seconds)


@dataclass
class Refits:
    """A kind of model that is right on a share of the nodes when it is fitted again."""

    share: float
    splits: list = field(default_factory=list)

    def fit(self, problem, settings, splits, *, look):
        self.splits += splits
        look()
        right = np.arange(problem.nodes) < self.share * problem.nodes
        return [fits_of(problem, says(problem, right, 0.9), splits)]


@pytest.fixture
def problem():
    return tiny_problem()


@pytest.fixture
def chosen(problem):
    a, b = (candidate(problem, name, problem.y >= 0) for name in "ab")
    return Chosen({a: 0.25, b: 0.75})


NODES = np.arange(60)


def weights_of(problem, *parts):
    """The weights of candidates, given the nodes on which each is right, and how sure it is."""
    candidates = [candidate(problem, "one", right, sure) for right, sure in parts]
    weights = choose_weights(problem, candidates, [0, 1])
    assert weights.sum() == pytest.approx(1)
    return weights


def test_candidates_that_err_on_other_nodes_are_mixed(problem):
    order = np.cumsum(problem.masks.val.any(axis=1))  # so that each errs on as many of them
    weights = weights_of(problem, *((order % 3 != part, 0.8) for part in range(3)))
    assert weights == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_a_candidate_that_is_always_right_stays_alone(problem):
    assert weights_of(problem, (NODES >= 0, 0.9), (NODES % 2 == 0, 0.9)).tolist() == [1, 0]


def test_of_equal_scores_the_smaller_loss_wins(problem):
    assert weights_of(problem, (NODES >= 0, 0.6), (NODES >= 0, 0.99))[1] > 0.9


def test_luck_of_the_best_does_not_make_it_the_only_one(problem):
    """The first is right on one node more than the others, which err on different nodes."""
    others = [(part != NODES % 3, 0.8) for part in (1, 2) for _ in range(3)]
    assert weights_of(problem, (NODES % 3 != 0, 0.8), *others)[0] < 0.5


@pytest.mark.parametrize(
    ("metric", "chosen"), [("accuracy", 1), ("roc_auc", 1), ("balanced_accuracy", 0)]
)
def test_the_loss_decides_unless_classes_count_alike(metric, chosen):
    """One is right on more nodes by a hair, the other is right with good reason."""
    y = (NODES % 5 == 0).astype(int)
    problem = tiny_problem(y=y, metric=metric)
    lucky, honest = (NODES >= 0, 0.51), (~np.isin(NODES % 10, (1, 5)), 0.9)
    assert weights_of(problem, lucky, honest)[chosen] > 0.5


def test_of_many_candidates_no_single_one_decides(problem):
    many = [candidate(problem, "one", part % 3 != NODES % 3) for part in range(9)]
    weights = choose_weights(problem, many, [0, 1])
    assert (weights > 0).sum() > 3
    said = [
        sum(weight * tried.fits[split].val for weight, tried in zip(weights, many, strict=True))
        for split in range(2)
    ]
    scores = [problem.score(outputs, problem.masks.val[:, s]) for s, outputs in enumerate(said)]
    assert np.mean(scores) >= many[0].mean([0, 1])


def test_weights_below_the_limit_are_dropped(problem, monkeypatch):
    three = [candidate(problem, name, problem.y >= 0) for name in "abc"]
    weights = np.array([0.70, 0.26, 0.04])
    monkeypatch.setattr(ensemble, "choose_weights", lambda *args: weights)
    choice = choose(problem, Search(three, [0, 1]))
    assert [tried.setting.family for tried in choice.weights] == ["a", "b"]
    assert [*choice.weights.values()] == pytest.approx([0.70 / 0.96, 0.26 / 0.96])


def test_one_candidate_where_one_is_wanted(problem):
    order = np.cumsum(problem.masks.val.any(axis=1))  # so that each errs on as many of them
    three = [candidate(problem, "abc"[part], order % 3 != part) for part in range(3)]
    search = Search(three, [0, 1])
    assert len(choose(problem, search).weights) == 3
    alone = choose(problem, search, single=True)
    assert len(alone.weights) == 1
    assert alone.val(problem, [0, 1]) == pytest.approx(search.complete()[0].mean([0, 1]))


def test_a_candidate_whose_models_were_forgotten_is_not_chosen(problem):
    best = candidate(problem, "best", np.ones(problem.nodes, bool))
    best.fits = {split: replace(fit, part=None) for split, fit in best.fits.items()}
    other = candidate(problem, "other", np.arange(problem.nodes) % 4 > 0)
    choice = choose(problem, Search([best, other], [0, 1]))
    assert [tried.setting.family for tried in choice.weights] == ["other"]


def test_probabilities_are_calibrated_on_validation(problem):
    """Right on three nodes of four, but as sure as if on 95 of 100."""
    right = np.zeros(60, dtype=bool)
    for mask in (problem.masks.val[:, 0], problem.masks.val[:, 1], problem.masks.test):
        right[np.flatnonzero(mask)[::4]] = True
    tried = candidate(problem, "a", ~right, sure=0.95)
    choice = choose(problem, Search([tried], [0, 1]))
    calibrated = choice.calibration.of(np.array([[0.05, 0.95], [0.95, 0.05]]))
    assert np.diag(calibrated[:, ::-1]).mean() == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(
    ("metric", "balanced", "shifted"),
    [
        ("accuracy", False, True),
        ("roc_auc", False, True),
        ("accuracy", True, False),
        ("balanced_accuracy", False, False),
    ],
)
def test_classes_are_shifted_unless_they_count_alike(metric, balanced, shifted):
    """It takes nodes of the second class, a fifth of all, for the first too often."""
    y = (np.arange(100) % 5 == 0).astype(int)
    problem = tiny_problem(y=y, metric=metric)
    said = np.where(y == 1, 0.45, 0.05) + 0.1 * (np.arange(100) % 3 == 0)
    outputs = np.stack([1 - said, said], axis=1).astype(np.float32)
    tried = toy_kind.candidate(problem, outputs)
    choice = choose(problem, Search([tried], [0, 1]), balanced=balanced)
    assert bool(choice.calibration.shifts) == shifted
    if shifted:
        assert choice.calibration.shifts[1] > choice.calibration.shifts[0]
    truth = y[problem.masks.test]
    right = (choice.of_test([0, 1]).argmax(axis=1) == truth).mean()
    assert (right == 1) == shifted


@pytest.mark.parametrize("seconds", [60, np.inf])
def test_what_was_chosen_is_fitted_to_every_label(seconds, problem, chosen):
    kinds = {"a": Refits(1.0), "b": Refits(1.0)}
    kept = fit_to_all(problem, kinds, chosen, seconds=seconds)
    assert [component.setting.family for component in kept.components] == ["b", "a"]
    assert [component.weight for component in kept.components] == [0.75, 0.25]
    assert kinds["a"].splits == kinds["b"].splits == [0, 1]
    assert np.allclose(kept.outputs(problem).max(axis=1), 0.9)


def test_a_fit_that_falls_short_is_not_used(problem, chosen):
    kept = fit_to_all(problem, {"a": Refits(1.0), "b": Refits(0.3)}, chosen, seconds=60)
    short, good = kept.components
    assert short.models == tuple(fit.part for fit in [*chosen.weights][1].fits.values())
    assert np.allclose(good.models[0].outputs(problem).max(axis=1), 0.9)


def test_a_fit_falls_short_only_on_nodes_that_validated_in_the_search():
    """Where others train and are harder, a lower mean over all says nothing of the models."""
    y = NODES % 2
    own = OwnSplit((NODES >= 20) & (NODES < 50), NODES < 20, NODES >= 50)
    problem = tiny_problem(y=y, masks=make_masks(y, splits=4, seed=0, own=own))
    chosen = Chosen({candidate(problem, "a", problem.y >= 0): 1.0})
    for right_until, used in ((20, True), (10, False)):
        kept = fit_to_all(problem, {"a": Refits(right_until / 60)}, chosen, seconds=60)
        assert len(kept.components[0].models) == (4 if used else 1)


def test_a_fit_with_outputs_that_are_no_numbers_is_not_used(problem, chosen):
    class Broken(Refits):
        def fit(self, *args, **options):
            (fits,) = super().fit(*args, **options)
            return [{split: replace(fit, test=fit.test * np.nan) for split, fit in fits.items()}]

    kept = fit_to_all(problem, {"a": Broken(1.0), "b": Broken(1.0)}, chosen, seconds=60)
    assert np.allclose(kept.outputs(problem).max(axis=1), 0.8)


def test_without_time_the_models_of_the_search_stay(problem, chosen):
    for tried in chosen.weights:
        tried.seconds = 1.0
    for seconds, splits in ((1.5, [0]), (0, [])):
        kinds = {"a": Refits(1.0), "b": Refits(1.0)}
        kept = fit_to_all(problem, kinds, chosen, seconds=seconds)
        assert kinds["b"].splits == splits
        assert kept.components[0].weight == 0.75
    assert kinds["a"].splits == []


def test_time_that_is_short_is_shared(problem):
    """Each of two has a model, of another split, instead of one both models and the other none.

    2.5 of the 3.6 seconds are for fitting.
    """
    parts = [candidate(problem, name, problem.y >= 0, seconds=1.0) for name in "ab"]
    kinds = {"a": Refits(1.0), "b": Refits(1.0)}
    fit_to_all(problem, kinds, Chosen(dict(zip(parts, (0.25, 0.75), strict=True))), seconds=3.6)
    assert kinds["b"].splits == [0]
    assert kinds["a"].splits == [1, 0]  # as the first took no time


def test_ctrl_c_at_the_end_loses_nothing(problem, chosen):
    class Interrupts(Refits):
        def fit(self, *args, **options):
            raise KeyboardInterrupt

    other = Refits(1.0)
    kept = fit_to_all(problem, {"a": other, "b": Interrupts(1.0)}, chosen, seconds=60)
    assert other.splits == []
    assert np.allclose(kept.outputs(problem).max(axis=1), 0.8)
