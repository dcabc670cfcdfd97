"""The start of the paper's released code, and what it is for."""

import math

import pytest
import torch

import memohop
from numerics import seeded


def networks(count=200, **options):
    for seed in range(count):
        torch.manual_seed(seeded(seed))
        yield memohop.build("gcn+mmp", 30, 5, hidden_channels=16, init="released", **options)


def extent(tensors):
    """Least, largest and root mean square of many draws."""
    values = torch.stack(list(tensors)).double()
    return values.min().item(), values.max().item(), values.square().mean().sqrt().item()


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("input.weight", math.sqrt(2 * 6 / (30 + 16))),
        ("rounds.0.gate.out.weight", math.sqrt(2 * 6 / (2 * 16 + 4))),
        ("classifier.weight", math.sqrt(2 * 6 / (16 + 5))),
        ("rounds.0.conv.linear.weight", 1 / 4),
        ("rounds.1.conv.bias", 1 / 4),
    ],
)
def test_uniform_within_the_bounds_of_the_released_code(name, bound):
    least, most, spread = extent(net.get_parameter(name).detach() for net in networks())
    assert -bound <= least < -0.97 * bound
    assert 0.97 * bound < most <= bound
    assert spread == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("name", ["input.bias", "rounds.0.gate.out.bias", "classifier.bias"])
def test_the_other_biases_start_at_zero(name):
    (network,) = networks(1)
    assert not network.get_parameter(name).any()


def test_attention_is_normal():
    built = [
        memohop.build("gat+mmp", 30, 5, hidden_channels=16, heads=1, init="released")
        for _ in range(200)
    ]
    convs = [network.rounds[0].conv for network in built]
    of_map = extent(conv.linear.weight.detach() for conv in convs)[2]
    of_scores = extent(torch.cat([conv.receive, conv.send]).detach() for conv in convs)[2]
    assert of_map == pytest.approx(math.sqrt(2 * 2 / (16 + 16)), rel=0.05)
    assert of_scores == pytest.approx(math.sqrt(2 * 2 / (1 + 2 * 16)), rel=0.05)


@pytest.mark.parametrize("form", ["paper", "mean", "official"])
@pytest.mark.parametrize("init", ["glorot", "released"])
def test_a_node_without_neighbours_does_not_outweigh_the_others(form, init):
    network = memohop.build("gcn+mmp", 4, 2, hidden_channels=8, decoupling=form, init=init)
    graph = network.prepare(torch.tensor([[0, 1], [1, 0]]), 3)  # node 2 has none
    _, penalty = network(torch.rand(3, 4), graph)
    penalty.backward()
    grads = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    assert 0 < max(grad.abs().max().item() for grad in grads) < 100


def test_the_memory_is_dropped_out_before_the_map_where_asked_for():
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])

    def logits(**options):
        torch.manual_seed(seeded(1))
        network = memohop.build("gat+mmp", 4, 2, dropout=0.5, input_dropout=0.0, **options)
        network.rounds[0].gate.dropout.active = False  # what the gate drops is not in question
        return [network(x, network.prepare(edges, 6)).logits for _ in range(2)]

    assert torch.equal(*logits())
    assert not torch.equal(*logits(memory_dropout=True))
