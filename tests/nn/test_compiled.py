"""Compiled, exported or under autocast, MMP computes the same."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

import memohop
from memohop import MMP, MemoryGate
from memohop.nn import Dropout
from numerics import seeded

# What the compiler itself does, where it cuts a function in two, and with an autograd function.
pytestmark = [
    pytest.mark.usefixtures("float64"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:.* should not be instantiated:DeprecationWarning"),
]

NODES, WIDTH = 12, 8
ARCS = torch.stack([torch.arange(NODES), (torch.arange(NODES) * 5 + 1) % NODES])


class TwoRounds(nn.Module):
    """Two rounds that share a gate."""

    def __init__(self):
        super().__init__()
        gate = MemoryGate(WIDTH)
        self.rounds = nn.ModuleList(MMP(GCNConv(WIDTH, WIDTH), WIDTH, gate=gate) for _ in range(2))

    def forward(self, hidden, arcs):
        memory = hidden
        for round_ in self.rounds:
            hidden, memory = round_(hidden, memory, arcs)
        return hidden, memory


def values_and_gradients(network, *inputs):
    """Of a network's outputs, and of all its weights."""
    network.zero_grad()
    outputs = [out.double() for out in network(*inputs) if isinstance(out, torch.Tensor)]
    sum(out.square().sum() for out in outputs).backward()
    gradients = [weight.grad for weight in network.parameters()]
    return [*outputs, *(None if gradient is None else gradient.double() for gradient in gradients)]


@pytest.fixture
def two_rounds():
    torch.compiler.reset()
    return TwoRounds(), torch.randn(NODES, WIDTH), ARCS


def test_compiled(two_rounds):
    network, *inputs = two_rounds
    expected = values_and_gradients(network, *inputs)
    compiled = values_and_gradients(torch.compile(network, backend="aot_eager"), *inputs)
    torch.testing.assert_close(compiled, expected)


@pytest.mark.parametrize("strict", [False, True])
def test_exported(two_rounds, strict):
    network, *inputs = two_rounds
    network.eval()
    exported = torch.export.export(network, tuple(inputs), strict=strict).module()
    torch.testing.assert_close(exported(*inputs), network(*inputs))


def test_under_autocast():
    """A message of 16 bits meets a hidden state of 32."""
    mmp, hidden = MMP(nn.Linear(WIDTH, WIDTH), WIDTH), torch.randn(NODES, WIDTH)
    expected = values_and_gradients(mmp, hidden, hidden)
    mmp, hidden = mmp.float(), hidden.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        after, memory = mmp(hidden, hidden)
    assert (after.dtype, memory.dtype) == (torch.float32, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = values_and_gradients(mmp, hidden, hidden)
    for value, exact in zip(mixed, expected, strict=True):
        assert (value - exact).abs().max() <= 0.05 * exact.abs().max()


def test_a_network_of_the_registry_compiles():
    torch.compiler.reset()
    data = memohop.load("csbm", nodes=60, channels=WIDTH, seed=seeded(1))
    network = memohop.build("gcn+mmp", WIDTH, 2)
    for module in network.modules():
        if isinstance(module, Dropout):
            module.active = False
    graph = network.prepare(data.edge_index, num_nodes=60)
    inputs = data.x.double(), graph
    expected = values_and_gradients(network, *inputs)
    compiled = values_and_gradients(torch.compile(network, backend="eager"), *inputs)
    torch.testing.assert_close(compiled, expected)
