"""A step of a population: what it computes, leaves alone and reports."""

import math

import numpy as np
import pytest
import torch

from memohop import Member, grid, train
from memohop.training import Enough, Job
from memohop.training.population import Population
from plain_loop import assert_alike

pytestmark = pytest.mark.usefixtures("float64")


def test_a_step_leaves_the_network_itself_alone(words):
    job = Job(data=words, model="gcn+mmp", members=grid(seed=(0, 1)), epochs=2)
    population = Population.of(job)
    before = {name: value.clone() for name, value in population.model.state_dict().items()}
    population.step()
    for model in (population.model, population.eval_model):
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert "rate=0.5" in repr(model)


@pytest.mark.parametrize(("name", "count"), [("gcn+mmp", 4), ("h2gcn", 4), ("mlp", 1)])
def test_where_nothing_is_dropped_evaluation_is_the_start_of_the_next_step(name, count, words):
    members = grid(split=range(count), dropout=(0.0,), input_dropout=(0.0,), lam=(0.3,))
    job = Job(data=words, model=name, members=members, epochs=9)
    ahead, behind = (Population.of(job) for _ in range(2))
    assert ahead.looks_ahead
    behind.looks_ahead = False
    for population in (ahead, behind):
        for epoch in range(9):
            if epoch == 5 and count > 1:
                population.select(torch.tensor([0, 2, 3]))
            population.step()
    results, expected = (p.results(range(len(p.members))) for p in (ahead, behind))
    assert_alike(results, expected, rtol=1e-6)


def test_where_something_is_dropped_evaluation_is_apart(words):
    some = [Member(dropout=0.0, input_dropout=0.0), Member(dropout=0.0, input_dropout=0.1)]
    assert not Population.of(Job(data=words, model="mlp", members=some)).looks_ahead


def test_progress_counts_up_to_the_total(data):
    seen, how = [], {"epochs": 25, "patience": 3}
    train(data, "mlp", grid(split=range(3)), progress=lambda *at: seen.append(at), **how)
    done, totals = zip(*seen, strict=True)
    assert list(done) == sorted(done)
    assert set(totals) == {75}
    assert done[-1] == 75


def end_after(epochs, members):
    def progress(done, total):
        if done > epochs * members:
            raise Enough

    return progress


def test_progress_may_end_the_training(data, monkeypatch):
    monkeypatch.setattr("memohop.training.trainer._LONG", math.inf)
    members = grid(split=range(3), lr=0.02)
    call = {"epochs": 60, "keep_models": True}
    whole = train(data, "gcn", members, **call)
    ended = train(data, "gcn", members, progress=end_after(15, len(members)), **call)
    for result, stopped in zip(whole, ended, strict=True):
        assert stopped.epochs == len(stopped.val_curve) == 21  # 20 is the next to be looked at
        assert stopped.loss_curve.tolist() == result.loss_curve[:21].tolist()
        assert stopped.best_epoch == int(np.argmax(result.val_curve[:21]))
        assert stopped.val == pytest.approx(stopped.val_curve.max())
        assert stopped.state is not None
        assert not stopped.diverged


def test_chunks_after_the_end_are_not_trained(data, monkeypatch):
    monkeypatch.setattr("memohop.training.trainer.members_at_once", lambda *_, **__: 2)
    monkeypatch.setattr("memohop.training.trainer._LONG", math.inf)
    members, calls = grid(split=range(5)), []

    def once(done, total):
        calls.append(done)
        if done > 20:
            raise Enough

    ended = train(data, "mlp", members, epochs=30, progress=once)
    assert [result.member for result in ended] == members
    assert [result.epochs for result in ended] == [11, 11, 0, 0, 0]
    assert np.isnan([result.val for result in ended]).tolist() == [False, False, True, True, True]
    assert not any(result.diverged for result in ended)
    assert calls == [2, 22]


def test_long_epochs_are_reported_one_by_one(data, monkeypatch):
    monkeypatch.setattr("memohop.training.trainer._LONG", 0.0)
    calls = []
    train(data, "mlp", [Member()], epochs=7, progress=lambda done, total: calls.append(done))
    assert calls == [1, 2, 3, 4, 5, 6, 7]


def test_unlabelled_nodes_count_as_class_0_which_nobody_asks_for(data):
    partly = data.clone()
    for part in ("train_mask", "val_mask", "test_mask"):
        partly[part] = data[part].clone()
        partly[part][:5] = False
    expected = train(partly, "gcn", [Member()], epochs=3)
    partly.y = data.y.clone()
    partly.y[:5] = -1
    assert Population.of(Job(data=partly, model="gcn")).task.y[:5].tolist() == [0] * 5
    assert_alike(train(partly, "gcn", [Member()], epochs=3), expected)


def test_patience_beyond_the_epochs_is_none(words):
    expected = train(words, "mlp", [Member()], epochs=3)
    assert_alike(train(words, "mlp", [Member()], epochs=3, patience=10**30), expected)
