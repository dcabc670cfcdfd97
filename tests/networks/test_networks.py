"""The networks of the paper's table against their equations, plug-ins, and the registry."""

import pytest
import torch
import torch.nn.functional as F

from memohop import UsageError, build, models
from memohop.networks.base import GCN
from memohop.networks.memory import MemoryNetwork
from memohop.nn import epoch_key, randomness
from six_nodes import ARCS, CLASSES, FEATURES, NODES, features, logits_of, made

pytestmark = pytest.mark.usefixtures("float64")


def test_the_registry_lists_the_rows_of_the_table_first():
    plug_ins = ["gcn+jk", "gat+jk", "gcn+de", "gat+de", "gcn+mmp", "gat+mmp"]
    others = {"mixhop", "h2gcn", "gprgnn", "fagcn", "geom-gcn"}
    assert models()[:9] == ["mlp", "gcn", "gat", *plug_ins]
    assert set(models()[9:14]) == others
    for name in ("gcn", "gat", "sage", "gin", "gatv2", "dir-gcn", "gcnii"):
        assert {name, f"{name}+jk", f"{name}+de", f"{name}+mmp"} <= set(models())


@pytest.mark.parametrize("options", [{}, {"relu": False, "bias": False}])
def test_a_perceptron_is_two_linear_maps(options):
    network, x = made("mlp", **options), features()
    assert any("bias" in name for name, _ in network.named_parameters()) == (not options)
    hidden = x @ network.first.weight + (0 if options else network.first.bias)
    expected = network.later[0](hidden if options else F.relu(hidden))
    torch.testing.assert_close(logits_of(network, x), expected)


@pytest.mark.parametrize("name", ["gcn", "gat", "sage", "gin", "gatv2"])
def test_a_stack_has_an_activation_between_its_convolutions(name):
    network, x = made(name, num_layers=3), features()
    graph, hidden = network.prepare(ARCS, NODES), x
    activation = F.elu if name.startswith("gat") else F.relu
    for number, conv in enumerate(network.convs):
        hidden = conv(activation(hidden) if number else x, graph)
    assert hidden.shape == (NODES, CLASSES)
    torch.testing.assert_close(network(x, graph), hidden)


@pytest.mark.parametrize("name", [name for name in models() if name.endswith("+jk")])
def test_jumping_knowledge_has_a_branch_without_the_graph(name):
    network, x = made(name), features()
    graph = network.prepare(ARCS, NODES)
    activation = F.elu if name.startswith("gat") else F.relu
    h0 = F.relu(network.input(x))
    beside = (h0,) if name == "gcnii+jk" else ()
    h1 = activation(network.convs[0](h0, graph, *beside))
    h2 = activation(network.convs[1](h1, graph, *beside))
    expected = network.classifier(torch.cat([h0, h1, h2], dim=-1))
    torch.testing.assert_close(network(x, graph), expected)


@pytest.mark.parametrize("name", [name for name in models() if name.endswith("+de")])
def test_drop_edge_trains_on_a_smaller_graph_and_evaluates_on_the_whole(name):
    network, x = build(name, FEATURES, CLASSES, dropout=0.0, input_dropout=0.0), features()
    graph = network.prepare(ARCS, NODES)
    with randomness(epoch_key(torch.tensor(4), torch.tensor(0))):
        dropped = network(x, graph)
    with randomness(epoch_key(torch.tensor(4), torch.tensor(0))):
        mask = network.drop_edge.dropout.mask((len(graph.pattern),), graph.weight)
    between = graph.pattern.row != graph.pattern.col
    kept = (mask > 0) & between
    assert 0 < int(kept.sum()) < int(between.sum())
    smaller = torch.stack([graph.pattern.row[kept], graph.pattern.col[kept]]).long()
    plain = build(name.removesuffix("+de"), FEATURES, CLASSES, direction="out")
    plain.load_state_dict(network.state_dict(), strict=False)
    torch.testing.assert_close(dropped, plain.eval()(x, plain.prepare(smaller, NODES)))
    whole = build(name.removesuffix("+de"), FEATURES, CLASSES)
    whole.load_state_dict(network.state_dict(), strict=False)
    torch.testing.assert_close(network.eval()(x, graph), whole.eval()(x, graph))


@pytest.mark.parametrize("form", ["mean", "paper", "official"])
def test_memory_network_equals_the_method_as_pinned_down(form):
    network = build(
        "gcn+mmp", FEATURES, CLASSES, dropout=0.0, input_dropout=0.0, decoupling=form,
        direction="out",
    )  # fmt: skip
    x = features()
    adjacency = torch.zeros(NODES, NODES)
    adjacency[ARCS[0], ARCS[1]] = 1
    adjacency /= adjacency.sum(1, keepdim=True).clamp(min=1)
    gate = network.rounds[0].gate
    assert network.rounds[1].gate is gate
    hidden = memory = F.relu(network.input(x))
    cosines, gates = [F.cosine_similarity(hidden, memory)], []
    for mmp in network.rounds:
        message = adjacency @ memory @ mmp.conv.linear.weight.t() + mmp.conv.bias
        a_h, a_m, a_c = gate.out(torch.cat([hidden, message], -1)).sigmoid().split(1, dim=-1)
        hidden, memory = a_h * hidden + a_m * message, a_c * message
        cosines.append(F.cosine_similarity(hidden, memory))
        gates.append(torch.cat([a_h, a_m, a_c], dim=-1))
    expected = {
        "mean": torch.stack(cosines[1:]).abs().mean(),
        "paper": torch.stack(cosines).abs().sum(),
        "official": torch.stack(cosines[1:]).mean(1).abs().sum(),
    }[form]
    graph = network.prepare(ARCS, NODES)
    logits, penalty = network(x, graph)
    torch.testing.assert_close(logits, network.classifier(hidden))
    torch.testing.assert_close(penalty, expected)
    torch.testing.assert_close(network.gates(x, graph), torch.stack(gates))
    assert network.penalty_is_summed == (form == "paper")
    assert network.eval()(x, graph).penalty is None


def test_options_of_the_memory_network():
    network = build(
        "gcn+mmp", FEATURES, CLASSES, num_layers=3, gate="gru", gate_sharing="layer",
        per="channel", memory_from="hidden", message_norm="layer", readout="jumping",
        classifier_dropout=True, hidden_channels=8,
    ).eval()  # fmt: skip
    graph, x = network.prepare(ARCS, NODES), features()
    assert len({id(mmp.gate) for mmp in network.rounds}) == 3
    assert network.classifier.in_features == 4 * 8
    message = network.rounds[0].conv(F.relu(network.input(x)), graph)
    assert float(message.detach().mean(-1).abs().max()) < 1e-5  # layer-normalised
    assert network.gates(x, graph).shape == (3, NODES, 3)


@pytest.mark.parametrize("name", ["gcn", "gat", "gcn+mmp", "gat+mmp"])
def test_direction_matters_on_a_directed_graph(name):
    out = build(name, FEATURES, CLASSES, direction="out").eval()
    into = build(name, FEATURES, CLASSES, direction="in").eval()
    into.load_state_dict(out.state_dict())
    x = features()
    torch.testing.assert_close(logits_of(out, x, ARCS), logits_of(into, x, ARCS.flip(0)))
    assert not torch.allclose(logits_of(out, x, ARCS), logits_of(into, x, ARCS))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gcn+mpm", {}), "no model named 'gcn\\+mpm'; did you mean gcn\\+mmp"),
        (("gcn", {"heads": 2}), "gcn has no option 'heads'; it has bias"),
        (("linkx", {}), "linkx has weights for each node: pass num_nodes"),
        (("fsgnn", {"self_loops": "add"}), "fsgnn has no option 'self_loops'"),
        (("gcn-res", {"bias": False}), "gcn-res has no option 'bias'"),
        (("mixhop", {"hidden_channels": 2}), "hidden_channels=2 is divided among 3 powers"),
        (("gprgnn", {"init": "nppr", "alpha": -2}), "alpha=-2 is out of range; .* from -1 to 1"),
        (("gcn+mmp", {"address": "rows"}), r"address='rows' .* pass num_nodes"),
        (("sage+mmp", {"init": "released"}), r"gcn\+mmp and gat\+mmp alone"),
    ],
)
def test_bad_requests_are_refused(arguments, words):
    name, options = arguments
    with pytest.raises(UsageError, match=words):
        build(name, FEATURES, CLASSES, **options)


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
    before = network(x, network.prepare(ARCS, NODES)).logits
    x[3] += 1  # 3 points to 1, and nobody to 3
    changed = (network(x, network.prepare(ARCS, NODES)).logits - before).abs().sum(1) > 1e-6
    assert changed.tolist() == [False, False, False, True, False, False]
