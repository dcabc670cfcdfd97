"""Weights of an ensemble, and calibrated probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from memohop.own.candidate import Candidate
from memohop.own.candidates.family import Fitted, Setting
from memohop.own.ensemble import at_temperature, choose_weights, fit_temperature
from memohop.own.folds import make_masks
from memohop.own.problem import Problem
from tiny_problem import tiny_problem


@pytest.fixture
def problem() -> Problem:
    y = np.arange(60) % 2
    return tiny_problem(y=y, masks=make_masks(y, splits=2, seed=0))


def candidate(problem: Problem, right: np.ndarray, sure: float) -> Candidate:
    """A candidate that is right on some nodes, all with the same probability."""
    said = np.where(right == (problem.y == 1), sure, 1 - sure)
    outputs = np.stack([1 - said, said], axis=1).astype(np.float32)
    found = Candidate(Setting("toy", {}, {}))
    for split in range(problem.splits):
        rows = problem.masks.val[:, split]
        found.fits[split] = Fitted(outputs[rows], outputs[problem.masks.test])
        found.scores[split] = problem.score(outputs[rows], rows)
    return found


def test_candidates_that_err_on_other_nodes_are_mixed(problem):
    nodes = np.arange(60)
    three = [candidate(problem, nodes % 3 != part, 0.8) for part in range(3)]
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


def test_where_scores_are_luck_the_loss_decides(monkeypatch):
    """With six positives in each split, a perfect ranking may be luck, and its loss shows it."""
    y = np.arange(60) % 5 == 0
    problem = tiny_problem(
        y=y.astype(int), metric="roc_auc", masks=make_masks(y.astype(int), splits=2, seed=0)
    )
    assert problem.ranks_few
    nodes = np.arange(60)
    errs = np.isin(nodes % 10, (1, 5))
    lucky, honest = candidate(problem, nodes >= 0, 0.51), candidate(problem, ~errs, 0.9)
    by_loss = choose_weights(problem, [lucky, honest], [0, 1])
    monkeypatch.setitem(problem.__dict__, "ranks_few", False)
    by_score = choose_weights(problem, [lucky, honest], [0, 1])
    assert by_loss[1] > 0.5
    assert by_score.tolist() == [1, 0]


def test_the_temperature_of_probabilities_that_are_too_sure():
    generator = np.random.default_rng(0)
    truth = generator.uniform(0.02, 0.98, 20_000)
    y = (generator.random(20_000) < truth).astype(int)
    honest = np.stack([1 - truth, truth], axis=1)
    too_sure = at_temperature(honest, 1 / 3)
    assert fit_temperature(too_sure, y) == pytest.approx(3, rel=0.05)
    assert np.allclose(at_temperature(too_sure, 3), honest, atol=1e-3)


def test_numbers_have_no_temperature():
    numbers = np.array([[3.0], [-7.0]], dtype=np.float32)
    assert (at_temperature(numbers, 2.0) == numbers).all()


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
