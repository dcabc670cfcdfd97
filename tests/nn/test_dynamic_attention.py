"""GATv2's attention against PyG's, against loops, and its gradients."""

import math

import pytest
import torch
from torch.func import grad, vmap
from torch_geometric.nn import GATv2Conv

from memohop import Graph
from memohop.nn import DynamicGraphAttention
from memohop.nn._ops import attention
from memohop.nn._ops.attention import attend_dynamically
from memohop.nn._ops.pattern import Pattern
from numerics import generator

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
NODES = 5
PATTERN = Pattern(torch.tensor([0, 0, 1, 3]), torch.tensor([1, 2, 0, 3]), (4, 4))


def vectors(*shape, dtype=torch.float64):
    numbers = generator()
    return [torch.randn(s, dtype=dtype, generator=numbers) for s in shape]


@pytest.mark.parametrize("concat", [True, False])
def test_the_layer_equals_pyg(concat):
    conv = DynamicGraphAttention(3, 6, heads=2, concat=concat, bias=False)
    pyg = GATv2Conv(3, conv.width, heads=2, concat=concat, bias=False)
    with torch.no_grad():
        receive, send = conv.linear.weight.chunk(2)
        pyg.lin_r.weight.copy_(receive)
        pyg.lin_l.weight.copy_(send)
        pyg.att.copy_(conv.score[None])
    hidden = torch.randn(NODES, 3)
    graph = Graph(ARCS, NODES, direction="in", self_loops="add")
    torch.testing.assert_close(conv(hidden, graph), pyg(hidden, ARCS))


def test_weights_equal_a_loop_over_rows():
    receive, send, score = vectors((2, 4, 3), (2, 4, 3), (2, 3))
    keep = torch.tensor([1.0, 1.0, 0.0, 1.0])
    found = attend_dynamically(receive, send, score, PATTERN, negative_slope=0.2, keep=keep)
    for head in range(2):
        powers = []
        for i, j in ((0, 1), (0, 2)):
            sums = [float(receive[head, i, d] + send[head, j, d]) for d in range(3)]
            rectified = [s if s > 0 else 0.2 * s for s in sums]
            powers.append(math.exp(sum(float(score[head, d]) * rectified[d] for d in range(3))))
        expected = [power / sum(powers) for power in powers] + [0.0, 1.0]
        assert found[head].tolist() == pytest.approx(expected, rel=1e-9)


def test_gradients():
    inputs = [v.requires_grad_() for v in vectors((2, 4, 3), (2, 4, 3), (2, 3))]

    def weights(receive, send, score):
        return attend_dynamically(receive, send, score, PATTERN, negative_slope=0.2)

    assert torch.autograd.gradcheck(weights, inputs)


def test_a_row_on_one_side_of_the_kink_has_exactly_no_gradient_in_its_receiver():
    pattern = Pattern(torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 1, 2]), (3, 3))
    receive = torch.tensor([[[9, -9], [-9, 9], [0, 0]]], dtype=torch.float32, requires_grad=True)
    _, send, score, of_weights = vectors((1,), (1, 3, 2), (1, 2), (5,), dtype=torch.float32)
    send.requires_grad_()
    weights = attend_dynamically(receive, send, score, pattern, negative_slope=0.2)
    of_receive, of_send = torch.autograd.grad((weights * of_weights).sum(), (receive, send))
    assert torch.equal(of_receive, torch.zeros(1, 3, 2))
    assert (of_send != 0).all()


def test_a_population_equals_its_members_both_ways():
    inputs = vectors((5, 2, 4, 3), (5, 2, 4, 3), (5, 2, 3), (5, 2, 4))

    def loss(receive, send, score, of_weights):
        weights = attend_dynamically(receive, send, score, PATTERN, negative_slope=0.2)
        return (weights * of_weights).sum()

    together = vmap(grad(loss, (0, 1, 2)))(*inputs)
    alone = [grad(loss, (0, 1, 2))(*member) for member in zip(*inputs, strict=True)]
    for one, several in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(one, torch.stack(several))


@pytest.mark.parametrize(("bound", "at_once"), [(1, 1), (66, 3), (10**6, 28)])
def test_vectors_per_arc_stay_within_the_bound(bound, at_once, monkeypatch):
    conv, hidden = DynamicGraphAttention(3, 8, heads=4), torch.randn(7, NODES, 3)
    graph = Graph(ARCS, NODES, direction="in", self_loops="add")
    expected = vmap(lambda h: conv(h, graph))(hidden)
    seen = []
    sums = attention._sums

    def spy(*inputs):
        seen.append(sums(*inputs))
        return seen[-1]

    monkeypatch.setattr(attention, "_sums", spy)
    monkeypatch.setitem(attention.AT_ONCE, "cpu", bound)
    found = vmap(lambda h: conv(h, graph))(hidden)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    heads = [len(vectors) for vectors in seen]
    assert max(heads) == at_once
    assert sum(heads) == 2 * 7 * 4  # forwards and backwards
