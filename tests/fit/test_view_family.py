"""Models that learn from features are fitted on several splits at the same time."""

import threading
from itertools import product

import numpy as np
import pytest

from memohop.fit.candidates import _view_family as view_family
from memohop.fit.candidates._extra_trees import ExtraTreesFamily
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._nearest import NearestFamily
from memohop.fit.candidates._trees import TreeFamily
from memohop.training import Enough
from tiny_problem import tiny_problem

FAMILIES = [
    LinearFamily("linear", "neighbours"),
    TreeFamily("lightgbm", "neighbours"),
    ExtraTreesFamily("extra-trees", "neighbours"),
    NearestFamily("nearest", "columns"),
]


@pytest.fixture
def threads(monkeypatch):
    """Sets how many splits are fitted at the same time."""

    def at_once(count):
        monkeypatch.setattr(view_family, "splits_at_once", lambda problem: count)

    return at_once


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_splits_at_the_same_time_are_splits_one_by_one(family, threads):
    fits_by_count = []
    for count in (1, 2):
        threads(count)
        problem = tiny_problem(120)
        fits_by_count.append(family.fit(problem, family.first(problem)[:2], [0, 1]))
    for alone, together in zip(*fits_by_count, strict=True):
        assert sorted(together) == [0, 1]
        for split, fit in together.items():
            np.testing.assert_array_equal(fit.val, alone[split].val)
            np.testing.assert_array_equal(fit.test, alone[split].test)


def test_models_are_kept_in_the_order_of_the_splits(threads, monkeypatch):
    threads(2)
    second_ended, learn = threading.Event(), LinearFamily.learn

    def first_waits(self, *given):
        *_, split, _ = given
        if split == 0:
            assert second_ended.wait(timeout=60)
        return learn(self, *given)

    def second_ends():
        second_ended.set()

    monkeypatch.setattr(LinearFamily, "learn", first_waits)
    problem, family = tiny_problem(120), FAMILIES[0]
    fits_by_setting = family.fit(problem, family.first(problem)[:2], [0, 1], look=second_ends)
    assert [list(fits) for fits in fits_by_setting] == [[0, 1], [0, 1]]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_nothing_is_begun_after_enough(family, threads):
    threads(1)

    def enough():
        raise Enough

    problem = tiny_problem(120)
    fits_by_setting = family.fit(problem, family.first(problem)[:2], [0, 1], look=enough)
    assert [list(fits) for fits in fits_by_setting] == [[0], []]


def test_a_break_reaches_the_caller_and_ends_all_threads(threads):
    threads(2)
    before, family, problem = threading.active_count(), FAMILIES[1], tiny_problem(120)

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        family.fit(problem, family.first(problem)[:1], [0, 1], look=broken)
    assert threading.active_count() == before


def test_a_large_table_is_fitted_split_by_split(monkeypatch):
    problem = tiny_problem(120)
    monkeypatch.setattr(view_family.torch, "get_num_threads", lambda: 7)
    assert view_family.splits_at_once(problem) == 7
    monkeypatch.setattr(view_family, "SMALL", 10)
    assert view_family.splits_at_once(problem) == 1


@pytest.mark.parametrize(
    ("family", "sees"),
    [
        *product([LinearFamily, TreeFamily], ["columns", "neighbours", "rows"]),
        *product([ExtraTreesFamily], ["columns", "neighbours"]),
        (NearestFamily, "columns"),
    ],
)
def test_labels_of_test_nodes_change_nothing(family, sees):
    problem, other, kind = tiny_problem(90), tiny_problem(90), family("any", sees)
    # Only boosted trees learn from validation nodes: they stop by them.
    hidden = problem.masks.test if family is TreeFamily else ~problem.masks.train[:, 0]
    object.__setattr__(other, "y", np.where(hidden, 1 - problem.y, problem.y))
    first = kind.first(problem)[:1]
    same, again = (kind.fit(each, first, [0])[0][0].part for each in (problem, other))
    inputs = problem.with_rows_hidden(0)  # with the labels of training nodes
    assert np.array_equal(same.outputs(inputs), again.outputs(inputs))
