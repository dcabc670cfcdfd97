"""The graph product against a dense matrix built with loops."""

import gc
import itertools
import math
import weakref

import pytest
import torch

from memohop import Graph, UsageError
from memohop.data.arcs import DIRECTIONS, NORMS, SELF_LOOPS

pytestmark = pytest.mark.usefixtures("float64")

# A multi-arc (0 -> 1 twice), an arc each way (1 <-> 2), a loop in the file (2), and two nodes
# without arcs (4, 5).
ARCS = [(0, 1), (0, 1), (1, 2), (2, 1), (2, 2), (0, 3), (3, 2)]
NODES = 6


# The last but one is as good as absent; the sums of some rows are below 1.
WEIGHTS = [0.125, 0.25, 3.0, 0.5, 1.5, 0.0, 0.0625]


def dense(direction: str, self_loops: str, norm: str, weights=None) -> torch.Tensor:
    matrix = [[0.0] * NODES for _ in range(NODES)]
    out = [[0.0] * NODES for _ in range(NODES)]
    for (source, target), weight in zip(ARCS, weights or [1.0] * len(ARCS), strict=True):
        out[source][target] += weight
    for i in range(NODES):
        for j in range(NODES):
            matrix[i][j] = {
                "out": out[i][j],
                "in": out[j][i],
                "both": out[i][j] + out[j][i],
                "undirected": max(out[i][j], out[j][i]),
            }[direction]
            if direction == "undirected" and not weights:
                matrix[i][j] = min(matrix[i][j], 1.0)
        if self_loops != "keep":
            matrix[i][i] = float(self_loops == "add")
    rows = [sum(row) for row in matrix]
    columns = [sum(row[j] for row in matrix) for j in range(NODES)]
    for i, j in itertools.product(range(NODES), repeat=2):
        if matrix[i][j] and norm == "row":
            matrix[i][j] /= rows[i]
        elif matrix[i][j] and norm == "symmetric":
            matrix[i][j] /= math.sqrt(rows[i] * columns[j])
    return torch.tensor(matrix, dtype=torch.float64)


def graph(direction: str, self_loops: str, norm: str, weights=None) -> Graph:
    policies = {"direction": direction, "self_loops": self_loops, "norm": norm}
    given = None if weights is None else torch.tensor(weights)
    made = Graph(torch.tensor(ARCS).t(), NODES, **policies, weights=given)
    return made.to(dtype=torch.float64)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("self_loops", SELF_LOOPS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_product_gradient_and_vmap_equal_the_dense_ones(direction, self_loops, norm, weights):
    policies = (direction, self_loops, norm, weights)
    made, matrix = graph(*policies), dense(*policies)
    hidden = torch.randn(NODES, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(made @ hidden, matrix @ hidden)

    weight = torch.randn(NODES, 3, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((weight * (made @ hidden)).sum(), hidden)
    torch.testing.assert_close(gradient, matrix.t() @ weight)

    members = torch.randn(4, NODES, 2, dtype=torch.float64)
    torch.testing.assert_close(torch.vmap(lambda h: made @ h)(members), matrix @ members)
    last = torch.vmap(lambda h: made @ h, in_dims=2, out_dims=2)(members.permute(1, 2, 0))
    torch.testing.assert_close(last, (matrix @ members).permute(1, 2, 0))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("self_loops", ["keep", "add"])
def test_dropping_arcs_equals_building_the_smaller_graph(self_loops, norm):
    arcs = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 3, 0]])
    policies = {"self_loops": self_loops, "norm": norm}
    whole, hidden = Graph(arcs, 5, direction="out", **policies), torch.randn(5, 3)
    keep = 1 - ((whole.pattern.row == 1) & (whole.pattern.col == 2)).double()
    keep[whole.pattern.row == whole.pattern.col] = 0  # loops stay whatever is said of them
    left = whole.reweighted(keep)
    for direction, reweighted in (("out", left), ("in", left.reversed)):
        smaller = Graph(arcs[:, [0, 1, 3, 4]], 5, direction=direction, **policies)
        torch.testing.assert_close(reweighted @ hidden, smaller @ hidden)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_reversed_graph_is_that_of_the_turned_arcs(direction, norm):
    turned = {"out": "in", "in": "out"}.get(direction, direction)
    made = graph(direction, "keep", norm)
    hidden = torch.randn(NODES, 2, dtype=torch.float64)
    assert made.reversed.direction == turned
    torch.testing.assert_close(made.reversed @ hidden, dense(turned, "keep", norm) @ hidden)


def test_a_graph_without_arcs_and_one_without_nodes():
    none = torch.empty(2, 0, dtype=torch.int64)
    lonely = Graph(none, 3, direction="undirected", norm="row")
    assert torch.equal(lonely @ torch.ones(3, 2), torch.zeros(3, 2))
    empty = Graph(none, 0, direction="out", self_loops="add", norm="symmetric")
    assert (empty @ torch.ones(0, 2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("arcs", "policies", "words"),
    [
        ([[0], [1]], {"direction": "up"}, "direction must be one of out, in, both, undirected"),
        ([[0], [1]], {"direction": "out", "norm": "l2"}, "norm must be one of"),
        ([[0], [1]], {"direction": "out", "self_loops": "yes"}, "self_loops must be one of"),
        ([[0, 1], [1, 7]], {"direction": "out"}, r"edge_index\[:, 1\] is the arc 1 -> 7.*0 to 2"),
        ([[0.0], [1.0]], {"direction": "out"}, "int64 tensor of shape"),
        ([[0], [1]], {}, "direction"),  # which has no default
    ],
)
def test_what_cannot_be_is_refused(arcs, policies, words):
    with pytest.raises((UsageError, TypeError), match=words):
        Graph(torch.tensor(arcs), 3, **policies)


@pytest.mark.parametrize("norm", NORMS)
def test_weights_survive_reversal_and_dropped_arcs(norm):
    made, matrix = graph("out", "add", norm, WEIGHTS), dense("out", "add", norm, WEIGHTS)
    hidden = torch.randn(NODES, 3)
    if norm != "row":  # a mean over rows is none over columns
        torch.testing.assert_close(made.reversed @ hidden, matrix.t() @ hidden)
    whole = made.reweighted(torch.ones(len(made.pattern)))
    torch.testing.assert_close(whole @ hidden, matrix @ hidden)
    first = (made.pattern.row == 0) & (made.pattern.col == 1)
    fewer = [weight if arc != (0, 1) else 0.0 for arc, weight in zip(ARCS, WEIGHTS, strict=True)]
    torch.testing.assert_close(
        made.reweighted((~first).double()) @ hidden, dense("out", "add", norm, fewer) @ hidden
    )


def test_equal_weights_of_1_are_no_weights():
    for policies in itertools.product(("out", "in", "both"), SELF_LOOPS, NORMS):
        plain, weighted = graph(*policies), graph(*policies, [1.0] * len(ARCS))
        assert torch.equal(plain.matrix.values, weighted.matrix.values)


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        (torch.ones(3), r"shape \[3\]"),
        (torch.ones(len(ARCS), dtype=torch.int64), "type torch.int64"),
        (torch.tensor([1.0, -2.0, *[1.0] * 5]), r"edge_weight\[1\] is -2.0"),
        (torch.tensor([*[1.0] * 6, math.nan]), r"edge_weight\[6\] is nan"),
    ],
)
def test_weights_that_cannot_be_right(weights, complaint):
    with pytest.raises(UsageError, match=complaint):
        Graph(torch.tensor(ARCS).t(), NODES, direction="out", weights=weights)


def test_a_graph_that_is_not_needed_any_more_is_gone_without_the_garbage_collector():
    graph = Graph(torch.tensor(ARCS).T, NODES, direction="out", norm="row")
    gate = torch.ones(NODES, 2, requires_grad=True)
    (graph @ gate).sum().backward()
    held = [weakref.ref(value) for value in (graph.matrix.csr, graph.pattern.transpose.row)]
    gc.disable()
    try:
        del graph
        assert [value() for value in held] == [None, None]
    finally:
        gc.enable()


def test_the_transpose_of_the_transpose_is_the_matrix():
    graph = Graph(torch.tensor(ARCS).T, NODES, direction="out", norm="row")
    assert torch.equal(graph.matrix.transpose.transpose.values, graph.matrix.values)
    assert torch.equal(graph.matrix.transpose.csr.to_dense(), graph.matrix.csr.to_dense().T)
