"""A process that holds some nodes draws its part of the whole graph's masks."""

from contextlib import ExitStack

import pytest
import torch

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn._ops.update import gated_update
from memohop.nn._part import Axis, Part, in_part
from memohop.nn._randomness import next_draw
from numerics import generator, seeded

NODES, ARCS, STORED = torch.tensor([2, 3, 7]), torch.tensor([0, 5, 6, 9]), torch.tensor([1, 4])
KEY = epoch_key(torch.tensor(seeded(3)), torch.tensor(5))


def some_nodes():
    return Part(Axis(NODES, 9), Axis(ARCS, 11), Axis(STORED, 6), torch.clone)


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
    with randomness(KEY), in_part(some_nodes()):
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


@pytest.mark.parametrize("wants_memory", [True, False])
@pytest.mark.parametrize("width", [6, 5])
@pytest.mark.usefixtures("float64")
def test_the_gated_update_of_a_part_is_that_of_its_nodes(width, wants_memory):
    numbers = generator(1)
    weight, bias = torch.randn(3, 2 * width, generator=numbers), torch.randn(3, generator=numbers)

    def results(nodes, *contexts):
        hidden, message = (state[nodes].requires_grad_() for state in states)
        with ExitStack() as stack:
            for context in (randomness(KEY), *contexts):
                stack.enter_context(context)
            draws = next_draw(), next_draw()
        update = gated_update(hidden, message, weight, bias, draws, torch.tensor(0.4), wants_memory)
        used = [part for part in update if part.numel()]
        return *used, *torch.autograd.grad(
            sum(part.sin().sum() for part in used), (hidden, message)
        )

    states = torch.randn(2, 9, width, generator=numbers)
    whole = results(slice(None))
    for part, expected in zip(results(NODES, in_part(some_nodes())), whole, strict=True):
        torch.testing.assert_close(part, expected[NODES])
