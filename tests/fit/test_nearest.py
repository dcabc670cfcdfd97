"""Nearest neighbours, against scikit-learn's; what is saved of them is checked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from memohop import UsageError
from memohop.fit._candidate import Setting
from memohop.fit._saved import Saved, Sizes
from memohop.fit.candidates import _nearest as nearest
from memohop.fit.candidates._nearest import Nearest, NearestFamily
from tiny_problem import tiny_problem

FAMILY = NearestFamily("nearest", "columns")


def fit(problem, neighbours=5.0, closeness=1.0, family=FAMILY):
    setting = Setting("nearest", {}, {"neighbours": neighbours, "closeness": closeness})
    (fits,) = family.fit(problem, [setting], [0])
    return fits[0]


def sklearn_says(problem, kind, neighbours, closeness):
    """What it predicts, and how much the votes of each node weigh together."""
    train, sums = problem.masks.train[:, 0], []
    scaler = StandardScaler().fit(problem.x[train])

    def weigh(distance):
        weight = (distance / distance[:, -1:] + 1e-3) ** -closeness
        sums.append(weight.sum(axis=1, keepdims=True))
        return weight

    model = kind(neighbours, weights=weigh).fit(
        scaler.transform(problem.x[train]), problem.y[train]
    )
    x = scaler.transform(problem.x)
    return (model.predict_proba(x) if problem.classes else model.predict(x)), sums[0]


@pytest.mark.parametrize(("neighbours", "closeness"), [(3, 0.0), (5, 0.0), (7, 1.0), (5, 2.0)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_votes_are_those_of_scikit_learn_and_one_more(neighbours, closeness, as_sparse):
    problem = tiny_problem(90, classes=3)
    said, sums = sklearn_says(problem, KNeighborsClassifier, neighbours, closeness)
    shares = np.bincount(problem.y[problem.masks.train[:, 0]]) + 1
    expected = (said * sums + shares / shares.sum()) / (sums + 1)
    if as_sparse:
        problem = tiny_problem(90, classes=3, x=sparse.csr_array(problem.x))
    fitted = fit(problem, neighbours + 0.4, closeness)
    test = problem.masks.test
    assert np.allclose(fitted.test, expected[test], atol=1e-4)
    assert np.allclose(fitted.val, expected[problem.masks.val[:, 0]], atol=1e-4)
    assert np.array_equal(fitted.part.outputs(problem)[test], fitted.test)


@pytest.mark.parametrize("closeness", [0.0, 1.0])
def test_numbers_are_means_over_the_nearest(closeness):
    problem = tiny_problem(y=np.linspace(-5, 100, 80))
    expected, _ = sklearn_says(problem, KNeighborsRegressor, 5, closeness)
    assert np.allclose(fit(problem, 5, closeness).test[:, 0], expected[problem.masks.test], 1e-4)


def test_three_points_by_hand():
    """At 0, 2 and 8, of classes 0, 1 and 1; from 2.5 it is 0.5 and 2.5 to the nearest."""
    arrays = ([0], [0], [1], [[0], [2], [8]], [0, 1, 1], [1, 1], [0.4, 0.6])
    columns, *others = (np.array(array, dtype=np.float32) for array in arrays)
    part = Nearest(tiny_problem().view("columns"), 2, 1.0, 1, columns.astype(np.int32), *others)
    votes = np.array([1 / 1.001 + 0.4, 1 / (0.5 / 2.5 + 0.001) + 0.6])
    said = part.of_features(np.array([[2.5]], dtype=np.float32))
    assert said[0] == pytest.approx(votes / votes.sum(), abs=1e-6)


def test_only_columns_that_are_rarely_zero_count():
    problem = tiny_problem(120)
    words = np.random.default_rng(1).random((120, 50)) < 0.03
    wide = np.hstack([words, problem.x]).astype(np.float32)
    for x in (wide, sparse.csr_array(wide)):
        fitted = fit(tiny_problem(120, x=x))
        assert fitted.part.columns.tolist() == [50, 51, 52]
        assert np.allclose(fitted.test, fit(problem).test, atol=1e-6)


def test_it_is_left_out_where_it_cannot_be_of_use(monkeypatch):
    words = (np.random.default_rng(1).random((60, 50)) < 0.03).astype(np.float32)
    numbers = np.random.default_rng(1).normal(size=(60, 65)).astype(np.float32)
    assert FAMILY.first(tiny_problem())
    assert FAMILY.first(tiny_problem(x=numbers[:, :64]))
    for x in (words, numbers, np.ones((60, 1), dtype=np.float32)):
        assert not FAMILY.first(tiny_problem(x=x))
    monkeypatch.setattr(nearest, "_LARGEST", 179)
    assert not FAMILY.first(tiny_problem())


def test_a_search_costs_more_in_more_columns_and_nodes():
    x = np.random.default_rng(1).normal(size=(400, 30)).astype(np.float32)
    small, wide = tiny_problem(400, x=x[:, :3]), tiny_problem(400, x=x)
    many = tiny_problem(4000, x=np.tile(x, (10, 1)))
    costs = [FAMILY.cost(each, FAMILY.first(each)[0]) for each in (small, wide, many)]
    assert costs[0].seconds < costs[1].seconds < costs[2].seconds / 50
    assert costs[0].bytes < costs[1].bytes < costs[2].bytes
    little = NearestFamily("nearest", "columns", memory=1)
    assert little.cost(small, FAMILY.first(small)[0]).seconds == np.inf


def test_nodes_in_one_place_and_fewer_than_are_asked_for():
    x = np.ones((60, 3), dtype=np.float32)
    x[::2, 1] = 5  # the class, and two columns that are constant
    problem = tiny_problem(x=x)
    said = fit(problem, 500, 2.0).part.outputs(problem)
    assert np.isfinite(said).all()
    assert (said.argmax(axis=1) == problem.y).all()


def test_balanced_classes_are_predicted_more_alike():
    problem = tiny_problem(y=np.array([0] * 100 + [1] * 12))
    families = (NearestFamily("nearest", "columns", balanced=b) for b in (False, True))
    plain, balanced = (fit(problem, 10, 0.0, family).test[:, 1] for family in families)
    assert balanced.mean() > 2 * plain.mean()


def test_what_is_far_from_all_of_them_or_larger_than_single_precision_is_no_error():
    problem = tiny_problem()
    part = fit(problem).part
    far = np.full((2, 3), [[3e38], [-3e38]], dtype=np.float32)
    assert np.isfinite(part.of_features(far)).all()


def test_the_order_of_the_rows_changes_nothing():
    problem = tiny_problem(90)
    part = fit(problem).part
    assert np.array_equal(part.of_features(problem.x[::-1]), part.of_features(problem.x)[::-1])
    assert part.of_features(problem.x[:0]).shape == (0, 2)


@pytest.mark.parametrize("y", [np.arange(60) % 3, np.linspace(0, 1, 60)])
def test_what_is_saved_is_read(y):
    problem = tiny_problem(y=y)
    part, sizes = fit(problem).part, Sizes(3, problem.classes, 60, False)
    restored = Nearest.from_saved(part.saved(), part.view, sizes)
    assert np.array_equal(restored.outputs(problem), part.outputs(problem))


def filled(value):
    return lambda array: np.full_like(array, value)


FORGERIES = [
    ("neighbours", lambda _: 0),
    ("neighbours", lambda _: 10**9),
    ("neighbours", lambda _: 5.0),
    ("closeness", lambda _: -1.0),
    ("closeness", lambda _: float("inf")),
    ("width", lambda _: 4),
    ("width", lambda _: 10**12),
    ("columns", filled(3)),
    ("columns", filled(-1)),
    ("columns", lambda columns: columns[:0]),
    ("mean", filled(np.nan)),
    ("spread", filled(0)),
    ("places", filled(np.inf)),
    ("places", lambda places: places[:0]),
    ("places", lambda places: places[:, :2]),
    ("targets", filled(3)),
    ("targets", filled(0.5)),
    ("targets", lambda targets: targets[1:]),
    ("weights", filled(0)),
    ("shares", filled(-1)),
    ("shares", lambda shares: shares[1:]),
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_damaged_neighbours_are_refused(number):
    problem = tiny_problem(classes=3)
    part, (name, change) = fit(problem).part, FORGERIES[number]
    about, arrays = map(dict, (part.saved().about, part.saved().arrays))
    of = about if name in about else arrays
    of[name] = change(of[name])
    with pytest.raises(UsageError, match=r"damaged|a part has"):
        Nearest.from_saved(Saved(about, arrays), part.view, Sizes(3, 3, 60, False))
