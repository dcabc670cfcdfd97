"""How a search starts: what fits in RAM, in which order, and for how long, by a clock of ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from memohop import GraphClassifier, UsageError
from memohop.fit import opening, portfolio
from memohop.fit.candidates import catalogue, cost
from memohop.fit.candidates.family import Setting
from memohop.fit.opening import check_room, openings, seconds_to_compare
from memohop.fit.portfolio import Run
from memohop.fit.problem import Problem
from memohop.fit.verdict import answers
from memohop.training import Enough, Rules
from tiny_problem import ring, tiny_problem
from toy_kind import Toy, toy_problem


@dataclass
class Clock:
    """A clock that only fits move on."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Timed(Toy):
    """A kind of model with several first settings; each fit takes seconds that nothing cuts off."""

    takes: float = 1.0
    settings: int = 1
    clock: Clock | None = None

    def openers(self, problem: Problem) -> int:
        return self.settings

    def first(self, problem: Problem) -> list[Setting]:
        return [Setting(self.id, {}, {"number": float(one)}) for one in range(self.settings)]

    def fit(self, *args, **options):  # type: ignore[no-untyped-def]
        self.clock.now += self.takes
        return super().fit(*args, **options)


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    for module in (opening, portfolio):
        monkeypatch.setattr(module, "clock", found)
    return found


def running(kinds, time, problem=None):
    run = Run(
        problem or toy_problem(), kinds, time, None, np.random.default_rng(0), lambda *_: None
    )
    run.threads = None
    return run


def opened(run):
    return [one.setting.family for one in run.candidates]


def test_columns_come_first_then_a_network_with_memory_then_the_others(clock):
    kinds = [
        Timed("graph", 0.8, settings=2),
        Timed("columns", 0.7, sees_graph=False),
        Timed("memory", 0.9, has_memory=True, settings=2),
    ]
    order = [one.setting.family for one, _ in openings(running(kinds, 100.0))]
    assert order == ["columns", "memory", "graph", "graph", "memory"]


@pytest.mark.parametrize(("least", "tried"), [(10.0, True), (40.0, True), (60.0, False)])
def test_memory_is_tried_where_other_kinds_would_be_too_slow(clock, least, tried):
    """Others may need a quarter of the 95 seconds, memory half of them; it gets a tenth at most."""
    slow = Timed("memory", 0.9, has_memory=True, least=least)
    found = openings(running([Timed("quick", 0.7), slow], 100.0))
    assert [one.setting.family for one, _ in found] == ["memory"] * tried + ["quick"]
    if tried:
        assert found[0].seconds == pytest.approx(9.5)
    other = Timed("other", 0.9, least=40.0)
    assert len(openings(running([Timed("quick", 0.7), other], 100.0))) == 1


def test_fits_that_overrun_do_not_take_the_turn_of_other_kinds(clock):
    """The opening ends after 33 of 95 seconds; after that, each kind has one setting."""
    kinds = [Timed(f"kind {one}", 0.9, settings=3, takes=5.0, clock=clock) for one in range(4)]
    run = running(kinds, 100.0)
    run.left = lambda: 50.0
    run.open()
    counts = [opened(run).count(kind.id) for kind in kinds]
    assert counts == [3, 3, 1, 1]
    assert [len(run.waiting[kind.id]) for kind in kinds] == [0, 0, 2, 2]


def test_no_kind_is_started_when_half_of_the_time_is_over(clock):
    kinds = [Timed(f"kind {one}", 0.9, takes=30.0, clock=clock) for one in range(4)]
    run = running(kinds, 100.0)
    run.left = lambda: 50.0
    run.open()
    assert opened(run) == ["kind 0", "kind 1"]


def test_the_verdict_has_an_answer_on_memory_where_others_take_all_the_time(clock):
    """Three better kinds get half of the time left, again and again; memory has its share."""
    better = [Timed(f"better {one}", 0.9, takes=2.0, clock=clock) for one in range(7)]
    memory = Timed("memory", 0.6, has_memory=True, takes=1.0, clock=clock)
    columns = Timed("columns", 0.6, sees_graph=False, takes=1.0, clock=clock)
    found = portfolio.search(
        toy_problem(), [*better, memory, columns], time=90, trials=None, seed=0
    )
    assert found.stopped == "time"
    families = {kind.id: kind for kind in (*better, memory, columns)}
    questions = {one.question for one in answers(toy_problem(), families, found)}
    assert questions == {"graph", "memory"}


def test_a_leader_with_memory_that_is_too_slow_is_cut_off_on_the_splits_it_lacks(clock):
    """It is the best on the first split, and too slow for the others in the time left."""

    class Cut(Timed):
        def fit(self, problem, settings, splits, *, look, **options):  # type: ignore[no-untyped-def]
            try:
                for _ in range(30 * len(splits)):
                    self.clock.now += 1
                    look(0.5)
            except Enough:
                pass
            return Toy.fit(self, problem, settings, splits, **options)

    slow = Cut("memory", 0.95, has_memory=True, clock=clock)
    quick = Timed("quick", 0.9, takes=0.5, clock=clock)
    found = portfolio.search(toy_problem(), [slow, quick], time=80, trials=None, seed=0)
    questions = answers(toy_problem(), {"memory": slow, "quick": quick}, found)
    assert [one.question for one in questions] == ["memory"]


def test_a_network_that_fails_on_a_split_is_not_fitted_to_it_for_ever(clock):
    class Failing(Timed):
        def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
            fits = super().fit(problem, settings, splits, **options)
            return [{0: one[0]} if 0 in one else {} for one in fits]

    memory = Failing("memory", 0.6, has_memory=True, takes=0.1, clock=clock)
    kinds = [*(Timed(f"better {one}", 0.9, clock=clock) for one in range(3)), memory]
    run = running(kinds, 1e6)
    run.open()
    jobs = []
    while (job := run.next_job()).group[0].setting.family == "memory" and len(jobs) < 50:
        run.fit(job)
        jobs.append(job)
    assert len(jobs) < 10


def test_time_is_left_for_the_comparisons_after_the_search(clock, monkeypatch):
    """Each of twelve takes two seconds: one for each kind, and ten more."""

    def slow(problem, mask, one, other):
        clock.now += 2.0

    kinds = [Timed("one", 0.9, clock=clock), Timed("other", 0.8, clock=clock)]
    run = running(kinds, 1000.0)
    assert seconds_to_compare(run) == 0
    run.open()
    monkeypatch.setattr(opening, "paired_interval", slow)
    assert seconds_to_compare(run) == pytest.approx(24)
    before = run.left()
    run.comparing = 24.0
    assert run.left() == pytest.approx(before - 24)


def kinds_within(memory):
    return catalogue.families(None, rules=Rules(), seed=0, device="cpu", memory=memory)


@pytest.fixture
def many_classes():
    """Five thousand classes, each of six nodes."""
    return tiny_problem(30_000, classes=5_000)


def test_what_cannot_be_done_within_the_memory_is_refused_in_a_line(many_classes, monkeypatch):
    monkeypatch.setattr(cost, "resident_bytes", lambda: 600_000_000)
    monkeypatch.setattr(opening, "resident_bytes", lambda: 600_000_000)
    with pytest.raises(UsageError) as refused:
        check_room(many_classes, kinds_within(2_000_000_000), 2_000_000_000)
    said = str(refused.value)
    for words in ("memory=2 GB", "5000 classes", "holds 600 MB", "; give ", "fewer classes"):
        assert words in said
    assert "\n" not in said
    check_room(tiny_problem(), kinds_within(2_000_000_000), 2_000_000_000)


def test_only_kinds_that_fit_are_tried(many_classes, monkeypatch):
    """Label shares of all classes and their weights are what takes most."""
    monkeypatch.setattr(cost, "resident_bytes", lambda: 0)
    needs = {kind.id: kind.least_bytes(many_classes, one) for kind, one in _firsts(many_classes)}
    assert needs["linear+neighbours"] > 5 * needs["linear"]
    memory = int(1.5 * needs["linear"])
    fitting = {
        kind.id
        for kind, one in _firsts(many_classes, memory)
        if kind.least_seconds(many_classes, one) < math.inf
    }
    assert "linear" in fitting
    assert "linear+neighbours" not in fitting


def _firsts(problem, memory=None):
    return [(kind, one) for kind in kinds_within(memory) for one in kind.first(problem)[:1]]


def test_a_fit_is_refused_before_its_search(monkeypatch):
    monkeypatch.setattr("memohop.fit.estimator.search_with", None)
    with pytest.raises(UsageError, match=r"memory=1 MB is too little for 60 nodes, 120 arcs and 2"):
        GraphClassifier(memory=1_000_000).fit(tiny_problem().x, tiny_problem().y, ring(60))


def test_the_time_began_when_the_command_did(monkeypatch):
    """Ten seconds of a hundred have passed with reading: the search has ninety."""
    import time

    given = {}

    def search_with(*args, **options):
        given.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("memohop.fit.estimator.search_with", search_with)
    began = time.monotonic() - 10
    with pytest.raises(KeyboardInterrupt):
        GraphClassifier(time=100).fit(tiny_problem().x, tiny_problem().y, ring(60), began=began)
    assert 0 < given["time"] <= 90
