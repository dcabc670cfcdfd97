"""The search, over kinds of model whose scores are known in advance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from memohop.own import candidate
from memohop.own.candidate import Candidate, best_few, usual_scores
from memohop.own.candidates.family import Fits, Fitted, Look, Setting
from memohop.own.finish import choose
from memohop.own.folds import make_masks
from memohop.own.portfolio import Job, Run, search
from memohop.own.problem import Problem
from memohop.training import Enough
from tiny_problem import tiny_problem


@dataclass
class Toy:
    """A kind of model that is right on a share of the nodes, the same for all its settings."""

    id: str
    share: float
    sees_graph: bool = True
    has_memory: bool = False
    never_ends: bool = False
    jobs: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    least: float = 0.0

    def least_seconds(self, problem: Problem, setting: Setting) -> float:
        return self.least

    def openers(self, problem: Problem) -> int:
        return 1

    def first(self, problem: Problem) -> list[Setting]:
        return [Setting(self.id, {}, {"number": 0.0})]

    def near(
        self, problem: Problem, best: Setting, count: int, generator: np.random.Generator
    ) -> list[Setting]:
        return [Setting(self.id, {}, {"number": float(generator.random())}) for _ in range(count)]

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        keep: bool = False,
        look: Look = lambda share: None,
    ) -> Fits:
        self.jobs.append((len(settings), tuple(splits)))
        try:
            while self.never_ends:
                look(0.5)
        except Enough:
            return [{} for _ in settings]
        right = np.arange(problem.nodes) < self.share * problem.nodes
        said = np.where(right, problem.y, 1 - problem.y)
        outputs = np.stack([1 - said, said], axis=1).astype(np.float32)
        masks = problem.masks
        return [
            {split: Fitted(outputs[masks.val[:, split]], outputs[masks.test]) for split in splits}
            for _ in settings
        ]


@pytest.fixture
def problem() -> Problem:
    y = np.arange(100) % 2
    return tiny_problem(y=y, masks=make_masks(y, splits=3, seed=0))


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


def test_what_a_kind_usually_takes_counts_and_not_what_its_best_took(problem):
    run = Run(problem, [Toy("one", 0.9)], None, None, np.random.default_rng(0), lambda *_: None)
    for seconds in (0.1, 3.1, 5.8):
        run.candidates.append(Candidate(Setting("one", {}, {}), seconds=seconds))
    assert run.usual_seconds("one") == pytest.approx(3.0)


def running(problem: Problem, time: float | None = None) -> Run:
    kinds = [Toy("one", 0.9), Toy("other", 0.8)]
    return Run(problem, kinds, time, None, np.random.default_rng(0), lambda *_: None)


@pytest.mark.parametrize(
    ("scores", "unfinished", "lacking"),
    [
        ({}, set(), [0, 1, 2]),
        ({0: 0.9}, {0}, [0, 1, 2]),
        ({0: 0.9}, set(), [1, 2]),
        ({0: 0.9, 1: 0.8, 2: 0.7}, {1, 2}, [1, 2]),
        ({0: 0.9, 1: 0.8, 2: 0.7}, set(), []),
    ],
)
def test_a_candidate_lacks_splits_that_it_has_not_finished(problem, scores, unfinished, lacking):
    one = Candidate(Setting("one", {}, {}), scores=scores, unfinished=frozenset(unfinished))
    assert running(problem).lacking_splits(one) == lacking


def test_a_fit_that_had_too_little_time_is_unfinished_until_it_has_had_enough(problem):
    run, one = running(problem), Candidate(Setting("one", {}, {}))
    (fits,) = run.families["one"].fit(problem, [one.setting], [0, 1])
    run.take(Job([one], [0, 1], 1.0), [fits], seconds=1.0, cut=True)
    assert one.unfinished == {0, 1}
    run.take(Job([one], [0], 5.0), [fits], seconds=4.0, cut=False)
    assert one.unfinished == {1}


@pytest.mark.parametrize(("seconds", "splits"), [(4.0, [0]), (40.0, [0, 1, 2])])
def test_a_leader_finishes_on_one_split_first_if_it_has_far_more_time_there(
    problem, seconds, splits
):
    """It gets half of the time left, at most 48 seconds of 96."""
    run = running(problem, 100.0)
    one = Candidate(Setting("one", {}, {}), scores={0: 0.9}, seconds=seconds, tries=1)
    one.unfinished = frozenset({0})
    run.candidates.append(one)
    run.usual = usual_scores(run.candidates, run.all_splits)
    assert run.lacking()[0].splits == splits
    one.unfinished = frozenset()
    assert run.lacking()[0].splits == [1, 2]


@pytest.mark.parametrize(
    ("seconds", "odds"), [((10.0, 2.0), (0.1, 0.3)), ((10.0, 0.01), (0.1, 0.6))]
)
def test_kinds_have_time_by_their_rank_unless_they_are_quick(problem, seconds, odds):
    """The second kind gets 0.6 of the time of the first; a quick fit counts as a second."""
    run = running(problem, 1e6)
    for kind, score, each in zip(("one", "other"), (0.9, 0.8), seconds, strict=True):
        run.candidates.append(Candidate(Setting(kind, {}, {}), scores={0: score}, seconds=each))
    run.usual = usual_scores(run.candidates, run.all_splits)
    chosen = [run.choose_family() for _ in range(2000)]
    assert chosen.count("one") / 2000 == pytest.approx(odds[0] / sum(odds), abs=0.04)


@pytest.mark.parametrize(("in_vain", "odds"), [(0, (1, 0.6)), (20, (0.5, 0.6)), (180, (0.1, 0.6))])
def test_a_kind_is_varied_less_often_the_more_settings_of_it_are_no_better(problem, in_vain, odds):
    run = running(problem)
    for kind, score, count in (("other", 0.8, 1), ("one", 0.9, 1), ("one", 0.7, in_vain)):
        setting = Setting(kind, {}, {})
        run.candidates += [Candidate(setting, scores={0: score}) for _ in range(count)]
    run.usual = usual_scores(run.candidates, run.all_splits)
    chosen = [run.choose_family() for _ in range(2000)]
    assert chosen.count("one") / 2000 == pytest.approx(odds[0] / sum(odds), abs=0.04)


def test_only_the_best_of_the_first_settings_of_a_kind_have_all_splits_at_once(problem):
    run = running(problem)
    for score in (0.8, 0.9, 0.7):
        one = Candidate(Setting("one", {}, {}), scores={0: score}, seconds=1.0)
        run.candidates.append(one)
        run.usual = usual_scores(run.candidates, run.all_splits)
        assert run.costs_little(one, 2.0) == (score >= 0.8)
        assert not run.costs_little(one, 1.9)


@pytest.mark.parametrize(
    ("nodes", "seconds", "unfinished", "splits"),
    [
        (6250, 0.0, False, 5),
        (6250, 2.5, False, 4),
        (6250, 4.0, False, 2),
        (6250, 4.0, True, 1),
        (6250, 90.0, False, 1),
        (3000, 90.0, False, 3),
        (100, 90.0, False, 5),
    ],
)
def test_splits_that_cost_too_much_are_left_out_if_the_others_say_enough(
    nodes, seconds, unfinished, splits
):
    """The best of two kinds have 0.3 of the time left, 72 of 100 s if the final fits take 24.

    A split validates on 0.16 of the nodes, and a fit that had too little time counts twice.
    """
    y = np.arange(nodes) % 2
    run = running(tiny_problem(y=y, masks=make_masks(y, splits=5, seed=0)), 100.0)
    for kind in ("one", "other"):
        one = Candidate(Setting(kind, {}, {}), scores={0: 0.9}, seconds=seconds)
        one.unfinished = frozenset({0} if unfinished else ())
        run.candidates.append(one)
    run.usual = usual_scores(run.candidates, run.all_splits)
    run.leave_out_splits()
    assert run.all_splits == list(range(splits))


def test_a_search_with_fewer_splits_goes_on_as_long_as_there_is_time_for_these(problem):
    """Fits of 20 s have no time for three splits in the 24 s that the final fits leave of 48."""
    run = running(problem, 50.0)
    run.left = lambda: 24.0  # type: ignore[method-assign]
    run.candidates.append(Candidate(Setting("one", {}, {}), scores={0: 0.9}, seconds=20.0))
    assert run.splits_at_first("one") == []
    run.all_splits = [0]
    assert run.splits_at_first("one") == [0]


def test_no_split_is_left_out_without_a_limit_of_time_or_with_few_positives():
    y = np.arange(10_000) % 2
    masks = make_masks(y, splits=5, seed=0)
    for problem, time in (
        (tiny_problem(y=y, masks=masks), None),
        (tiny_problem(y=(np.arange(10_000) % 1000 == 0) * 1, masks=masks, metric="roc_auc"), 100.0),
    ):
        run = running(problem, time)
        run.candidates.append(Candidate(Setting("one", {}, {}), scores={0: 0.9}, seconds=90.0))
        run.usual = usual_scores(run.candidates, run.all_splits)
        run.leave_out_splits()
        assert run.all_splits == [0, 1, 2, 3, 4]


def test_candidates_with_splits_that_are_left_out_do_not_decide_by_them():
    """A quick kind had all splits before two were left out; a better one has the first alone."""
    y = np.arange(400) % 2
    run = running(tiny_problem(y=y, masks=make_masks(y, splits=3, seed=0)))
    run.families["other"].share = 0.88
    quick, better = (Candidate(Setting(name, {}, {})) for name in ("other", "one"))
    for one, splits in ((quick, [0, 1, 2]), (better, [0])):
        run.fit(Job([one], splits, math.inf))
    assert run.splits() == [0, 1, 2]
    run.all_splits = [0]
    assert run.deciding() == [better, better]
    assert run.splits() == [0]
    assert run.lacking() == []


def test_splits_that_only_good_candidates_have_are_not_taken_for_easy_ones():
    """The second split is harder by 0.1; the plain mean on it, 0.6, would say that it is easier."""
    scores = [{0: 0.7, 1: 0.6}, {0: 0.72}, {0: 0.3}, {0: 0.28}]
    candidates = [Candidate(Setting("one", {}, {}), scores=one) for one in scores]
    assert usual_scores(candidates, [0, 1, 2]) == pytest.approx({0: 0.5, 1: 0.4, 2: 0.5})
    assert usual_scores([], [0, 1]) == {0: 0.0, 1: 0.0}


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
    kept = [one for one in found.candidates if all(fit.part for fit in one.fits.values())]
    assert 4 <= len(kept) < 12
    assert {*best_few(found.complete())} <= {*kept}


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
