"""Attributes of arcs in convolutions, against loops, dense products and PyG's layers."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch_geometric.nn import GATv2Conv, RGCNConv

from memohop import MMP, Graph, UsageError
from memohop.data.arcs import DIRECTIONS, NORMS, SELF_LOOPS
from memohop.nn import (
    ArcWeightConv,
    DynamicGraphAttention,
    GraphConv,
    RelationConv,
    SageConv,
    SparseFeatures,
)
from numerics import generator, seeded
from six_nodes import copy

pytestmark = pytest.mark.usefixtures("float64")

# A multi-arc (0 -> 1 twice), an arc each way (1 <-> 2), a loop (2), and nodes without arcs (4, 5).
ARCS = [(0, 1), (0, 1), (1, 2), (2, 1), (2, 2), (0, 3), (3, 2)]
NODES, CHANNELS = 6, 3
RELATIONS = [0, 2]
COLUMNS = torch.tensor(
    [[1, -0.5, 0], [0, 0.25, 1], [1, 2, 1], [0, -1, 0.5], [1, 0.75, 1], [0, 3, 0], [1, -2, 0.25]]
)
WEIGHTS = [0.5, 0.25, 3.0, 0.5, 1.5, 0.0, 2.0]

every_policy = pytest.mark.parametrize(
    ("direction", "self_loops", "norm"), [*itertools.product(DIRECTIONS, SELF_LOOPS, NORMS)]
)
weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])


def graph(direction="in", self_loops="remove", norm="row", *, weights=None, relations=RELATIONS):
    arcs = torch.tensor(ARCS).t()
    weights = None if weights is None else torch.tensor(weights)
    policies = {"direction": direction, "self_loops": self_loops, "norm": norm}
    plain = Graph(arcs, NODES, **policies, weights=weights).to(dtype=torch.float64)
    return plain.with_attributes(arcs, COLUMNS.double(), relations=relations, weights=weights)


def full(made):
    """The matrix of a graph, dense."""
    return made.matrix.csr.to_dense()


def attributes(self_loops, weights):
    """The columns of the arcs from each node to each other one, and then of those to it."""
    sums = torch.zeros(NODES, NODES, 1 + CHANNELS)
    for (source, target), column, weight in zip(ARCS, COLUMNS, weights or [1] * 7, strict=True):
        if weight and (source != target or self_loops == "keep"):
            sums[source, target, 0] += 1
            sums[source, target, 1:] += column
    means = sums / sums[..., :1].clamp(min=1)
    return torch.cat([means, means.transpose(0, 1)], dim=-1)


def relation_matrices(self_loops, norm, weights):
    """For each relation the arcs from a node, then for each those to it; each normalised."""
    out = torch.zeros(len(RELATIONS), NODES, NODES)
    for (source, target), column, weight in zip(ARCS, COLUMNS, weights or [1] * 7, strict=True):
        if source != target or self_loops == "keep":
            out[:, source, target] += weight * column[RELATIONS]
    both = torch.cat([out, out.mT])
    of_rows, of_columns = both.sum(2, keepdim=True), both.sum(1, keepdim=True)
    by = {"none": torch.ones(()), "row": of_rows, "symmetric": (of_rows * of_columns).sqrt()}
    return torch.where(both > 0, both / by[norm], 0.0)


def started(module):
    """With other parameters than those it starts with."""
    draws = generator(7)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws))
    return module


def by_autograd(module, hidden, *others):
    """Results and gradients in the input and in all parameters."""
    hidden = hidden.clone().requires_grad_()
    output = module(hidden, *others)
    inputs = [hidden, *module.parameters()]
    weight = torch.arange(output.numel()).cos().view_as(output)
    return output, *torch.autograd.grad((weight * output).sum(), inputs)


class Dense(nn.Module):
    """The same parameters, and the equations with dense matrices."""

    def __init__(self, layer, equation):
        super().__init__()
        self.layer, self.equation = layer, equation

    def forward(self, hidden):
        return self.equation(self.layer, hidden)


def assert_equations(layer, equation, made):
    started(layer)
    hidden = torch.randn(NODES, 4, generator=generator())
    torch.testing.assert_close(
        by_autograd(layer, hidden, made), by_autograd(Dense(layer, equation), hidden)
    )


@weighted
@every_policy
def test_weights_of_arcs_equal_the_dense_equation(direction, self_loops, norm, weights):
    made = graph(direction, self_loops, norm, weights=weights)
    matrix, columns = full(made), attributes(self_loops, weights)

    def equation(layer, hidden):
        factors = 2 / (1 + (-10 * columns @ layer.theta).exp())
        return (factors * matrix) @ hidden @ layer.conv.linear.weight.t() + layer.conv.bias

    assert_equations(ArcWeightConv(GraphConv(4, 5), CHANNELS), equation, made)


@weighted
@every_policy
def test_relations_equal_the_dense_equation(direction, self_loops, norm, weights):
    made = graph(direction, self_loops, norm, weights=weights)
    related = relation_matrices(self_loops, norm, weights)

    def equation(layer, hidden):
        of_self, of_mean = layer.conv.linear.weight.chunk(2)
        plain = hidden @ of_self.t() + full(made) @ hidden @ of_mean.t() + layer.conv.bias
        maps = layer.linear.weight.chunk(len(related))
        return plain + sum(
            matrix @ hidden @ of_relation.t()
            for matrix, of_relation in zip(related, maps, strict=True)
        )

    layer = RelationConv(SageConv(4, 5), 4, 5, relations=len(RELATIONS))
    assert_equations(layer, equation, made)


@pytest.mark.parametrize("self_loops", SELF_LOOPS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_attention_equals_the_dense_equation(direction, self_loops):
    made, columns = graph(direction, self_loops, "none"), attributes(self_loops, None)
    there = full(made) > 0

    def equation(layer, hidden):
        receive, send = (
            part.unflatten(-1, (2, 3)) for part in (hidden @ layer.linear.weight.t()).chunk(2, -1)
        )
        of_arcs = torch.einsum("ijc,hcd->ijhd", columns, layer.edge_map)
        sums = F.leaky_relu(receive[:, None] + send[None] + of_arcs, 0.2)
        powers = (sums * layer.score).sum(-1).exp() * there[..., None]
        weights = powers / powers.sum(1, keepdim=True).clamp(min=1e-30)
        return torch.einsum("ijh,jhd->ihd", weights, send).flatten(1) + layer.bias

    assert_equations(DynamicGraphAttention(4, 6, heads=2, arc_attributes=CHANNELS), equation, made)


SINGLE = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])


def test_attention_equals_pyg():
    columns = torch.randn(6, CHANNELS, generator=generator())
    made = Graph(SINGLE, 5, direction="in").with_attributes(SINGLE, columns)
    ours = started(DynamicGraphAttention(3, 6, heads=2, arc_attributes=CHANNELS))
    pyg = GATv2Conv(3, 3, heads=2, edge_dim=CHANNELS, add_self_loops=False)
    receive, send = ours.linear.weight.chunk(2)
    copy((pyg.lin_r.weight, receive), (pyg.lin_l.weight, send), (pyg.att, ours.score[None]))
    copy((pyg.lin_r.bias, torch.zeros(6)), (pyg.lin_l.bias, torch.zeros(6)), (pyg.bias, ours.bias))
    with torch.no_grad():  # of x_ij it knows the columns of the arc to i alone
        ours.edge_map[:, : 2 + CHANNELS] = 0
    copy((pyg.lin_edge.weight, ours.edge_map[:, 2 + CHANNELS :].transpose(1, 2).flatten(0, 1)))
    hidden = torch.randn(5, 3, generator=generator(1))
    torch.testing.assert_close(ours(hidden, made), pyg(hidden, SINGLE, columns))


def test_relations_equal_relational_gcn():
    kind = torch.tensor([0, 1, 2, 1, 0, 2])
    made = Graph(SINGLE, 5, direction="in", norm="row")
    made = made.with_attributes(SINGLE, F.one_hot(kind).double(), relations=range(3))
    pyg = started(RGCNConv(3, 4, 3))

    def own(hidden, _):
        return hidden @ pyg.root + pyg.bias

    ours = RelationConv(own, 3, 4, relations=3)
    with torch.no_grad():  # which knows the arcs to a node alone
        ours.linear.weight[12:] = pyg.weight.transpose(1, 2).flatten(0, 1)
    hidden = torch.randn(5, 3, generator=generator())
    torch.testing.assert_close(ours(hidden, made), pyg(hidden, SINGLE, kind))


LAYERS = {
    "weights": lambda: ArcWeightConv(GraphConv(4, 4), CHANNELS),
    "relations": lambda: RelationConv(GraphConv(4, 4), 4, 4, relations=len(RELATIONS)),
    "attention": lambda: DynamicGraphAttention(4, 4, heads=2, arc_attributes=CHANNELS),
}
PLAIN = {
    "weights": lambda: GraphConv(4, 4),
    "relations": lambda: GraphConv(4, 4),
    "attention": lambda: DynamicGraphAttention(4, 4, heads=2),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


@every_layer
def test_training_begins_at_the_layer_without_columns(name):
    made, hidden = graph(), torch.randn(NODES, 4)
    layers = []
    for kinds in (LAYERS, PLAIN):
        torch.manual_seed(seeded())
        layers.append(kinds[name]())
        after = torch.rand(3)
    torch.manual_seed(seeded())
    LAYERS[name]()
    assert torch.equal(after, torch.rand(3))  # nothing else was drawn
    with_columns, without = (layer(hidden, made) for layer in layers)
    torch.testing.assert_close(with_columns, without)
    with_columns.square().sum().backward()
    (new,) = (
        parameter.grad
        for key, parameter in layers[0].named_parameters()
        if key in ("theta", "linear.weight", "edge_map") and not parameter.any()
    )
    assert new.any()  # from there it learns


@every_layer
def test_arcs_may_come_in_any_order(name):
    layer, hidden = started(LAYERS[name]()), torch.randn(NODES, 4)
    order = torch.randperm(len(ARCS), generator=generator())
    arcs = torch.tensor(ARCS).t()[:, order]
    other = Graph(arcs, NODES, direction="in", self_loops="remove", norm="row")
    other = other.with_attributes(arcs, COLUMNS[order], relations=RELATIONS)
    torch.testing.assert_close(layer(hidden, other), layer(hidden, graph()))


@every_layer
def test_a_graph_without_arcs(name):
    none = torch.empty(2, 0, dtype=torch.int64)
    alone = Graph(none, 3, direction="undirected", norm="row")
    alone = alone.with_attributes(none, torch.empty(0, CHANNELS), relations=RELATIONS)
    output = started(LAYERS[name]())(torch.randn(3, 4), alone)
    assert output.shape == (3, 4)
    assert output.isfinite().all()


@every_layer
def test_memory_is_passed_on_by_the_layer_unchanged(name):
    layer, made = started(LAYERS[name]()), graph()
    mmp, (hidden, memory) = MMP(layer, 4), torch.randn(2, NODES, 4)
    message = layer(memory, made)
    gates = mmp.gate(hidden, message)
    expected = gates[0] * hidden + gates[1] * message, gates[2] * message
    torch.testing.assert_close(mmp(hidden, memory, made), expected)


@every_layer
def test_all_derivatives_alone_and_in_company(name, check_derivatives):
    """Of the fast path, against the same layer of dense products."""
    made, layer = graph("undirected", "add", "row"), LAYERS[name]()
    names = [key for key, _ in layer.named_parameters()]
    columns, matrix = attributes("add", None), full(made)
    related = relation_matrices("add", "row", None)

    def ours(hidden, *parameters):
        return functional_call(layer, dict(zip(names, parameters, strict=True)), (hidden, made))

    def dense(hidden, *parameters):
        given = dict(zip(names, parameters, strict=True))
        if name == "weights":
            factors = 2 / (1 + (-10 * columns @ given["theta"]).exp())
            mapped = hidden @ given["conv.linear.weight"].mT
            return (factors * matrix) @ mapped + given["conv.bias"]
        if name == "relations":
            plain = matrix @ hidden @ given["conv.linear.weight"].mT + given["conv.bias"]
            maps = given["linear.weight"].unflatten(0, (len(related), 4))
            return plain + (related @ (hidden @ maps.mT)).sum(0)
        receive, send = (hidden @ given["linear.weight"].mT).chunk(2, -1)
        ends = receive.unflatten(-1, (2, 2))[:, None] + send.unflatten(-1, (2, 2))[None]
        of_arcs = torch.einsum("ijc,hcd->ijhd", columns, given["edge_map"])
        scores = (F.leaky_relu(ends + of_arcs, 0.2) * given["score"]).sum(-1)
        powers = scores.exp() * (matrix > 0)[..., None]
        weights = powers / powers.sum(1, keepdim=True)
        collected = torch.einsum("ijh,jhd->ihd", weights, send.unflatten(-1, (2, 2)))
        return collected.flatten(1) + given["bias"]

    shapes = [(NODES, 4), *(parameter.shape for parameter in layer.parameters())]
    inputs = [torch.randn(*shape, generator=generator(k)) for k, shape in enumerate(shapes)]
    check_derivatives(ours, dense, inputs)


def test_sparse_features_and_dropped_arcs():
    made, x = graph("out", "keep"), torch.eye(NODES)
    layer = started(
        RelationConv(GraphConv(NODES, 2, features=True), NODES, 2, relations=2, features=True)
    )
    torch.testing.assert_close(layer(SparseFeatures(x), made), layer(x, made))
    keep = (made.pattern.col != 3).double()
    layer, hidden = started(LAYERS["weights"]()), torch.randn(NODES, 4)
    kept = [place for place, (_, target) in enumerate(ARCS) if target != 3]
    arcs = torch.tensor(ARCS)[kept].t()
    fewer = Graph(arcs, NODES, direction="out", norm="row").with_attributes(arcs, COLUMNS[kept])
    torch.testing.assert_close(layer(hidden, made.reweighted(keep)), layer(hidden, fewer))
    with pytest.raises(UsageError, match="cannot be dropped: leave out edge_dropout"):
        LAYERS["relations"]()(hidden, made.reweighted(keep))


def test_the_reversed_and_the_moved_graph_have_the_same_columns():
    made = graph("out")
    turned = made.turned(made.entry_attributes.t()).t()
    torch.testing.assert_close(made.reversed.entry_attributes, turned.roll(1 + CHANNELS, dims=1))
    assert made.to(dtype=torch.float32).entry_attributes.dtype == torch.float32


@pytest.mark.parametrize(
    ("columns", "relations", "words"),
    [
        (COLUMNS[:3], (), r"shape \[3, 3\] .*; give numbers of shape \[7, attributes\]"),
        (COLUMNS[None], (), r"shape \[1, 7, 3\]"),
        (COLUMNS / 0, (), "holds NaN, infinite or complex values; give finite numbers"),
        (COLUMNS, [1], "relations has 1; give numbers of attributes from 0 to 2 that are above 0"),
        (COLUMNS, [3], "relations has 3; give numbers of attributes from 0 to 2"),
    ],
)
def test_attributes_that_cannot_be_are_refused(columns, relations, words):
    arcs = torch.tensor(ARCS).t()
    with pytest.raises(UsageError, match=words):
        Graph(arcs, NODES, direction="out").with_attributes(arcs, columns, relations=relations)


@every_layer
def test_graphs_with_other_columns_are_refused(name):
    layer, arcs = LAYERS[name](), torch.tensor(ARCS).t()
    plain = Graph(arcs, NODES, direction="out")
    for other in (plain, plain.with_attributes(arcs, COLUMNS[:, :1], relations=[0])):
        with pytest.raises(UsageError, match=r"and the graph has .* with Graph.with_attributes"):
            layer(torch.randn(NODES, 4), other)
