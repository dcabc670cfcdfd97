"""The CPU kernels of MMP against the plain computations in float64. They need Numba."""

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import epoch_key
from memohop.nn.decoupling import decoupling_loss
from memohop.nn.fused import cpu_gate_kernels
from memohop.nn.randomness import Draw
from memohop.nn.update import gated_update

MEMBERS, NODES = 3, 700  # more than are added up at once


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def update_and_gradients(tensors, rate, wants_memory):
    """In the type of the tensors: float32 goes through the kernels, float64 does not."""
    keys = epoch_key(torch.arange(MEMBERS), torch.tensor(5))
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]

    def one(key, *inputs):
        draws = (Draw(key, 1), Draw(key, 2)) if rate else None
        return gated_update(*inputs, draws, torch.tensor(rate), wants_memory)

    hidden, memory, gates = torch.vmap(one)(keys, *leaves)
    loss = (hidden * normal(*hidden.shape, seed=7)).sum()
    if wants_memory:
        loss = loss + (memory * normal(*memory.shape, seed=8)).sum()
    return [hidden, memory, gates, *torch.autograd.grad(loss, leaves)]


def inputs(width):
    shapes = (NODES, width), (NODES, width), (3, 2 * width), (3,)
    return [normal(MEMBERS, *shape, seed=place) for place, shape in enumerate(shapes)]


@pytest.mark.parametrize("wants_memory", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.6])
@pytest.mark.parametrize("width", [2, 6, 64])
def test_the_gated_update_and_its_gradients(width, rate, wants_memory):
    tensors = inputs(width)
    assert cpu_gate_kernels(tensors[0]) is not None
    found = update_and_gradients(tensors, rate, wants_memory)
    exact = update_and_gradients([tensor.double() for tensor in tensors], rate, wants_memory)
    for one, two in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), two, rtol=1e-4, atol=1e-4)


def test_an_odd_width_is_for_the_plain_update():
    tensors = inputs(5)
    assert cpu_gate_kernels(tensors[0]) is None
    found = update_and_gradients(tensors, 0.6, True)
    exact = update_and_gradients([tensor.double() for tensor in tensors], 0.6, True)
    for one, two in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), two, rtol=1e-4, atol=1e-4)


def test_an_update_alone_is_the_one_in_company_bit_for_bit():
    tensors, key = inputs(6), epoch_key(torch.tensor(1), torch.tensor(5))
    company = update_and_gradients(tensors, 0.6, True)
    draws = Draw(key, 1), Draw(key, 2)
    alone = gated_update(*(tensor[1] for tensor in tensors), draws, torch.tensor(0.6))
    for one, two in zip(alone, company[:3], strict=True):
        assert torch.equal(one, two[1])


def pairs():
    hidden, memory = normal(40, 6), normal(40, 6, seed=1)
    hidden[3], memory[5] = 0, 0
    return hidden, memory


@pytest.mark.parametrize("form", ["paper", "mean", "official"])
def test_the_decoupling_loss_and_its_gradients(form):
    def loss_and_gradients(dtype):
        leaves = [part.to(dtype).requires_grad_() for part in pairs()]
        loss = decoupling_loss(*leaves, form=form)
        return loss, *torch.autograd.grad(loss, leaves)

    for one, two in zip(
        loss_and_gradients(torch.float32), loss_and_gradients(torch.float64), strict=True
    ):
        torch.testing.assert_close(one.double(), two, rtol=1e-5, atol=1e-5)


def test_gradients_of_the_cosine_can_be_derived_again_and_mapped():
    hidden, memory = (part[6:] for part in pairs())

    def steepness(one, other, function):
        return torch.func.grad(lambda x: function(x, other))(one).square().sum()

    def plain(one, other):
        return F.cosine_similarity(one, other, dim=-1).abs().sum()

    def ours(one, other):
        return decoupling_loss(one, other, form="paper")

    found, expected = (
        torch.func.grad(lambda x, f=function: steepness(x, memory, f))(hidden)
        for function in (ours, plain)
    )
    torch.testing.assert_close(found, expected)
    mapped = torch.vmap(torch.func.grad(ours))(hidden[None], memory[None])[0]
    torch.testing.assert_close(mapped, torch.func.grad(plain)(hidden, memory))
