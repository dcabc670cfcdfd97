"""Known labels in the memory and rows of the adjacency matrix, against slow second computations."""

import pytest
import torch

from memohop import UsageError, build, models
from numerics import generator

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3, 4], [1, 0, 2, 0, 2, 1, 4]])  # 5 is alone, 4 has a loop
NODES, FEATURES, CLASSES, WIDTH = 6, 5, 3, 8
KNOWN = torch.tensor([2, -1, 0, 0, -1, 1])
BACKBONES = [name for name in models() if name.endswith("+mmp")]


def network_of(name="gcn+mmp", labels="memory", address="rows", **options):
    network = build(
        name, FEATURES, CLASSES, num_nodes=NODES, hidden_channels=WIDTH, labels=labels,
        address=address, **options,
    )  # fmt: skip
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator(1))
    return network.eval()


def features(nodes=NODES):
    return torch.rand(nodes, FEATURES, generator=generator())


def logits_of(network, x=None, arcs=ARCS):
    x = features() if x is None else x
    return network(x, network.prepare(arcs, len(x))).logits


def matrix_of(name):
    """Out-neighbours, or either kind; without loops."""
    matrix = torch.zeros(NODES, NODES)
    for u, v in ARCS.T.tolist():
        if u != v:
            matrix[u, v] = 1
            matrix[v, u] = max(matrix[v, u], float(name != "dir-gcn+mmp"))
    return matrix


@torch.no_grad()
@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("labels", ["none", "memory"])
@pytest.mark.parametrize("address", ["none", "rows"])
def test_the_equations_node_by_node(name, labels, address):
    network, x = network_of(name, labels, address), features()
    if labels == "memory":
        network.know(KNOWN)
    hidden, memory = torch.zeros(NODES, WIDTH), torch.zeros(NODES, WIDTH)
    matrix = matrix_of(name)
    for i in range(NODES):
        embedded = x[i] @ network.input.weight + network.input.bias
        if address == "rows":
            embedded = embedded + sum(
                matrix[i, j] * network.address.weight[j] for j in range(NODES)
            )
        hidden[i] = embedded.clamp(min=0)
        memory[i] = hidden[i]
        if labels == "memory" and KNOWN[i] >= 0:
            memory[i] += network.label_map.weight[:, KNOWN[i]]
    graph = network.prepare(ARCS, NODES)
    beside = (hidden,) if name == "gcnii+mmp" else ()
    for mmp in network.rounds:
        message = mmp.conv(memory, graph, *beside)
        seen = torch.cat([hidden, message], dim=1)
        gates = (seen @ mmp.gate.out.weight.T + mmp.gate.out.bias).sigmoid()
        hidden = gates[:, :1] * hidden + gates[:, 1:2] * message
        memory = gates[:, 2:] * message
    expected = hidden @ network.classifier.weight.T + network.classifier.bias
    torch.testing.assert_close(logits_of(network), expected)


def test_the_penalty_of_round_0_sees_that_the_memory_is_not_the_hidden_state():
    network = network_of(address="none", decoupling="paper", dropout=0.0, input_dropout=0.0)
    network.know(KNOWN)
    graph = network.train().prepare(ARCS, NODES)
    hidden = torch.relu(network.input(features()))
    rows = torch.nn.functional.one_hot(KNOWN.clamp(min=0), CLASSES) * (KNOWN >= 0)[:, None]
    memory = hidden + network.label_map(rows.double())
    expected = 0
    for mmp in [None, *network.rounds]:
        if mmp is not None:
            hidden, memory = mmp(hidden, memory, graph)
        expected += torch.nn.functional.cosine_similarity(hidden, memory, eps=1e-6).abs().sum()
    penalty = network(features(), graph).penalty
    torch.testing.assert_close(penalty, expected)
    assert torch.autograd.grad(penalty, network.label_map.weight)[0].abs().max() > 0


@torch.no_grad()
def test_a_label_reaches_the_others_and_not_the_node_itself():
    network = network_of(direction="out", num_layers=1)
    before = logits_of(network)
    network.know(torch.tensor([-1, -1, -1, 1, -1, -1]))  # nobody points to 3
    torch.testing.assert_close(logits_of(network), before, rtol=0, atol=0)
    network.know(torch.tensor([-1, -1, 1, -1, -1, -1]))  # 0 and 1 point to 2
    changed = (logits_of(network) - before).abs().sum(1) > 1e-9
    assert changed.tolist() == [True, True, False, False, False, False]


@torch.no_grad()
def test_what_is_known_is_no_part_of_the_state_and_can_be_forgotten():
    network = network_of()
    before, state = logits_of(network), {**network.state_dict()}
    network.know(KNOWN)
    assert not torch.equal(logits_of(network), before)
    assert network.state_dict().keys() == state.keys()
    assert "known" not in state
    network.know(torch.empty(0, dtype=torch.int64))
    torch.testing.assert_close(logits_of(network), before, rtol=0, atol=0)


@torch.no_grad()
@pytest.mark.parametrize("name", BACKBONES)
def test_rows_and_labels_go_along_with_their_nodes(name):
    network = network_of(name)
    network.know(KNOWN)
    logits = logits_of(network)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    moved = network.on_nodes(order)
    torch.testing.assert_close(
        logits_of(moved, features()[order], order.argsort()[ARCS]), logits[order]
    )
    torch.testing.assert_close(logits_of(network), logits, rtol=0, atol=0)  # which stays as it was


@torch.no_grad()
def test_a_new_node_has_neither_and_hears_of_both():
    network = network_of(direction="out", num_layers=1)
    network.know(KNOWN)
    grown = network.on_nodes(torch.tensor([0, 1, 2, 3, 4, 5, -1]))
    x = features(NODES + 1)
    x[:NODES] = features()
    more = torch.cat([ARCS, torch.tensor([[6], [0]])], dim=1)  # 6 points to 0
    logits = logits_of(grown, x, more)
    torch.testing.assert_close(logits[:NODES], logits_of(network))
    deaf = network.on_nodes(torch.full((NODES + 1,), -1))
    assert (logits_of(deaf, x, more)[6] - logits[6]).abs().max() > 1e-6
    plain = network_of(labels="none", address="none", direction="out", num_layers=1)
    plain.load_state_dict(
        {n: v for n, v in network.state_dict().items() if n in plain.state_dict()}
    )
    torch.testing.assert_close(logits_of(deaf, x, more), logits_of(plain, x, more))


def test_both_are_off_by_default_and_leave_the_other_weights_alone():
    torch.manual_seed(0)
    plain = build("gcn+mmp", FEATURES, CLASSES).state_dict()
    assert not {"label_map.weight", "address.weight"} & plain.keys()
    torch.manual_seed(0)
    both = build(
        "gcn+mmp", FEATURES, CLASSES, labels="memory", address="rows", num_nodes=NODES
    ).state_dict()
    assert both.keys() - plain.keys() == {"label_map.weight", "address.weight"}
    for name, value in plain.items():
        assert torch.equal(both[name], value)


def test_what_cannot_be_is_refused():
    network = network_of()
    with pytest.raises(UsageError, match=r"rows of the address for 6 nodes, .* has 7: .*on_nodes"):
        network.prepare(ARCS, 7)
    network = network_of(address="none")
    network.know(KNOWN[:1])  # must not be spread over all nodes
    with pytest.raises(UsageError, match="known labels for 1 nodes, and the graph has 6"):
        logits_of(network)
    with pytest.raises(UsageError, match="labels go from -1 to 3, and the network has 3 classes"):
        network.know(torch.tensor([3, -1]))
    with pytest.raises(UsageError, match="takes no labels: build it with labels='memory'"):
        network_of(labels="none").know(KNOWN)
