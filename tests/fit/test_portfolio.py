"""The search, over kinds of model whose scores are known in advance."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from memohop.data.folds import make_masks
from memohop.fit import candidate
from memohop.fit.candidate import Candidate, best_few
from memohop.fit.candidates.family import Setting
from memohop.fit.finish import choose
from memohop.fit.portfolio import Job, Run, search
from memohop.fit.problem import Problem
from tiny_problem import tiny_problem
from toy_kind import Toy, toy_problem


@pytest.fixture
def problem() -> Problem:
    return toy_problem()


def test_every_kind_has_its_trials_and_the_best_is_first(problem):
    kinds = [Toy("poor", 0.5), Toy("good", 0.9), Toy("fair", 0.7)]
    found = search(problem, kinds, time=None, trials=4, seed=0)
    assert found.stopped == "trials"
    assert (
        sorted(one.setting.family for one in found.candidates)
        == ["fair"] * 4 + ["good"] * 4 + ["poor"] * 4
    )
    assert found.complete()[0].setting.family == "good"
    assert found.splits == [0, 1, 2]


def test_nothing_is_fitted_twice_on_a_split(problem):
    toy = Toy("one", 0.8)
    found = search(problem, [toy], time=None, trials=3, seed=0)
    assert sum(count * len(splits) for count, splits in toy.jobs) == 3 * len(found.candidates)


def test_a_kind_that_never_ends_is_cut_off_and_the_others_go_on(problem):
    kinds = [Toy("endless", 1.0, never_ends=True), Toy("good", 0.9)]
    found = search(problem, kinds, time=0.5, trials=2, seed=0)
    assert found.complete()[0].setting.family == "good"
    assert all(not one.scores for one in found.candidates if one.setting.family == "endless")


def test_a_kind_that_needs_more_than_its_share_of_the_time_is_left_out(problem):
    kinds = [Toy("quick", 0.9), Toy("slow", 1.0, least=100.0), Toy("huge", 1.0, least=math.inf)]
    found = search(problem, kinds, time=60, trials=2, seed=0)
    assert {one.setting.family for one in found.candidates} == {"quick"}
    assert found.left_out == ("slow", "huge")
    without_limit = search(problem, kinds, time=None, trials=2, seed=0)
    assert without_limit.left_out == ("huge",)
    alone = search(problem, kinds[1:2], time=60, trials=2, seed=0)
    assert alone.complete()[0].setting.family == "slow"


@pytest.mark.parametrize(("time", "tried"), [(60, {0.0, 1.0}), (None, {0.0, 1.0, 100.0})])
def test_first_settings_that_cost_more_than_a_little_are_passed_over(problem, time, tried):
    class Costly(Toy):
        def first(self, problem: Problem) -> list[Setting]:
            seconds = (0.0, 100.0, math.inf, 1.0)
            return [Setting(self.id, {}, {"number": one}) for one in seconds]

        def least_seconds(self, problem: Problem, setting: Setting) -> float:
            return setting.numbers["number"]

        def near(self, *args: object) -> list[Setting]:
            raise KeyboardInterrupt

    found = search(problem, [Costly("one", 0.9)], time=time, trials=9, seed=0)
    assert {one.setting.numbers["number"] for one in found.candidates} == tried


def test_a_kind_without_settings_takes_no_part(problem):
    empty = Toy("empty", 1.0)
    empty.first = lambda problem: []  # type: ignore[method-assign]
    found = search(problem, [empty, Toy("good", 0.9)], time=None, trials=1, seed=0)
    assert {one.setting.family for one in found.candidates} == {"good"}


def test_an_interrupted_search_keeps_what_it_has(problem):
    class Interrupts(Toy):
        def fit(self, *args, **options):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    found = search(problem, [Toy("good", 0.9), Interrupts("bad", 0.1)], time=None, trials=2, seed=0)
    assert found.stopped == "interrupted"
    assert found.complete()[0].setting.family == "good"
    with pytest.raises(KeyboardInterrupt):
        search(problem, [Interrupts("bad", 0.1)], time=None, trials=2, seed=0)


def test_without_any_time_the_search_ends(problem):
    found = search(problem, [Toy("endless", 1.0, never_ends=True)], time=0, trials=None, seed=0)
    assert (found.stopped, found.complete(), found.splits) == ("time", [], [])


class WithModels(Toy):
    """Its fits have models."""

    def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
        fits = super().fit(problem, settings, splits, **options)
        return [{split: replace(fit, part=object()) for split, fit in one.items()} for one in fits]


class OnlyFirst(WithModels):
    """Has time for the first split alone."""

    def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
        fits = super().fit(problem, settings, splits, **options)
        return [{split: fit for split, fit in one.items() if split == 0} for one in fits]


def test_models_that_may_be_chosen_are_kept_and_others_not(problem, monkeypatch):
    monkeypatch.setattr(candidate, "_KEPT", 4)
    kinds = [WithModels("good", 0.9), WithModels("fair", 0.7)]
    found = search(problem, kinds, time=None, trials=6, seed=0)
    kept = [one for one in found.candidates if one.fits and one.has_models]
    assert 4 <= len(kept) < 12
    assert {*best_few(found.complete())} <= {*kept}


def test_outputs_are_kept_of_the_best_of_each_kind_and_not_of_hundreds(problem, monkeypatch):
    """They are compared with the others at the end; with many classes they fill the RAM."""
    monkeypatch.setattr(candidate, "_KEPT", 2)
    kinds = [WithModels(f"kind {one}", 0.9 - one / 20) for one in range(8)]
    found = search(problem, kinds, time=None, trials=10, seed=0)
    with_outputs = [one for one in found.candidates if one.fits]
    assert len(found.candidates) == 80
    assert len(with_outputs) < 20
    assert {one.setting.family for one in with_outputs} == {kind.id for kind in kinds}
    assert {*found.complete()} == {*with_outputs}


def test_models_are_forgotten_during_the_opening_too(problem, monkeypatch):
    monkeypatch.setattr(candidate, "_KEPT", 2)
    kinds = [WithModels(f"kind {number}", 0.9 - number / 20) for number in range(12)]
    run = Run(problem, kinds, None, 1, np.random.default_rng(0), lambda share, doing: None)
    run.open()
    assert len(run.candidates) == 12
    assert 2 <= sum(one.has_models for one in run.candidates) <= 8
    assert run.ranked()[0].has_models


def test_the_best_of_a_kind_keeps_its_models_until_it_has_all_splits(problem, monkeypatch):
    """It has room for two candidates, and those of a better kind come first."""
    monkeypatch.setattr(candidate, "_KEPT", 2)

    class Improving(WithModels):
        """Its later fits, on other splits, are the best of all."""

        def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
            self.share = 0.95 if self.jobs else 0.6
            return super().fit(problem, settings, splits, **options)

    kinds = [Improving("improving", 0.6), WithModels("even", 0.7)]
    run = Run(problem, kinds, None, 6, np.random.default_rng(0), lambda share, doing: None)
    late, *even = (Candidate(Setting(name, {}, {})) for name in ("improving", *["even"] * 4))
    run.fit(Job([late], [0], math.inf))
    for one in even:
        run.fit(Job([one], [0], math.inf))
    run.fit(Job([late], [1, 2], math.inf))
    assert late.has_models


@pytest.mark.parametrize(("good", "splits"), [(0.95, [0]), (0.65, [0, 1, 2])])
def test_a_leader_without_all_splits_decides_only_if_it_is_clearly_better(good, splits):
    """A kind that had time for one split of three is better by 30 nodes of 100, or by none."""
    y = np.arange(400) % 2
    problem = tiny_problem(y=y, masks=make_masks(y, splits=3, seed=0))
    found = search(problem, [OnlyFirst("one", good), Toy("all", 0.65)], time=None, trials=1, seed=0)
    assert found.splits == splits


@pytest.mark.parametrize("good", [0.95, 0.7, 0.65])
def test_what_is_chosen_has_models_whichever_splits_decide(good, monkeypatch):
    """Candidates with other splits than the leader's rank differently at the end."""

    class Uneven(WithModels):
        """Each setting is better on one of the splits."""

        def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
            found = []
            for setting in settings:
                (fits,) = super().fit(problem, [setting], splits, **options)
                for split, fit in fits.items():
                    if split == int(3 * setting.numbers["number"]):
                        right = problem.y[problem.masks.val[:, split], None] == [0, 1]
                        fits[split] = replace(fit, val=(0.8 * right + 0.1).astype(np.float32))
                found.append(fits)
            return found

    monkeypatch.setattr(candidate, "_KEPT", 2)
    y = np.arange(400) % 2
    problem = tiny_problem(y=y, masks=make_masks(y, splits=3, seed=0))
    kinds = [Uneven("uneven", 0.6), WithModels("even", 0.65), OnlyFirst("one", good)]
    for seed in range(5):
        found = search(problem, kinds, time=None, trials=6, seed=seed)
        assert all(one.has_models for one in choose(problem, found).candidates)


def test_the_best_few_are_of_several_kinds_as_long_as_there_are_some():
    def ranked(kinds):
        return [Candidate(Setting(kind, {}, {"number": float(i)})) for i, kind in enumerate(kinds)]

    many = ranked("a" * 20 + "bcb" + "a" * 5)
    found = best_few(many)
    assert [one.setting.family for one in found] == ["a"] * 9 + ["b", "c", "b"]
    assert found == sorted(found, key=many.index)
    alone = ranked("a" * 20)
    assert best_few(alone) == alone[:12]
