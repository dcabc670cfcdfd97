"""A loss on the gates of `MMP.step` reaches what they are made of, whatever way they are made."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from memohop import MMP
from memohop.nn import epoch_key, randomness
from memohop.nn._ops import update
from memohop.nn._randomness import Draw
from numerics import generator, mask_of

MEMBERS, NODES, WIDTH = 3, 5, 4
SHAPES = [(NODES, WIDTH), (NODES, WIDTH), (3, 2 * WIDTH), (3,)]
ROUNDINGS = 100  # more than lie between these few numbers and their gradients
places = pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("cpu", torch.float32),
        ("cpu", torch.float64),
        pytest.param(
            "cuda",
            torch.float32,
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
        ),
    ],
)


def numbers(like):
    """Hidden state, memory, weight and bias of every member."""
    return [
        torch.randn(MEMBERS, *shape, generator=generator(seed)).to(like)
        for seed, shape in enumerate(SHAPES)
    ]


def keys(like):
    return epoch_key(torch.arange(MEMBERS), torch.tensor(2)).to(like.device)


def on_gates(hidden, memory, gates):
    keep, absorb, pass_on = gates
    return (keep**2).sum() + (absorb.log() * keep).sum() + 3 * pass_on.sum()


def on_all(hidden, memory, gates):
    return on_gates(hidden, memory, gates) + hidden.sin().sum() + memory.cos().sum()


def on_states(hidden, memory, gates):
    return hidden.sin().sum() + memory.cos().sum()


class Loss(nn.Module):
    """Of one round from messages that are the memory itself."""

    def __init__(self, loss, rate=0.0, wants_memory=True):
        super().__init__()
        self.mmp = MMP(lambda memory: memory, WIDTH, dropout=rate)
        self.loss, self.wants_memory = loss, wants_memory

    def forward(self, hidden, memory):
        return self.loss(*self.mmp.step(hidden, memory, wants_memory=self.wants_memory))


def gradients(loss, like, keys):
    """Of all members together, with autograd outside of ``vmap``, as a trainer has it."""
    leaves = [tensor.requires_grad_() for tensor in numbers(like)]

    def of_one(key, hidden, memory, weight, bias):
        given = {"mmp.gate.out.weight": weight, "mmp.gate.out.bias": bias}
        with randomness(key):
            return functional_call(loss, given, (hidden, memory))

    return torch.autograd.grad(vmap(of_one)(keys, *leaves).sum(), leaves)


def exact_gradients(loss, rate, like, keys):
    """By the equations, member by member, in float64."""
    members = [tensor.double().requires_grad_() for tensor in numbers(like)]
    total = 0
    for key, hidden, message, weight, bias in zip(keys, *members, strict=True):
        seen = [hidden, message]
        if rate:
            rates = torch.tensor(rate).to(like)
            for place in (0, 1):
                draw = Draw(key, place + 1)
                mask = mask_of(draw, (NODES, WIDTH), rates, like.dtype)
                seen[place] = seen[place] * mask
        gates = (torch.cat(seen, -1) @ weight.mT + bias).sigmoid().split(1, -1)
        total = total + loss(gates[0] * hidden + gates[1] * message, gates[2] * message, gates)
    return torch.autograd.grad(total, members)


def check(found, expected):
    for one, two in zip(found, expected, strict=True):
        atol = ROUNDINGS * torch.finfo(one.dtype).eps * max(1.0, float(two.abs().max()))
        torch.testing.assert_close(one.double(), two, rtol=0, atol=atol)


@places
@pytest.mark.parametrize("rate", [0.0, 0.375])
@pytest.mark.parametrize("loss", [on_gates, on_all])
def test_a_penalty_on_gates_has_the_gradient_of_the_equations(loss, rate, device, dtype):
    like = torch.empty(0, device=device, dtype=dtype)
    module = Loss(loss, rate).to(like)
    check(gradients(module, like, keys(like)), exact_gradients(loss, rate, like, keys(like)))


@places
def test_also_where_nobody_wants_the_memory(device, dtype):
    like = torch.empty(0, device=device, dtype=dtype)
    found = gradients(Loss(on_gates, wants_memory=False).to(like), like, keys(like))
    check(found, exact_gradients(on_gates, 0.0, like, keys(like)))


@pytest.mark.parametrize("width", [3, 4])
@pytest.mark.usefixtures("float64")
def test_one_round_alone_is_the_same_per_node_and_per_channel(width):
    """With equal rows of weights, a gate per channel is the gate of the node."""
    alone, wide = (MMP(lambda memory: memory, width, per=per) for per in ("node", "channel"))
    with torch.no_grad():
        for one, other in zip(alone.parameters(), wide.parameters(), strict=True):
            other.copy_(one.repeat_interleave(width, 0))
    hidden, memory = torch.eye(5, width), torch.ones(5, width)
    found, expected = (
        torch.autograd.grad(mmp.step(hidden, memory)[2][0].mean(), mmp.gate.out.weight)[0]
        for mmp in (alone, wide)
    )
    assert found.any()
    torch.testing.assert_close(found, expected.unflatten(0, (3, width)).sum(1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_who_does_not_ask_for_the_gates_gradient_does_not_pay_for_it(monkeypatch):
    like = torch.empty(0, device="cuda")
    expected = exact_gradients(on_states, 0.0, like, keys(like))
    monkeypatch.delattr(update, "_backward")  # what serves where the kernels do not
    check(gradients(Loss(on_states).to(like), like, keys(like)), expected)
    with pytest.raises(NameError):
        gradients(Loss(on_all).to(like), like, keys(like))
