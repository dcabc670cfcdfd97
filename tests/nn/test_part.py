"""A process that holds some nodes draws its part of the whole graph's masks."""

import pytest
import torch

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn._ops.update import gated_update
from memohop.nn._part import Axis, Part, in_part
from memohop.nn._randomness import draw_masks, next_draw
from numerics import assert_rounded, generator, seeded

NODES, ARCS, STORED = torch.tensor([2, 3, 7]), torch.tensor([0, 5, 6, 9]), torch.tensor([1, 4])
KEY = epoch_key(torch.tensor(seeded(3)), torch.tensor(5))


class SomeNodes(Part):
    def __init__(self, nodes=NODES):
        super().__init__(Axis(nodes, 9), Axis(ARCS, 11), Axis(STORED, 6))

    def total(self, values):
        return values

    outcome = total


@pytest.mark.parametrize(
    ("role", "whole", "index"),
    [
        ("hidden", (9, 4), (NODES,)),
        ("hidden", (9, 5), (NODES,)),
        ("hidden", (9,), (NODES,)),
        ("propagation", (9, 1), (NODES,)),
        ("value", (3, 9, 2), (slice(None), NODES)),
        ("value", (3, 9, 3), (slice(None), NODES)),
        ("attention", (3, 11), (slice(None), ARCS)),
        ("edge", (11,), (ARCS,)),
        ("input", (9, 4), (NODES,)),
        ("input", (6,), (STORED,)),
    ],
)
def test_masks_are_parts_of_the_whole_ones(role, whole, index):
    dropout = Dropout(0.5, role=role)
    with randomness(KEY):
        first, second = (dropout(torch.ones(whole)) for _ in range(2))
    assert not torch.equal(first, second)
    with randomness(KEY), in_part(SomeNodes()):
        for expected in (first, second):
            assert torch.equal(dropout(torch.ones(whole)[index]), expected[index])


def test_positions_beyond_32_bits_wrap_around():
    """The pair of element e is e // 2 modulo 2**32, in any type that holds it."""
    far = Axis(torch.tensor([3 * 2**31]), 2**40)
    numbers, second = far.pairs(1, 4)
    assert second is None
    assert [number % 2**32 for number in numbers.tolist()] == [
        (3 * 2**31 * 2 + k) % 2**32 for k in range(2)
    ]
    numbers, second = far.pairs(1, 3)
    flat = [3 * 2**31 * 3 + k for k in range(3)]
    assert [number % 2**32 for number in numbers.tolist()] == [e // 2 % 2**32 for e in flat]
    assert second.tolist() == [bool(e % 2) for e in flat]


HERE = 300  # nodes of a part, more than the kernels add up at once
WHOLE = torch.randperm(700, generator=generator(1))[:HERE]
FAR = WHOLE * 2**40 + 3 * 2**31 + WHOLE  # positions wrap around at different bits


def normal(*shape):
    return torch.randn(*shape, generator=generator(sum(shape)))


def masks_of(nodes, width, dtype):
    """The first two masks ``[2, nodes, width]``, taken from those of the whole graph or by hand."""
    rates = torch.tensor([0.4])
    if nodes is WHOLE:
        return draw_masks(KEY[None], rates, (1, 2), (700, width), dtype)[:, 0, nodes]
    pairs = [[node * (width // 2) + k for k in range(width // 2)] for node in nodes.tolist()]
    one_in_a_row = torch.tensor(pairs).remainder(2**32).flatten()
    with randomness(KEY), in_part(SomeNodes(one_in_a_row)):
        places = next_draw().place, next_draw().place
    drawn = draw_masks(KEY[None], rates, places, (len(one_in_a_row), 2), dtype)
    return drawn[:, 0].reshape(2, len(nodes), width)


@pytest.mark.parametrize("wants_memory", [True, False])
@pytest.mark.parametrize(("nodes", "width"), [(WHOLE, 6), (FAR, 6), (WHOLE, 64), (WHOLE, 5)])
def test_the_gated_update_of_a_part_has_the_masks_of_its_nodes(nodes, width, wants_memory):
    states = (HERE, width), (HERE, width)
    tensors = [normal(*shape) for shape in (*states, (3, 2 * width), (3,), *states)]

    def with_gradients(function, tensors):
        *leaves, of_hidden, of_memory = (tensor.clone().requires_grad_() for tensor in tensors)
        hidden, memory = function(*leaves)
        loss = (hidden * of_hidden).sum()
        if wants_memory:
            loss = loss + (memory * of_memory).sum()
        return hidden, *torch.autograd.grad(loss, leaves)

    def here(*leaves):
        with randomness(KEY), in_part(SomeNodes(nodes)):
            draws = next_draw(), next_draw()
        return gated_update(*leaves, draws, torch.tensor(0.4), wants_memory)[:2]

    def by_hand(hidden, message, weight, bias):
        masks = masks_of(nodes, width, hidden.dtype)
        inputs = torch.cat([hidden * masks[0], message * masks[1]], dim=1)
        keep, absorb, pass_on = (inputs @ weight.t() + bias).sigmoid().split(1, dim=1)
        return keep * hidden + absorb * message, pass_on * message

    # Scores add two states; a gradient adds a state up, then those of scores, then all nodes.
    length = 2 * width + width + 3 + HERE
    found = with_gradients(here, tensors)
    assert_rounded(found, lambda *given: with_gradients(by_hand, given), *tensors, length=length)


@pytest.mark.parametrize("nodes", [WHOLE, FAR], ids=["near", "far"])
def test_the_narrow_map_of_a_part_has_the_masks_of_its_nodes(nodes):
    upstream = normal(HERE, 5)
    upstream[::3] = 0  # nodes without a gradient
    inputs = upstream, normal(HERE, 8), normal(5, 8)

    def with_gradients(function, upstream, *tensors):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        out = function(*leaves)
        return out, *torch.autograd.grad(out, leaves, upstream)

    def here(values, weight):
        with randomness(KEY), in_part(SomeNodes(nodes)):
            return Dropout(0.4)(values) @ weight.t()

    def by_hand(values, weight):
        return (values * masks_of(nodes, 8, values.dtype)[0]) @ weight.t()

    found = with_gradients(here, *inputs)
    assert_rounded(found, lambda *given: with_gradients(by_hand, *given), *inputs, length=HERE)
