"""MixHop against dense matrices, and against PyTorch Geometric's layer."""

import pytest
import torch
from torch_geometric.nn import MixHopConv

from memohop import build
from memohop.networks.mixhop import UnitFeatureLinear
from memohop.nn import SparseFeatures, epoch_key, randomness
from six_nodes import ARCS, CLASSES, FEATURES, NODES, UNDIRECTED, copy, dense, features

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("unit_features", [True, False])
def test_mixhop_equals_powers_of_a_dense_matrix(num_layers, unit_features):
    network = build(
        "mixhop", FEATURES, CLASSES, hidden_channels=8, num_layers=num_layers,
        dropout=0.0, input_dropout=0.0, unit_features=unit_features,
    )  # fmt: skip
    powers = [
        torch.linalg.matrix_power(dense(loops=True, norm="symmetric"), power) for power in range(3)
    ]
    with torch.no_grad():
        network.scores.normal_()
        for norm in network.norms:
            norm.bias.normal_()
    hidden = x = features()
    if unit_features:
        hidden = torch.stack([row / row.square().sum().sqrt() for row in x])
    for index in range(num_layers):
        last = index == num_layers - 1
        weight = network.linears[index].weight
        weight = weight if index == 0 else weight.t()
        widths = [CLASSES] * 3 if last else [3, 3, 2]
        parts = weight.split(widths, dim=1)
        segments = [
            power @ hidden @ part for power, part in zip(powers, parts, strict=True)
        ]  # fmt: skip
        if not last:
            mixed = torch.cat(segments, dim=1)
            mean, variance = mixed.mean(0), mixed.var(0, correction=0)
            hidden = (mixed - mean) / (variance + 1e-3).sqrt() + network.norms[index].bias
            hidden = hidden.clamp(min=0)
    shares = network.scores.exp() / network.scores.exp().sum()
    expected = sum(share * segment for share, segment in zip(shares, segments, strict=True))
    graph = network.prepare(ARCS, NODES)
    torch.testing.assert_close(network.train()(x, graph), expected)
    torch.testing.assert_close(network.eval()(x, graph), expected)


def test_a_layer_equals_that_of_pyg_where_the_parts_are_equally_wide():
    network = build("mixhop", FEATURES, CLASSES, num_layers=1, unit_features=False).eval()
    x = features()
    layer = MixHopConv(FEATURES, CLASSES, powers=[0, 1, 2], bias=False)
    maps = network.linears[0].weight.t().split(CLASSES)
    copy(*zip((linear.weight for linear in layer.lins), maps, strict=True))
    expected = layer(x, UNDIRECTED).view(NODES, 3, CLASSES).mean(1)  # the scores start equal
    torch.testing.assert_close(network(x, network.prepare(ARCS, NODES)), expected)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_features_have_length_one_after_dropout(kind):
    x = features()
    x[3] = 0
    layer = UnitFeatureLinear(FEATURES, FEATURES, bias=False, dropout=0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(FEATURES))
    with randomness(epoch_key(torch.tensor(3), torch.tensor(0))):
        output = layer(x if kind == "dense" else SparseFeatures(x)).detach()
    kept = output != 0
    assert 0 < int(kept.sum()) < int((x != 0).sum())
    for row, survived, before in zip(output, kept, x, strict=True):
        if survived.any():
            expected = before[survived] / before[survived].square().sum().sqrt()
            torch.testing.assert_close(row[survived], expected)


def test_the_width_is_divided_evenly_and_evaluation_has_no_running_statistics():
    network = build("mixhop", FEATURES, CLASSES)
    assert network.widths == [[21, 21, 22], [CLASSES] * 3]
    names = {name.rpartition(".")[2] for name, _ in network.named_buffers()}
    assert names == {"rate"}  # of dropout; no averages
    assert network.norms[0].weight is None
