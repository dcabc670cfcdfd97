from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop.data.splits import make_splits
from memohop.errors import UsageError

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**40)


def random_splits(nodes, **options):
    return make_splits("random", torch.zeros(nodes, dtype=torch.long), **options)


@st.composite
def fractions(draw):
    """Three shares with one for train and a sum of 1 at most."""
    train, val, test, rest = (draw(st.integers(least, 20)) for least in (1, 0, 0, 0))
    total = train + val + test + rest
    return train / total, val / total, test / total


@few
@given(nodes=st.integers(3, 200), shares=fractions(), seed=seeds)
def test_random_splits_are_disjoint_and_of_the_right_size(nodes, shares, seed):
    masks = random_splits(nodes, fractions=shares, splits=3, seed=seed)
    assert all(mask.shape == (nodes, 3) and mask.dtype == torch.bool for mask in masks)
    assert int(sum(mask.long() for mask in masks).max()) <= 1
    for mask, share in zip(masks, shares, strict=True):
        for size in mask.sum(dim=0).tolist():
            assert abs(size - share * nodes) < 2
            assert (size > 0) == (share > 0)


@few
@given(labels=st.lists(st.integers(-1, 3), max_size=80), shares=fractions(), seed=seeds)
def test_class_wise_splits_give_every_set_its_share_of_every_class(labels, shares, seed):
    y = torch.tensor([*labels, *[0, 1, 2, 3] * 3])
    masks = make_splits("class-wise", y, fractions=shares, splits=2, seed=seed)
    assert int(sum(mask.long() for mask in masks).max()) <= 1
    for mask, share in zip(masks, shares, strict=True):
        assert not mask[y < 0].any()
        for label in range(4):
            count = int((y == label).sum())
            for size in mask[y == label].sum(dim=0).tolist():
                assert abs(size - share * count) < 2
                assert (size > 0) == (share > 0)


@few
@given(seed=seeds, kind=st.sampled_from(["random", "class-wise"]), more=st.integers(2, 12))
def test_more_splits_leave_the_first_ones_as_they_are(seed, kind, more):
    y = torch.arange(60) % 4
    one = make_splits(kind, y, splits=1, seed=seed)
    many = make_splits(kind, y, splits=more, seed=seed)
    for first, all_of_them in zip(one, many, strict=True):
        assert torch.equal(first[:, 0], all_of_them[:, 0])
        assert all_of_them.unique(dim=1).shape[1] == more


def test_the_seed_decides():
    same, again, other = (random_splits(100, seed=seed)[0] for seed in (1, 1, 2))
    assert torch.equal(same, again)
    assert not torch.equal(same, other)


def test_published_sizes_come_out_of_the_default_fractions():
    assert [int(mask.sum()) for mask in random_splits(1000, splits=1)] == [480, 320, 200]
    train, val, test = random_splits(183, splits=1)
    assert (train | val | test).all()


@pytest.mark.parametrize("size", [1, 2])
def test_a_class_that_is_too_small_is_named_with_the_remedy(size):
    y = torch.tensor([0] * 5 + [3] * size)
    with pytest.raises(UsageError, match=rf"class 3 has {size} node.*split='random'"):
        make_splits("class-wise", y)
    make_splits("class-wise", y, fractions=(0.5, 0, 0))


def test_a_graph_that_is_too_small():
    with pytest.raises(UsageError, match="num_nodes=2"):
        random_splits(2)


@pytest.mark.parametrize(
    "shares",
    [
        (0, 0.5, 0.5),
        (0.6, 0.3, 0.2),
        (-0.1, 0.5, 0.5),
        (0.5, 0.5),
        (float("nan"), 0, 0),
        0.5,
        "abc",
    ],
)
def test_fractions_that_cannot_be(shares):
    with pytest.raises(UsageError, match="fractions="):
        random_splits(100, fractions=shares)


@pytest.mark.parametrize("wrong", [{"splits": 0}, {"splits": 1.5}, {"seed": -1}, {"seed": "a"}])
def test_numbers_that_cannot_be(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(UsageError, match=f"{name}={value!r}"):
        random_splits(100, **wrong)


def test_an_unknown_kind():
    with pytest.raises(UsageError, match=r"'randm'.*random"):
        make_splits("randm", torch.zeros(9, dtype=torch.long))
