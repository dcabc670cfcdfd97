"""Dropout and a narrow linear map in one pass, against the two one after the other."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.func import vmap

from numerics import assert_rounded, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn._ops.dropped_linear import dropped_linear

KEY = epoch_key(torch.tensor(3), torch.tensor(5))


def drawn(*shape):
    return torch.randn(*shape, generator=generator(sum(shape)))


@pytest.mark.parametrize("width", [2, 10, 64])
@pytest.mark.parametrize(("classes", "bias"), [(1, False), (5, True), (17, True)])
def test_it_equals_dropout_and_then_the_map(width, classes, bias):
    dropout = Dropout(0.4)
    upstream = drawn(300, classes)
    upstream[::3] = 0  # nodes without a gradient
    inputs = [drawn(300, width), drawn(classes, width), *([drawn(classes)] if bias else [])]
    after = []

    def mapped(upstream, *tensors):  # float64 does not go through the kernel
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        with randomness(KEY):
            out = dropped_linear(leaves[0], dropout, *leaves[1:])
            after.append(dropout(torch.ones(7, 2)))  # the place of the next mask
        return out, *torch.autograd.grad(out, leaves, upstream)

    assert_rounded(mapped(upstream, *inputs), mapped, upstream, *inputs, length=300)
    assert all(torch.equal(mask, after[0]) for mask in after)


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
        exact = partial(plain, key=keys[k], rate=rates[k])
        assert_rounded(row, exact, values[k], weight[k], length=8)


def test_its_gradient_can_be_derived_again():
    given = drawn(6, 4), drawn(3, 4)

    def penalty(linear, *tensors):
        values, weight = (tensor.clone().requires_grad_() for tensor in tensors)
        with randomness(KEY):
            out = linear(values, Dropout(0.5), weight)
        (grad,) = torch.autograd.grad(out.square().sum(), values, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), weight)[0]

    def plain(values, dropout, weight):
        return F.linear(dropout(values), weight)

    # Sums of 4 columns, of 3 rows, and of 6 nodes, each forwards and twice backwards.
    assert_rounded(penalty(dropped_linear, *given), partial(penalty, plain), *given, length=39)


def test_in_evaluation_nothing_is_dropped():
    values, weight = drawn(6, 4), drawn(3, 4)
    assert torch.equal(dropped_linear(values, Dropout(0.5).eval(), weight), values @ weight.t())
