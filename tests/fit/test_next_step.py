"""How a running search decides what to fit next, on which splits and for how long."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memohop.data.folds import make_masks
from memohop.fit.candidate import Candidate, usual_scores
from memohop.fit.candidates.family import Setting
from memohop.fit.portfolio import Job, Run
from memohop.fit.problem import Problem
from tiny_problem import tiny_problem
from toy_kind import Toy, toy_problem


@pytest.fixture
def problem() -> Problem:
    return toy_problem()


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
    run = running(problem)
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
