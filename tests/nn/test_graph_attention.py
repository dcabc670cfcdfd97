"""Both versions of attention against PyG's. ``_ops/test_derivatives.py`` has their derivatives."""

import pytest
import torch
from torch.func import vmap
from torch_geometric.nn import GATConv, GATv2Conv

from memohop import Graph
from memohop.nn import DynamicGraphAttention, GraphAttention
from memohop.nn._ops import attention
from memohop.nn._ops.attention import attend, attend_dynamically
from memohop.nn._ops.pattern import Pattern
from numerics import generator
from six_nodes import copy

pytestmark = pytest.mark.usefixtures("float64")

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
NODES = 5


def graph():
    return Graph(ARCS, NODES, direction="in", self_loops="add")


@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("layer", [GraphAttention, DynamicGraphAttention])
def test_the_layer_equals_pyg(layer, concat):
    conv = layer(3, 6, heads=2, concat=concat, bias=layer is GraphAttention)
    if layer is GraphAttention:
        torch.nn.init.normal_(conv.bias)
        pyg = GATConv(3, conv.width, heads=2, concat=concat)
        copy((pyg.lin.weight, conv.linear.weight), (pyg.bias, conv.bias))
        copy((pyg.att_src, conv.send[None]), (pyg.att_dst, conv.receive[None]))
    else:
        pyg = GATv2Conv(3, conv.width, heads=2, concat=concat, bias=False)
        receive, send = conv.linear.weight.chunk(2)
        copy((pyg.lin_r.weight, receive), (pyg.lin_l.weight, send), (pyg.att, conv.score[None]))
    hidden = torch.randn(NODES, 3)
    torch.testing.assert_close(conv(hidden, graph()), pyg(hidden, ARCS))


def test_scores_may_have_any_size():
    pattern = Pattern(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), (2, 2))
    send = torch.tensor([[1e4, -1e4]], dtype=torch.float32)
    weights = attend(torch.zeros_like(send), send, pattern, negative_slope=0.2)
    assert weights.tolist() == [[1.0, 0.0, 1.0]]


@pytest.mark.parametrize("attention_of", [attend, attend_dynamically])
def test_a_row_on_one_side_of_the_kink_has_exactly_no_gradient_in_its_receiver(attention_of):
    pattern = Pattern(torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 1, 2]), (3, 3))
    receive = torch.tensor([[[9, -9], [-9, 9], [0, 0]]], dtype=torch.float32, requires_grad=True)
    draws = generator()
    send, score, of_weights = (
        torch.randn(*shape, dtype=torch.float32, generator=draws)
        for shape in ((1, 3, 2), (1, 2), (5,))
    )
    send.requires_grad_()
    numbers = (receive[..., 0], send[..., 0]) if attention_of is attend else (receive, send, score)
    weights = attention_of(*numbers, pattern, negative_slope=0.2)
    of_receive, of_send = torch.autograd.grad((weights * of_weights).sum(), (receive, send))
    assert not of_receive.any()
    assert (of_send[..., :1] if attention_of is attend else of_send).all()


@pytest.mark.parametrize(("bound", "at_once"), [(1, 1), (66, 3), (10**6, 28)])
def test_vectors_per_arc_stay_within_the_bound(bound, at_once, monkeypatch):
    conv, hidden = DynamicGraphAttention(3, 8, heads=4), torch.randn(7, NODES, 3)
    arcs = graph()
    expected = vmap(lambda h: conv(h, arcs))(hidden)
    seen = []
    sums = attention._sums

    def spy(*inputs):
        seen.append(sums(*inputs))
        return seen[-1]

    monkeypatch.setattr(attention, "_sums", spy)
    monkeypatch.setitem(attention.AT_ONCE, "cpu", bound)
    output = vmap(lambda h: conv(h, arcs))(hidden)
    torch.testing.assert_close(output, expected)
    output.sum().backward()
    heads = [len(vectors) for vectors in seen]
    assert max(heads) == at_once
    assert sum(heads) == 2 * 7 * 4  # forwards and backwards
