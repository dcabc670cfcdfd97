"""The search: what it tries, by what it chooses, and how it stops."""

import itertools

import numpy as np
import pytest
import torch

import memohop
from memohop import UsageError
from memohop.own import search as searching
from memohop.own.inference import probabilities
from memohop.own.model import OwnModel
from memohop.own.search import search
from memohop.own.space import MODELS, Space
from memohop.training import MemberResult
from numerics import seeded


def graph(**options):
    return memohop.load("csbm", nodes=90, classes=3, channels=8, splits=2, seed=seeded(), **options)


def invented(scores):
    """A trainer that makes up its results: `scores(model, trial number, split)` is (val, test)."""
    counts = dict.fromkeys(MODELS, 0)

    def train(data, model, members, *, progress, keep_models, **_):
        splits = 1 + max(member.split for member in members)
        results = []
        for place, member in enumerate(members):
            val, test = scores(model, counts[model] + place // splits, member.split)
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

        monkeypatch.setattr(searching, "train", invented(of))
        found = search(graph(), trials=3)
        assert {model: len(tried) for model, tried in found.tried.items()} == dict.fromkeys(
            MODELS, 3
        )
        assert found.stopped == "trials"
        for model, place in (("gcn+mmp", 1), ("mlp", 0), ("gcn", 2)):
            assert found.best(model) is found.tried[model][place]
            assert found.best(model).selection.mean == pytest.approx(1 - scores[model][place])

    def test_later_trials_are_near_the_best_one(self, monkeypatch):
        monkeypatch.setattr(searching, "train", invented(lambda m, trial, s: (-abs(trial - 4), 0)))
        found = search(graph(), trials=10)
        best = found.tried["gcn+mmp"][4].trial
        for tried in found.tried["gcn+mmp"][7:]:
            changed = [a for a, name in tried.trial.structure.items() if name != best.structure[a]]
            assert len(changed) <= 1

    def test_the_networks_of_the_best_trial_alone_are_kept(self, monkeypatch):
        monkeypatch.setattr(searching, "train", invented(lambda m, trial, s: (trial % 3, 0)))
        found = search(graph(), trials=5)
        kept = [
            [result.state is not None for result in tried.selection.results]
            for tried in found.tried["gcn+mmp"]
        ]
        assert kept == [[place == 2] * 2 for place in range(5)]

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


class TestStop:
    def test_when_time_is_over_all_models_have_as_many_trials(self, monkeypatch):
        ticks = itertools.count()
        monkeypatch.setattr(searching.clock, "monotonic", lambda: next(ticks))
        monkeypatch.setattr(searching, "train", invented(lambda m, trial, s: (trial, 0)))
        found = search(graph(), trials=50, time=60)
        counts = {len(tried) for tried in found.tried.values()}
        assert found.stopped == "time"
        assert len(counts) == 1
        assert 0 < counts.pop() < 50

    def test_too_little_time_for_one_trial_of_each_means_fewer_epochs(self, monkeypatch):
        ticks = itertools.count(step=10)
        monkeypatch.setattr(searching.clock, "monotonic", lambda: next(ticks))
        monkeypatch.setattr(searching, "train", invented(lambda m, trial, s: (0, 0)))
        found = search(graph(), trials=2, time=1000, epochs=200)
        # Three epochs of one network took 20 seconds, and there are two splits and three models.
        assert found.epochs == int(500 / (20 / 3 * 2 * 3))

    def test_no_time_at_all_is_told(self):
        with pytest.raises(UsageError, match="time=0 seconds were over before one trial"):
            search(graph(), trials=2, time=0)

    def test_an_interrupt_keeps_what_is_there(self, monkeypatch):
        calls = []
        inner = invented(lambda m, trial, s: (trial, 0))

        def train(*arguments, **more):
            calls.append(arguments)
            if len(calls) == 6:
                raise KeyboardInterrupt
            return inner(*arguments, **more)

        monkeypatch.setattr(searching, "train", train)
        found = search(graph(), trials=9)
        assert found.stopped == "interrupted"
        assert {model: len(tried) for model, tried in found.tried.items()} == dict.fromkeys(
            MODELS, 1
        )
        assert all(result.state for result in found.best("gcn+mmp").selection.results)

    def test_an_interrupt_before_the_first_trial_goes_through(self, monkeypatch):
        def train(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(searching, "train", train)
        with pytest.raises(KeyboardInterrupt):
            search(graph(), trials=2)
