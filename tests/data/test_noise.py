"""Noise is of the amount, the kind and the seed that were asked for."""

import pytest
import torch
from torch_geometric.data import Data

import memohop
from memohop.data.noise import add_noise


def pairs(data):
    """Unordered pairs of different nodes that are joined."""
    arcs = data.edge_index.t().tolist()
    return {frozenset(arc) for arc in arcs if arc[0] != arc[1]}


def arcs(data):
    return set(map(tuple, data.edge_index.t().tolist()))


@pytest.fixture
def path():
    """A self-loop, an arc both ways and an arc one way, on six nodes."""
    edge_index = torch.tensor([[0, 0, 1, 2], [0, 1, 0, 3]])
    return Data(x=torch.zeros(6, 1), edge_index=edge_index)


@pytest.mark.parametrize(("percent", "added"), [(0, 0), (50, 1), (100, 2), (500, 10), (650, 13)])
def test_pairs_are_counted_without_loops_and_direction(percent, added, path):
    noisy = add_noise(path, percent)
    assert len(pairs(noisy) - pairs(path)) == added
    assert len(arcs(noisy) - arcs(path)) == 2 * added
    assert arcs(path) <= arcs(noisy)
    assert noisy.edge_index.shape[1] == len(arcs(noisy))


@pytest.mark.parametrize(("percent", "added"), [(0, 0), (100, 9), (300, 27)])
def test_the_released_code_counts_a_loop_for_each_node_and_adds_single_arcs(percent, added, path):
    new = arcs(add_noise(path, percent, policy="directed")) - arcs(path)
    assert len(new) == added
    assert all(source != target for source, target in new)


@pytest.mark.parametrize("policy", ["undirected", "directed"])
def test_a_draw_is_repeatable_and_its_levels_are_nested(policy):
    data = memohop.load("csbm", nodes=100, degree=4)
    little, much = (add_noise(data, percent, policy=policy) for percent in (50, 300))
    assert arcs(little) < arcs(much)
    assert torch.equal(much.edge_index, add_noise(data, 300, policy=policy).edge_index)
    assert arcs(much) != arcs(add_noise(data, 300, policy=policy, draw=1))


def test_everything_else_stays_and_the_graph_given_is_untouched():
    data = memohop.load("csbm", nodes=100, degree=4)
    before = data.edge_index.clone()
    noisy = add_noise(data, 100)
    assert torch.equal(data.edge_index, before)
    assert noisy.x is data.x
    assert noisy.metric == data.metric
    assert torch.equal(noisy.test_mask, data.test_mask)


def test_pairs_are_drawn_alike():
    """Each of the 15 - 2 absent pairs about 2000 / 13 times, in as many draws of one pair."""
    data = Data(x=torch.zeros(6, 1), edge_index=torch.tensor([[0, 2], [1, 3]]))
    counts = {}
    for draw in range(2000):
        (pair,) = pairs(add_noise(data, 50, draw=draw)) - pairs(data)
        counts[pair] = counts.get(pair, 0) + 1
    expected = 2000 / 13
    assert len(counts) == 13
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 32.9  # one in a thousand for 12 degrees of freedom


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"percent": -1}, "percent=-1 is out of range"),
        ({"percent": 10, "draw": -1}, "draw=-1 is too small"),
        ({"percent": 10, "policy": "undirect"}, "did you mean undirected or directed"),
        ({"percent": 700}, "asks for 14 more, and only 13 are absent"),
    ],
)
def test_bad_arguments_are_named(arguments, words, path):
    with pytest.raises(memohop.UsageError, match=words):
        add_noise(path, **arguments)


def test_the_counts_of_cora(data_root):
    cora = memohop.load("cora", root=data_root)
    assert add_noise(cora, 100).edge_index.shape[1] == 2 * 10556
    released = add_noise(cora, 100, policy="directed")
    assert released.edge_index.shape[1] == 10556 + 10556 + 2708
