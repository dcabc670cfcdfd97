"""The population trainer in float32, where kernels serve it: what rounding does not excuse."""

import numpy as np
import pytest
import torch

import memohop
from memohop import Member, UsageError, train
from numerics import seeded
from plain_loop import assert_alike

NODES, WIDTH = 120, 64
MEMBERS = [
    Member(split=0, seed=seeded(0)),
    Member(split=1, seed=seeded(1), lr=0.05, lam=0.3),
    Member(split=2, seed=seeded(2), dropout=0.8, input_dropout=0.2),
]


@pytest.fixture(scope="module")
def words():
    data = memohop.load("csbm", nodes=NODES, channels=30, homophily=0.3, seed=seeded(2))
    data.x = (data.x > 0.22).float()
    return data


@pytest.mark.parametrize("name", ["gcn+mmp", "gat+de"])
def test_the_same_call_twice_gives_equal_bits(name, words):
    first, second = (train(words, name, MEMBERS, epochs=6) for _ in range(2))
    assert_alike(first, second)


@pytest.mark.parametrize("name", ["mlp", "gcn", "gat", "gatv2", "gcn+mmp", "gat+mmp", "geom-gcn"])
def test_a_member_begins_alone_as_in_company(name, words):
    # The features, then two rounds of neighbours, of a state and of a gate, then the nodes.
    length = 30 + 2 * (NODES + WIDTH + 2 * WIDTH) + NODES
    for member, result in zip(MEMBERS, train(words, name, MEMBERS, epochs=1), strict=True):
        (alone,) = train(words, name, [member], epochs=1)
        rtol = 2 * length * torch.finfo(torch.float32).eps
        np.testing.assert_allclose(alone.loss_curve, result.loss_curve, rtol=rtol)


def test_numbers_too_large_for_float32_are_refused(words):
    other = words.clone()
    other.x = words.x.double()
    other.x[2, 1] = 1e300
    with pytest.raises(UsageError, match="node 2, column 1"):
        train(other, "gcn", [Member()], epochs=1)
