"""What a search forgets, and what cannot fit in the RAM and is not tried."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from memohop import GraphClassifier, UsageError
from memohop.fit import _candidate as candidate
from memohop.fit._candidate import Candidate, Search, Setting, best_few
from memohop.fit._ensemble import choose
from memohop.fit._portfolio import search
from memohop.fit.candidates import catalogue
from memohop.training import Rules
from tiny_problem import ring, tiny_problem
from toy_kind import Toy, toy_problem


def test_models_that_may_be_chosen_are_kept_and_others_not(monkeypatch):
    monkeypatch.setattr(candidate, "_KEPT", 4)
    problem = toy_problem()
    run = search(problem, [Toy("good", 0.9), Toy("fair", 0.7)], time=None, trials=6, seed=0)
    kept = [tried for tried in run.candidates if tried.models]
    assert 4 <= len(kept) < 12
    assert {*best_few(run.complete())} <= {*kept}


def test_outputs_are_kept_of_the_best_of_each_kind_and_not_of_hundreds(monkeypatch):
    """They are compared with the others at the end; with many classes they fill the RAM."""
    monkeypatch.setattr(candidate, "_KEPT", 2)
    problem = toy_problem()
    kinds = [Toy(f"kind {number}", 0.9 - number / 20) for number in range(8)]
    run = search(problem, kinds, time=None, trials=10, seed=0)
    with_outputs = [tried for tried in run.candidates if tried.fits]
    assert len(run.candidates) == 80
    assert len(with_outputs) < 20
    assert {tried.setting.family for tried in with_outputs} == {kind.id for kind in kinds}
    assert {*run.complete()} == {*with_outputs}


def test_the_best_of_a_kind_keeps_its_models_until_it_has_all_splits(monkeypatch):
    """There is room for two candidates, and those of a better kind come first."""
    monkeypatch.setattr(candidate, "_KEPT", 2)
    problem = toy_problem()
    late, *even = (Candidate(Setting(name, {}, {})) for name in ("late", *["even"] * 4))
    run = Search([], [0, 1, 2])
    for tried, share in ((late, 0.6), *((rival, 0.7) for rival in even)):
        kind = Toy(tried.setting.family, share)
        (tried.fits,) = kind.fit(problem, [tried.setting], [0])
        tried.scores = {0: share}
        run.update([tried])
    assert even[0].models
    assert sum(bool(rival.models) for rival in even) < 4
    assert best_few([late]) == [late]


@pytest.mark.parametrize("good", [0.95, 0.7, 0.65])
def test_what_is_chosen_has_models_whichever_splits_decide(good, monkeypatch):
    """Candidates with other splits than the leader's rank differently at the end."""

    class Uneven(Toy):
        """Each setting is better on one of the splits."""

        def fit(self, problem, settings, splits, **options):  # type: ignore[no-untyped-def]
            fits_by_setting = []
            for setting in settings:
                (fits,) = super().fit(problem, [setting], splits, **options)
                for split, fit in fits.items():
                    if split == int(3 * setting.numbers["number"]):
                        right = problem.y[problem.masks.val[:, split], None] == [0, 1]
                        fits[split] = replace(fit, val=(0.8 * right + 0.1).astype(np.float32))
                fits_by_setting.append(fits)
            return fits_by_setting

    monkeypatch.setattr(candidate, "_KEPT", 2)
    problem = tiny_problem(400, splits=3)
    kinds = [Uneven("uneven", 0.6), Toy("even", 0.65), Toy("one", good, first_only=True)]
    for seed in range(5):
        run = search(problem, kinds, time=None, trials=6, seed=seed)
        assert run.complete()[0].models
        assert all(tried.models for tried in choose(problem, run).weights)


@pytest.fixture
def many_classes():
    """Five thousand classes, each of six nodes."""
    return tiny_problem(30_000, classes=5_000)


def kinds_within(memory):
    return catalogue.families(None, rules=Rules(), seed=0, device="cpu", memory=memory)


def test_what_cannot_be_done_within_the_memory_is_refused_in_a_line(many_classes, monkeypatch):
    for module in (candidate, catalogue):
        monkeypatch.setattr(module, "resident_bytes", lambda: 600_000_000)
    kinds = kinds_within(2_000_000_000)
    with pytest.raises(UsageError) as refused:
        catalogue.check_applicable(kinds, many_classes, 2_000_000_000)
    said = str(refused.value)
    for words in ("memory=2 GB", "5000 classes", "holds 600 MB", "; give ", "fewer classes"):
        assert words in said
    assert "\n" not in said
    catalogue.check_applicable(kinds, tiny_problem(), 2_000_000_000)


def test_only_kinds_that_fit_are_tried(many_classes, monkeypatch):
    """Label shares of all classes and their weights are what takes most."""
    monkeypatch.setattr(candidate, "resident_bytes", lambda: 0)

    def costs(memory):
        kinds = {kind.id: kind for kind in kinds_within(memory)}
        return {
            name: kinds[name].cost(many_classes, kinds[name].first(many_classes)[0])
            for name in ("linear", "linear+neighbours")
        }

    (linear, neighbours) = (cost.bytes for cost in costs(None).values())
    assert neighbours > 5 * linear
    seconds = [cost.seconds for cost in costs(int(1.5 * linear)).values()]
    assert seconds == [0.0, math.inf]


def test_a_fit_is_refused_before_its_search(monkeypatch):
    monkeypatch.setattr("memohop.fit.estimator.search", None)
    words = r"memory=1 MB is too little for 60 nodes, 120 arcs and 2"
    tiny = tiny_problem()
    with pytest.raises(UsageError, match=words):
        GraphClassifier(memory=1_000_000).fit(tiny.x, tiny.y, ring(60))
