"""Boosted trees: what is kept of them, and when they stop."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import lightgbm
import numpy as np
import pytest
from scipy import sparse

from memohop.fit._candidate import variations
from memohop.fit._views import Extras
from memohop.fit.candidates import _trees as trees
from memohop.fit.candidates._trees import TreeFamily
from memohop.training import Enough
from tiny_problem import tiny_problem


def fit(problem, sees="neighbours", splits=(0,), **options):
    family = TreeFamily("lightgbm", sees, **options)
    (fits,) = family.fit(problem, family.first(problem)[:1], splits)
    return fits


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    monkeypatch.setattr(trees, "_ROUNDS", 30)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_trees_read_back_from_their_text_say_the_same(classes, as_sparse):
    problem = tiny_problem(90, classes=classes)
    if as_sparse:
        problem = tiny_problem(90, classes=classes, x=sparse.csr_array(problem.x))
    fits = fit(problem, splits=[0, 1])
    for split, split_fit in fits.items():
        known = problem.known(split)
        inputs = tiny_problem(90, classes=classes, x=problem.x)
        object.__setattr__(inputs, "y", known)
        said = split_fit.part.outputs(inputs)
        assert said.shape == (90, classes)
        assert np.allclose(said.sum(axis=1), 1, atol=1e-6)
        assert np.allclose(said[problem.masks.val[:, split]], split_fit.val, atol=1e-6)
        assert np.allclose(said[problem.masks.test], split_fit.test, atol=1e-6)


def test_a_table_with_words_is_tried_with_and_without_their_means():
    x = np.hstack([tiny_problem().x, np.eye(60, 20, dtype=np.float32)])
    problem, family = tiny_problem(x=x), TreeFamily("lightgbm+neighbours", "neighbours")
    ways = [
        {"columns": "all", "means": "numbers"},
        {"columns": "all", "means": "all"},
        {"columns": "numbers", "means": "numbers"},
    ]
    ways = [{**way, "extras": "none"} for way in ways]
    first = family.first(problem)
    with_structure = first.pop(2)
    assert with_structure.options == {**ways[0], "extras": "structure"}
    assert [setting.options for setting in first] == ways * 3
    assert family.openers(problem) == 3
    generator = np.random.default_rng(0)
    near = [variations(family, problem, first[0], 2, generator) for _ in range(100)]
    assert {group[0].options["means"] for group in near} == {"numbers", "all", "none"}
    assert {group[0].options["extras"] for group in near} == {*get_args(Extras)}
    assert all(variation.options == group[0].options for group in near for variation in group)
    widths = []
    for setting in first[:3]:
        (fits,) = family.fit(problem, [setting], [0])
        widths.append(fits[0].part.view.features(problem, problem.y).shape[1])
        said = fits[0].part.outputs(replace(problem, y=problem.known(0)))
        assert np.allclose(said[problem.masks.val[:, 0]], fits[0].val, atol=1e-6)
    assert widths[1] - widths[0] == 2 * 20  # the words' means over one hop and two
    assert widths[0] - widths[2] == 20


@pytest.mark.parametrize(
    ("sees", "openers", "ways"),
    [
        ("columns", 1, [("all",), ("low-rank",), ("numbers",)]),
        (
            "neighbours",
            3,
            [("all", "numbers"), ("all", "all"), ("low-rank", "all"), ("numbers", "numbers")],
        ),
    ],
)
def test_many_words_beside_numbers_are_combined_or_left_out_too(sees, openers, ways):
    words = np.eye(200, 100, dtype=np.float32)
    problem = tiny_problem(200, x=sparse.csr_array(np.hstack([tiny_problem(200).x, words])))
    family = TreeFamily("lightgbm", sees)
    first = family.first(problem)
    named = ("columns", "means") if sees == "neighbours" else ("columns",)
    first = [setting for setting in first if setting.options.get("extras") != "structure"]
    tried = [tuple(setting.options[name] for name in named) for setting in first]
    assert tried == ways * 3
    assert family.openers(problem) == openers
    assert {*family.space(problem)} >= {*named}
    for setting in first[: len(ways)]:
        (fits,) = family.fit(problem, [setting], [0])
        said = fits[0].part.outputs(replace(problem, y=problem.known(0)))
        assert np.allclose(said[problem.masks.val[:, 0]], fits[0].val, atol=1e-6)


def test_words_alone_are_tried_with_and_without_combinations():
    problem = tiny_problem(200, x=sparse.csr_array(np.eye(200, 100, dtype=np.float32)))
    family = TreeFamily("lightgbm", "columns")
    options = [setting.options for setting in family.first(problem)[:2]]
    assert options == [{"columns": "all"}, {"columns": "low-rank"}]
    assert family.openers(problem) == 1


@pytest.mark.parametrize("sees", ["columns", "neighbours"])
def test_a_table_of_numbers_or_without_neighbours_has_no_choice_of_means(sees):
    family = TreeFamily("lightgbm", sees)
    x = tiny_problem().x if sees == "neighbours" else np.eye(60, 20, dtype=np.float32)
    assert family.openers(tiny_problem(x=x)) == 1 + (sees == "neighbours")
    options = [setting.options for setting in family.first(tiny_problem(x=x))]
    assert all({*some} <= {"means", "extras"} for some in options)
    assert all(some.get("means", "all") == "all" for some in options)


def test_numbers_have_one_output():
    problem = tiny_problem(y=np.linspace(0, 1, 80))
    said = fit(problem)[0].part.outputs(problem)
    assert said.shape == (80, 1)


def test_trees_stop_when_it_is_enough_but_not_without_any():
    def enough():
        raise Enough

    family, problem = TreeFamily("lightgbm", "columns"), tiny_problem(120)
    (fits,) = family.fit(problem, family.first(problem)[:1], [0], look=enough)
    made = lightgbm.Booster(model_str=fits[0].part.text).num_trees()
    assert made == 1  # a round of many classes may take seconds


def test_balanced_classes_are_predicted_more_alike():
    y = np.array([0] * 100 + [1] * 12)
    problem = tiny_problem(y=y)
    plain, balanced = (fit(problem, "columns", balanced=b)[0].test[:, 1] for b in (False, True))
    assert balanced.mean() > 2 * plain.mean()
