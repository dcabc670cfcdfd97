"""The convolutions against PyG's and against loops."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import DirGNNConv, GCN2Conv, GCNConv, GINConv, SAGEConv

from memohop import Graph
from memohop.nn import (
    DirectedConv,
    GraphConv,
    InitialResidualConv,
    IsomorphismConv,
    SageConv,
    SparseFeatures,
    epoch_key,
    randomness,
)
from memohop.nn._randomness import next_draw
from six_nodes import copy

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
UNDIRECTED = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1)
NODES = 5


def graph(**policies):
    return Graph(ARCS, NODES, **{"direction": "in", "self_loops": "add", **policies})


def test_graph_convolution_equals_pyg():
    conv, pyg = GraphConv(3, 4), GCNConv(3, 4)
    nn.init.normal_(conv.bias)
    copy((pyg.lin.weight, conv.linear.weight), (pyg.bias, conv.bias))
    hidden = torch.randn(NODES, 3)
    output = conv(hidden, graph(direction="undirected", norm="symmetric"))
    torch.testing.assert_close(output, pyg(hidden, UNDIRECTED))


def test_sage_equals_pyg():
    conv, pyg = SageConv(3, 4), SAGEConv(3, 4)
    nn.init.normal_(conv.bias)
    own, neighbours = conv.linear.weight.chunk(2)
    copy((pyg.lin_r.weight, own), (pyg.lin_l.weight, neighbours), (pyg.lin_l.bias, conv.bias))
    hidden = torch.randn(NODES, 3)
    output = conv(hidden, graph(self_loops="remove", norm="row"))
    torch.testing.assert_close(output, pyg(hidden, ARCS))


def test_isomorphism_layer_equals_pyg():
    conv, maps = IsomorphismConv(3, 4), (nn.Linear(3, 3), nn.Linear(3, 4))
    pyg = GINConv(nn.Sequential(maps[0], nn.ReLU(), maps[1]), train_eps=True)
    for vector in (conv.inner_bias, conv.bias, conv.epsilon):
        nn.init.normal_(vector)
    copy((maps[0].weight, conv.linear.weight), (maps[0].bias, conv.inner_bias))
    copy((maps[1].weight, conv.second.weight), (maps[1].bias, conv.bias), (pyg.eps, conv.epsilon))
    hidden = torch.randn(NODES, 3)
    output = conv(hidden, graph(self_loops="remove", norm="none"))
    torch.testing.assert_close(output, pyg(hidden, ARCS))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_directed_layer_equals_pyg_with_means(alpha):
    conv = DirectedConv(3, 4, alpha=alpha)
    pyg = DirGNNConv(SAGEConv(3, 4, root_weight=False, bias=False), alpha, root_weight=False)
    nn.init.normal_(conv.bias)
    out, into = conv.linear.weight.chunk(2)
    copy((pyg.conv_out.lin_l.weight, out), (pyg.conv_in.lin_l.weight, into))
    hidden = torch.randn(NODES, 3)
    output = conv(hidden, graph(direction="out", self_loops="remove", norm="row"))
    torch.testing.assert_close(output, pyg(hidden, ARCS) + conv.bias)


def test_directed_layer_equals_its_equation():
    conv, hidden = DirectedConv(3, 4, alpha=0.3, bias=False), torch.randn(NODES, 3)
    arcs = torch.zeros(NODES, NODES)
    arcs[ARCS[0], ARCS[1]] = 1
    scale = arcs.sum(1).clamp(min=1).rsqrt(), arcs.sum(0).clamp(min=1).rsqrt()
    normalised = torch.diag(scale[0]) @ arcs @ torch.diag(scale[1])
    out, into = conv.linear.weight.t().chunk(2, dim=1)
    expected = 0.3 * normalised @ hidden @ out + 0.7 * normalised.t() @ hidden @ into
    output = conv(hidden, graph(direction="out", self_loops="remove", norm="symmetric"))
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("shared", [True, False])
def test_initial_residual_layer_equals_pyg(shared):
    conv = InitialResidualConv(4, 4, place=3, alpha=0.2, theta=1.5, shared_weights=shared)
    pyg = GCN2Conv(4, alpha=0.2, theta=1.5, layer=3, shared_weights=shared)
    copy((pyg.weight1, conv.linear.weight.t()))
    if not shared:
        copy((pyg.weight2, conv.of_initial.weight.t()))
    hidden, initial = torch.randn(2, NODES, 4)
    output = conv(hidden, graph(direction="undirected", norm="symmetric"), initial)
    torch.testing.assert_close(output, pyg(hidden, initial, UNDIRECTED))


@pytest.mark.parametrize("layer", [SageConv, IsomorphismConv, DirectedConv])
def test_several_maps_of_the_features_see_one_mask(layer):
    conv = layer(3, 4, features=True, input_dropout=0.5)
    x = torch.rand(NODES, 3) + 0.1
    with randomness(epoch_key(torch.tensor(0), torch.tensor(0))):
        conv(x, graph(norm="row"))
        assert next_draw().place.number == 2  # one was taken
    sparse = conv.eval()(SparseFeatures(x), graph(norm="row"))
    torch.testing.assert_close(sparse, conv(x, graph(norm="row")))
