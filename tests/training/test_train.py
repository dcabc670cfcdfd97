"""The population trainer: a member alone, in company, in chunks, twice, against a plain loop."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GCNConv

import memohop
from memohop import Member, UsageError, grid, train
from memohop.data.check import MissingClassWarning
from memohop.nn import epoch_key, randomness
from memohop.training.population import Population
from memohop.training.trainer import AloneWarning, make_builder, make_task
from numerics import seeded

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def data():
    return doubled(memohop.load("csbm", nodes=120, channels=12, homophily=0.6, seed=seeded(1)))


@pytest.fixture(scope="module")
def words():
    """The same with sparse features."""
    data = memohop.load("csbm", nodes=120, channels=30, homophily=0.3, seed=seeded(2))
    data.x = data.x > 0.22
    return doubled(data)


def doubled(data):
    """In float64: how epochs magnify rounding errors is not what these tests are about."""
    data.x = data.x.double()
    return data


def mixed_members():
    return [
        Member(split=0, seed=seeded(0), lr=0.01),
        Member(split=1, seed=seeded(1), lr=0.05, weight_decay=0.0, lam=0.3),
        Member(split=2, seed=seeded(2), dropout=0.0, input_dropout=0.0, lam=1.0),
        Member(split=0, seed=seeded(3), dropout=0.8, input_dropout=0.2),
        Member(split=3, seed=seeded(1), lr=0.03, dropout=0.3),
    ]


def assert_same(one, other, tolerance=1e-7):
    assert one.member == other.member
    np.testing.assert_allclose(one.loss_curve, other.loss_curve, atol=tolerance, rtol=0)


@pytest.mark.parametrize(
    "name", ["mlp", "gcn", "gat", "gcn+jk", "gat+jk", "gcn+de", "gat+de", "gcn+mmp", "gat+mmp"]
)
def test_a_member_alone_equals_the_member_in_company_and_in_chunks(name, words):
    members = mixed_members()
    together = train(words, name, members, epochs=15)
    for member, result in zip(members, together, strict=True):
        (alone,) = train(words, name, [member], epochs=15)
        assert_same(alone, result)
    reversed_order = train(words, name, members[::-1], epochs=15)[::-1]
    for one, other in zip(together, reversed_order, strict=True):
        assert_same(one, other)


def test_chunks_follow_the_memory_budget_and_change_nothing(words, monkeypatch):
    monkeypatch.setattr("memohop.training.plan.held_bytes", lambda device: 0)
    monkeypatch.setattr("memohop.training.plan.resident_growth", lambda function: 0)
    members = mixed_members()
    whole = train(words, "gcn+mmp", members, epochs=30)
    sizes = []
    create = Population.__init__

    def spy(self, task, build, members, **rest):
        sizes.append(len(members))
        create(self, task, build, members, **rest)

    monkeypatch.setattr(Population, "__init__", spy)
    cut = train(words, "gcn+mmp", members, epochs=30, memory=5_000_000)
    first = next(index for index, size in enumerate(sizes) if size > 1)
    chunks = sizes[first:]  # before them, each kind of member is measured by itself
    assert set(sizes[:first]) == {1}
    assert sum(chunks) == len(members)
    assert len(chunks) > 1
    for one, other in zip(whole, cut, strict=True):
        assert_same(one, other)


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
    for one, other in zip(whole, halved, strict=True):
        assert_same(one, other)
    monkeypatch.setattr(Population, "step", lambda self: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(RuntimeError, match="no"):
        train(words, "gcn", members, epochs=2, memory=10**12)


def test_a_population_equals_a_plain_loop_with_torch_adam(words):
    """The second, slow computation: autograd, torch.optim.Adam and indexing, one member."""
    member = Member(split=1, seed=seeded(7), lr=0.03, weight_decay=2e-3, lam=0.4)
    result = train(
        words, "gcn+mmp", [member, Member()], epochs=25, options={"decoupling": "paper"}
    )[0]

    torch.manual_seed(seeded(7))
    model = memohop.build("gcn+mmp", 30, 5, decoupling="paper")
    graph = model.prepare(words.edge_index, words.num_nodes)
    sparse = make_task(words, model, torch.device("cpu"), "sparse").inputs[0]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03, weight_decay=2e-3)
    train_nodes, val_nodes, test_nodes = (
        words[f"{part}_mask"][:, 1].nonzero().flatten() for part in ("train", "val", "test")
    )
    best = (-1.0, -1, -1.0)
    for epoch in range(25):
        model.train()
        with randomness(epoch_key(torch.tensor(seeded(7)), torch.tensor(epoch))):
            logits, penalty = model(sparse, graph)
        total = F.cross_entropy(logits[train_nodes], words.y[train_nodes], reduction="sum")
        loss = (total + 0.4 * penalty) / len(train_nodes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(float(result.loss_curve[epoch]), abs=1e-7)
        predicted = model.eval()(words.x, graph).logits.argmax(-1)
        val = float((predicted[val_nodes] == words.y[val_nodes]).float().mean())
        test = float((predicted[test_nodes] == words.y[test_nodes]).float().mean())
        assert val == pytest.approx(float(result.val_curve[epoch]), abs=1e-6)
        if val > best[0]:
            best = (val, epoch, test)
    assert result.best_epoch == best[1]
    assert (result.val, result.test) == pytest.approx((best[0], best[2]), abs=1e-6)


def test_early_stopping_per_member_and_compaction_change_no_result(data):
    members = grid(split=range(4), seed=(seeded(0), seeded(1)), lr=(0.001, 0.1))
    full = train(data, "gcn", members, epochs=80)
    stopped = train(data, "gcn", members, epochs=80, patience=6)
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
    for result in train(words, "gcn+mmp", members, epochs=20, keep_models=True):
        model = memohop.build("gcn+mmp", 30, 5)
        model.load_state_dict(result.state)
        graph = model.prepare(words.edge_index, words.num_nodes)
        correct = model.eval()(words.x, graph).logits.argmax(-1) == words.y
        for part in ("train", "val", "test"):
            mask = words[f"{part}_mask"][:, result.member.split]
            assert float(correct[mask].float().mean()) == pytest.approx(
                getattr(result, part), abs=1e-6
            )


class Ordinary(nn.Module):
    """What a PyG user brings: stock layers, stock dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(12, 8), GCNConv(8, 5)

    def forward(self, x, edge_index):
        hidden = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(hidden, edge_index)


class WithNorm(Ordinary):
    """Keeps running statistics."""

    def __init__(self):
        super().__init__()
        # A bias before the norm would have a gradient of rounding errors, which Adam magnifies.
        self.first = GCNConv(12, 8, bias=False)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


def test_an_ordinary_module_trains_one_member_at_a_time(data):
    members = grid(split=(0, 1), seed=(seeded(3), seeded(4)), lr=0.05)
    torch.manual_seed(seeded(11))
    before = torch.get_rng_state()
    with pytest.warns(AloneWarning, match="one at a time"):
        results = train(data, Ordinary, members, epochs=40)
    assert torch.equal(before, torch.get_rng_state())
    assert results[0].loss_curve[-1] < 0.8 * results[0].loss_curve[0]
    with pytest.warns(AloneWarning):
        (alone,) = train(data, Ordinary, members[2:3], epochs=40)
    assert np.array_equal(alone.loss_curve, results[2].loss_curve)


def test_running_statistics_are_those_of_the_member(data):
    with pytest.warns(AloneWarning, match="changes its buffer norm.running_mean"):
        results = train(
            data, WithNorm, grid(split=0, seed=(seeded(3), seeded(4))), epochs=12, keep_models=True
        )
    for result in results:
        torch.manual_seed(result.member.seed)
        module = WithNorm()
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
        nodes = data.train_mask[:, 0]
        for epoch in range(12):
            loss = F.cross_entropy(module(data.x, data.edge_index)[nodes], data.y[nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            predicted = module.eval()(data.x, data.edge_index).argmax(-1)
            val = (predicted == data.y)[data.val_mask[:, 0]].float().mean()
            assert val.item() == pytest.approx(float(result.val_curve[epoch]), abs=1e-6)
            module.train()


def test_an_ordinary_module_that_can_be_vectorised_is(data):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(12, 5)

        def forward(self, x, edge_index):
            return self.linear(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = train(data, Plain, grid(split=(0, 1), seed=(0, 1)), epochs=5)
    assert len(results) == 4


def test_a_step_leaves_the_network_itself_alone(words):
    build = make_builder("gcn+mmp", words, {})
    task = make_task(words, build(), torch.device("cpu"), "sparse")
    population = Population(task, build, grid(seed=(0, 1)), epochs=2)
    before = {name: value.clone() for name, value in population.model.state_dict().items()}
    population.step()
    for model in (population.model, population.eval_model):
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert "rate=0.5" in repr(model)


@pytest.mark.parametrize(("name", "count"), [("gcn+mmp", 4), ("h2gcn", 4), ("mlp", 1)])
def test_where_nothing_is_dropped_evaluation_is_the_start_of_the_next_step(name, count, words):
    members = grid(split=range(count), dropout=(0.0,), input_dropout=(0.0,), lam=(0.3,))
    build = make_builder(name, words, {})
    task = make_task(words, build(), torch.device("cpu"), "sparse")
    ahead, behind = (Population(task, build, members, epochs=9) for _ in range(2))
    assert ahead.looks_ahead
    behind.looks_ahead = False
    for population in (ahead, behind):
        for epoch in range(9):
            if epoch == 5 and count > 1:
                population.select(torch.tensor([0, 2, 3]))
            population.step()
    for one, other in zip(
        *(p.results(range(len(p.members))) for p in (ahead, behind)), strict=True
    ):
        np.testing.assert_allclose(one.loss_curve, other.loss_curve, rtol=1e-6)
        np.testing.assert_array_equal(one.val_curve, other.val_curve)
        assert (one.best_epoch, one.test) == (other.best_epoch, other.test)


def test_where_something_is_dropped_evaluation_is_apart(words):
    build = make_builder("mlp", words, {})
    task = make_task(words, build(), torch.device("cpu"), "sparse")
    some = [Member(dropout=0.0, input_dropout=0.0), Member(dropout=0.0, input_dropout=0.1)]
    assert not Population(task, build, some, epochs=1).looks_ahead


def test_progress_counts_up_to_the_total(data):
    seen = []
    train(
        data,
        "mlp",
        grid(split=range(3)),
        epochs=25,
        patience=3,
        progress=lambda *at: seen.append(at),
    )
    done, totals = zip(*seen, strict=True)
    assert list(done) == sorted(done)
    assert set(totals) == {75}
    assert done[-1] == 75


def test_roc_auc_where_the_data_says_so(data):
    binary = data.clone()
    binary.y, binary.metric = (data.y > 2).long(), "roc_auc"
    (result,) = train(binary, "gcn", [Member()], epochs=30)
    assert 0.7 < result.test <= 1


def test_texas_with_its_class_of_one_node_warns_and_trains(data_root):
    texas = doubled(memohop.load("texas", root=data_root))
    with pytest.warns(MissingClassWarning):
        results = train(texas, "gcn+mmp", grid(split=range(2), lr=0.05), epochs=5)
    assert len(results) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": []}, "members is empty"),
        ({"members": [Member(split=99)]}, r"split=99, but the data has 10 split\(s\)"),
        ({"epochs": 0}, "epochs=0 is too small"),
        ({"epochs": 1.5}, "epochs=1.5 is not a whole number"),
        ({"epochs": 10**12}, "one member takes .* for 1000000000000 epochs"),
        ({"patience": 0}, "patience=0 is too small"),
        ({"device": "cuda"}, "sees no GPU here: use device='cpu'"),
        ({"features": "some"}, "features must be auto, sparse or dense, not 'some'"),
        ({"model": "gnc"}, "no model named 'gnc'; did you mean .*gcn"),
        ({"model": nn.Linear(1, 1)}, "pass a function that builds it"),
        ({"memory": 10}, "memory=10 bytes is too little: the process holds .*; give more"),
        ({"memory": 10, "members": [Member()]}, "memory=10 bytes is too little"),
        ({"memory": 0.5}, "memory=0.5 is not a whole number"),
    ],
)
def test_bad_calls_are_refused(data, change, words):
    if change.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    call = {"model": "gcn", "members": grid(split=range(2)), "epochs": 2, **change}
    with pytest.raises(UsageError, match=words):
        train(data, call.pop("model"), call.pop("members"), **call)


def test_bad_data_is_refused(data):
    broken = data.clone()
    broken.x = data.x.clone()
    broken.x[3, 1] = float("nan")
    with pytest.raises(UsageError, match="node 3, column 1"):
        train(broken, "gcn", [Member()], epochs=1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lam": -0.1}, "lam=-0.1 is out of range; give a number from 0"),
        ({"lr": 0}, "lr=0 would learn nothing; give a number above 0"),
        ({"lr": 1e39}, "lr=1e.39 is out of range"),
        ({"lr": "much"}, "lr='much' is not a number"),
        ({"weight_decay": float("nan")}, "weight_decay=nan is not a number"),
        ({"dropout": 1.0}, "dropout=1.0 would drop everything; give a number below 1"),
        ({"seed": -1}, "seed=-1 is too small; give a whole number from 0"),
        ({"seed": 2**32}, "seed=4294967296 is too large; give a whole number up to 4294967295"),
        ({"seed": 0.5}, "seed=0.5 is not a whole number"),
    ],
)
def test_bad_members_are_refused(fields, words):
    with pytest.raises(UsageError, match=words):
        Member(**fields)


def test_grid_is_the_product_of_its_axes():
    members = grid(split=range(2), lam=(0, 0.5), lr=0.05)
    assert [(m.split, m.lam, m.lr) for m in members] == [
        (0, 0, 0.05), (0, 0.5, 0.05), (1, 0, 0.05), (1, 0.5, 0.05),
    ]  # fmt: skip


def test_unlabelled_nodes_count_as_class_0_which_nobody_asks_for(data):
    partly = data.clone()
    for part in ("train_mask", "val_mask", "test_mask"):
        partly[part] = data[part].clone()
        partly[part][:5] = False
    expected = train(partly, "gcn", [Member()], epochs=3)[0]
    partly.y = data.y.clone()
    partly.y[:5] = -1
    build = make_builder("gcn", partly, {})
    assert make_task(partly, build(), torch.device("cpu"), "dense").y[:5].tolist() == [0] * 5
    found = train(partly, "gcn", [Member()], epochs=3)[0]
    assert found.loss_curve.tolist() == expected.loss_curve.tolist()
    assert (found.val, found.test) == (expected.val, expected.test)


def test_patience_beyond_the_epochs_is_none(words):
    expected, found = (
        train(words, "mlp", [Member()], epochs=3, patience=patience)[0]
        for patience in (None, 10**30)
    )
    assert expected.loss_curve.tolist() == found.loss_curve.tolist()
