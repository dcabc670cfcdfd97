"""FAGCN against loops over arcs, and against PyTorch Geometric's layer."""

import math

import pytest
import torch
from torch_geometric.nn import FAConv

from memohop import Graph, build
from memohop.networks.fagcn import SignedAttention

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3, 2], [1, 0, 2, 0, 2, 1, 2]])  # with a self-loop
NODES, FEATURES, CLASSES = 6, 5, 3
NEIGHBOURS = {0: [1, 2], 1: [0, 2, 3], 2: [0, 1], 3: [1], 4: [], 5: []}


def test_fagcn_equals_loops_over_the_arcs():
    network = build("fagcn", FEATURES, CLASSES, hidden_channels=4, epsilon=0.4).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    x = torch.rand(NODES, FEATURES)
    first = (x @ network.input.weight + network.input.bias).clamp(min=0)
    hidden = first
    for attention in network.rounds:
        rows = []
        for node, friends in NEIGHBOURS.items():
            row = 0.4 * first[node]
            for friend in friends:
                score = attention.gate(torch.cat([hidden[node], hidden[friend]]))
                root = math.sqrt(len(friends) * len(NEIGHBOURS[friend]))
                row = row + score.tanh() / root * hidden[friend]
            rows.append(row)
        hidden = torch.stack(rows)
    logits = network(x, network.prepare(ARCS, NODES))
    torch.testing.assert_close(logits, network.classifier(hidden))


def test_a_round_equals_that_of_pyg_without_the_bias():
    network = build("fagcn", FEATURES, CLASSES, hidden_channels=4, epsilon=0.2).eval()
    (round_, _), hidden, first = network.rounds, torch.randn(NODES, 4), torch.randn(NODES, 4)
    layer = FAConv(4, eps=0.2, add_self_loops=False)
    with torch.no_grad():
        layer.att_l.weight.copy_(round_.gate.weight[:, 4:])  # the sender's half
        layer.att_r.weight.copy_(round_.gate.weight[:, :4])
    arcs = torch.tensor([[j, i] for i, friends in NEIGHBOURS.items() for j in friends]).t()
    states = 0.2 * first + round_(hidden, network.prepare(ARCS, NODES))
    torch.testing.assert_close(states, layer(hidden, first, arcs))


def test_no_vector_is_held_for_an_arc():
    nodes, channels = 20, 64
    arcs = torch.cartesian_prod(torch.arange(nodes), torch.arange(nodes)).t()
    graph = Graph(arcs, nodes, direction="in", self_loops="remove", norm="symmetric")
    held = []

    def note(tensor):
        held.append(tensor.numel())
        return tensor

    layer = SignedAttention(channels, dropout=0.5)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        layer(torch.randn(nodes, channels, requires_grad=True), graph)
    assert max(held) == nodes * channels  # 380 arcs times 64 channels would be 24320
