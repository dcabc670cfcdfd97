"""The rules that papers differ in, each against a plain loop over epochs."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import memohop
from memohop import Member, Rules, UsageError, train
from memohop.nn import FeatureLinear
from memohop.training._rules import Schedule, Watch
from memohop.training.objective import balanced
from numerics import generator, in_float64, seeded
from plain_loop import plain_loop

pytestmark = pytest.mark.usefixtures("float64")

EPOCHS = 40


def history_of(data, member, **how):
    return plain_loop(data, member, lambda: memohop.build("gcn", 12, 5), EPOCHS, **how)


def losses_of(history):
    return [epoch.loss for epoch in history]


@pytest.fixture(scope="module")
def runs(data):
    """Some members with the history of each."""
    members = [
        Member(split=i % 4, seed=seeded(i), lr=lr, weight_decay=1e-3)
        for i, lr in enumerate((0.003, 0.03, 0.3, 0.1))
    ]
    with in_float64():
        return [(member, history_of(data, member)) for member in members]


def stops_at(history, stop, patience):
    """The last epoch that is run."""
    best_score, best_loss, last = -1.0, float("inf"), 0
    for epoch, (_, loss, (_, score, _)) in enumerate(history):
        progress = {
            "score": score > best_score,
            "loss": loss < best_loss,
            "either": score >= best_score or loss <= best_loss,
            "window": True,
        }[stop]
        last = epoch if progress else last
        best_score, best_loss = max(best_score, score), min(best_loss, loss)
        if stop == "window":
            before = [each.val_loss for each in history[max(epoch - patience, 0) : epoch]]
            if epoch > patience and loss > np.mean(before):
                return epoch
        elif epoch - last >= patience:
            return epoch
    return len(history) - 1


def kept(history, keep):
    """The epoch that counts, of those that were run."""
    epochs = range(len(history))
    losses = [epoch.val_loss for epoch in history]
    _, scores, tests = zip(*(epoch.scores for epoch in history), strict=True)
    if keep == "both":
        highest, lowest = np.maximum.accumulate(scores), np.minimum.accumulate(losses)
        return max(e for e in epochs if scores[e] == highest[e] and losses[e] == lowest[e])
    return {
        "first": scores.index(max(scores)),
        "latest": max(e for e in epochs if scores[e] == max(scores)),
        "loss": losses.index(min(losses)),
        "last": len(history) - 1,
        "leak-test": max(epochs, key=lambda e: (scores[e], tests[e], -e)),
    }[keep]


@pytest.mark.parametrize("stop", ["score", "loss", "either", "window"])
@pytest.mark.parametrize("keep", ["first", "latest", "loss", "both", "last", "leak-test"])
def test_stopping_and_keeping_equal_a_plain_loop(data, runs, stop, keep):
    rules = Rules(stop=stop, keep=keep)
    results = train(
        data, "gcn", [member for member, _ in runs], epochs=EPOCHS, patience=5, rules=rules
    )
    for result, (_, history) in zip(results, runs, strict=True):
        end = stops_at(history, stop, 5)
        epoch = kept(history[: end + 1], keep)
        assert (result.epochs, result.best_epoch) == (end + 1, epoch)
        assert (result.val, result.test) == pytest.approx(history[epoch].scores[1:], abs=1e-6)
    assert len({result.epochs for result in results}) > 1


def test_the_leaking_rule_says_that_it_leaks():
    assert Rules(keep="leak-test").leaks
    assert not Rules().leaks


def test_sgd_with_falling_steps_equals_torch(data):
    member = Member(seed=seeded(3), lr=0.5, weight_decay=1e-2)

    def sgd(model, member):
        return torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=1e-2)

    def fall(optimizer, epoch):
        if (epoch + 1) % 4 == 0:
            optimizer.param_groups[0]["lr"] -= 0.06

    history = history_of(data, member, optimiser=sgd, after=fall)[:32]
    rules = Rules(optimiser="sgd", schedule="steps", schedule_epochs=4, schedule_amount=0.06)
    (result,) = train(data, "gcn", [member], epochs=32, rules=rules)
    np.testing.assert_allclose(result.loss_curve, losses_of(history), atol=1e-7)


def test_adamw_equals_torch_alone_and_in_company(data):
    member = Member(seed=seeded(3), lr=0.02, weight_decay=0.5)

    def adamw(model, member):
        return torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.5)

    history = history_of(data, member, optimiser=adamw)
    for company in ([], [Member(seed=1)]):
        rules = Rules(optimiser="adamw")
        result = train(data, "gcn", [member, *company], epochs=EPOCHS, rules=rules)[0]
        np.testing.assert_allclose(result.loss_curve, losses_of(history), atol=1e-7)


def test_plateaus_equal_those_of_torch():
    losses = torch.rand(2, 60, generator=generator()).sort(descending=True)[0]
    losses[:, 20:40] = losses[:, 19:20] * (1 - 5e-5)  # falls too little to count
    rates = torch.tensor([0.1, 0.4])
    rules = Rules(schedule="plateau", schedule_epochs=3, schedule_amount=0.5)
    for index, rate in enumerate(rates.tolist()):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
        torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
        ours, lr = Schedule(rules, rates), rates.clone()
        for epoch in range(60):
            torchs.step(losses[index, epoch])
            ours.step(lr, torch.tensor(epoch), losses[:, epoch])
            assert float(lr[index]) == pytest.approx(optimizer.param_groups[0]["lr"])
        assert float(lr[index]) < rate


def test_decay_of_the_first_layer_and_its_part_in_the_validation_loss(data):
    member = Member(seed=seeded(5), lr=0.03, weight_decay=5e-2)

    def first_layer(model):
        return next(module for module in model.modules() if isinstance(module, FeatureLinear))

    def optimiser(model, member):
        own = {id(parameter) for parameter in first_layer(model).parameters()}
        rest = [p for p in model.parameters() if id(p) not in own]
        first = {"params": first_layer(model).parameters(), "weight_decay": 5e-2}
        return torch.optim.Adam([first, {"params": rest}], lr=0.03)

    def penalty(model):
        return 0.5 * 5e-2 * float((first_layer(model).weight.detach() ** 2).sum())

    history = history_of(data, member, optimiser=optimiser, penalised=penalty)
    rules = Rules(decay="first", stop="window", keep="last", loss_with_decay=True)
    for company in ([], [Member(seed=1)]):
        result = train(
            data, "gcn", [member, *company], epochs=EPOCHS, patience=8, rules=rules
        )[0]  # fmt: skip
        end = stops_at(history, "window", 8)
        assert result.epochs == end + 1
        np.testing.assert_allclose(result.loss_curve, losses_of(history[: end + 1]), atol=1e-7)


def test_balanced_weights_give_every_class_the_same_say():
    y = torch.tensor([0, 0, 0, 1, 1, 2])
    labelled = torch.tensor([[1.0, 1, 1, 1, 0, 0], [1.0, 1, 0, 1, 1, 1]])
    expected = torch.tensor([[2 / 3] * 3 + [2.0, 0, 0], [5 / 6, 5 / 6, 0, 5 / 6, 5 / 6, 5 / 3]])
    torch.testing.assert_close(balanced(labelled, y), expected)


def test_balanced_training_equals_weighted_cross_entropy(data):
    scarce = data.clone()
    scarce.train_mask = data.train_mask & (data.y > 1)[:, None]
    for few in (0, 1):  # two nodes of each
        own = data.train_mask & (data.y == few)[:, None]
        scarce.train_mask |= own & (own.cumsum(0) <= 2)
    member, rules = Member(seed=seeded(2)), Rules(class_weight="balanced")
    (result,) = train(scarce, "gcn", [member], epochs=1, rules=rules)
    counts = torch.bincount(data.y[scarce.train_mask[:, 0]], minlength=5)
    weighted = partial(F.cross_entropy, weight=1 / counts)
    (first, *_) = history_of(scarce, member, loss_of=weighted)
    assert float(result.loss_curve[0]) == pytest.approx(first.loss, abs=1e-7)


def test_a_diverged_member_stops_instead_of_keeping_nonsense():
    watch = Watch(Rules(stop="loss", keep="loss"), 2, 1, 10, torch.device("cpu"))
    scores = torch.tensor([[0.5, 0.6, 0.7]])
    watch.look(torch.tensor(0), scores, torch.tensor([1.0]))
    for epoch in (1, 2):
        assert bool(watch.running)
        watch.look(torch.tensor(epoch), scores * 0, torch.tensor([torch.nan]))
    assert not bool(watch.running)
    torch.testing.assert_close(watch.kept_scores, scores)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keep": "best"}, "keep must be one of first, latest, loss"),
        ({"optimiser": "lion"}, "optimiser must be one of adam"),
        ({"schedule_epochs": 0}, "schedule_epochs must be at least 1"),
    ],
)
def test_bad_rules_are_refused(fields, words):
    with pytest.raises(UsageError, match=words):
        Rules(**fields)
