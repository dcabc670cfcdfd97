"""States and gates of `MMP.step` carry gradients, whatever way they are made."""

import pytest
import torch
from torch.func import functional_call, vmap

from memohop import MMP
from memohop.nn import epoch_key, randomness
from memohop.nn._ops import update
from numerics import generator

MEMBERS, NODES, WIDTH = 3, 5, 4
ROUNDINGS = 100  # more than lie between these few numbers and their gradients
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
places = pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("cpu", torch.float32),
        ("cpu", torch.float64),
        pytest.param("cuda", torch.float32, marks=GPU),
    ],
)


def on_gates(hidden, memory, gates):
    keep, absorb, pass_on = gates
    return (keep**2).sum() + (absorb.log() * keep).sum() + 3 * pass_on.sum()


def on_all(hidden, memory, gates):
    return on_gates(hidden, memory, gates) + hidden.sin().sum() + memory.cos().sum()


def on_states(hidden, memory, gates):
    return hidden.sin().sum() + memory.cos().sum()


def on_hidden(hidden, memory, gates):
    return hidden.sin().sum()


class Step(torch.nn.Module):
    """A round from messages that are the memory itself."""

    def __init__(self, mmp, wants_memory):
        super().__init__()
        self.mmp, self.wants_memory = mmp, wants_memory

    def forward(self, hidden, memory):
        return self.mmp.step(hidden, memory, wants_memory=self.wants_memory)


def gradients(loss, per, like, *, rate=0.0, wants_memory=True):
    """Of all members together, with autograd outside of ``vmap``, as a trainer has it.

    A gate per channel is made by PyTorch's own operations; with equal rows of weights it is the
    gate of the node, and its gradients add up to that one's.
    """
    mmp = MMP(lambda memory: memory, WIDTH, per=per, dropout=rate).to(like)
    shapes = [(NODES, WIDTH), (NODES, WIDTH), (3, 2 * WIDTH), (3,)]
    leaves = [
        torch.randn(MEMBERS, *shape, generator=generator(seed)).to(like).requires_grad_()
        for seed, shape in enumerate(shapes)
    ]
    step, times = Step(mmp, wants_memory), 1 if per == "node" else WIDTH

    def of_one(key, hidden, memory, weight, bias):
        given = {
            "mmp.gate.out.weight": weight.repeat_interleave(times, 0),
            "mmp.gate.out.bias": bias.repeat_interleave(times, 0),
        }
        with randomness(key):
            states = functional_call(step, given, (hidden, memory))
        return loss(*states[:2], [gate[:, :1] for gate in states[2]])

    keys = epoch_key(torch.arange(MEMBERS), torch.tensor(2)).to(like.device)
    return torch.autograd.grad(vmap(of_one)(keys, *leaves).sum(), leaves)


def check(loss, device, dtype, **options):
    like = torch.empty(0, device=device, dtype=dtype)
    found = gradients(loss, "node", like, **options)
    expected = gradients(loss, "channel", like.double(), **options)
    for one, two in zip(found, expected, strict=True):
        atol = ROUNDINGS * torch.finfo(dtype).eps * max(1.0, float(two.abs().max()))
        torch.testing.assert_close(one.double(), two, rtol=0, atol=atol)


@places
@pytest.mark.parametrize("rate", [0.0, 0.375])
@pytest.mark.parametrize("loss", [on_states, on_gates, on_all])
def test_gradients_are_those_of_the_equations(loss, rate, device, dtype):
    check(loss, device, dtype, rate=rate)


@places
@pytest.mark.parametrize("loss", [on_hidden, on_gates])
def test_also_where_nobody_wants_the_memory(loss, device, dtype):
    check(loss, device, dtype, wants_memory=False)


@GPU
def test_who_does_not_ask_for_the_gates_gradient_does_not_pay_for_it(monkeypatch):
    monkeypatch.delattr(update, "_backward")  # what serves where the kernels do not
    check(on_states, "cuda", torch.float32)
    with pytest.raises(NameError):
        check(on_all, "cuda", torch.float32)
