"""Who is learned from, who chooses and who tests."""

from __future__ import annotations

import numpy as np
import pytest

from memohop import UsageError
from memohop.data.folds import make_masks
from memohop.data.splits import OwnSplit

Y = np.array([0] * 20 + [1] * 10 + [-1] * 5)


def test_a_fifth_of_each_class_is_tested_the_rest_validates_once_and_in_the_end_all_is_learned():
    masks, labelled = make_masks(Y, splits=4, seed=0), Y >= 0
    parts = masks.train.astype(int) + masks.val + masks.test[:, None]
    assert (parts == labelled[:, None]).all()
    assert np.bincount(Y[masks.test]).tolist() == [4, 2]
    assert (masks.val.sum(axis=1) == (labelled & ~masks.test)).all()
    assert (masks.end_train.sum(axis=1) == 3 * labelled).all()
    assert (masks.end_val.sum(axis=1) == labelled).all()


def test_the_split_of_the_graph_is_kept():
    """Its test nodes are never learned from; several splits would validate the same nodes again."""
    (test, val, train), labelled = (np.arange(35) % 3 == np.arange(3)[:, None]), Y >= 0
    masks = make_masks(Y, splits=3, seed=0, own=OwnSplit(train, val, test))
    assert (masks.test == (test & labelled)).all()
    assert not (masks.end_train | masks.end_val)[test].any()
    assert np.array_equal(masks.val, (val & labelled)[:, None])
    assert np.array_equal(masks.train, (train & labelled)[:, None])
    assert masks.end_train.shape == masks.end_val.shape == (35, 3)
    assert (masks.end_train | masks.end_val)[val & labelled].all()


def test_a_group_is_never_torn_apart():
    groups = np.arange(35) // 2
    masks = make_masks(Y, splits=3, seed=1, groups=groups)
    for mask in (masks.test[:, None], masks.val, masks.end_val):
        for group in np.unique(groups[Y >= 0]):
            members = mask[(groups == group) & (Y >= 0)]
            assert (members == members[0]).all()


def test_both_classes_are_everywhere_where_a_ranking_needs_them():
    y = np.array([0] * 40 + [1] * 4)
    masks = make_masks(y, splits=5, seed=0, both_classes=True)
    assert masks.val.shape[1] == 3
    for mask in (*masks.train.T, *masks.val.T, masks.test):
        assert set(y[mask]) == {0, 1}


def test_a_class_of_two_nodes_is_trained_on_in_every_split():
    y = np.array([0] * 10 + [1] * 10 + [2] * 2)
    masks = make_masks(y, splits=3, seed=0)
    assert masks.train[20:].all()
    assert masks.end_train[20:].all()


def test_numbers_are_dealt_without_regard_to_their_values():
    y = np.array([0.5, 1.5, np.nan, 2.5, 3.5, 4.5, 5.5])
    masks = make_masks(y, splits=2, seed=0)
    assert not (masks.train | masks.val)[2].any()
    assert masks.test.sum() == 2


@pytest.mark.parametrize("seed", [0, 1])
def test_the_seed_decides(seed):
    first, again = (make_masks(Y, splits=3, seed=seed) for _ in range(2))
    assert all(map(np.array_equal, first, again))
    assert not (first.test == make_masks(Y, splits=3, seed=seed + 7).test).all()


@pytest.mark.parametrize(
    ("y", "groups", "words"),
    [
        ([0] * 5, None, "splits=5 beside a test takes 5 .* of the largest class, and there are 4"),
        ([0] * 4 + [1] * 4, None, "a test takes 5 labelled nodes .* are 4; label more nodes$"),
        ([0] * 9 + [1] * 9, [0] * 9 + [1] * 9, "takes 5 groups of labelled nodes, and there are 2"),
        ([0.5, 1, 2, 3], None, "a test takes 5 labelled nodes, and there are 4"),
        ([-1] * 9, None, "takes 5 labelled nodes of the largest class, and there are 0"),
    ],
)
def test_what_is_too_few_is_named(y, groups, words):
    with pytest.raises(UsageError, match=words):
        make_masks(np.array(y), splits=5, seed=0, groups=groups and np.array(groups))
