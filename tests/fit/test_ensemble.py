"""Weights of an ensemble."""

from __future__ import annotations

import numpy as np
import pytest

import toy_kind
from memohop.fit._candidate import Candidate
from memohop.fit._ensemble import choose_weights
from memohop.fit._problem import Problem
from tiny_problem import tiny_problem


@pytest.fixture
def problem() -> Problem:
    return tiny_problem()


def candidate(problem: Problem, right: np.ndarray, sure: float) -> Candidate:
    """A candidate that is right on some nodes, all with the same probability."""
    return toy_kind.candidate(problem, toy_kind.says(problem, right, sure))


def test_candidates_that_err_on_other_nodes_are_mixed(problem):
    order = np.cumsum(problem.masks.val.any(axis=1))  # so that each errs on as many of them
    three = [candidate(problem, order % 3 != part, 0.8) for part in range(3)]
    weights = choose_weights(problem, three, [0, 1])
    assert weights == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_a_candidate_that_is_always_right_stays_alone(problem):
    nodes = np.arange(60)
    best, worse = candidate(problem, nodes >= 0, 0.9), candidate(problem, nodes % 2 == 0, 0.9)
    assert choose_weights(problem, [best, worse], [0, 1]).tolist() == [1, 0]


def test_of_equal_scores_the_smaller_loss_wins(problem):
    nodes = np.arange(60)
    unsure, sure = candidate(problem, nodes >= 0, 0.6), candidate(problem, nodes >= 0, 0.99)
    weights = choose_weights(problem, [unsure, sure], [0, 1])
    assert weights[1] > 0.9


def test_luck_of_the_best_does_not_make_it_the_only_one(problem):
    """The first is right on one node more than the others, which err on different nodes."""
    nodes = np.arange(60)
    lucky = candidate(problem, nodes % 3 != 0, 0.8)
    others = [candidate(problem, nodes % 3 != part, 0.8) for part in (1, 2) for _ in range(3)]
    weights = choose_weights(problem, [lucky, *others], [0, 1])
    assert weights[0] < 0.5
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("metric", "chosen"), [("accuracy", 1), ("roc_auc", 1), ("balanced_accuracy", 0)]
)
def test_the_loss_decides_unless_classes_count_alike(metric, chosen):
    """One is right on more nodes by a hair, the other is right with good reason."""
    y = (np.arange(60) % 5 == 0).astype(int)
    problem = tiny_problem(y=y, metric=metric)
    nodes = np.arange(60)
    errs = np.isin(nodes % 10, (1, 5))
    lucky, honest = candidate(problem, nodes >= 0, 0.51), candidate(problem, ~errs, 0.9)
    weights = choose_weights(problem, [lucky, honest], [0, 1])
    assert weights[chosen] > 0.5


def test_of_many_candidates_no_single_one_decides(problem):
    nodes = np.arange(60)
    many = [candidate(problem, nodes % 3 != part % 3, 0.8) for part in range(9)]
    weights = choose_weights(problem, many, [0, 1])
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).sum() > 3
    said = [
        sum(weight * one.fits[split].val for weight, one in zip(weights, many, strict=True))
        for split in range(2)
    ]
    scores = [problem.score(one, problem.masks.val[:, s]) for s, one in enumerate(said)]
    assert np.mean(scores) >= many[0].mean([0, 1])
