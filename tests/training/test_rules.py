"""The rules that papers differ in, each against a plain loop over epochs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import memohop
from memohop import Member, Rules, UsageError, train
from memohop.nn import FeatureLinear, epoch_key, randomness
from memohop.training._rules import Schedule, Watch
from memohop.training.objective import balanced
from numerics import generator, in_float64, seeded

pytestmark = pytest.mark.usefixtures("float64")

EPOCHS = 40


@pytest.fixture(scope="module")
def data():
    data = memohop.load("csbm", nodes=120, channels=12, homophily=0.6, seed=seeded(1))
    data.x = data.x.double()
    return data


def plain_loop(data, member, make_optimizer, penalised=None):
    """Losses and scores of each epoch, with torch's optimisers and nothing of the trainer's."""
    torch.manual_seed(member.seed)
    model = memohop.build("gcn", data.x.shape[1], 5)
    graph = model.prepare(data.edge_index, data.num_nodes)
    optimizer, scheduler = make_optimizer(model)
    masks = [data[f"{part}_mask"][:, member.split] for part in ("train", "val", "test")]
    history = []
    for epoch in range(EPOCHS):
        model.train()
        with randomness(epoch_key(torch.tensor(member.seed), torch.tensor(epoch))):
            logits = model(data.x, graph)
        loss = F.cross_entropy(logits[masks[0]], data.y[masks[0]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            logits = model.eval()(data.x, graph)
        right = (logits.argmax(-1) == data.y).float()
        val_loss = float(F.cross_entropy(logits[masks[1]], data.y[masks[1]]))
        if penalised is not None:
            val_loss += penalised(model)
        scheduler(val_loss)
        scores = [float(right[mask].mean()) for mask in masks]
        history.append((loss.item(), val_loss, scores[1], scores[2]))
    return history


def adam(member):
    def make(model):
        optimizer = torch.optim.Adam(
            model.parameters(), lr=member.lr, weight_decay=member.weight_decay
        )
        return optimizer, lambda loss: None

    return make


@pytest.fixture(scope="module")
def runs(data):
    """Some members with the history of each."""
    members = [
        Member(split=i % 4, seed=seeded(i), lr=lr, weight_decay=1e-3)
        for i, lr in enumerate((0.003, 0.03, 0.3, 0.1))
    ]
    with in_float64():
        return [(member, plain_loop(data, member, adam(member))) for member in members]


def stops_at(history, stop, patience):
    """The last epoch that is run."""
    best_score, best_loss, last = -1.0, float("inf"), 0
    for epoch, (_, loss, score, _) in enumerate(history):
        progress = {
            "score": score > best_score,
            "loss": loss < best_loss,
            "either": score >= best_score or loss <= best_loss,
            "window": True,
        }[stop]
        last = epoch if progress else last
        best_score, best_loss = max(best_score, score), min(best_loss, loss)
        if stop == "window":
            before = [loss for _, loss, _, _ in history[max(epoch - patience, 0) : epoch]]
            if epoch > patience and loss > np.mean(before):
                return epoch
        elif epoch - last >= patience:
            return epoch
    return len(history) - 1


def kept(history, keep):
    """The epoch that counts, of those that were run."""
    epochs = range(len(history))
    losses = [loss for _, loss, _, _ in history]
    scores = [score for _, _, score, _ in history]
    tests = [test for _, _, _, test in history]
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
        assert (result.val, result.test) == pytest.approx(history[epoch][2:], abs=1e-6)
    assert len({result.epochs for result in results}) > 1


def test_the_leaking_rule_says_that_it_leaks():
    assert Rules(keep="leak-test").leaks
    assert not Rules().leaks


def test_sgd_with_falling_steps_equals_torch(data):
    member = Member(seed=seeded(3), lr=0.5, weight_decay=1e-2)

    def make(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=1e-2)
        steps = iter(range(1, EPOCHS + 1))

        def fall(loss):
            if next(steps) % 4 == 0:
                optimizer.param_groups[0]["lr"] -= 0.06

        return optimizer, fall

    history = plain_loop(data, member, make)[:32]
    rules = Rules(optimiser="sgd", schedule="steps", schedule_epochs=4, schedule_amount=0.06)
    (result,) = train(data, "gcn", [member], epochs=32, rules=rules)
    np.testing.assert_allclose(result.loss_curve, [step[0] for step in history], atol=1e-7)


def test_adamw_equals_torch_alone_and_in_company(data):
    member = Member(seed=seeded(3), lr=0.02, weight_decay=0.5)

    def make(model):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.5)
        return optimizer, lambda loss: None

    history = plain_loop(data, member, make)
    for company in ([], [Member(seed=1)]):
        rules = Rules(optimiser="adamw")
        result = train(data, "gcn", [member, *company], epochs=EPOCHS, rules=rules)[0]
        np.testing.assert_allclose(result.loss_curve, [step[0] for step in history], atol=1e-7)


def test_plateaus_equal_those_of_torch():
    losses = torch.rand(2, 60, generator=generator()).sort(descending=True)[0]
    losses[:, 20:40] = losses[:, 19:20] * (1 - 5e-5)  # falls too little to count
    rates = torch.tensor([0.1, 0.4])
    schedule = Schedule(
        Rules(schedule="plateau", schedule_epochs=3, schedule_amount=0.5), rates.clone()
    )
    for index, rate in enumerate(rates.tolist()):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
        torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
        ours = Schedule(schedule.rules, rates.clone())
        for epoch in range(60):
            torchs.step(losses[index, epoch])
            ours.step(torch.tensor(epoch), losses[:, epoch])
            assert float(ours.lr[index]) == pytest.approx(optimizer.param_groups[0]["lr"])
        assert float(ours.lr[index]) < rate


def test_decay_of_the_first_layer_and_its_part_in_the_validation_loss(data):
    member = Member(seed=seeded(5), lr=0.03, weight_decay=5e-2)

    def make(model):
        first = next(m for m in model.modules() if isinstance(m, FeatureLinear))
        own = {id(parameter) for parameter in first.parameters()}
        rest = [p for p in model.parameters() if id(p) not in own]
        groups = [{"params": first.parameters(), "weight_decay": 5e-2}, {"params": rest}]
        return torch.optim.Adam(groups, lr=0.03), lambda loss: None

    def penalty(model):
        first = next(m for m in model.modules() if isinstance(m, FeatureLinear))
        return 0.5 * 5e-2 * float((first.weight.detach() ** 2).sum())

    history = plain_loop(data, member, make, penalty)
    rules = Rules(decay="first", stop="window", keep="last", loss_with_decay=True)
    for company in ([], [Member(seed=1)]):
        result = train(
            data, "gcn", [member, *company], epochs=EPOCHS, patience=8, rules=rules
        )[0]  # fmt: skip
        end = stops_at(history, "window", 8)
        assert result.epochs == end + 1
        expected = [step[0] for step in history[: end + 1]]
        np.testing.assert_allclose(result.loss_curve, expected, atol=1e-7)


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
    rules = Rules(class_weight="balanced")
    (result,) = train(scarce, "gcn", [Member(seed=seeded(2))], epochs=1, rules=rules)
    torch.manual_seed(seeded(2))
    model = memohop.build("gcn", 12, 5)
    with randomness(epoch_key(torch.tensor(seeded(2)), torch.tensor(0))):
        logits = model(data.x, model.prepare(data.edge_index, 120))
    nodes = scarce.train_mask[:, 0]
    counts = torch.bincount(data.y[nodes], minlength=5)
    expected = F.cross_entropy(logits[nodes], data.y[nodes], weight=1 / counts)
    assert float(result.loss_curve[0]) == pytest.approx(expected.item(), abs=1e-7)


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
