"""Scores that cannot be computed are no numbers, and members that diverged are told."""

import json
import math

import pytest
import torch

import memohop
from memohop import Member, UsageError, train
from memohop.cli import main
from memohop.training import Rules
from memohop.training.objective import UndefinedScoreWarning
from memohop.training.trainer import DivergedWarning
from plain_loop import assert_alike


@pytest.fixture
def data():
    return memohop.load("csbm", nodes=60, channels=6, homophily=0.6, classes=2, seed=1)


@pytest.mark.parametrize("keep", ["first", "last", "loss"])
def test_a_member_that_diverged_is_marked_and_the_others_are_as_before(data, keep):
    sound = [Member(), Member(seed=1)]
    rules = Rules(keep=keep)
    expected = train(data, "gcn", sound, epochs=6, rules=rules)
    with pytest.warns(DivergedWarning, match="1 of 3 members of gcn diverged"):
        results = train(data, "gcn", [sound[0], Member(lr=1e37), sound[1]], epochs=6, rules=rules)
    assert [result.diverged for result in results] == [False, True, False]
    assert all(math.isnan(score) for score in (results[1].train, results[1].val, results[1].test))
    assert_alike(results[::2], expected, rtol=1e-5)
    assert memohop.select(results).setting["lr"] == 0.01


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
@pytest.mark.filterwarnings("ignore::memohop.data.check.MissingClassWarning")
def test_a_ranking_needs_two_classes_in_training_and_validation(data, metric):
    data.metric = metric
    for part, word in (("train", "training"), ("val", "validation")):
        lacking = data.clone()
        lacking[f"{part}_mask"][:, 1] &= data.y == 0
        with pytest.raises(UsageError, match=f"split 1 has no {word} node of class 1"):
            train(lacking, "mlp", [Member(split=1)], epochs=1)
        train(lacking, "mlp", [Member(split=0)], epochs=1)
    three = data.clone()
    three.y = torch.arange(60) % 3
    with pytest.raises(UsageError, match=f"{metric}, which is a score of two classes.* has 3"):
        train(three, "mlp", [Member()], epochs=1)


def test_a_test_part_of_one_class_has_no_score(data):
    data.metric = "roc_auc"
    data.test_mask[:, 2] &= data.y == 1
    with pytest.warns(UndefinedScoreWarning, match="split 2 has no test node of class 0.* 1 of"):
        scored, unscored = train(data, "mlp", [Member(split=0), Member(split=2)], epochs=3)
    assert math.isnan(unscored.test)
    assert 0 <= unscored.val <= 1
    assert 0 <= scored.test <= 1
    assert not unscored.diverged


def command(*words):
    return main(["train", "csbm", "--data-option", "nodes=60", "--model", "gcn", *words])


def test_the_table_and_the_rows_tell_of_it(capsys):
    call = ("--epochs", "3", "--splits", "0-1", "--lr", "1e37,0.01")
    assert command(*call) == 0
    shown = capsys.readouterr()
    assert "2 of 2 diverged" in shown.out
    assert "2 of 4 members of gcn diverged" in shown.err
    assert command(*call, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["lr"], row["diverged"]) == (0.01, 2)
    assert command("--epochs", "3", "--splits", "0", "--lr", "1e37") == 2
    assert "nothing can be chosen" in capsys.readouterr().err
