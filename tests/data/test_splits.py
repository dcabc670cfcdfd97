from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop.data.splits import make_splits
from memohop.errors import UsageError

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**40)


def random_splits(nodes, **options):
    return make_splits("random", np.zeros(nodes, dtype=np.int64), **options)


@st.composite
def fractions(draw):
    """Three shares with one for train and a sum of 1 at most."""
    train, val, test, rest = (draw(st.integers(least, 20)) for least in (1, 0, 0, 0))
    total = train + val + test + rest
    return train / total, val / total, test / total


def assert_dealt(sets, shares, count):
    """No node is in two sets, and each set has its share of so many nodes."""
    assert sets.dtype == bool
    assert sets.sum(axis=0).max() <= 1
    for of_set, share in zip(sets, shares, strict=True):
        for size in of_set.sum(axis=0):
            assert abs(size - share * count) < 2
            assert (size > 0) == (share > 0)


@few
@given(nodes=st.integers(3, 200), shares=fractions(), seed=seeds)
def test_random_splits_are_disjoint_and_of_the_right_size(nodes, shares, seed):
    sets = random_splits(nodes, fractions=shares, splits=3, seed=seed)
    assert sets.shape == (3, nodes, 3)
    assert_dealt(sets, shares, nodes)


@few
@given(labels=st.lists(st.integers(-1, 3), max_size=80), shares=fractions(), seed=seeds)
def test_class_wise_splits_give_every_set_its_share_of_every_class(labels, shares, seed):
    y = np.array([*labels, *[0, 1, 2, 3] * 3])
    sets = make_splits("class-wise", y, fractions=shares, splits=2, seed=seed)
    assert not sets[:, y < 0].any()
    for label in range(4):
        assert_dealt(sets[:, y == label], shares, (y == label).sum())


@few
@given(seed=seeds, kind=st.sampled_from(["random", "class-wise"]), more=st.integers(2, 12))
def test_more_splits_leave_the_first_ones_as_they_are(seed, kind, more):
    y = np.arange(60) % 4
    single, several = (make_splits(kind, y, splits=count, seed=seed) for count in (1, more))
    assert np.array_equal(single[..., 0], several[..., 0])
    assert len(np.unique(several[0], axis=1).T) == more
    assert not np.array_equal(single, make_splits(kind, y, splits=1, seed=seed + 1))


def test_published_sizes_come_out_of_the_default_fractions():
    assert random_splits(1000, splits=1).sum(axis=(1, 2)).tolist() == [480, 320, 200]
    assert random_splits(183, splits=1).any(axis=0).all()


@pytest.mark.parametrize("size", [1, 2])
def test_a_class_that_is_too_small_is_named_with_the_remedy(size):
    y = np.array([0] * 5 + [3] * size)
    with pytest.raises(UsageError, match=rf"class 3 has {size} node.*split='random'"):
        make_splits("class-wise", y)
    make_splits("class-wise", y, fractions=(0.5, 0, 0))


@pytest.mark.parametrize(
    "shares",
    [(0, 0.5, 0.5), (0.6, 0.3, 0.2), (-0.1, 0.5, 0.5), (0.5, 0.5), (np.nan, 0, 0), 0.5, "abc"],
)
def test_fractions_that_cannot_be(shares):
    with pytest.raises(UsageError, match="fractions="):
        random_splits(100, fractions=shares)


@pytest.mark.parametrize(
    ("kind", "nodes", "options", "words"),
    [
        ("random", 2, {}, "num_nodes=2"),
        ("random", 100, {"splits": 0}, "splits=0"),
        ("random", 100, {"splits": 1.5}, "splits=1.5"),
        ("random", 100, {"seed": -1}, "seed=-1"),
        ("random", 100, {"seed": "a"}, "seed='a'"),
        ("randm", 9, {}, r"'randm'.*random"),
    ],
)
def test_what_cannot_be(kind, nodes, options, words):
    with pytest.raises(UsageError, match=words):
        make_splits(kind, np.zeros(nodes, dtype=np.int64), **options)
