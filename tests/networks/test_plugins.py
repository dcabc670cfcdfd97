"""Every plug-in round every backbone; ``test_known.py`` has the equations of the memory."""

import pytest
import torch

from memohop import UsageError, build, models
from memohop.networks.base import GCN
from memohop.networks.memory import MemoryNetwork
from six_nodes import ARCS, CLASSES, FEATURES, NODES

pytestmark = pytest.mark.usefixtures("float64")


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
