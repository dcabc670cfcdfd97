"""Labels given to networks: a part in training, all in evaluation, never those to be judged."""

import copy
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import memohop
from memohop import Member, train
from memohop.networks.base import GCN
from memohop.networks.memory import MemoryNetwork
from memohop.training import Job
from memohop.training.objective import Classification
from memohop.training.population import Population
from memohop.training.task import make_task
from numerics import seeded

pytestmark = pytest.mark.usefixtures("float64")

BACKBONES = ["gcn+mmp", "gat+mmp", "sage+mmp", "dir-gcn+mmp"]
BOTH = {"labels": "memory", "address": "rows", "hidden_channels": 8}


@pytest.fixture
def data(labelled):
    return labelled


def population_of(data, members, name="gcn+mmp", epochs=5, **options):
    options = {**BOTH, **options}
    return Population.of(
        Job(data=data, model=name, members=members, options=options, epochs=epochs)
    )


MEMBERS = [
    Member(split=0, seed=seeded(0), lr=0.02),
    Member(split=1, seed=seeded(1), lr=0.01, lam=0.3),
    Member(split=2, seed=seeded(2), lr=0.03, dropout=0.0, input_dropout=0.0),
]


def test_who_goes_on_keeps_the_own_labels(data):
    whole, part = (population_of(data, MEMBERS) for _ in range(2))
    left = torch.tensor([2, 0])
    for step in range(4):
        if step == 2:
            part.select(left)
        whole.step()
        part.step()
    torch.testing.assert_close(part.buffers["known"], whole.buffers["known"][left], rtol=0, atol=0)
    torch.testing.assert_close(part.params, whole.params[left])


@pytest.mark.parametrize("name", BACKBONES)
def test_labels_of_validation_and_test_nodes_change_nothing_to_the_bit(name, data):
    (member,) = members = [Member(split=1, seed=seeded())]
    seen, unseen = data.train_mask[:, member.split], copy.copy(data)
    unseen.y = torch.where(seen, data.y, (data.y + 1) % 3)
    other = copy.copy(data)
    other.y = torch.where(seen, (data.y + 1) % 3, data.y)
    curves, outputs = [], []
    for each in (data, unseen, other):
        population = population_of(each, members, name)
        for _ in range(3):
            population.step()
        curves.append(population.curves[:, 0, :3])
        outputs.append(population._logits())
    assert torch.equal(curves[0], curves[1])
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@dataclass(frozen=True)
class Recording(Classification):
    """Keeps the weights of the loss."""

    weights_seen: list = field(default_factory=list)

    def loss(self, logits, y, weights):
        self.weights_seen.append(weights.clone())
        return super().loss(logits, y, weights)


def test_the_part_changes_with_the_epoch_and_the_loss_is_taken_on_the_rest(data):
    given = {True: [], False: []}

    class Telling(MemoryNetwork):
        def forward(self, x, graph):
            given[self.training].append(self.known.clone())
            return super().forward(x, graph)

    def build():
        return Telling(
            6, 3, backbone=GCN, hidden_channels=8, dropout=0.0, input_dropout=0.0,
            labels="memory", label_rate=0.3,
        )  # fmt: skip

    member, epochs = Member(split=1, seed=seeded()), 40
    job = Job(data=data, model=build, members=[member], epochs=epochs)
    network = job.build(member.seed)
    task = make_task(job, network)
    objective = Recording(task.objective.metric)
    population = Population(replace(task, objective=objective), job)
    for _ in range(epochs):
        population.step()
    training, right = data.train_mask[:, 1], F.one_hot(data.y, 3).double()
    shares = []
    for known, weights in zip(given[True], objective.weights_seen, strict=True):
        shown = known.sum(1) > 0
        assert not (shown & ~training).any()
        assert torch.equal(known[shown], right[shown])
        assert torch.equal(weights, (training & ~shown).double())
        shares.append(float(shown.sum() / training.sum()))
    assert len({tuple(known.sum(1).tolist()) for known in given[True]}) > epochs / 2
    nodes = epochs * int(training.sum())  # each is a draw; five standard deviations
    assert np.mean(shares) == pytest.approx(0.3, abs=5 * (0.3 * 0.7 / nodes) ** 0.5)
    for known in given[False]:
        assert torch.equal(known, right * training[:, None])
    # The first loss, the slow way.
    shown = given[True][0].sum(1) > 0
    network.know(torch.where(shown, data.y, -1))
    rest = training & ~shown
    expected = F.cross_entropy(network(*task.inputs).logits[rest], data.y[rest])
    assert float(population.curves[0, 0, 0]) == pytest.approx(expected.item())


def test_there_is_always_a_label_left_for_the_loss(data):
    few = copy.copy(data)
    few.train_mask = torch.zeros_like(data.train_mask)
    few.train_mask[torch.tensor([int((data.y == label).nonzero()[0]) for label in range(3)])] = True
    few.val_mask, few.test_mask = (
        mask & ~few.train_mask for mask in (data.val_mask, data.test_mask)
    )
    results = train(few, "gcn+mmp", MEMBERS, options=BOTH | {"label_rate": 0.9}, epochs=12)
    for result in results:
        assert not result.diverged
        assert (result.loss_curve > 0).all()


def test_the_kept_state_with_all_training_labels_gives_the_score(data):
    results = train(data, "gcn+mmp", MEMBERS[:2], options=BOTH, epochs=5, keep_models=True)
    network = memohop.build("gcn+mmp", 6, 3, num_nodes=60, **BOTH).eval()
    for result in results:
        network.load_state_dict(result.state)
        network.know(torch.where(data.train_mask[:, result.member.split], data.y, -1))
        logits = network(data.x, network.prepare(data.edge_index, 60)).logits
        tested = data.test_mask[:, result.member.split]
        right = (logits.argmax(1) == data.y)[tested].double().mean()
        assert float(right) == pytest.approx(result.test)
