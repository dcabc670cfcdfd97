"""How much a difference may vary, by the test nodes alone."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch_geometric.data import Data

import memohop
from memohop.own.candidate import Candidate
from memohop.own.differences import node_reach
from memohop.own.space import Space
from memohop.training.metrics import METRICS


def opinions(right, y):
    """Logits of two classes, for nodes that are right or not, `[splits, nodes]`."""
    chosen = torch.where(right, y, 1 - y)
    return torch.nn.functional.one_hot(chosen, 2).float()


def graph(y, tested, metric="accuracy"):
    return Data(y=y, test_mask=tested.t(), metric=metric)


def test_for_accuracy_it_is_the_interval_of_paired_differences():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(40) % 2
    one, other = (torch.rand(1, 40, generator=generator) < p for p in (0.8, 0.6))
    data = graph(y, torch.ones(1, 40, dtype=torch.bool))
    paired = (one[0].double() - other[0].double()).numpy()
    expected = stats.t.ppf(0.975, 39) * math.sqrt(paired.var(ddof=1) / 40 + 1 / 42**2)
    found = node_reach(opinions(one, y), opinions(other, y), data)
    assert found == pytest.approx(expected, rel=1e-5)  # scores are float32


def test_models_that_agree_on_every_node_are_not_equal_for_sure():
    y = torch.arange(30) % 2
    same = opinions(torch.ones(1, 30, dtype=torch.bool), y)
    data = graph(y, torch.ones(1, 30, dtype=torch.bool))
    assert node_reach(same, same, data) == pytest.approx(stats.t.ppf(0.975, 29) / 32)


def test_more_test_nodes_say_more():
    y = torch.arange(4000) % 2
    generator = torch.Generator().manual_seed(1)
    one, other = (torch.rand(2, 4000, generator=generator) < p for p in (0.8, 0.6))
    reaches = []
    for count in (40, 400, 4000):
        tested = (torch.arange(4000) < count).expand(2, -1)
        reaches.append(node_reach(opinions(one, y), opinions(other, y), graph(y, tested)))
    assert reaches[0] > 2 * reaches[1] > 4 * reaches[2]


def test_a_single_test_node_says_nothing():
    y = torch.tensor([0, 1])
    said = opinions(torch.ones(1, 2, dtype=torch.bool), y)
    assert node_reach(said, said, graph(y, torch.tensor([[True, False]]))) == math.inf


@pytest.mark.parametrize("metric", METRICS)
def test_every_score_has_one_even_where_a_class_has_a_single_test_node(metric):
    generator = torch.Generator().manual_seed(2)
    y = (torch.arange(60) % 20 == 0).long()
    tested = torch.zeros(2, 60, dtype=torch.bool)
    tested[0, :15] = tested[1, 10:30] = True  # of class 1, nodes 0 and 20
    one, other = (torch.rand(2, 60, 2, generator=generator) for _ in range(2))
    assert 0 < node_reach(one, other, graph(y, tested, metric)) < math.inf


def test_the_true_difference_is_outside_about_as_often_as_it_says():
    """Two models of which one is right on a tenth of all nodes more, on many draws of nodes."""
    generator = np.random.default_rng(0)
    y = torch.arange(60) % 2
    tested = torch.ones(1, 60, dtype=torch.bool)
    outside = 0
    for _ in range(300):
        kind = generator.choice(4, p=(0.5, 0.2, 0.1, 0.2), size=60)  # both, one, other, neither
        one, other = (torch.from_numpy(np.isin(kind, kinds))[None] for kinds in ((0, 1), (0, 2)))
        mean = float(one.double().mean() - other.double().mean())
        reach = node_reach(opinions(one, y), opinions(other, y), graph(y, tested))
        outside += abs(mean - 0.1) > reach
    assert 3 <= outside <= 27  # 15 expected, and the binomial's 99.8 % on either side


@pytest.mark.parametrize("model", ["gcn+mmp", "mlp", "gcn"])
def test_networks_say_again_what_they_said_when_they_were_scored(model):
    data = memohop.load("csbm", nodes=60, classes=2, channels=4, splits=2)
    space = Space(model, directed=True, seed=0)
    candidate = Candidate(model, space, data, splits=2, seed=0, training={"device": "cpu"})
    candidate.try_out(space.first[:1], epochs=4, progress=lambda done, total: None)
    (tried,) = candidate.tried
    said = candidate.logits(tried)
    for split, result in enumerate(tried.selection.results):
        held_out = data.test_mask[:, split]
        right = said[split].argmax(-1)[held_out] == data.y[held_out]
        assert right.double().mean() == pytest.approx(result.test)
