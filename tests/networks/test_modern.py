"""The networks that came after the paper, each against its equations with dense matrices."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import APPNP, SGConv

from six_nodes import ARCS, CLASSES, FEATURES, NODES, UNDIRECTED, copy, dense, features, logits_of
from six_nodes import made as made_of_any_width

pytestmark = pytest.mark.usefixtures("float64")


def made(name, **options):
    return made_of_any_width(name, hidden_channels=8, **options)


def length_one(rows):
    return rows / rows.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-12)


@pytest.mark.parametrize("order", ["filter-first", "rectify-first"])
def test_acm_gcn(order):
    network, x = made("acm-gcn", order=order), features()
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
    network, x = made("fsgnn", hops=2, normalise=normalise), features()
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
    network, x = made("ordered-gnn", num_layers=3, chunks=4, gate_sharing=sharing), features()
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
    network, x = made("dir-gcn", alpha=0.3, readout=readout, normalise=normalise), features()
    graph, hidden, layers = network.prepare(ARCS, NODES), x, []
    for conv in network.convs:
        assert conv.alpha == 0.3
        hidden = conv(hidden, graph).relu()
        hidden = length_one(hidden) if normalise else hidden
        layers.append(hidden)
    read = {
        "max": torch.maximum(torch.maximum(*layers[:2]), layers[2]),
        "concat": torch.cat(layers, dim=1),
        "last": layers[2],
    }[readout]
    torch.testing.assert_close(network(x, graph), network.classifier(read))


@pytest.mark.parametrize("shared", [True, False])
def test_gcnii(shared):
    network, x = made("gcnii", alpha=0.2, theta=1.5, shared_weights=shared), features()
    graph, initial = network.prepare(ARCS, NODES), network.input(x).relu()
    hidden = initial
    for number, conv in enumerate(network.convs, start=1):
        assert (conv.alpha, conv.beta) == (0.2, math.log(1.5 / number + 1))
        hidden = conv(hidden, graph, initial).relu()
    assert number == 8
    torch.testing.assert_close(network(x, graph), network.classifier(hidden))


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("readout", ["last", "sum"])
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("name", ["gcn-res", "gat-res", "sage-res"])
def test_tuned_stacks(name, norm, readout, projection):
    options = {"hidden_norm": norm, "readout": readout, "projection": projection}
    network, x = made(name, num_layers=2, **options), features()
    graph, layers = network.prepare(ARCS, NODES), []
    hidden = network.projection(x) if projection else x
    for conv, residual, normalise in zip(
        network.convs, network.residuals, network.norms, strict=True
    ):
        assert (conv.bias is None) == (norm == "batch")
        if norm == "batch":
            normalise.running_mean.normal_()
            normalise.running_variance.uniform_(0.5, 2)
        weight = residual.weight if hidden is x else residual.weight.t()
        hidden = normalise(conv(hidden, graph) + hidden @ weight).relu()
        layers.append(hidden)
    decisive = sum(layers) if readout == "sum" else hidden
    torch.testing.assert_close(network(x, graph), network.classifier(decisive))


def test_a_tuned_stack_may_do_without_residuals():
    network, x = made("sage-res", num_layers=1, residual=False, hidden_norm="none"), features()
    graph = network.prepare(ARCS, NODES)
    hidden = network.convs[0](x, graph).relu()
    torch.testing.assert_close(network(x, graph), network.classifier(hidden))


def test_sgc_equals_pyg():
    network, x, pyg = made_of_any_width("sgc", hops=3), features(), SGConv(FEATURES, CLASSES, K=3)
    torch.nn.init.normal_(network.bias)
    copy((pyg.lin.weight, network.linear.weight.t()), (pyg.lin.bias, network.bias))
    torch.testing.assert_close(logits_of(network, x), pyg(x, UNDIRECTED))


def test_appnp_equals_pyg():
    network, x = made("appnp", hops=4, alpha=0.3), features()
    expected = APPNP(K=4, alpha=0.3)(network.mlp(x), UNDIRECTED)
    torch.testing.assert_close(logits_of(network, x), expected)
