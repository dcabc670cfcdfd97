"""The three forms of the decoupling loss against a loop over nodes and layers."""

import math

import pytest
import torch

from memohop import UsageError, decoupling_loss
from memohop.nn._decoupling import network_decoupling_loss
from numerics import generator


def cosine(vector, other):
    product = sum(a * b for a, b in zip(vector, other, strict=True))
    norms = math.hypot(*vector) * math.hypot(*other)
    return product / norms if norms else 0.0


def cosines(hidden, memory):
    return [cosine(h, c) for h, c in zip(hidden.tolist(), memory.tolist(), strict=True)]


def pairs(layers):
    numbers = generator(3)
    return [
        tuple(torch.randn(2, 7, 4, dtype=torch.float64, generator=numbers)) for _ in range(layers)
    ]


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_the_forms(layers):
    states = pairs(layers)
    values = [cosines(hidden, memory) for hidden, memory in states]
    assert any(v < 0 for v in values[1])
    expected = {
        "paper": sum(abs(v) for layer in values for v in layer),
        "mean": sum(abs(v) for layer in values[1:] for v in layer) / (7 * (layers - 1)),
        "official": sum(abs(sum(layer) / 7) for layer in values[1:]) / max(layers - 2, 1),
    }
    for form, value in expected.items():
        loss = float(network_decoupling_loss(states, form=form))
        assert loss == pytest.approx(value, rel=1e-12)
    of_one = {
        "paper": sum(abs(v) for v in values[1]),
        "mean": sum(abs(v) for v in values[1]) / 7,
        "official": abs(sum(values[1]) / 7),
    }
    for form, value in of_one.items():
        assert float(decoupling_loss(*states[1], form=form)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("form", ["paper", "mean", "official"])
def test_zero_vectors_give_zero_and_no_nan_in_the_gradient(form):
    hidden = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    memory = torch.tensor([[1.0, 1.0], [0.0, 0.0], [1.0, -3.0]], requires_grad=True)
    loss = decoupling_loss(hidden, memory, form=form)
    assert loss.item() == pytest.approx(0, abs=1e-7)
    loss.backward()
    assert hidden.grad.isfinite().all()
    assert memory.grad.isfinite().all()


def test_unknown_form():
    with pytest.raises(UsageError, match="form must be one of mean, paper, official, not 'sum'"):
        decoupling_loss(torch.ones(1, 1), torch.ones(1, 1), form="sum")


@pytest.mark.parametrize("form", ["mean", "paper", "official"])
def test_a_vector_beside_itself_counts_as_one_and_has_no_gradient(form):
    hidden = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    loss = decoupling_loss(hidden, hidden, form=form)
    torch.testing.assert_close(loss.detach(), torch.tensor(2.0 if form == "paper" else 2 / 3))
    (grad,) = torch.autograd.grad(loss + hidden.sum(), hidden)
    assert torch.equal(grad, torch.ones_like(grad))


@pytest.mark.parametrize("form", ["paper", "mean", "official"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [0.0, 1e-30, 1e-9, 1e-7, 1e-5, 1e-2, 1.0])
def test_the_gradient_is_at_most_one_over_the_length(form, dtype, length):
    hidden = torch.tensor([[3.0, 4.0]], dtype=dtype, requires_grad=True)
    memory = torch.tensor([[1.0, 0.0]], dtype=dtype).mul(length).requires_grad_()
    of_hidden, of_memory = torch.autograd.grad(
        decoupling_loss(hidden, memory, form=form), (hidden, memory)
    )
    if length < 1e-6:  # no direction: such a node does not count
        assert not of_hidden.any()
        assert not of_memory.any()
        return
    assert of_memory.norm().item() == pytest.approx(0.8 / length, rel=1e-5)  # the sine over it
    assert of_hidden.norm().item() == pytest.approx(0.8 / 5, rel=1e-5)
