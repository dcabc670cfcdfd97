"""Dropout and a narrow linear map in one pass, against the two one after the other."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import vmap

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn.dropped_linear import dropped_linear

KEY = epoch_key(torch.tensor(3), torch.tensor(5))


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("width", [2, 10, 64])
@pytest.mark.parametrize(("classes", "bias"), [(1, False), (5, True), (17, True)])
def test_it_equals_dropout_and_then_the_map(width, classes, bias):
    dropout = Dropout(0.4)
    upstream = drawn(300, classes)
    upstream[::3] = 0  # nodes without a gradient
    found = []
    for dtype in (torch.float32, torch.float64):  # the second does not go through the kernel
        inputs = [drawn(300, width), drawn(classes, width), *([drawn(classes)] if bias else [])]
        leaves = [tensor.to(dtype).requires_grad_() for tensor in inputs]
        with randomness(KEY):
            out = dropped_linear(leaves[0], dropout, *leaves[1:])
            after = dropout(torch.ones(7, 2))  # the place of the next mask
        grads = torch.autograd.grad(out, leaves, upstream.to(dtype))
        found.append([tensor.double() for tensor in (out, *grads, after)])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_members_have_their_own_keys_and_rates():
    dropout = Dropout(0.5)
    rates = torch.tensor([0.0, 0.3, 0.8])
    keys = epoch_key(torch.arange(3), torch.tensor(1))
    values, weight = drawn(3, 50, 8).requires_grad_(), drawn(3, 4, 8)

    def fused(values, weight, key, rate):
        dropout.rate = rate
        with randomness(key):
            return dropped_linear(values, dropout, weight)

    def plain(values, weight, key, rate):
        dropout.rate = rate
        with randomness(key):
            return F.linear(dropout(values), weight)

    for k, row in enumerate(vmap(fused)(values, weight, keys, rates)):
        torch.testing.assert_close(row, plain(values[k], weight[k], keys[k], rates[k]))


def test_its_gradient_can_be_derived_again():
    values, weight = drawn(6, 4).requires_grad_(), drawn(3, 4).requires_grad_()

    def penalty(linear):
        with randomness(KEY):
            out = linear(values, Dropout(0.5), weight)
        (grad,) = torch.autograd.grad(out.square().sum(), values, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), weight)[0]

    def plain(values, dropout, weight):
        return F.linear(dropout(values), weight)

    torch.testing.assert_close(penalty(dropped_linear), penalty(plain))


def test_in_evaluation_nothing_is_dropped():
    values, weight = drawn(6, 4), drawn(3, 4)
    assert torch.equal(dropped_linear(values, Dropout(0.5).eval(), weight), values @ weight.t())
