"""A process that holds some nodes draws its part of the whole graph's masks."""

import pytest
import torch

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn.part import Axis, Part, in_part
from numerics import seeded

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
