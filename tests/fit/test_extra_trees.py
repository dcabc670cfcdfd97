"""Extra trees: what scikit-learn's say, kept as arrays that are checked when they are read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

from memohop import UsageError
from memohop.fit._candidate import variations
from memohop.fit._saved import Saved, Sizes
from memohop.fit.candidates import _extra_trees as extra
from memohop.fit.candidates._extra_trees import ExtraTrees, ExtraTreesFamily
from memohop.training import Enough
from tiny_problem import tiny_problem

TREES = 4


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(extra, "_TREES", TREES)


def fit(problem, sees="columns", number=0, **options):
    family = ExtraTreesFamily("extra-trees", sees, **options)
    (fits,) = family.fit(problem, family.first(problem)[number : number + 1], [0])
    return fits[0]


def grown(problem, kind):
    """The same trees of scikit-learn, by the numbers of the first setting."""
    train, generator = problem.masks.train[:, 0], np.random.default_rng(0)
    seeds = [int(generator.integers(2**31)) for _ in range(TREES)]
    trees = [kind(max_features=2, random_state=seed) for seed in seeds]
    return [tree.fit(problem.x[train], problem.y[train]) for tree in trees]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_probabilities_are_those_of_scikit_learn_and_of_one_leaf(classes, as_sparse):
    problem = tiny_problem(90, classes=classes)
    train = problem.masks.train[:, 0]
    said = [tree.predict_proba(problem.x) for tree in grown(problem, ExtraTreeClassifier)]
    counts = np.bincount(problem.y[train], minlength=classes) + 1
    expected = (np.sum(said, axis=0) + counts / counts.sum()) / (TREES + 1)
    if as_sparse:
        x = sparse.csr_array(problem.x)
        x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)  # as if large
        problem = tiny_problem(90, classes=classes, x=x)
    fitted = fit(problem)
    assert np.allclose(fitted.part.outputs(problem), expected, atol=1e-6)
    assert np.allclose(fitted.val, expected[problem.masks.val[:, 0]], atol=1e-6)
    assert np.allclose(fitted.test, expected[problem.masks.test], atol=1e-6)


def test_numbers_are_those_of_scikit_learn():
    problem = tiny_problem(y=np.linspace(-3, 500, 80))
    said = [tree.predict(problem.x) for tree in grown(problem, ExtraTreeRegressor)]
    assert np.allclose(fit(problem).part.outputs(problem)[:, 0], np.mean(said, axis=0), rtol=1e-6)


def test_a_threshold_in_single_precision_divides_the_same_numbers():
    problem = tiny_problem(200)
    part, trees = fit(problem).part, grown(problem, ExtraTreeClassifier)
    exact = np.concatenate([tree.tree_.threshold[tree.tree_.feature >= 0] for tree in trees])
    near = exact.astype(np.float32)
    near = np.stack([np.nextafter(near, side) for side in np.float32([-9, 9])] + [near])
    x = np.repeat(near.reshape(-1, 1), 3, axis=1)
    alone = replace(part, roots=part.roots[1:])  # without the single leaf
    expected = np.mean([tree.predict_proba(x) for tree in trees], axis=0)
    assert np.allclose(alone.of_features(x), expected, atol=1e-6)


@pytest.mark.parametrize("present", [[0, 2], [1]])
def test_classes_that_the_training_nodes_lack_are_hardly_likely(present):
    problem = tiny_problem(classes=3)
    train = problem.masks.train & np.isin(problem.y, present)[:, None]
    problem = tiny_problem(classes=3, masks=problem.masks._replace(train=train))
    said = fit(problem).part.outputs(problem)
    assert np.allclose(said.sum(axis=1), 1)
    absent = said[:, np.setdiff1d(range(3), present)]
    assert (absent > 0).all()
    assert (absent < 0.02).all()


def test_balanced_classes_are_predicted_more_alike():
    problem = tiny_problem(y=np.array([0] * 200 + [1] * 24))
    setting = 1  # leaves of several nodes: in those of one, weights change nothing
    plain, balanced = (fit(problem, number=setting, balanced=b).test[:, 1] for b in (False, True))
    assert balanced.mean() > 1.5 * plain.mean()


def test_they_stop_when_it_is_enough_but_not_without_any():
    asked = []

    def second_time():
        asked.append(1)
        if len(asked) == 2:
            raise Enough

    family, problem = ExtraTreesFamily("extra-trees", "columns"), tiny_problem()
    (fits,) = family.fit(problem, family.first(problem)[:1], [0], look=second_time)
    assert len(fits[0].part.roots) == 1 + 2


def test_means_of_words_are_no_features():
    x = np.hstack([tiny_problem().x, np.eye(60, 20, dtype=np.float32)])
    problem, family = tiny_problem(x=x), ExtraTreesFamily("extra-trees", "neighbours")
    first = family.first(problem)
    near = variations(family, problem, first[0], 5, np.random.default_rng(0))
    assert {setting.options["means"] for setting in first} == {"numbers"}
    assert {setting.options["means"] for setting in near} <= {"numbers", "none"}
    without = tiny_problem()
    widths = [fit(problem, "neighbours", number).part.width for number in (0, 1)]
    assert widths == [fit(without, "neighbours").part.width + more for more in (0, 20)]


def test_a_table_with_words_has_forests_without_them_and_others_one():
    x = np.hstack([np.eye(60, 20, dtype=np.float32), tiny_problem().x])
    for words in (x, sparse.csr_array(x)):
        problem = tiny_problem(x=words)
        numbers, everything = (fit(problem, number=number).part for number in (0, 1))
        assert numbers.width == 3
        assert min(everything.feature) < 20
        alone, inputs = fit(tiny_problem()).part, tiny_problem()
        assert np.array_equal(numbers.outputs(problem), alone.outputs(inputs))
    family = ExtraTreesFamily("extra-trees", "columns")
    assert [family.openers(each) for each in (problem, tiny_problem())] == [2, 1]
    first = family.first(tiny_problem())[0]
    near = variations(family, tiny_problem(), first, 9, np.random.default_rng(0))
    assert all(setting.options == {} for setting in [first, *near])


def test_many_words_are_combined_in_one_forest():
    words = np.eye(200, 100, dtype=np.float32)
    x = sparse.csr_array(np.hstack([tiny_problem(200).x, words]))
    problem = tiny_problem(200, x=x)
    options = {"columns": "low-rank"}
    for sees in ("columns", "neighbours"):
        family = ExtraTreesFamily("extra-trees", sees)
        assert family.openers(problem) == 2 + (sees == "neighbours")
        combined = next(
            each for each in family.first(problem) if options.items() <= each.options.items()
        )
        (fits,) = family.fit(problem, [combined], [0])
        part = fits[0].part
        assert part.view.columns.shape == (3 + 64, 103)
        assert family.cost(problem, combined).bytes > 0
        said = part.outputs(replace(problem, y=problem.known(0)))
        assert np.array_equal(said[problem.masks.val[:, 0]], fits[0].val)


def test_each_tree_of_a_large_table_learns_from_other_rows_and_is_bounded(monkeypatch):
    monkeypatch.setattr(extra, "_ROWS", 20)
    problem = tiny_problem(400, classes=20)
    part = fit(problem).part
    ends = [*(-1 - part.roots[part.roots < 0]), part.values.shape[0]]
    assert len(part.feature) <= TREES * 19
    assert part.values.nnz <= 20 + TREES * 20
    assert len(ends) == 2
    firsts = part.feature[part.roots[1:]], part.threshold[part.roots[1:]]
    assert len({*zip(*map(np.ndarray.tolist, firsts), strict=True)}) == TREES
    whole = ExtraTreesFamily("extra-trees", "columns")
    few = whole.cost(problem, whole.first(problem)[0]).bytes
    monkeypatch.setattr(extra, "_ROWS", 10**6)
    assert whole.cost(problem, whole.first(problem)[0]).bytes > few


@pytest.mark.parametrize("limit", [1, 7, 10**9])
def test_blocks_of_rows_change_nothing(limit, monkeypatch):
    problem = tiny_problem(classes=3)
    part = fit(problem, "neighbours").part
    features = part.view.features(problem, problem.y)
    whole = part.of_features(features)
    monkeypatch.setattr(extra, "_AT_ONCE", limit)
    assert np.array_equal(part.of_features(features), whole)
    assert np.array_equal(part.of_features(sparse.csr_array(features)), whole)
    assert np.array_equal(part.of_features(features[::-1]), whole[::-1])
    assert part.of_features(features[:0]).shape == (0, 3)


@pytest.mark.parametrize("y", [np.arange(60) % 3, np.linspace(0, 1, 60), np.ones(60)])
def test_what_is_saved_is_read(y):
    problem = tiny_problem(y=y)
    part = fit(problem).part
    sizes = Sizes(3, problem.classes, 60, False)
    restored = ExtraTrees.from_saved(part.saved(), part.view, sizes)
    assert np.array_equal(restored.outputs(problem), part.outputs(problem))


@pytest.fixture(scope="module")
def forest():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extra, "_TREES", TREES)
        return fit(tiny_problem(classes=3)).part


SIZES = Sizes(3, 3, 60, False)


def changed(forest, name, change):
    arrays = {key: array.copy() for key, array in forest.saved().arrays.items()}
    arrays[name] = change(arrays[name])
    return Saved(forest.saved().about, arrays)


def at(place, value):
    def change(array):
        array[place] = value
        return array

    return change


FORGERIES = [
    ("roots", at(1, 5)),
    ("roots", at(0, -2)),
    ("roots", lambda roots: roots[1:]),
    ("below", at((0, 0), 0)),
    ("below", lambda below: below[::-1]),
    ("below", lambda below: below[1:]),
    ("below", lambda below: below.astype(np.int64)),
    ("feature", at(0, 3)),
    ("feature", at(0, -1)),
    ("threshold", at(0, np.nan)),
    ("shares", at(0, -0.5)),
    ("shares", at(0, 9.0)),
    ("shares", at(0, np.inf)),
    ("shares", lambda shares: shares[:-1]),
    ("classes", at(0, 3)),
    ("classes", at(0, -1)),
    ("ends", at(1, 1000)),
    ("ends", at(0, 1)),
    ("ends", lambda ends: ends[:0]),
    ("ends", lambda ends: ends[::-1]),
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_damaged_trees_are_refused(forest, number):
    with pytest.raises(UsageError, match=r"damaged|a part has"):
        ExtraTrees.from_saved(changed(forest, *FORGERIES[number]), forest.view, SIZES)


@pytest.mark.parametrize("width", [4, -1, 10**12, True, None])
def test_trees_of_other_features_are_refused(forest, width):
    with pytest.raises(UsageError, match=r"width|features"):
        ExtraTrees.from_saved(Saved({"width": width}, forest.saved().arrays), forest.view, SIZES)


def test_a_chain_of_nodes_is_refused(forest):
    """It would take a step for each of them."""
    nodes = extra._DEEPEST + 1
    below = np.stack([np.arange(1, nodes + 1), -2 - np.arange(nodes)], axis=1)
    below[-1, 0] = -1
    arrays = {
        "roots": np.zeros(1, np.int32),
        "below": below.astype(np.int32),
        "feature": np.zeros(nodes, np.int32),
        "threshold": np.zeros(nodes, np.float32),
        "shares": np.ones(nodes + 1, np.float32),
        "classes": np.zeros(nodes + 1, np.int32),
        "ends": np.arange(nodes + 2, dtype=np.int32),
    }
    with pytest.raises(UsageError, match="damaged"):
        ExtraTrees.from_saved(Saved({"width": 3}, arrays), forest.view, SIZES)


@pytest.mark.fuzz
@given(data=st.data())
def test_hostile_trees_are_refused_or_sound(forest, data):
    arrays = {key: array.copy() for key, array in forest.saved().arrays.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        array = arrays[data.draw(st.sampled_from(sorted(arrays)))].reshape(-1)
        places = st.integers(0, array.size - 1)
        place, other = data.draw(places), data.draw(places)
        how = data.draw(st.sampled_from(["swap", "step", "any"]))
        if how == "swap":
            array[[place, other]] = array[[other, place]]
        else:
            drawn = data.draw(st.integers(-99, 99) if how == "any" else st.sampled_from([-1, 1]))
            array[place] = drawn if how == "any" else array[place] + drawn
    try:
        restored = ExtraTrees.from_saved(Saved(forest.saved().about, arrays), forest.view, SIZES)
    except UsageError:
        return
    said = restored.outputs(tiny_problem(classes=3))
    assert (said >= 0).all()
    assert np.allclose(said.sum(axis=1), 1)
