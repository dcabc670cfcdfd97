"""The record of a fit: rare positives, reliability, and what is written of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from memohop.fit._candidate import Search
from memohop.fit._certainty import UNCHANGED, Calibration, score_interval
from memohop.fit._ensemble import Chosen
from memohop.fit._verdict import make_record
from memohop.fit.candidates._linear import LinearFamily
from memohop.report.fit import fit_table
from tiny_problem import tiny_problem
from toy_kind import candidate, says

KINDS = {
    "linear": LinearFamily("linear", "columns"),
    "linear+rows": LinearFamily("linear+rows", "rows"),
}


def record(problem, *outputs, calibration=UNCHANGED, classes=("no", "yes")):
    candidates = [
        candidate(problem, said.astype(np.float32), name)
        for name, said in zip(KINDS, outputs, strict=False)
    ]
    best = Search(candidates, [0, 1], "time", 9.0).complete()[0]
    chosen = Chosen({best: 1.0}, calibration)
    return made(problem, candidates, chosen, classes)


def made(problem, candidates, chosen, classes=("no", "yes")):
    search = Search(candidates, [0, 1], "time", 9.0)
    return make_record(problem, KINDS, search, chosen, classes=classes, notes=("a note",))


def test_reliability_groups_nodes_by_what_was_said():
    problem = tiny_problem()
    nodes = np.arange(60)
    how_sure = np.where(nodes < 30, 0.72, 1.0)
    right = (nodes % 3 != 0) | (nodes >= 30)
    groups = record(problem, says(problem, right, how_sure)).reliability
    val = problem.masks.val.any(axis=1)
    assert [group.nodes for group in groups] == [
        int((val & (nodes < 30)).sum()),
        (val & (nodes >= 30)).sum(),
    ]
    assert [group.said for group in groups] == pytest.approx([0.72, 1.0])
    assert [group.right for group in groups] == pytest.approx(
        [right[val & (nodes < 30)].mean(), 1.0]
    )


def test_reliability_is_of_calibrated_probabilities():
    problem = tiny_problem()
    (group,) = record(
        problem, says(problem, problem.y >= 0, 0.9), calibration=Calibration(2.0)
    ).reliability
    assert group.said == pytest.approx(0.75)  # the odds are 3 to 1 where they were 9 to 1


def test_the_top_of_the_ranking_and_the_threshold_of_rare_positives():
    y = np.array([0] * 380 + [1] * 20)
    problem = tiny_problem(y=y, metric="average_precision")
    generator = np.random.default_rng(3)
    # Rounded, so that many nodes share a probability.
    probability = np.round(np.clip(generator.normal(0.3 + 0.35 * y, 0.15), 0.01, 0.99), 1)
    rare = record(problem, np.stack([1 - probability, probability], axis=1)).rare
    assert rare.share == pytest.approx(0.05, abs=0.01)
    test = np.flatnonzero(problem.masks.test)
    ranked = test[np.argsort(-probability[test], kind="stable")]
    assert len(test) == 80
    expected = [y[ranked[:count]].mean() for count in (1, 4, 8)]
    assert rare.precision == pytest.approx(expected)
    val = problem.masks.val.any(axis=1)
    scores = {
        p: f1_score(y[val], probability[val] >= p - 1e-6) for p in np.unique(probability[val])
    }
    reached = f1_score(y[val], probability[val] >= rare.threshold - 1e-6)
    assert reached == pytest.approx(max(scores.values()))


@pytest.mark.parametrize("y", [np.arange(60) % 2, np.arange(60) % 3])
def test_classes_of_like_size_have_no_such_table(y):
    problem = tiny_problem(y=y)
    names = [str(name) for name in range(y.max() + 1)]
    report = record(problem, np.eye(y.max() + 1)[y], classes=names)
    assert report.rare is None
    assert report.class_sizes == dict(zip(names, np.bincount(y).tolist(), strict=True))


def test_each_kind_is_compared_with_what_was_kept():
    problem = tiny_problem()
    nodes = np.arange(60)
    report = record(problem, says(problem, nodes % 3 != 0, 0.9), says(problem, nodes >= 0, 0.9))
    kept, other = report.families
    assert (kept.family, other.family) == ("linear+rows", "linear")
    assert (report.test, kept.test, kept.behind.mean) == (1.0, 1.0, 0.0)
    assert other.behind.mean == pytest.approx(1 - other.test)
    assert (report.test_nodes, report.own_test, report.labelled) == (12, False, 60)
    assert report.answers[0].question == "graph"
    assert "linear+rows" in report.verdict()


def test_the_verdict_says_what_is_all_there_is():
    problem, right = tiny_problem(), np.arange(60) >= 0
    report = record(problem, says(problem, right, 0.8), says(problem, right, 0.9))
    assert "The graph may or may not help" in report.verdict()
    constant = tiny_problem(x=np.ones((60, 1), dtype=np.float32))
    alone = record(constant, says(constant, right, 0.8)).verdict()
    assert alone.endswith("There are no columns: the graph is all there is.")
    alone = replace(report, arcs=0).verdict()
    assert alone.endswith("There are no edges: the columns are all there is.")
    assert "The graph may" not in alone


def test_the_verdict_says_that_more_time_may_change_it():
    problem, nodes = tiny_problem(), np.arange(60)
    report = record(problem, says(problem, nodes % 3 != 0, 0.9), says(problem, nodes >= 0, 0.9))
    assert "more time" not in report.verdict()
    (answer,) = report.answers
    short = replace(report, answers=(replace(answer, short_of_time=True),)).verdict()
    assert short.endswith("With more time this may change: linear was stopped before its end.")


class TestAgainstSayingTheSameOfEveryNode:
    def test_a_model_that_is_ahead_for_sure_is_not_compared(self):
        problem = tiny_problem()
        report = record(problem, says(problem, np.arange(60) >= 0, 0.9))
        usual = (problem.y[problem.masks.test] == 0).mean()
        assert report.over_constant.mean == pytest.approx(report.test - usual)
        assert report.over_constant.low > 0
        assert "always saying" not in report.verdict()

    @pytest.mark.parametrize(
        ("right", "words"),
        [
            (
                lambda y: y == 0,
                "It is no better than always saying 'no', the most frequent class: ",
            ),
            (lambda y: (y == 0) | (np.arange(400) % 40 == 1), "It may be no better than always"),
            (lambda y: np.arange(400) % 3 == 0, "It is worse than always saying 'no', the most"),
        ],
    )
    def test_one_that_is_not_is_told(self, right, words):
        y = np.array([0] * 300 + [1] * 100)
        problem = tiny_problem(y=y)
        report = record(problem, says(problem, right(y), 0.9))
        assert words in report.verdict()
        gap = report.over_constant
        assert gap.mean == pytest.approx(report.test - (y[problem.masks.test] == 0).mean())
        assert f"({100 * gap.low:+.2f} to {100 * gap.high:+.2f})" in report.verdict()

    def test_a_ranking_is_compared_with_a_random_one(self):
        problem = tiny_problem(y=np.arange(400) % 2, metric="roc_auc")
        said = np.random.default_rng(0).random((400, 1))
        report = record(problem, np.hstack([1 - said, said]))
        assert report.over_constant.mean == pytest.approx(report.test - 0.5)
        assert "It is no better than a random ranking: -" in report.verdict()

    def test_too_few_nodes_are_told(self):
        problem = tiny_problem(y=np.array([0] * 20 + [1] * 6), metric="roc_auc")
        report = record(problem, says(problem, np.arange(26) >= 0, 0.9))
        assert "Whether it is better than a random ranking is not known" in report.verdict()


class TestWhyTheRowOfWhatWasKeptHasAnotherScore:
    def test_calibration_changes_classes(self):
        problem = tiny_problem()
        said = np.tile([0.45, 0.55], (60, 1))
        for shifts, changed in (((0.5, -0.5), 12), ((0.01, -0.01), 0), ((), 0)):
            report = record(problem, said, calibration=Calibration(1.3, shifts))
            assert report.reclassified == changed
            why = "kept is calibrated, and the kinds are not, which changes the class of 12 test"
            assert (why in report.legend()) is (changed > 0)

    def test_other_settings_than_the_best_may_be_kept(self):
        problem = tiny_problem()
        nodes = np.arange(60)
        several = [
            candidate(problem, says(problem, nodes % step != 0, 0.9), "linear") for step in (5, 3)
        ]
        several[1].setting = replace(several[1].setting, numbers={"freedom": 2.0})
        for kept, told in ((several[:1], False), (several[1:], True), (several, True)):
            chosen = Chosen(dict.fromkeys(kept, 1 / len(kept)))
            legend = made(problem, several, chosen).legend()
            assert ("the row of linear is its best setting" in legend) is told


def test_the_score_of_what_was_kept_has_an_interval_everywhere():
    problem = tiny_problem()
    report = record(problem, says(problem, problem.y >= 0, 0.9))
    assert report.interval == score_interval(
        problem, problem.masks.test, np.eye(2)[problem.y[problem.masks.test]]
    )
    text = f"100.00 ({100 * report.interval.low:.2f} to 100.00)"
    assert report.interval.low < 0.8
    assert f"accuracy {text} on 12 test nodes" in report.verdict()
    kept = report.rows()[0]
    assert (kept["test_low"], kept["test_high"]) == (round(100 * report.interval.low, 4), 100)
    cells = [list(column.cells) for column in fit_table(report).columns]
    assert cells[4][0] == text[8:-1]
    assert report.test_positives is None


def test_groups_and_few_positive_nodes_are_told():
    y = np.array([0] * 160 + [1] * 40)
    problem = tiny_problem(y=y, metric="average_precision", groups=np.arange(200) // 4)
    report = record(problem, says(problem, np.arange(200) % 9 != 0, 0.9))
    test = problem.masks.test
    assert report.test_groups == len(np.unique(problem.groups[test]))
    assert f"40 test nodes in {report.test_groups} groups, 8 of them positive" in report.verdict()
    assert "too high on average, by up to 9 points" in report.verdict()
    assert "by the groups of the test nodes" in report.legend()
    many = replace(report, test_positives=50).verdict()
    assert "too high" not in many
