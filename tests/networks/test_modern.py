"""The networks that came after the paper, each against its equations with dense matrices."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv, SAGEConv, SGConv

from memohop import build
from numerics import generator, seeded

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
UNDIRECTED = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1)
NODES, FEATURES, CLASSES = 6, 5, 3


def features():
    return torch.rand(NODES, FEATURES, generator=generator())


def make(name, **options):
    torch.manual_seed(seeded(1))
    return build(name, FEATURES, CLASSES, hidden_channels=8, **options).eval()


def logits_of(network, x):
    return network(x, network.prepare(ARCS, NODES))


def dense(*, loops, norm, arcs=UNDIRECTED):
    matrix = torch.eye(NODES) * loops
    matrix[arcs[0], arcs[1]] = 1
    rows, columns = matrix.sum(1).clamp(min=1), matrix.sum(0).clamp(min=1)
    if norm == "row":
        return matrix / rows[:, None]
    return matrix / (rows[:, None] * columns).sqrt()


def length_one(rows):
    return rows / rows.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-12)


@pytest.mark.parametrize("order", ["filter-first", "rectify-first"])
def test_acm_gcn(order):
    network, x = make("acm-gcn", order=order), features()
    low, hidden = dense(loops=True, norm="row"), x
    high = torch.eye(NODES) - low
    for number, layer in enumerate(network.layers):
        weight = layer.linear.weight if number == 0 else layer.linear.weight.t()
        channels = []
        for matrix, part in zip((low, high, torch.eye(NODES)), weight.chunk(3, 1), strict=True):
            if order == "filter-first":
                channels.append((matrix @ hidden @ part).relu())
            else:
                channels.append(matrix @ (hidden @ part).relu())
        scores = [c @ a for c, a in zip(channels, layer.attention, strict=True)]
        shares = torch.softmax(torch.stack(scores, 1).sigmoid() @ layer.mix / 3, dim=1)
        mixed = sum(shares[:, [i]] * channels[i] for i in range(3))
        hidden = 3 * (mixed.relu() if number == 0 else mixed)
    torch.testing.assert_close(logits_of(network, x), hidden)


@pytest.mark.parametrize("normalise", [True, False])
def test_fsgnn(normalise):
    network, x = make("fsgnn", hops=2, normalise=normalise), features()
    plain, looped = dense(loops=False, norm="symmetric"), dense(loops=True, norm="symmetric")
    seen = [x, plain @ x, plain @ plain @ x, looped @ x, looped @ looped @ x]
    shares = torch.softmax(network.selection.detach().normal_(), 0)
    weights = network.linear.weight.chunk(5, dim=1)
    hidden = []
    for part, weight, bias, share in zip(seen, weights, network.bias, shares, strict=True):
        mapped = part @ weight + bias
        hidden.append(share * (length_one(mapped) if normalise else mapped))
    expected = network.classifier(torch.cat(hidden, dim=1).relu())
    torch.testing.assert_close(logits_of(network, x), expected)


@pytest.mark.parametrize("sharing", ["layer", "shared"])
def test_ordered_gnn(sharing):
    network, x = make("ordered-gnn", num_layers=3, chunks=4, gate_sharing=sharing), features()
    assert len(network.gates) == (3 if sharing == "layer" else 1)
    mean = dense(loops=False, norm="row")
    hidden = F.layer_norm((x @ network.input.weight + network.input.bias).relu(), (8,))
    before = [[0.0] * 4 for _ in range(NODES)]
    for number in range(3):
        message = mean @ hidden
        gate = network.gates[number if sharing == "layer" else 0]
        shares = torch.softmax(gate(torch.cat([hidden, message], dim=1)), dim=1).tolist()
        new = torch.empty(NODES, 8)
        for i in range(NODES):
            for chunk in range(4):
                until_here = sum(shares[i][: chunk + 1])
                before[i][chunk] += (1 - before[i][chunk]) * until_here
                for d in (2 * chunk, 2 * chunk + 1):
                    kept = before[i][chunk]
                    new[i, d] = kept * hidden[i, d] + (1 - kept) * message[i, d]
        hidden = F.layer_norm(new, (8,))
    torch.testing.assert_close(logits_of(network, x), network.classifier(hidden))


@pytest.mark.parametrize("readout", ["max", "concat", "last"])
@pytest.mark.parametrize("normalise", [True, False])
def test_dir_gcn(readout, normalise):
    network, x = make("dir-gcn", alpha=0.3, readout=readout, normalise=normalise), features()
    out = dense(loops=False, norm="symmetric", arcs=ARCS)
    hidden, layers = x, []
    for number, conv in enumerate(network.convs):
        weight = conv.linear.weight if number == 0 else conv.linear.weight.t()
        for_out, for_in = weight.chunk(2, dim=1)
        hidden = (0.3 * out @ hidden @ for_out + 0.7 * out.t() @ hidden @ for_in).relu()
        hidden = length_one(hidden) if normalise else hidden
        layers.append(hidden)
    read = {
        "max": torch.maximum(torch.maximum(*layers[:2]), layers[2]),
        "concat": torch.cat(layers, dim=1),
        "last": layers[2],
    }[readout]
    torch.testing.assert_close(logits_of(network, x), network.classifier(read))


@pytest.mark.parametrize("shared", [True, False])
def test_gcnii_equals_pyg(shared):
    network, x = make("gcnii", alpha=0.2, theta=1.5, shared_weights=shared), features()
    first = hidden = network.input(x).relu()
    for number, ours in enumerate(network.convs, start=1):
        conv = GCN2Conv(8, alpha=0.2, theta=1.5, layer=number, shared_weights=shared)
        with torch.no_grad():
            conv.weight1.copy_(ours.linear.weight.t())
            if not shared:
                conv.weight2.copy_(ours.of_initial.weight.t())
        hidden = conv(hidden, first, UNDIRECTED).relu()
    assert number == 8
    torch.testing.assert_close(logits_of(network, x), network.classifier(hidden))


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("readout", ["last", "sum"])
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_tuned_gcn_equals_pyg(norm, readout, projection):
    network = make(
        "gcn-res", num_layers=2, hidden_norm=norm, readout=readout, projection=projection
    )
    x = hidden = features()
    if projection:
        hidden = x @ network.projection.weight + network.projection.bias
    layers = []
    for conv, residual, ours in zip(network.convs, network.residuals, network.norms, strict=True):
        pyg = GCNConv(hidden.shape[1], 8, bias=norm != "batch")
        with torch.no_grad():
            on_features = hidden is x
            for_conv, for_residual = (
                m.weight if on_features else m.weight.t() for m in (conv.linear, residual)
            )
            pyg.lin.weight.copy_(for_conv.t())
            if norm != "batch":
                pyg.bias.copy_(conv.bias.normal_())
            if norm == "batch":
                ours.running_mean.normal_()
                ours.running_variance.uniform_(0.5, 2)
                ours.weight.normal_()
        summed = pyg(hidden, UNDIRECTED) + hidden @ for_residual
        if norm == "batch":
            theirs = nn.BatchNorm1d(8).eval()
            theirs.weight, theirs.running_mean = ours.weight, ours.running_mean
            theirs.running_var = ours.running_variance
            summed = theirs(summed)
        elif norm == "layer":
            summed = F.layer_norm(summed, (8,))
        hidden = summed.relu()
        layers.append(hidden)
    decisive = sum(layers) if readout == "sum" else hidden
    torch.testing.assert_close(logits_of(network, x), network.classifier(decisive))


def test_tuned_sage_averages_a_node_with_its_neighbours_and_may_do_without_residuals():
    network, x = make("sage-res", num_layers=1, residual=False, hidden_norm="none"), features()
    pyg = SAGEConv(FEATURES, 8)
    with torch.no_grad():
        own, neighbours = network.convs[0].linear.weight.chunk(2, dim=1)
        pyg.lin_r.weight.copy_(own.t())
        pyg.lin_l.weight.copy_(neighbours.t())
        pyg.lin_l.bias.copy_(network.convs[0].bias.normal_())
    loops = torch.arange(NODES).expand(2, -1)
    hidden = pyg(x, torch.cat([UNDIRECTED, loops], dim=1)).relu()
    torch.testing.assert_close(logits_of(network, x), network.classifier(hidden))


def test_sgc_equals_pyg():
    torch.manual_seed(seeded(1))
    network, x = build("sgc", FEATURES, CLASSES, hops=3).eval(), features()
    pyg = SGConv(FEATURES, CLASSES, K=3)
    with torch.no_grad():
        pyg.lin.weight.copy_(network.linear.weight.t())
        pyg.lin.bias.copy_(network.bias.normal_())
    torch.testing.assert_close(logits_of(network, x), pyg(x, UNDIRECTED))


def test_appnp_equals_pyg():
    network, x = make("appnp", hops=4, alpha=0.3), features()
    expected = APPNP(K=4, alpha=0.3)(network.mlp(x), UNDIRECTED)
    torch.testing.assert_close(logits_of(network, x), expected)
