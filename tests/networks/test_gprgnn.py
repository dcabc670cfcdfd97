"""GPRGNN against powers of a dense matrix, and against PyTorch Geometric's APPNP."""

import pytest
import torch
from torch_geometric.nn import APPNP

from memohop import build
from memohop.nn import epoch_key, randomness
from numerics import seeded
from six_nodes import ARCS, CLASSES, FEATURES, NODES, UNDIRECTED, dense

pytestmark = pytest.mark.usefixtures("float64")


def network_and_decision(**options):
    network, x = build("gprgnn", FEATURES, CLASSES, **options), torch.rand(NODES, FEATURES)
    with torch.no_grad():
        network.input.bias.normal_()
        network.output.bias.normal_()
    hidden = (x @ network.input.weight + network.input.bias).clamp(min=0)
    return network, x, hidden @ network.output.weight.t() + network.output.bias


def test_gprgnn_equals_a_sum_of_powers_of_a_dense_matrix():
    network, x, decision = network_and_decision(hops=4)
    adjacency = dense(loops=True, norm="symmetric")
    with torch.no_grad():
        network.coefficients.normal_()
    expected = sum(
        network.coefficients[power] * torch.linalg.matrix_power(adjacency, power) @ decision
        for power in range(5)
    )
    torch.testing.assert_close(network.eval()(x, network.prepare(ARCS, NODES)), expected)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_it_starts_as_appnp(alpha):
    network, x, decision = network_and_decision(alpha=alpha)
    expected = APPNP(10, alpha)(decision, UNDIRECTED)
    torch.testing.assert_close(network.eval()(x, network.prepare(ARCS, NODES)), expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"alpha": 0.1}, [0.1, 0.09, 0.081, 0.729]),
        ({"alpha": 1.0}, [1.0, 0, 0, 0]),
        ({"alpha": 0.0}, [0, 0, 0, 1.0]),
        ({"init": "sgc"}, [0, 0, 0, 1.0]),
        ({"init": "nppr", "alpha": 0.5}, [8 / 15, 4 / 15, 2 / 15, 1 / 15]),
        ({"init": "nppr", "alpha": -0.5}, [8 / 15, -4 / 15, 2 / 15, -1 / 15]),
    ],
)
def test_how_the_coefficients_start(options, expected):
    network = build("gprgnn", FEATURES, CLASSES, hops=3, **options)
    torch.testing.assert_close(network.coefficients.detach(), torch.tensor(expected))


def test_random_coefficients_come_from_the_seed_of_the_network():
    networks = []
    for seed in (0, 0, 1):
        torch.manual_seed(seeded(seed))
        networks.append(build("gprgnn", FEATURES, CLASSES, init="random").coefficients.detach())
    assert torch.equal(networks[0], networks[1])
    assert not torch.equal(networks[0], networks[2])
    assert float(networks[0].abs().sum()) == pytest.approx(1)
    assert networks[0].min() < 0 < networks[0].max()


def test_dropout_comes_between_the_decision_and_the_steps():
    network, x, decision = network_and_decision(
        hops=1, init="sgc", dropout=0.0, input_dropout=0.0, self_loops="keep"
    )
    graph = network.prepare(torch.stack([torch.arange(NODES)] * 2), NODES)  # each to itself
    with randomness(epoch_key(torch.tensor(1), torch.tensor(0))):
        logits = network.train()(x, graph)
    dropped = logits == 0
    assert 0 < int(dropped.sum()) < dropped.numel()
    torch.testing.assert_close(logits[~dropped], 2 * decision[~dropped])


def test_weight_decay_spares_the_coefficients_alone():
    network = build("gprgnn", FEATURES, CLASSES)
    spared = [name for name, _ in network.named_parameters() if name.startswith(network.undecayed)]
    assert spared == ["coefficients"]
