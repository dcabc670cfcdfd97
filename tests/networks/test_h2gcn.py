"""H2GCN against loops over nodes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop import Graph, build
from memohop.networks import h2gcn
from memohop.networks.h2gcn import TwoSteps

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3, 2], [1, 0, 2, 0, 2, 1, 2]])
FEATURES, CLASSES = 5, 3


def neighbourhoods(arcs, nodes, direction):
    """For each node whom one step reaches, and whom two steps reach and no fewer."""
    near = [set() for _ in range(nodes)]
    for source, target in arcs:
        if direction in ("out", "undirected"):
            near[source].add(target)
        if direction in ("in", "undirected"):
            near[target].add(source)
    near = [friends - {node} for node, friends in enumerate(near)]
    far = []
    for node, friends in enumerate(near):
        reached = set().union(*(near[friend] for friend in friends)) if friends else set()
        far.append(reached - friends - {node})
    return near, far


def average(sets, hidden):
    """Row i: the sum over its set of what each sends, divided by the roots of both degrees."""
    sent = [sum(node in friends for friends in sets) for node in range(len(sets))]
    rows = []
    for friends in sets:
        row = torch.zeros(hidden.shape[1])
        for friend in friends:
            row = row + hidden[friend] / (len(friends) * sent[friend]) ** 0.5
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
@pytest.mark.parametrize(("num_layers", "relu"), [(1, True), (2, True), (2, False)])
def test_h2gcn_equals_loops_over_the_nodes(direction, num_layers, relu):
    network = build(
        "h2gcn", FEATURES, CLASSES, hidden_channels=4, num_layers=num_layers, relu=relu,
        direction=direction,
    ).eval()  # fmt: skip
    x = torch.rand(6, FEATURES)
    near, far = neighbourhoods(ARCS.t().tolist(), 6, direction)
    rounds = [x @ network.input.weight]
    if relu:
        rounds = [rounds[0].clamp(min=0)]
    for _ in range(num_layers):
        both = [average(near, rounds[-1]), average(far, rounds[-1])]
        rounds.append(torch.cat(both, dim=1))
    expected = torch.cat(rounds, dim=1) @ network.classifier.weight.t()
    torch.testing.assert_close(network(x, network.prepare(ARCS, 6)), expected)
    assert not any("bias" in name for name, _ in network.named_parameters())


@pytest.mark.parametrize("num_layers", [1, 2])
def test_deciding_before_or_after_the_rounds_is_the_same(num_layers):
    network = build("h2gcn", FEATURES, CLASSES, hidden_channels=4, num_layers=num_layers, dropout=0)
    x, graph = torch.rand(6, FEATURES), network.prepare(ARCS, 6)
    runs = []
    for active in (True, False):  # a rate of 0 that counts as dropout takes the longer way
        network.dropout.active = active
        logits = network.train()(x, graph)
        gradients = torch.autograd.grad(logits.square().sum(), list(network.parameters()))
        runs.append([logits, *gradients])
    torch.testing.assert_close(*runs)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), nodes=st.integers(1, 9))
def test_the_second_neighbourhood_is_strict(data, nodes):
    end = st.integers(0, nodes - 1)
    arcs = data.draw(st.lists(st.tuples(end, end), max_size=20))
    direction = data.draw(st.sampled_from(["out", "in", "undirected"]))
    edge_index = torch.tensor(arcs, dtype=torch.int64).reshape(-1, 2).t()
    graphs = build("h2gcn", 1, 1, direction=direction).prepare(edge_index, nodes)
    for graph, expected in zip(graphs, neighbourhoods(arcs, nodes, direction), strict=True):
        pairs = zip(graph.pattern.row.tolist(), graph.pattern.col.tolist(), strict=True)
        assert set(pairs) == {(node, other) for node in range(nodes) for other in expected[node]}


@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
def test_a_second_neighbourhood_of_single_paths_is_multiplied_step_by_step(direction, monkeypatch):
    monkeypatch.setattr(h2gcn, "_PER_ROW", 0)  # so that it pays on a small graph
    hub = [(0, node) for node in range(1, 30)] + [(node, 0) for node in range(10, 40)]
    arcs = [*hub, (1, 2), (3, 2), (3, 4), (5, 5)]
    near = Graph(torch.tensor(arcs).t(), 40, direction=direction, self_loops="remove")
    far = TwoSteps(near)
    assert far._detour is not None
    hidden, upstream = torch.rand(2, 40, 3)
    leaf, slow_leaf = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    product = far @ leaf
    slow = average(neighbourhoods(arcs, 40, direction)[1], slow_leaf)
    torch.testing.assert_close(product, slow)
    product.backward(upstream)
    slow.backward(upstream)
    torch.testing.assert_close(leaf.grad, slow_leaf.grad)


def test_a_second_neighbourhood_of_many_paths_is_multiplied_as_it_is():
    arcs = torch.ones(30, 30).tril(-3).nonzero().t()
    assert TwoSteps(Graph(arcs, 30, direction="undirected"))._detour is None
