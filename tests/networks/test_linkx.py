"""LINKX against PyG's, and the one graph that it knows."""

import pytest
import torch
from torch_geometric.nn import LINKX

import memohop
from memohop import Member, UsageError, build, train
from memohop.networks.registry import entry
from six_nodes import ARCS, CLASSES, FEATURES, NODES, UNDIRECTED, copy

pytestmark = pytest.mark.usefixtures("float64")

WIDTH = 8


def pairs_of(layers, pyg_norms, pyg_linears):
    for ours, theirs in zip(layers.norms, pyg_norms, strict=True):
        norm = theirs.module if hasattr(theirs, "module") else theirs
        yield from ((norm.weight, ours.weight), (norm.bias, ours.bias))
    for ours, theirs in zip(layers.linears, pyg_linears, strict=True):
        yield from ((theirs.weight, ours.weight), (theirs.bias, ours.bias))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("edge_layers", "node_layers", "num_layers"), [(1, 1, 1), (2, 2, 3)])
def test_it_equals_pyg(edge_layers, node_layers, num_layers, training):
    network = build(
        "linkx", FEATURES, CLASSES, num_nodes=NODES, hidden_channels=WIDTH, dropout=0.0,
        edge_layers=edge_layers, node_layers=node_layers, num_layers=num_layers,
    ).train(training)  # fmt: skip
    pyg = LINKX(
        NODES, FEATURES, WIDTH, CLASSES, num_layers, edge_layers, node_layers, dropout=0.0
    ).train(training)
    for_neighbours, for_features = network.combine.weight.chunk(2, dim=1)
    pairs = [
        (pyg.edge_lin.weight, network.neighbours.weight),
        (pyg.edge_lin.bias, network.neighbours.bias),
        (pyg.cat_lin1.weight, for_neighbours),
        (pyg.cat_lin1.bias, network.combine.bias),
        (pyg.cat_lin2.weight, for_features),
        (pyg.cat_lin2.bias, torch.zeros(WIDTH)),
        (pyg.node_mlp.lins[0].weight, network.features.weight.t()),
        (pyg.node_mlp.lins[0].bias, network.features.bias),
        (pyg.final_mlp.lins[0].weight, network.decide.weight),
        (pyg.final_mlp.lins[0].bias, network.decide.bias),
        *pairs_of(network.later, pyg.final_mlp.norms, pyg.final_mlp.lins[1:]),
        *pairs_of(network.later_features, pyg.node_mlp.norms, pyg.node_mlp.lins[1:]),
    ]
    if edge_layers > 1:
        pairs += pairs_of(network.later_neighbours, [pyg.edge_norm], pyg.edge_mlp.lins)
    copy(*pairs)
    x = torch.rand(NODES, FEATURES)
    logits = network(x, network.prepare(ARCS, NODES))
    torch.testing.assert_close(logits, pyg(x, UNDIRECTED))


def test_it_knows_no_other_graph_than_its_own():
    network = build("linkx", FEATURES, CLASSES, num_nodes=NODES)
    with pytest.raises(
        UsageError, match=r"built for num_nodes=6, and the graph has 7: .* gcn[+]mmp"
    ):
        network.prepare(ARCS, 7)


def test_the_number_of_nodes_is_not_an_option_and_other_models_do_not_mind_it():
    assert "num_nodes" not in entry("linkx").options()
    assert build("gcn", FEATURES, CLASSES, num_nodes=NODES)
    with pytest.raises(UsageError, match="num_nodes=0 is too small"):
        build("linkx", FEATURES, CLASSES, num_nodes=0)


def test_the_trainer_fills_in_the_number_of_nodes():
    data = memohop.load("csbm", nodes=60, classes=3, channels=8)
    data.x = data.x.double()
    (result,) = train(data, "linkx", [Member()], epochs=2)
    assert result.epochs == 2
