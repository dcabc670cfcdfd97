"""A member alone, in company, in chunks, stopped early, and in a plain loop: one result."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import r2_score

import memohop
from memohop import Member, grid, train
from memohop.training.population import Population
from memohop.training.task import make_inputs
from numerics import seeded
from plain_loop import assert_alike, plain_loop

pytestmark = pytest.mark.usefixtures("float64")


def mixed_members():
    return [
        Member(split=0, seed=seeded(0), lr=0.01),
        Member(split=1, seed=seeded(1), lr=0.05, weight_decay=0.0, lam=0.3),
        Member(split=2, seed=seeded(2), dropout=0.0, input_dropout=0.0, lam=1.0),
        Member(split=0, seed=seeded(3), dropout=0.8, input_dropout=0.2),
        Member(split=3, seed=seeded(1), lr=0.03, dropout=0.3),
    ]


BOTH = {"labels": "memory", "address": "rows", "hidden_channels": 8}
IN_COMPANY = {
    ("words", ()): "mlp gcn gat gcn+jk gat+jk gcn+de gat+de gcn+mmp gat+mmp",
    ("labelled", (*BOTH.items(),)): "gcn+mmp gat+mmp sage+mmp dir-gcn+mmp",
    ("numbers", ()): "mlp gat gcn+mmp gat+mmp h2gcn linkx sage-res acm-gcn fsgnn",
}


@pytest.mark.parametrize(
    ("graph", "options", "name"),
    [(*how, name) for how, names in IN_COMPANY.items() for name in names.split()],
)
def test_a_member_alone_equals_the_member_in_company_and_in_chunks(graph, options, name, request):
    data = request.getfixturevalue(graph)
    members = mixed_members() if graph == "words" else mixed_members()[:2]
    call = {"epochs": 6, "options": dict(options)}
    together = train(data, name, members, **call)
    alone = [train(data, name, [member], **call)[0] for member in members]
    assert_alike(alone, together, 1e-7)
    assert_alike(train(data, name, members[::-1], **call)[::-1], together, 1e-7)


def test_chunks_follow_the_memory_budget_and_change_nothing(words, monkeypatch):
    monkeypatch.setattr("memohop.training.device.held_bytes", lambda device: 0)
    monkeypatch.setattr("memohop.training.device.resident_growth", lambda function: 0)
    members = mixed_members()
    whole = train(words, "gcn+mmp", members, epochs=8)
    sizes = []
    create = Population.__init__

    def spy(self, task, job, **rest):
        sizes.append(len(job.members))
        create(self, task, job, **rest)

    monkeypatch.setattr(Population, "__init__", spy)
    cut = train(words, "gcn+mmp", members, epochs=8, memory=5_000_000)
    first = next(index for index, size in enumerate(sizes) if size > 1)
    chunks = sizes[first:]  # before them, each kind of member is measured by itself
    assert set(sizes[:first]) == {1}
    assert sum(chunks) == len(members)
    assert len(chunks) > 1
    assert_alike(cut, whole, 1e-7)


def test_running_out_of_memory_halves_the_chunk_and_loses_nothing(words, monkeypatch):
    members, step, sizes, seen = mixed_members(), Population.step, [], []
    whole = train(words, "gcn", members, epochs=12)

    def limited(self):
        sizes.append(len(self.members))
        if len(self.members) > 2 and len(sizes) > 9:  # not in the measurement, but in the middle
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self)

    monkeypatch.setattr(Population, "step", limited)
    halved = train(words, "gcn", members, epochs=12, progress=lambda *at: seen.append(at))
    assert 5 in sizes
    assert sizes[-1] == 1
    assert seen[-1] == (60, 60)
    assert_alike(halved, whole, 1e-7)
    monkeypatch.setattr(Population, "step", lambda self: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(RuntimeError, match="no"):
        train(words, "gcn", members, epochs=2, memory=10**12)


def of_classes(words):
    sparse = make_inputs(words, memohop.build("mlp", 30, 5), torch.device("cpu"), "sparse")[0]
    return 5, {"decoupling": "paper"}, {"x": sparse, "summed": True}


def of_numbers(numbers):
    how = {
        "loss_of": lambda outputs, y: F.mse_loss(outputs[:, 0], y),
        "score": lambda y, outputs: r2_score(y, outputs[:, 0]),
    }
    return 1, {}, how


@pytest.mark.parametrize(("graph", "how"), [("words", of_classes), ("numbers", of_numbers)])
def test_a_population_equals_a_plain_loop_with_torch_adam(graph, how, request):
    """The second, slow computation, one member at a time."""
    data = request.getfixturevalue(graph)
    member = Member(split=1, seed=seeded(7), lr=0.03, weight_decay=2e-3, lam=0.4)
    outputs, options, slowly = how(data)
    result = train(data, "gcn+mmp", [member, Member()], epochs=25, options=options)[0]

    def build():
        return memohop.build("gcn+mmp", data.num_features, outputs, **options)

    history = plain_loop(data, member, build, 25, **slowly)
    vals = [epoch.scores[1] for epoch in history]
    np.testing.assert_allclose(result.loss_curve, [epoch.loss for epoch in history], atol=1e-7)
    np.testing.assert_allclose(result.val_curve, vals, atol=1e-6)
    assert result.best_epoch == vals.index(max(vals))
    best = history[result.best_epoch].scores
    assert (result.train, result.val, result.test) == pytest.approx(best, abs=1e-6)


def test_early_stopping_per_member_and_compaction_change_no_result(data):
    members = grid(split=range(4), seed=(seeded(0), seeded(1)), lr=(0.001, 0.1))
    full = train(data, "gcn", members, epochs=40)
    stopped = train(data, "gcn", members, epochs=40, patience=6)
    assert len({result.epochs for result in stopped}) > 3
    for whole, cut in zip(full, stopped, strict=True):
        # Replay the rule on the full curve.
        best, best_epoch = -1.0, 0
        for epoch, val in enumerate(whole.val_curve):
            if val > best:
                best, best_epoch = val, epoch
            if epoch - best_epoch >= 6:
                break
        assert (cut.epochs, cut.best_epoch) == (epoch + 1, best_epoch)
        assert cut.val == pytest.approx(float(best), abs=1e-6)
        np.testing.assert_allclose(cut.loss_curve, whole.loss_curve[: cut.epochs], atol=1e-7)


def test_kept_models_give_the_reported_scores(words):
    members = mixed_members()[:3]
    for result in train(words, "gcn+mmp", members, epochs=8, keep_models=True):
        model = memohop.build("gcn+mmp", 30, 5)
        model.load_state_dict(result.state)
        graph = model.prepare(words.edge_index, words.num_nodes)
        correct = model.eval()(words.x, graph).logits.argmax(-1) == words.y
        for part in ("train", "val", "test"):
            mask = words[f"{part}_mask"][:, result.member.split]
            assert float(correct[mask].float().mean()) == pytest.approx(
                getattr(result, part), abs=1e-6
            )
