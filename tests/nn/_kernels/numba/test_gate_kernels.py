"""The CPU kernels of MMP against the plain computations in float64. They need Numba."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from numerics import assert_rounded, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import epoch_key
from memohop.nn._kernels.table import serve
from memohop.nn._ops.update import gated_update
from memohop.nn.decoupling import decoupling_loss
from memohop.nn.randomness import Draw

MEMBERS, NODES = 3, 700  # more than are added up at once


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed))


def update_and_gradients(tensors, rate, wants_memory):
    """In the type of the tensors: float32 goes through the kernels, float64 does not."""
    keys = epoch_key(torch.arange(MEMBERS), torch.tensor(5))
    *leaves, of_hidden, of_memory = (tensor.clone().requires_grad_() for tensor in tensors)

    def one(key, *inputs):
        draws = (Draw(key, 1), Draw(key, 2)) if rate else None
        return gated_update(*inputs, draws, torch.tensor(rate), wants_memory)

    hidden, memory, gates = torch.vmap(one)(keys, *leaves)
    loss = (hidden * of_hidden).sum()
    if wants_memory:
        loss = loss + (memory * of_memory).sum()
    return [hidden, memory, gates, *torch.autograd.grad(loss, leaves)]


def inputs(width):
    """Hidden states, messages, weights and biases, and gradients from above."""
    states = (NODES, width), (NODES, width)
    shapes = (*states, (3, 2 * width), (3,), *states)
    return [normal(MEMBERS, *shape, seed=place) for place, shape in enumerate(shapes)]


def agree(tensors, rate, wants_memory):
    def exact(*tensors):
        return update_and_gradients(tensors, rate, wants_memory)

    width = tensors[0].shape[-1]
    # Scores add two states; a gradient adds a state up, then those of scores, then all nodes.
    length = 2 * width + width + 3 + NODES
    assert_rounded(exact(*tensors), exact, *tensors, length=length)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("wants_memory", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.6])
@pytest.mark.parametrize("width", [2, 6, 64])
def test_the_gated_update_and_its_gradients(width, rate, wants_memory):
    tensors = inputs(width)
    assert serve("gated_update", tensors[0]) is not None
    agree(tensors, rate, wants_memory)


def test_an_odd_width_is_for_the_plain_update():
    tensors = inputs(5)
    assert serve("gated_update", tensors[0]) is None
    agree(tensors, 0.6, True)


@pytest.mark.usefixtures("one_thread")  # several leave a single member to PyTorch
def test_an_update_alone_is_the_one_in_company_bit_for_bit():
    tensors, key = inputs(6), epoch_key(torch.tensor(1), torch.tensor(5))
    company = update_and_gradients(tensors, 0.6, True)
    draws = Draw(key, 1), Draw(key, 2)
    alone = gated_update(*(tensor[1] for tensor in tensors[:4]), draws, torch.tensor(0.6))
    for one, two in zip(alone, company[:3], strict=True):
        assert torch.equal(one, two[1])


def pairs():
    hidden, memory = normal(40, 6), normal(40, 6, seed=1)
    hidden[3], memory[5] = 0, 0
    return hidden, memory


@pytest.mark.parametrize("form", ["paper", "mean", "official"])
def test_the_decoupling_loss_and_its_gradients(form):
    def loss_and_gradients(*states):
        leaves = [state.clone().requires_grad_() for state in states]
        loss = decoupling_loss(*leaves, form=form)
        return loss, *torch.autograd.grad(loss, leaves)

    found = loss_and_gradients(*pairs())
    assert_rounded(found, loss_and_gradients, *pairs(), length=3 * 6 + 40)


def test_gradients_of_the_cosine_can_be_derived_again_and_mapped():
    hidden, memory = (part[6:] for part in pairs())

    def steepness(one, other, function):
        return torch.func.grad(lambda x: function(x, other))(one).square().sum()

    def plain(one, other):
        return F.cosine_similarity(one, other, dim=-1).abs().sum()

    def ours(one, other):
        return decoupling_loss(one, other, form="paper")

    def twice(function, one, other):
        return torch.func.grad(lambda x: steepness(x, other, function))(one)

    given = hidden, memory
    assert_rounded(twice(ours, *given), partial(twice, plain), *given, length=8 * 6)
    mapped = torch.vmap(torch.func.grad(ours))(hidden[None], memory[None])[0]
    assert_rounded(mapped, torch.func.grad(plain), *given, length=4 * 6)
