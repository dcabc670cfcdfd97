"""What a search must do, over kinds of model whose scores and times are known in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from memohop import GraphClassifier
from memohop.fit import _candidate as candidate
from memohop.fit import _portfolio as portfolio
from memohop.fit import _workers as workers
from memohop.fit._candidate import Candidate, Setting, best_few, usual_scores
from memohop.fit._problem import Problem
from memohop.fit._verdict import answers
from memohop.training import Enough
from tiny_problem import ring, tiny_problem
from toy_kind import Toy, counts, searched, toy_problem


@dataclass
class Clock:
    """A clock that only fits move on."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Timed(Toy):
    """A kind of model with several first settings; each split takes seconds of the clock.

    Attributes:
        takes: Seconds of a split.
        settings: How many first settings the search starts with.
        cut: Whether it stops when its time is up, with its result so far.
    """

    takes: float = 1.0
    settings: int = 1
    cut: bool = False
    clock: Any = None

    def openers(self, problem: Problem) -> int:
        return self.settings

    def first(self, problem: Problem) -> list[Setting]:
        return [Setting(self.id, {}, {"number": float(number)}) for number in range(self.settings)]

    def fit(self, problem, settings, splits, *, look=lambda: None):  # type: ignore[no-untyped-def]
        left = self.takes * len(settings) * len(splits)
        try:
            while left > 0:
                self.clock.now += min(left, 0.5)
                left -= 0.5
                if self.cut:
                    look()
        except Enough:
            pass
        return super().fit(problem, settings, splits)


@pytest.fixture
def clock(monkeypatch):
    ours = Clock()
    for module in (portfolio, workers):
        monkeypatch.setattr(module, "clock", ours)
    monkeypatch.setattr(portfolio, "Threads", lambda: None)
    return ours


@pytest.fixture
def problem() -> Problem:
    return toy_problem()


class TestChoice:
    """The better go on, and nothing is done in vain."""

    def test_every_kind_has_its_trials_once_on_a_split_and_the_best_is_first(self, problem):
        kinds = [Toy("poor", 0.5), Toy("good", 0.9), Toy("fair", 0.7)]
        run = searched(problem, kinds, trials=4)
        assert (run.stopped, run.splits) == ("trials", [0, 1, 2])
        assert counts(run, "poor", "good", "fair") == [4, 4, 4]
        assert run.complete()[0].setting.family == "good"
        assert {tried.setting.family for tried in run.complete()} == {"poor", "good", "fair"}
        for kind in kinds:
            assert sum(count * len(splits) for count, splits in kind.jobs) <= 3 * 4

    def test_better_kinds_are_varied_more_often(self, problem, clock):
        kinds = [Timed(f"{rank}", 0.9 - rank / 10, clock=clock) for rank in range(4)]
        tried = counts(searched(problem, kinds, time=600), *"0123")
        assert sum(tried[:2]) > 1.2 * sum(tried[2:])
        assert tried[2] > tried[3] > 0

    def test_a_slow_kind_has_no_more_time_than_a_quick_one_of_its_rank(self, problem, clock):
        slow, quick = Timed("slow", 0.9, takes=20, clock=clock), Timed("quick", 0.9, clock=clock)
        run = searched(problem, [slow, quick], time=1500)
        spent = {"slow": 0.0, "quick": 0.0}
        for tried in run.candidates:
            spent[tried.setting.family] += tried.spent
        assert 0.2 < spent["slow"] / spent["quick"] < 5

    @pytest.mark.parametrize(("good", "splits"), [(0.95, [0]), (0.65, [0, 1, 2])])
    def test_a_leader_without_all_splits_decides_only_if_it_is_clearly_better(self, good, splits):
        """A kind with outputs for one split of three is better by 30 nodes of 100, or by none."""
        kinds = [Toy("one", good, first_only=True), Toy("all", 0.65)]
        assert searched(tiny_problem(400, splits=3), kinds, trials=1).splits == splits

    def test_splits_that_only_good_candidates_have_are_not_taken_for_easy_ones(self):
        """The second split is harder by 0.1; the mean on it, 0.6, would say that it is easier."""
        scores = [{0: 0.7, 1: 0.6}, {0: 0.72}, {0: 0.3}, {0: 0.28}]
        candidates = [Candidate(Setting("one", {}, {}), scores=by_split) for by_split in scores]
        assert usual_scores(candidates) == pytest.approx({0: 0.5, 1: 0.4})
        assert usual_scores([]) == {0: 0.0}

    def test_the_best_few_are_of_several_kinds_as_long_as_there_are_some(self):
        ranked = [Candidate(Setting(kind, {}, {})) for kind in "a" * 20 + "bcb" + "a" * 5]
        few = best_few(ranked)
        assert {tried.setting.family for tried in few} == {*"abc"}
        assert few == sorted(few, key=ranked.index)
        alone = ranked[:20]
        assert best_few(alone) == alone[: len(few)]


class TestTime:
    """The budget is kept, and everybody has a turn."""

    def test_a_kind_that_never_ends_is_cut_off_and_the_others_go_on(self, problem):
        kinds = [Toy("endless", 1.0, never_ends=True), Toy("good", 0.9)]
        run = searched(problem, kinds, time=0.5, trials=2)
        assert run.complete()[0].setting.family == "good"
        assert all(
            not tried.scores for tried in run.candidates if tried.setting.family == "endless"
        )
        run = searched(problem, kinds[:1], time=0)
        assert (run.stopped, run.complete(), run.splits) == ("time", [], [])

    @pytest.mark.parametrize("takes", [0.5, 5.0, 20.0])
    def test_the_time_is_used_and_not_exceeded_by_more_than_a_fit(self, problem, clock, takes):
        kinds = [Timed(f"{rank}", 0.9 - rank / 20, takes=takes, clock=clock) for rank in range(3)]
        assert searched(problem, kinds, time=300).stopped == "time"
        assert 0.5 * 300 < clock.now < 300 + takes

    def test_a_kind_that_needs_more_than_its_share_is_left_out(self, problem):
        kinds = [Toy("quick", 0.9), Toy("slow", 1.0, least=100.0), Toy("huge", 1.0, least=math.inf)]
        without_settings = Toy("empty", 1.0)
        without_settings.first = lambda problem: []  # type: ignore[method-assign]
        run = searched(problem, [without_settings, *kinds], time=60, trials=2)
        assert {tried.setting.family for tried in run.candidates} == {"quick"}
        assert run.left_out == ("slow", "huge")
        assert searched(problem, kinds, trials=2).left_out == ("huge",)
        alone = searched(problem, kinds[1:2], time=60, trials=2)
        assert alone.complete()[0].setting.family == "slow"

    def test_columns_come_first_then_a_network_with_memory_then_the_others(self, problem, clock):
        kinds = [
            Timed("graph", 0.8, settings=2, clock=clock),
            Timed("columns", 0.7, sees_graph=False, clock=clock),
            Timed("memory", 0.9, has_memory=True, settings=2, clock=clock),
        ]
        run = searched(problem, kinds, time=100)
        order = [tried.setting.family for tried in run.candidates][:5]
        assert order == ["columns", "memory", "graph", "graph", "memory"]

    def test_second_settings_do_not_shorten_the_first_ones_of_other_kinds(self, problem, clock):
        """Ten kinds have a fifth of the time: with four settings each, it would be a twentieth."""
        kinds = [
            Timed(f"kind {number}", 0.8, settings=4, takes=2.0, cut=True, clock=clock)
            for number in range(10)
        ]
        run = searched(problem, kinds, time=80)
        assert all(not tried.unfinished for tried in run.candidates[:10])
        assert len({tried.setting.family for tried in run.candidates[:10]}) == 10

    def test_a_second_setting_waits_until_there_is_time_for_it(self, problem, clock):
        """Its kind took 2 seconds; what is left of the opening would be 0.3 for each."""
        kinds = [
            Timed(f"kind {number}", 0.8, settings=2, takes=2.0, cut=True, clock=clock)
            for number in range(10)
        ]
        run = searched(problem, kinds, time=70)
        assert len([tried for tried in run.candidates if tried.setting.numbers["number"] == 1])
        assert not any(tried.unfinished for tried in run.candidates[:12])

    def test_a_leader_is_fitted_anew_only_if_there_is_time_for_its_other_splits(
        self, problem, clock
    ):
        """It was cut off, and to finish takes all the time that is left."""
        slow = Timed("slow", 0.95, takes=30.0, cut=True, clock=clock)
        kinds = [slow, *(Timed(f"{number}", 0.6, takes=0.5, clock=clock) for number in range(3))]
        run = searched(problem, kinds, time=60)
        assert run.complete()[0].setting.family == "slow"
        assert len(run.splits) == problem.splits

    @pytest.mark.parametrize(("least", "tried"), [(10.0, True), (40.0, True), (60.0, False)])
    def test_memory_is_tried_where_other_kinds_would_be_too_slow(
        self, problem, clock, least, tried
    ):
        slow = Timed("memory", 0.9, has_memory=True, least=least, clock=clock)
        other = Timed("other", 0.9, least=40.0, clock=clock)
        run = searched(problem, [Timed("quick", 0.7, clock=clock), slow, other], time=100)
        assert run.left_out == (("other",) if tried else ("memory", "other"))

    def test_fits_that_overrun_do_not_take_the_turn_of_other_kinds(self, problem, clock):
        """The first settings take half of the time; each kind has one of them at least."""
        kinds = [
            Timed(f"kind {number}", 0.9, settings=3, takes=5.0, clock=clock) for number in range(4)
        ]
        run = searched(problem, kinds, time=100)
        assert min(counts(run, *(kind.id for kind in kinds))) >= 1

    @pytest.mark.parametrize(("time", "numbers"), [(60, {0.0, 1.0}), (None, {0.0, 1.0, 100.0})])
    def test_first_settings_that_cost_more_than_a_little_are_passed_over(
        self, problem, time, numbers
    ):
        class Costly(Toy):
            def first(self, problem):  # type: ignore[no-untyped-def]
                seconds = (0.0, 100.0, math.inf, 1.0)
                return [Setting(self.id, {}, {"number": cost}) for cost in seconds]

            def cost(self, problem, setting):  # type: ignore[no-untyped-def]
                return candidate.Cost(setting.numbers["number"], 0.0)

            def space(self, problem):  # type: ignore[no-untyped-def]
                raise KeyboardInterrupt

        run = searched(problem, [Costly("one", 0.9)], time=time, trials=9)
        assert {tried.setting.numbers["number"] for tried in run.candidates} == numbers

    def test_a_leader_that_was_cut_off_gets_more_time_on_one_split_first(self, problem, clock):
        slow = Timed("slow", 0.9, takes=12.0, cut=True, clock=clock)
        kinds = [slow, *(Timed(f"{number}", 0.6, takes=0.5, clock=clock) for number in range(9))]
        searched(problem, kinds, time=120)
        assert slow.jobs[:2] == [(1, (0,)), (1, (0,))]
        assert any(1 in splits for _, splits in slow.jobs[2:])

    def test_what_was_cut_off_does_not_begin_anew_with_less_time(self, problem, clock):
        """It took 2 seconds, and the sixth best kind would now have 2.5 of the 15 that are left."""
        kinds = {f"{place}": Timed(f"{place}", 0.9, clock=clock) for place in range(6)}
        running = portfolio.Portfolio(problem, kinds, 20.0, None, np.random.default_rng(0))
        for place, name in enumerate(kinds):
            scores = dict.fromkeys(range(3), 0.9 - 0.1 * place)
            tried = Candidate(Setting(name, {}, {}), scores=scores, seconds=3.0)
            running.search.candidates.append(tried)
        running.search.ranked = running.search.candidates
        tried.unfinished, tried.seconds = frozenset({0, 1, 2}), 2.0
        running.comparing = 0.0
        assert not [lack for lack in running._lacking(False) if lack[1]]
        tried.seconds = 0.5
        assert [lack[1] for lack in running._lacking(False) if lack[1]] == [[0]]

    def test_a_network_that_fails_on_a_split_is_not_fitted_to_it_for_ever(self, problem, clock):
        memory = Timed("memory", 0.6, has_memory=True, first_only=True, takes=0.1, clock=clock)
        kinds = [*(Timed(f"better {number}", 0.9, clock=clock) for number in range(3)), memory]
        assert searched(problem, kinds, time=10_000, trials=3).stopped == "trials"
        assert len(memory.jobs) < 15

    def test_the_verdict_has_an_answer_on_memory_where_others_take_all_the_time(
        self, problem, clock
    ):
        better = [Timed(f"better {number}", 0.9, takes=2.0, clock=clock) for number in range(7)]
        memory = Timed("memory", 0.6, has_memory=True, clock=clock)
        columns = Timed("columns", 0.6, sees_graph=False, clock=clock)
        kinds = [*better, memory, columns]
        replies = answers(problem, {kind.id: kind for kind in kinds}, searched(problem, kinds, 90))
        assert {answer.question for answer in replies} == {"graph", "memory"}

    def test_a_leader_with_memory_that_is_too_slow_is_cut_off_on_the_splits_it_lacks(
        self, problem, clock
    ):
        """It is the best on the first split, and too slow for the others in the time left."""
        slow = Timed("memory", 0.95, has_memory=True, takes=30.0, cut=True, clock=clock)
        quick = Timed("quick", 0.9, takes=0.5, clock=clock)
        run = searched(problem, [slow, quick], time=80)
        replies = answers(problem, {"memory": slow, "quick": quick}, run)
        assert [answer.question for answer in replies] == ["memory"]

    def test_time_is_left_for_the_comparisons_after_the_search(self, problem, clock, monkeypatch):
        def slow(*arguments):
            clock.now += 10.0

        kinds = [Timed("one", 0.9, clock=clock), Timed("other", 0.8, clock=clock)]
        searched(problem, kinds, time=1000)
        without, clock.now = clock.now, 0.0
        monkeypatch.setattr(portfolio, "paired_interval", slow)
        searched(problem, kinds, time=1000)
        assert clock.now < without - 100

    @pytest.mark.parametrize(
        ("nodes", "takes", "splits"), [(10_000, 0.5, 5), (10_000, 4.0, 1), (1_000, 4.0, 5)]
    )
    def test_splits_that_cost_too_much_are_left_out_if_the_others_say_enough(
        self, clock, nodes, takes, splits
    ):
        problem = tiny_problem(nodes, splits=5)
        kinds = [Timed(f"{number}", 0.9, takes=takes, clock=clock) for number in range(4)]
        run = searched(problem, kinds, time=100)
        assert {split for tried in run.candidates for split in tried.scores} <= {*range(splits)}
        assert len(run.splits) <= splits

    def test_no_split_is_left_out_where_scores_of_few_positives_are_luck(self, clock):
        y = (np.arange(10_000) % 1000 == 0).astype(int)
        problem = tiny_problem(y=y, splits=5, metric="roc_auc")
        run = searched(problem, [Timed("one", 0.9, takes=2.0, clock=clock)], time=100)
        assert run.splits == [0, 1, 2, 3, 4]

    def test_the_time_began_when_the_command_did(self, monkeypatch):
        """Ten seconds of a hundred have passed with reading: the search has ninety."""
        import time

        given = {}

        def search(*args, **options):
            given.update(options)
            raise KeyboardInterrupt

        monkeypatch.setattr("memohop.fit.estimator.search", search)
        began, tiny = time.monotonic() - 10, tiny_problem()
        with pytest.raises(KeyboardInterrupt):
            GraphClassifier(time=100).fit(tiny.x, tiny.y, ring(60), began=began)
        assert 0 < given["time"] <= 90
