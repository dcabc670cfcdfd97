"""Memory-based message passing against its equations, written out node by node."""

import math

import pytest
import torch
from torch import nn
from torch_geometric.nn import (
    DirGNNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
)

from memohop import MMP, Graph, MemoryGate, UsageError
from six_nodes import copy

NODES, WIDTH = 5, 4
ARCS = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 0, 2]])  # nodes 3 and 4 are isolated


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def mean_of_neighbours(memory):
    """The aggregation of Eq. (6), over out-neighbours, in plain Python."""
    out = []
    for i in range(len(memory)):
        neighbours = [t for s, t in ARCS.t().tolist() if s == i]
        total = [sum(memory[j][d] for j in neighbours) for d in range(WIDTH)]
        out.append([value / max(len(neighbours), 1) for value in total])
    return out


def slow_round(hidden, memory, weight, bias, memory_from):
    """Eqs. (6) and (8)-(10), one node and one channel at a time."""
    message = mean_of_neighbours(memory)
    new_hidden, new_memory = [], []
    for i in range(len(hidden)):
        both = hidden[i] + message[i]
        width = len(bias) // 3
        gates = [
            sigmoid(sum(w * v for w, v in zip(weight[g], both, strict=True)) + bias[g])
            for g in range(len(bias))
        ]
        keep, absorb, send = gates[:width], gates[width : 2 * width], gates[2 * width :]
        pick = (lambda gate, d: gate[d]) if width > 1 else (lambda gate, d: gate[0])
        h = [pick(keep, d) * hidden[i][d] + pick(absorb, d) * message[i][d] for d in range(WIDTH)]
        source = message[i] if memory_from == "message" else h
        new_hidden.append(h)
        new_memory.append([pick(send, d) * source[d] for d in range(WIDTH)])
    return new_hidden, new_memory


@pytest.mark.parametrize("memory_from", ["message", "hidden"])
@pytest.mark.parametrize("per", ["node", "channel"])
def test_two_rounds_equal_the_equations(per, memory_from):
    graph = Graph(ARCS, NODES, direction="out", norm="row").to(dtype=torch.float64)
    gate = MemoryGate(WIDTH, per=per).double()
    nn.init.normal_(gate.out.bias)
    rounds = [MMP(lambda c, g: g @ c, WIDTH, gate=gate, memory_from=memory_from) for _ in range(2)]
    hidden = torch.randn(NODES, WIDTH, dtype=torch.float64)
    memory = torch.randn(NODES, WIDTH, dtype=torch.float64)
    slow_hidden, slow_memory = hidden.tolist(), memory.tolist()
    for mmp in rounds:
        hidden, memory = mmp(hidden, memory, graph)
        slow_hidden, slow_memory = slow_round(
            slow_hidden, slow_memory, gate.out.weight.tolist(), gate.out.bias.tolist(), memory_from
        )
    torch.testing.assert_close(hidden, torch.tensor(slow_hidden, dtype=torch.float64))
    torch.testing.assert_close(memory, torch.tensor(slow_memory, dtype=torch.float64))


@pytest.mark.usefixtures("float64")
def test_an_isolated_node_keeps_a_share_of_itself_and_forgets_its_memory():
    graph = Graph(ARCS, NODES, direction="out", norm="row")
    mmp = MMP(lambda c, g: g @ c, WIDTH)
    hidden = torch.randn(NODES, WIDTH)
    after, memory, (gate_hidden, _, _) = mmp.step(hidden, hidden, graph)
    torch.testing.assert_close(after[3:], gate_hidden[3:] * hidden[3:])
    assert torch.equal(memory[3:], torch.zeros(2, WIDTH))


def test_ordinary_message_passing_is_the_degenerate_case():
    """a_h = 0, a_m = a_c = 1; the paper misprints it as a_h = a_m = 0."""
    graph = Graph(ARCS, NODES, direction="out", norm="row")
    mmp = MMP(lambda c, g: g @ c, WIDTH)
    with torch.no_grad():
        mmp.gate.out.weight.zero_()
        mmp.gate.out.bias.copy_(torch.tensor([-1e4, 1e4, 1e4]))
    hidden = memory = torch.randn(NODES, WIDTH)
    plain = hidden
    for _ in range(3):
        hidden, memory = mmp(hidden, memory, graph)
        plain = graph @ plain
        assert torch.equal(hidden, plain)
        assert torch.equal(memory, plain)


@pytest.mark.usefixtures("float64")
def test_the_recurrent_gate_equals_a_recurrent_cell():
    gate = MemoryGate(WIDTH, kind="gru", per="channel")
    cell = nn.GRUCell(WIDTH, WIDTH)
    from_message, from_hidden = gate.from_message, gate.from_hidden
    copy((cell.weight_ih, from_message.weight), (cell.bias_ih, from_message.bias))
    copy((cell.weight_hh, from_hidden.weight), (cell.bias_hh, from_hidden.bias))
    hidden, message = torch.randn(NODES, WIDTH), torch.randn(NODES, WIDTH)
    expected = gate.out(cell(message, hidden)).sigmoid()
    torch.testing.assert_close(torch.cat(gate(hidden, message), dim=-1), expected)


def test_a_shared_gate_has_one_set_of_weights():
    gate = MemoryGate(WIDTH)
    shared = nn.ModuleList(MMP(nn.Linear(WIDTH, WIDTH), WIDTH, gate=gate) for _ in range(3))
    own = nn.ModuleList(MMP(nn.Linear(WIDTH, WIDTH), WIDTH) for _ in range(3))
    count = [sum(p.numel() for p in module.parameters()) for module in (gate, shared, own)]
    assert count[1] == count[0] + 3 * (WIDTH * WIDTH + WIDTH)
    assert count[2] == 3 * count[0] + 3 * (WIDTH * WIDTH + WIDTH)


CONVOLUTIONS = {
    "gcn": lambda: GCNConv(8, 8),
    "gat, four heads": lambda: GATConv(8, 2, heads=4),
    "gatv2": lambda: GATv2Conv(8, 4, heads=2),
    "sage": lambda: SAGEConv(8, 8),
    "gin": lambda: GINConv(nn.Linear(8, 8)),
    "transformer": lambda: TransformerConv(8, 4, heads=2),
    "dirgnn": lambda: DirGNNConv(GCNConv(8, 8)),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_pyg_convolutions_are_wrapped_unchanged(name):
    conv = CONVOLUTIONS[name]()
    mmp = MMP(conv, 8)
    hidden, memory = torch.randn(NODES, 8), torch.randn(NODES, 8)
    message = conv(memory, ARCS)
    keep, absorb, send = mmp.gate(hidden, message)
    after, remembered = mmp(hidden, memory, ARCS)
    torch.testing.assert_close(after, keep * hidden + absorb * message)
    torch.testing.assert_close(remembered, send * message)
    (after.sum() + remembered.sum()).backward()
    assert all(p.grad is not None for p in conv.parameters())


def test_a_plain_function_with_two_arguments():
    adjacency = torch.rand(NODES, NODES)
    mmp = MMP(lambda memory, matrix, scale: scale * matrix @ memory, WIDTH)
    hidden, memory = mmp(torch.ones(NODES, WIDTH), torch.ones(NODES, WIDTH), adjacency, 0.5)
    assert hidden.shape == memory.shape == (NODES, WIDTH)


@pytest.mark.parametrize("gate", ["linear", "gru"])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_hidden_state_of_another_width_is_named(gate, width):
    mmp, memory = MMP(lambda c: c, WIDTH, gate=gate), torch.zeros(NODES, WIDTH)
    words = rf"hidden has shape \(5, {width}\), but channels=4: give a hidden state that is 4 wide"
    for wrong in (memory, torch.zeros(NODES, width)):
        with pytest.raises(UsageError, match=words):
            mmp(torch.zeros(NODES, width), wrong)


def test_a_convolution_has_its_arguments_by_name_too():
    conv, kinds = RGCNConv(8, 8, num_relations=2), torch.tensor([0, 1, 0, 1, 1])
    mmp, hidden = MMP(conv, 8), torch.randn(NODES, 8)
    by_name = mmp(hidden, hidden, ARCS, edge_type=kinds)
    torch.testing.assert_close(by_name, mmp(hidden, hidden, ARCS, kinds))
    after, memory, gates = mmp.step(hidden, hidden, ARCS, edge_type=kinds, wants_memory=True)
    torch.testing.assert_close((after, memory), by_name)
    assert len(gates) == 3


def test_a_convolution_of_another_width_is_refused():
    mmp = MMP(GATConv(8, 8, heads=4), 8)
    with pytest.raises(UsageError, match=r"message of shape \(5, 32\), but channels=8: give it 8"):
        mmp(torch.randn(NODES, 8), torch.randn(NODES, 8), ARCS)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MemoryGate(4, kind="lstm"), "gate must be 'linear' or 'gru', not 'lstm'"),
        (lambda: MemoryGate(4, per="edge"), "per must be 'node' or 'channel', not 'edge'"),
        (lambda: MMP(nn.Identity(), 4, memory_from="x"), "memory_from must be"),
        (lambda: MMP(nn.Identity(), 4, gate=MemoryGate(8)), "the gate is 8 wide but channels=4"),
        (lambda: MemoryGate(4, dropout=1.0), "at least 0 and below 1, not 1.0"),
    ],
)
def test_bad_arguments_are_refused(make, words):
    with pytest.raises(UsageError, match=words):
        make()
