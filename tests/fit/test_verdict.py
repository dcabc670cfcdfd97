"""What the graph adds and what memory adds, against the slow way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from memohop.fit.candidate import Candidate, Search
from memohop.fit.candidates.family import Fitted, Setting
from memohop.fit.paired import paired_interval
from memohop.fit.verdict import answers, of_test
from tiny_problem import tiny_problem


@dataclass(frozen=True)
class Kind:
    id: str
    sees_graph: bool
    has_memory: bool = False


def outputs(right, y):
    said = np.where(right, y, 1 - y)
    return np.stack([1 - said, said], axis=1).astype(np.float32)


def candidate(problem, name, val, right):
    """A candidate with a validation score, and right on some of the test nodes."""
    said = outputs(right, problem.y[problem.masks.test])
    found = Candidate(Setting(name, {}, {}))
    for split in range(problem.splits):
        found.fits[split] = Fitted(said, said)
        found.scores[split] = val
    return found


def test_the_interval_of_few_test_nodes_leaves_out_one_at_a_time():
    problem = tiny_problem()
    y = problem.y[problem.masks.test]
    m = len(y)
    assert m == 12
    one, other = np.arange(m) % 4 != 0, np.arange(m) % 3 != 0
    found = paired_interval(problem, problem.masks.test, outputs(one, y), outputs(other, y))
    differences = one.astype(float) - other
    left_out = np.array([np.delete(differences, node).mean() for node in range(m)])
    variance = (m - 1) / m * ((left_out - left_out.mean()) ** 2).sum() + 1 / (m + 2) ** 2
    reach = stats.t.ppf(0.975, m - 1) * np.sqrt(variance)
    assert found.mean == pytest.approx(differences.mean())
    assert (found.low, found.high) == pytest.approx((found.mean - reach, found.mean + reach))


def test_a_model_against_itself_may_be_ahead_by_a_node():
    problem = tiny_problem()
    said = outputs(np.ones(12, dtype=bool), problem.y[problem.masks.test])
    found = paired_interval(problem, problem.masks.test, said, said)
    assert found.mean == 0
    assert found.low < 0 < found.high
    assert found.high == pytest.approx(stats.t.ppf(0.975, 11) / 14)


@pytest.mark.parametrize(("rare", "reach"), [(5, 1.0), (25, stats.t.ppf(0.975, 14) / (2 * 5 + 2))])
def test_a_ranking_is_as_sure_as_its_rarer_class_allows(rare, reach):
    """One test node of a class says nothing; five say a little."""
    y = np.array([0] * 50 + [1] * rare)
    problem = tiny_problem(y=y, metric="roc_auc")
    truth = problem.y[problem.masks.test]
    assert np.bincount(truth).tolist() == [10, rare // 5]
    said = outputs(np.ones(len(truth), dtype=bool), truth)
    found = paired_interval(problem, problem.masks.test, said, said)
    assert found.high == pytest.approx(reach)


def test_each_group_is_represented_by_the_best_of_it_on_validation():
    problem = tiny_problem()
    kinds = {
        kind.id: kind
        for kind in (
            Kind("columns", sees_graph=False),
            Kind("poor columns", sees_graph=False),
            Kind("graph", sees_graph=True),
            Kind("memory", sees_graph=True, has_memory=True),
        )
    }
    nodes = np.arange(12)
    found = Search(
        [
            candidate(problem, "poor columns", 0.5, nodes >= 0),
            candidate(problem, "columns", 0.6, nodes < 6),
            candidate(problem, "graph", 0.8, nodes < 9),
            candidate(problem, "memory", 0.7, nodes < 11),
            candidate(problem, "memory", 0.4, nodes < 1),
        ],
        [0, 1],
        "trials",
        1.0,
    )
    graph, memory = answers(problem, kinds, found)
    assert (graph.question, graph.better, graph.than) == ("graph", "graph", "columns")
    assert graph.gain.mean == pytest.approx(3 / 12)
    assert (memory.question, memory.better, memory.than) == ("memory", "memory", "graph")
    assert memory.gain.mean == pytest.approx(2 / 12)


@pytest.mark.parametrize("stopped", ["graph", "columns"])
def test_that_the_one_behind_had_too_little_time_is_told(stopped):
    problem, nodes = tiny_problem(), np.arange(12)
    kinds = {name: Kind(name, sees_graph=name == "graph") for name in ("graph", "columns")}
    tried = [
        candidate(problem, "graph", 0.8, nodes < 9),
        candidate(problem, "columns", 0.6, nodes < 6),
    ]
    next(one for one in tried if one.setting.family == stopped).unfinished = frozenset([1])
    (found,) = answers(problem, kinds, Search(tried, [0, 1], "time", 1.0))
    assert found.behind == "columns"
    assert found.short_of_time is (stopped == "columns")
    (on_other_splits,) = answers(problem, kinds, Search(tried, [0], "time", 1.0))
    assert not on_other_splits.short_of_time


def test_a_question_without_models_has_no_answer():
    problem = tiny_problem()
    one = candidate(problem, "graph", 0.8, np.ones(12, dtype=bool))
    found = Search([one], [0, 1], "trials", 1.0)
    assert answers(problem, {"graph": Kind("graph", sees_graph=True)}, found) == []


def test_what_is_said_of_test_nodes_is_the_mean_over_splits():
    one = Candidate(Setting("a", {}, {}))
    for split, value in enumerate((0.2, 0.6)):
        said = np.full((3, 2), value, dtype=np.float32)
        one.fits[split] = Fitted(said, said)
    assert np.allclose(of_test(one), 0.4)
