"""Geom-GCN against loops over arcs."""

import pytest
import torch
from torch_geometric.data import Data

import memohop
from memohop import UsageError, build
from memohop.data.datasets.fetch import known_digests
from memohop.data.datasets.latent import LatentNeighbours, computed
from memohop.data.datasets.registry import describe
from memohop.data.noise import add_noise
from memohop.jobs.named import Settings, execute
from memohop.nn import SparseFeatures
from numerics import generator

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3, 2], [1, 0, 2, 0, 2, 1, 2]])  # with a self-loop
NODES, FEATURES, CLASSES = 6, 5, 3
DIVISIONS = {  # of arcs from, to
    (0, 1): 0, (1, 0): 3, (1, 2): 1, (2, 1): 2, (0, 2): 2, (2, 0): 5,  # the last in both spaces
    (1, 3): 0, (3, 1): 3, (3, 4): 4, (4, 3): 7, (5, 0): 6,
}  # fmt: skip

in_float64 = pytest.mark.usefixtures("float64")


def latent(divisions=DIVISIONS):
    return LatentNeighbours(torch.tensor(list(divisions)).t(), torch.tensor([*divisions.values()]))


def logits_by_loops(network, x, divisions):
    """Receivers collect from senders, division by division; a node itself is the ninth."""
    divisions = divisions | {(node, node): 8 for node in range(NODES)}
    degree = [sum(target == node for _, target in divisions) for node in range(NODES)]
    hidden = x
    for index, conv in enumerate(network.convs):
        weight = conv.linear.weight if index == 0 else conv.linear.weight.t()
        maps = weight.chunk(9, dim=1)
        sums = torch.zeros(NODES, 9, maps[0].shape[1])
        for (source, target), division in divisions.items():
            share = (degree[source] * degree[target]) ** -0.5
            sums[target, division] += share * (hidden[source] @ maps[division])
        last = index == len(network.convs) - 1
        hidden = sums.mean(1) if last else sums.flatten(1).clamp(min=0)
    return hidden


@in_float64
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_geom_gcn_equals_loops_over_the_arcs(num_layers, features):
    network = build("geom-gcn", FEATURES, CLASSES, hidden_channels=4, num_layers=num_layers).eval()
    x = torch.rand(NODES, FEATURES).round(decimals=1) * (torch.rand(NODES, FEATURES) < 0.6)
    expected = logits_by_loops(network, x, DIVISIONS)
    given = x if features == "dense" else SparseFeatures(x)
    logits = network(given, network.prepare(ARCS, NODES, latent()))
    torch.testing.assert_close(logits, expected)
    slope, weights = torch.rand_like(logits), list(network.parameters())
    torch.testing.assert_close(
        torch.autograd.grad((logits * slope).sum(), weights),
        torch.autograd.grad((expected * slope).sum(), weights),
    )


@in_float64
@pytest.mark.parametrize("direction", ["out", "in"])
def test_direction_leaves_out_arcs_of_the_graph_but_none_of_the_latent_space(direction):
    network = build("geom-gcn", FEATURES, CLASSES, direction=direction).eval()
    x = torch.rand(NODES, FEATURES)
    arcs = ARCS if direction == "in" else ARCS.flip(0)  # who sends, who receives
    sent = {tuple(arc) for arc in arcs.t().tolist()}
    left = {arc: part for arc, part in DIVISIONS.items() if part >= 4 or arc in sent}
    assert len(left) < len(DIVISIONS)
    with torch.no_grad():
        logits = network(x, network.prepare(ARCS, NODES, latent()))
        torch.testing.assert_close(logits, logits_by_loops(network, x, left))


@in_float64
def test_the_order_of_the_nodes_does_not_matter_given_the_latent_neighbours():
    network, x = build("geom-gcn", FEATURES, CLASSES).eval(), torch.rand(NODES, FEATURES)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    inverse = order.argsort()
    moved = LatentNeighbours(inverse[latent().arcs], latent().division)
    logits = network(x, network.prepare(ARCS, NODES, latent()))
    other = network(x[order], network.prepare(inverse[ARCS], NODES, moved))
    torch.testing.assert_close(other, logits[order])


def same(graph, another):
    """Whether maps of random numbers bring every node the same."""
    maps = torch.randn(NODES, 9, generator=generator())
    received = [either.sum(either.collect(maps)) for either in (graph, another)]
    return torch.equal(*received)


def test_latent_neighbours_come_from_the_data_or_are_computed():
    plain, carrying = Data(edge_index=ARCS, num_nodes=NODES), Data(edge_index=ARCS, latent=latent())
    carrying.num_nodes = NODES
    names = ("auto", "isomap", "poincare")
    networks = {name: build("geom-gcn", 1, 1, embedding=name) for name in names}
    for name, network in networks.items():
        kind = "isomap" if name == "auto" else name
        expected = network.prepare(ARCS, NODES, computed(ARCS, NODES, embedding=kind))
        assert same(network.prepare_data(plain, "cpu"), expected)
        if name != "auto":
            assert same(network.prepare_data(carrying, "cpu"), expected)
    auto = networks["auto"]
    assert same(auto.prepare_data(carrying, "cpu"), auto.prepare(ARCS, NODES, latent()))
    assert not same(auto.prepare_data(carrying, "cpu"), auto.prepare_data(plain, "cpu"))


def test_latent_neighbours_of_another_graph_are_refused():
    without = {arc: part for arc, part in DIVISIONS.items() if arc != (3, 1)}
    with pytest.raises(UsageError, match="have no arc 3 -> 1, so they belong to another graph"):
        build("geom-gcn", 1, 1).prepare(ARCS, NODES, latent(without))


@pytest.mark.filterwarnings("ignore::memohop.data.check.MissingClassWarning")
def test_it_is_one_network_by_hand_and_in_an_experiment(data_root):
    settings = Settings(epochs=3, features="row", options={"direction": "in"})
    (result,) = execute([settings.job("texas", "geom-gcn").at(1, 2)], root=data_root)
    data = memohop.load("texas", root=data_root, features="row")
    members = [memohop.Member(split=1, seed=2)]
    (by_hand,) = memohop.train(data, "geom-gcn", members, options=settings.options, epochs=3)
    assert by_hand.loss_curve.tolist() == result.loss_curve.tolist()
    computed_ones = memohop.train(
        data, "geom-gcn", members, options={"direction": "in", "embedding": "isomap"}, epochs=3
    )
    assert by_hand.loss_curve.tolist() != computed_ones[0].loss_curve.tolist()


def test_the_published_neighbours_are_part_of_a_runs_digest():
    path = describe("texas").neighbours

    def files(**settings):
        return Settings(**settings).job("texas", "geom-gcn").content["data"]["files"]

    assert files()[path] == known_digests()[path]
    assert path not in files(options={"embedding": "isomap"})
    assert path not in files(noise=25.0)
    assert path not in Settings().job("texas", "gcn").content["data"]["files"]
    assert not describe("squirrel").neighbours


def test_noise_leaves_the_published_neighbours_behind(data_root):
    data = memohop.load("texas", root=data_root)
    assert "latent" not in add_noise(data, 25)
    assert "latent" in add_noise(data, 0)
    assert "latent" in data
