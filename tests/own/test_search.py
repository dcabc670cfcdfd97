"""The search: what it tries, how it chooses, and how it stops."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import memohop
from memohop import UsageError
from memohop.inference import probabilities
from memohop.own import candidate
from memohop.own.model import OwnModel
from memohop.own.search import search
from memohop.own.space import MODELS, Space
from memohop.training import MemberResult
from numerics import seeded


def graph(**options):
    return memohop.load("csbm", nodes=90, classes=3, channels=8, splits=2, seed=seeded(), **options)


@pytest.fixture(autouse=True)
def nothing_to_say(monkeypatch):
    """Networks that were made up have no logits; those that were trained do."""
    real = candidate.Candidate.logits

    def logits(self, tried):
        made_up = all(len(result.state) < 2 for result in tried.selection.results)
        return torch.zeros(2, 90, 3) if made_up else real(self, tried)

    monkeypatch.setattr(candidate.Candidate, "logits", logits)


def invented(scores):
    """A trainer that makes up its results: `scores(model, trial number, split)` is (val, test)."""
    counts = dict.fromkeys(MODELS, 0)

    def train(data, model, members, *, progress, keep_models, **_):
        splits = 1 + max(member.split for member in members)
        results = []
        for index, member in enumerate(members):
            val, test = scores(model, counts[model] + index // splits, member.split)
            state = {"input.weight": torch.full((1,), val)} if keep_models else None
            nothing = np.zeros(0, dtype=np.float32)
            results.append(MemberResult(member, 0, 1, 1.0, val, test, nothing, nothing, state))
        progress(1, 1)
        counts[model] += len(members) // splits
        return results

    return train


class TestSpace:
    @pytest.mark.parametrize("model", MODELS)
    def test_every_model_begins_with_the_same_numbers(self, model):
        first = [trial.numbers for trial in Space(model, directed=True, seed=0).first]
        others = [trial.numbers for trial in Space("gcn+mmp", directed=True, seed=1).first]
        for own, other in zip(first, others, strict=True):
            assert {**own, "lam": 0} == {**other, "lam": 0}
            assert model == "gcn+mmp" or own["lam"] == 0

    @pytest.mark.parametrize("model", MODELS)
    @pytest.mark.parametrize("directed", [True, False])
    def test_all_trials_can_be_built(self, model, directed):
        space = Space(model, directed=directed, seed=3)
        trials = list(space.first)
        for _ in range(40):
            trials += space.near(trials[-1], 2)
        for trial in trials:
            memohop.build(model, 4, 2, **trial.options)
            memohop.Member(**trial.numbers)
        directions = {trial.options.get("direction") for trial in trials}
        if model == "mlp":
            assert directions == {None}
        else:
            assert directions == ({"undirected", "out", "in"} if directed else {"undirected"})

    def test_a_near_trial_differs_in_one_part_at_most(self):
        space = Space("gcn+mmp", directed=True, seed=0)
        changes = []
        for _ in range(60):
            one, other = space.near(space.first[0], 2)
            assert one.structure == other.structure
            assert one.numbers != other.numbers
            changes.append(
                [
                    axis
                    for axis, name in one.structure.items()
                    if name != space.first[0].structure[axis]
                ]
            )
        assert {len(axes) for axes in changes} == {0, 1}
        assert {axis for axes in changes for axis in axes} == set(space.first[0].structure)


class TestChoice:
    def test_validation_decides_and_test_does_not(self, monkeypatch):
        # The better a trial on validation, the worse on test.
        scores = {"gcn+mmp": [0.5, 0.9, 0.7], "mlp": [0.8, 0.6, 0.4], "gcn": [0.1, 0.2, 0.3]}

        def of(model, trial, split):
            return scores[model][trial] + 0.01 * split, 1 - scores[model][trial]

        monkeypatch.setattr(candidate, "train", invented(of))
        found = search(graph(), trials=3)
        assert {model: len(tried) for model, tried in found.tried.items()} == dict.fromkeys(
            MODELS, 3
        )
        assert found.stopped == "trials"
        for model, index in (("gcn+mmp", 1), ("mlp", 0), ("gcn", 2)):
            assert found.best(model) is found.tried[model][index]
            assert found.best(model).selection.mean == pytest.approx(1 - scores[model][index])

    def test_later_trials_are_near_the_best_one(self, monkeypatch):
        monkeypatch.setattr(candidate, "train", invented(lambda m, trial, s: (-abs(trial - 4), 0)))
        found = search(graph(), trials=10)
        best = found.tried["gcn+mmp"][4].trial
        for tried in found.tried["gcn+mmp"][7:]:
            changed = [a for a, name in tried.trial.structure.items() if name != best.structure[a]]
            assert len(changed) <= 1

    def test_the_networks_of_the_best_trial_alone_are_kept(self, monkeypatch):
        monkeypatch.setattr(candidate, "train", invented(lambda m, trial, s: (trial % 3, 0)))
        found = search(graph(), trials=5)
        for model in MODELS:
            kept = [
                [result.state is not None for result in tried.selection.results]
                for tried in found.tried[model]
            ]
            assert kept == [[index == 2] * 2 for index in range(5)]

    def test_what_is_kept_has_the_scores_that_are_told_on_the_features_as_they_are(self):
        data = graph(homophily=0.9)
        data.x = 1000 * data.x
        best = search(data, trials=1, epochs=15).best("gcn+mmp")
        for split, result in enumerate(best.selection.results):
            model = OwnModel(8, 3, best.trial.options, (result.state,))
            found = probabilities(model.networks(), data.x, data.edge_index).argmax(1)
            right = torch.from_numpy(found) == data.y
            val, test = data.val_mask[:, split], data.test_mask[:, split]
            assert right[val].double().mean() == pytest.approx(result.val)
            assert right[test].double().mean() == pytest.approx(result.test)

    def test_the_unit_of_the_features_does_not_matter(self):
        data = graph()
        one = search(data, trials=1, epochs=10)
        data.x = data.x * 1024
        other = search(data, trials=1, epochs=10)
        for model in MODELS:
            assert one.best(model).selection.val == other.best(model).selection.val


class Machine:
    """A clock, and a trainer that takes its time by it.

    Args:
        epoch: Seconds of an epoch of one network.
        compile: Seconds before the first epoch, once for each model.
        stops_at: The epoch at which every network stops by itself.
    """

    def __init__(self, monkeypatch, *, epoch, compile=0.0, stops_at=10**9):
        self.now, self.epoch, self.compile, self.stops_at = 0.0, epoch, compile, stops_at
        self.compiled, self.asked = set(), []
        monkeypatch.setattr(candidate.clock, "monotonic", lambda: self.now)
        monkeypatch.setattr(candidate, "train", self.train)

    def train(self, data, model, members, *, epochs, options, progress, **_):
        if model not in self.compiled:
            self.compiled.add(model)
            self.now += self.compile
        ran = min(epochs, self.stops_at)
        self.asked.append((model, epochs))
        for epoch in range(ran):
            self.now += len(members) * self.epoch
            progress((epoch + 1) * len(members), epochs * len(members))
        nothing, state = np.zeros(0, dtype=np.float32), {"input.weight": torch.ones(1)}
        return [
            MemberResult(member, 0, ran, 1.0, member.lr, 0.5, nothing, nothing, state)
            for member in members
        ]


def settings(found):
    return {
        model: [(tried.trial.options, tried.trial.numbers) for tried in found.tried[model]]
        for model in MODELS
    }


class TestTime:
    def test_a_slow_first_call_changes_nothing(self, monkeypatch):
        # Whether Numba's cache is cold or warm: 90 seconds of compiling, with 60 to spend.
        found = []
        for compile in (0, 30):
            machine = Machine(monkeypatch, epoch=0.001, compile=compile)
            found.append(search(graph(), trials=9, time=60, epochs=200))
            assert {epochs for _, epochs in machine.asked[3:]} == {200}
        without = search(graph(), trials=9, epochs=200)
        assert settings(found[0]) == settings(found[1]) == settings(without)
        assert [one.stopped for one in (*found, without)] == ["trials"] * 3
        assert [one.epochs for one in found] == [200, 200]
        assert found[0].seconds == pytest.approx(found[1].seconds)

    def test_it_costs_trials_and_not_epochs_and_is_kept(self, monkeypatch):
        # 0.6 seconds for a trial of two splits, and so 1.8 for one of each model.
        machine = Machine(monkeypatch, epoch=0.0015)
        found = search(graph(), trials=50, time=20, epochs=200)
        assert {epochs for _, epochs in machine.asked[3:]} == {200}
        assert (found.stopped, found.epochs, found.epochs_asked) == ("time", 200, 200)
        counts = {len(tried) for tried in found.tried.values()}
        assert counts == {10}  # seven rounds of one trial, one of three; the next would not end
        assert found.seconds <= 20
        assert settings(found)["mlp"] == settings(search(graph(), trials=10))["mlp"]

    def test_a_round_that_is_slower_than_expected_is_broken_off(self, monkeypatch):
        machine = Machine(monkeypatch, epoch=0.0015)
        inner = machine.train

        def slower(*arguments, **more):
            machine.epoch *= 1.2
            return inner(*arguments, **more)

        monkeypatch.setattr(candidate, "train", slower)
        found = search(graph(), trials=50, time=20, epochs=200)
        assert found.stopped == "time"
        assert len({len(tried) for tried in found.tried.values()}) == 1
        assert found.seconds <= 20 + 2 * machine.epoch

    def test_too_little_for_one_trial_of_each_means_fewer_epochs_which_are_told(self, monkeypatch):
        machine = Machine(monkeypatch, epoch=1.0, compile=1000)
        found = search(graph(), trials=5, time=600, epochs=200)
        # An epoch of two splits and three models takes six seconds.
        assert (found.epochs, found.epochs_asked) == (97, 200)
        assert {epochs for _, epochs in machine.asked[3:]} == {97}
        assert all(len(tried) == 1 for tried in found.tried.values())
        assert found.seconds <= 600

    def test_fewer_epochs_that_no_network_misses_are_not_told(self, monkeypatch):
        Machine(monkeypatch, epoch=1.0, stops_at=60)
        found = search(graph(), trials=1, time=600, epochs=200)
        assert (found.epochs, found.stopped) == (200, "trials")

    def test_the_first_trial_of_each_model_is_made_whatever_the_clock_says(self, monkeypatch):
        machine = Machine(monkeypatch, epoch=0.001)
        inner = machine.train

        def slower(*arguments, **more):
            machine.epoch = 0.001 if len(machine.asked) < 3 else 10.0
            return inner(*arguments, **more)

        monkeypatch.setattr(candidate, "train", slower)
        found = search(graph(), trials=5, time=60, epochs=200)
        assert {len(tried) for tried in found.tried.values()} == {1}
        assert (found.epochs, found.stopped) == (200, "time")

    def test_no_time_for_a_single_epoch_is_refused(self, monkeypatch):
        Machine(monkeypatch, epoch=1.0)
        with pytest.raises(UsageError, match="time=20 seconds are too few for one epoch of each"):
            search(graph(), trials=2, time=20)

    def test_a_limit_that_suffices_changes_nothing(self):
        data = graph(homophily=0.9)
        limited, free = (search(data, trials=1, epochs=6, time=time) for time in (3600, None))
        for model in MODELS:
            assert torch.equal(limited.logits[model], free.logits[model])


class TestDiverged:
    def train(self, lost):
        inner = invented(lambda m, trial, s: (trial, 0))

        def train(data, model, members, **more):
            return [
                replace(one, val=np.nan, test=np.nan, diverged=True)
                if one.val in lost and one.member.split
                else one
                for one in inner(data, model, members, **more)
            ]

        return train

    def test_what_diverged_on_one_split_is_not_chosen(self, monkeypatch):
        monkeypatch.setattr(candidate, "train", self.train({1, 3}))
        found = search(graph(), trials=4)
        for model in MODELS:
            assert found.best(model) is found.tried[model][2]
            assert all(result.state for result in found.best(model).selection.results)

    def test_where_everything_diverged_nothing_is_kept(self, monkeypatch):
        monkeypatch.setattr(candidate, "train", self.train({0, 1}))
        with pytest.raises(UsageError, match="nothing can be chosen"):
            search(graph(), trials=2)


class TestStop:
    def test_an_interrupt_keeps_what_is_there(self, monkeypatch):
        calls = []
        inner = invented(lambda m, trial, s: (trial, 0))

        def train(*arguments, **more):
            calls.append(arguments)
            if len(calls) == 6:
                raise KeyboardInterrupt
            return inner(*arguments, **more)

        monkeypatch.setattr(candidate, "train", train)
        found = search(graph(), trials=9)
        assert found.stopped == "interrupted"
        assert {model: len(tried) for model, tried in found.tried.items()} == dict.fromkeys(
            MODELS, 1
        )
        assert all(result.state for result in found.best("gcn+mmp").selection.results)

    def test_an_interrupt_before_the_first_trial_goes_through(self, monkeypatch):
        def train(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(candidate, "train", train)
        with pytest.raises(KeyboardInterrupt):
            search(graph(), trials=2)
