"""Memory-based message passing round every backbone, against PyG's convolutions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import DirGNNConv, GATv2Conv, GCN2Conv, GINConv, SAGEConv

from memohop import MMP, UsageError, build, models
from memohop.networks.base import GCN
from memohop.networks.memory import MemoryNetwork

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
NODES, FEATURES, CLASSES, WIDTH = 6, 5, 3, 8


def sage(ours, number):
    conv = SAGEConv(WIDTH, WIDTH, bias=False)
    own, neighbours = ours.linear.weight.chunk(2)
    return conv, [(conv.lin_r.weight, own), (conv.lin_l.weight, neighbours)]


def gin(ours, number):
    maps = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
    conv = GINConv(nn.Sequential(maps[0], nn.ReLU(), maps[1]))
    return conv, [(maps[0].weight, ours.linear.weight), (maps[1].weight, ours.second.weight)]


def gatv2(ours, number):
    conv = GATv2Conv(WIDTH, WIDTH // 2, heads=2, add_self_loops=False, bias=False)
    receive, send = ours.linear.weight.chunk(2)
    pairs = [(conv.lin_r.weight, receive), (conv.lin_l.weight, send)]
    return conv, [*pairs, (conv.att, ours.score[None])]


def directed(ours, number):
    means = SAGEConv(WIDTH, WIDTH, root_weight=False, bias=False)
    conv = DirGNNConv(means, alpha=0.5, root_weight=False)
    out, into = ours.linear.weight.chunk(2)
    return conv, [(conv.conv_out.lin_l.weight, out), (conv.conv_in.lin_l.weight, into)]


def gcnii(ours, number):
    conv = GCN2Conv(WIDTH, alpha=0.1, theta=0.5, layer=number)
    return conv, [(conv.weight1, ours.linear.weight.t())]


@pytest.mark.parametrize(
    ("name", "twin", "options", "both_ways"),
    [
        ("sage+mmp", sage, {}, True),
        ("gin+mmp", gin, {}, True),
        ("gatv2+mmp", gatv2, {"heads": 2}, True),
        ("dir-gcn+mmp", directed, {"norm": "row"}, False),
        ("gcnii+mmp", gcnii, {"self_loops": "add", "norm": "symmetric"}, True),
    ],
)
def test_mmp_round_a_backbone_equals_mmp_round_pyg(name, twin, options, both_ways):
    network = build(name, FEATURES, CLASSES, hidden_channels=WIDTH, **options).eval()
    x = torch.rand(NODES, FEATURES)
    arcs = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1) if both_ways else ARCS
    hidden = memory = initial = F.relu(network.input(x))
    for number, ours in enumerate(network.rounds, start=1):
        conv, pairs = twin(ours.conv, number)
        with torch.no_grad():
            for theirs, own in pairs:
                theirs.copy_(own)
        mmp = MMP(conv, WIDTH, gate=network.rounds[0].gate)
        beside = (initial,) if name == "gcnii+mmp" else ()
        hidden, memory = mmp(hidden, memory, *beside, arcs)
    found = network(x, network.prepare(ARCS, NODES)).logits
    torch.testing.assert_close(found, network.classifier(hidden))


def test_every_backbone_has_every_plug_in():
    for name in ("gcn", "gat", "sage", "gin", "gatv2", "dir-gcn", "gcnii"):
        assert {name, f"{name}+jk", f"{name}+de", f"{name}+mmp"} <= set(models())


@pytest.mark.parametrize(
    ("name", "policies"),
    [
        ("gcn", ("undirected", "add", "symmetric")),
        ("gcn+mmp", ("undirected", "remove", "row")),
        ("sage+jk", ("undirected", "remove", "row")),
        ("gin", ("undirected", "remove", "none")),
        ("gin+mmp", ("undirected", "remove", "none")),
        ("gatv2+de", ("undirected", "add", "symmetric")),
        ("dir-gcn", ("out", "remove", "symmetric")),
        ("dir-gcn+mmp", ("out", "remove", "symmetric")),
        ("gcnii+mmp", ("undirected", "remove", "row")),
        ("sage-res", ("undirected", "add", "row")),
    ],
)
def test_each_sees_the_graph_that_its_convolution_needs(name, policies):
    graph = build(name, FEATURES, CLASSES).prepare(ARCS, NODES)
    assert (graph.direction, graph.self_loops, graph.norm) == policies


def test_a_policy_that_does_not_exist_is_refused_by_the_class_too():
    with pytest.raises(UsageError, match="MemoryNetwork has no option 'loops'; of the graph"):
        MemoryNetwork(FEATURES, CLASSES, backbone=GCN, loops="add")


def test_the_share_of_out_neighbours_is_an_option():
    network = build("dir-gcn+mmp", FEATURES, CLASSES, alpha=1.0).eval()
    x = torch.rand(NODES, FEATURES)
    found = network(x, network.prepare(ARCS, NODES)).logits
    x[3] += 1  # 3 points to 1, and nobody to 3
    changed = (network(x, network.prepare(ARCS, NODES)).logits - found).abs().sum(1) > 1e-6
    assert changed.tolist() == [False, False, False, True, False, False]
