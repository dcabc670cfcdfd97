"""Trees as text: LightGBM is given only what it can follow safely."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop import UsageError
from memohop.fit._saved import Saved, Sizes, as_array
from memohop.fit.candidates._trees import END, TreeFamily, Trees, safe_trees
from tiny_problem import tiny_problem

FEATURES = 5


def made(classes, y):
    """Trees of up to seven leaves."""
    x = np.random.default_rng(0).normal(size=(len(y), FEATURES))
    objective = {0: "regression", 2: "binary"}.get(classes, "multiclass")
    options = {"objective": objective, "num_class": classes if classes > 2 else 1}
    options |= {"num_leaves": 7, "verbosity": -1, "num_threads": 1}
    text = lightgbm.train(options, lightgbm.Dataset(x, y), 4).model_to_string()
    return text.partition(END)[0] + END


@pytest.fixture(scope="module")
def trees():
    return made(3, np.arange(90) % 3)


def arrays_of(tree, *names):
    return [[int(word) for word in re.search(f"{name}=(.*)", tree)[1].split()] for name in names]


def visits(tree):
    """How often each leaf is reached from the root."""
    left, right, (leaves,) = arrays_of(tree, "left_child", "right_child", "num_leaves")
    reached, steps, ahead = Counter(), 0, [0] if leaves > 1 else [-1]
    while ahead and steps < 1000:
        node, steps = ahead.pop(), steps + 1
        if node < 0:
            reached[node] += 1
        else:
            ahead += [left[node], right[node]]
    return [reached[-1 - leaf] for leaf in range(leaves)]


ODD = ["", "nan", "inf", "x", "=", "\r", "\0", *map(str, (-8, -7, -2, -1, 0, 1, 3, 6, 9999999))]


@st.composite
def hostile(draw, trees):
    """Trees with some words, lines or whole arrays changed."""
    lines = trees.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        ways = [number for number, line in enumerate(lines) if "_child" in line]
        number = draw(st.sampled_from(ways) | st.integers(0, len(lines) - 2))
        name, _, values = lines[number].partition("=")
        how = draw(st.sampled_from(["word", "word", "array", "order", "swap", "lines", "insert"]))
        if how == "word":
            words = re.split("([= :])", lines[number])
            words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(ODD))
            lines[number] = "".join(words)
        elif how == "array":
            length = len(values.split())
            drawn = draw(st.lists(st.integers(-8, 7), min_size=length, max_size=length))
            lines[number] = f"{name}={' '.join(map(str, drawn))}"
        elif how == "order":
            lines[number] = f"{name}={' '.join(draw(st.permutations(values.split())))}"
        elif how == "swap":
            other = draw(st.integers(0, len(lines) - 2))
            lines[number], lines[other] = lines[other], lines[number]
        elif how == "lines":
            lines[number : number + 1] = [lines[number]] * draw(st.sampled_from([0, 2]))
        else:
            where = draw(st.integers(0, len(lines[number])))
            odd = draw(st.sampled_from(["\r", "\0", "=", " ", "\n", "\rnum_class=9\rx="]))
            lines[number] = lines[number][:where] + odd + lines[number][where:]
    return "\n".join(lines)


COMPUTE = """
import json, sys
import lightgbm, numpy
for text in json.load(sys.stdin):
    booster = lightgbm.Booster(model_str=text)
    x = numpy.random.default_rng(1).normal(size=(50, booster.num_feature()))
    booster.predict(x, num_threads=1)
    booster.predict(x, pred_contrib=True, num_threads=1)
print("done")
"""


@pytest.mark.fuzz
def test_hostile_trees_are_refused_or_sound(trees):
    """What is accepted goes to LightGBM in a process of its own, which it might corrupt."""
    accepted = [trees]

    @given(hostile(trees))
    def try_one(text):
        try:
            safe, _ = safe_trees(text, 3)
        except UsageError:
            return
        for tree in safe.split("Tree=")[1:]:
            assert set(visits(tree)) == {1}
        accepted.append(safe)

    try_one()
    command = [sys.executable, "-c", COMPUTE]
    ended = subprocess.run(command, input=json.dumps(accepted), capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def in_tree(name, change):
    """A change of one array of the first tree."""

    def changed(trees):
        values = re.search(f"{name}=(.*)", trees)[1]
        return trees.replace(f"{name}={values}", f"{name}={change(values)}", 1)

    return changed


def moved(trees):
    """The last line of the first tree as the first."""
    lines = trees.split("\n")
    first, last = (
        next(n for n, line in enumerate(lines) if line.startswith(name))
        for name in ("num_leaves", "shrinkage")
    )
    lines.insert(first, lines.pop(last))
    return "\n".join(lines)


@pytest.mark.parametrize(
    "change",
    [
        in_tree("right_child", lambda values: " ".join(["-1"] * len(values.split()))),
        in_tree("left_child", lambda values: f"0 {values}"),
        in_tree("num_cat", lambda values: "1"),
        in_tree("is_linear", lambda values: "1"),
        in_tree("internal_count", lambda values: re.sub(r"\d+", "0", values, count=1)),
        in_tree("leaf_value", lambda values: re.sub(r"[\d.e-]+", "inf", values, count=1)),
        in_tree("split_feature", lambda values: re.sub(r"\d+", "5", values, count=1)),
        in_tree("objective", lambda values: "multiclass num_class:9000000"),
        lambda trees: trees.replace("threshold=", "threshold", 1),
        lambda trees: trees.replace(END, ""),
        lambda trees: trees[: trees.index("Tree=1")] + END,
        lambda trees: trees[:-200] + END,
        lambda trees: "",
    ],
)
def test_trees_that_would_mislead_lightgbm_are_refused(trees, change):
    assert change(trees) != trees
    with pytest.raises(UsageError):
        safe_trees(change(trees), 3)


@pytest.mark.parametrize(
    "change",
    [
        in_tree("feature_infos", lambda values: f"{values}\rnum_class=9000000\rx="),
        in_tree("feature_names", lambda values: f"{values}\0"),
        in_tree("max_feature_idx", lambda values: "9000000"),
        in_tree("tree_sizes", lambda values: "9000000"),
        in_tree("num_leaves", lambda values: "9000000"),
        lambda trees: trees.replace("\n\n\nTree=1\n", "\nTree=1\n", 1),
        moved,
        lambda trees: trees + END,
    ],
)
def test_what_could_mislead_lightgbm_does_not_reach_it(trees, change):
    assert change(trees) != trees
    assert safe_trees(change(trees), 3) == safe_trees(trees, 3)


def test_a_saved_model_is_checked_before_lightgbm_reads_it():
    kind, problem = TreeFamily("lightgbm", "columns"), tiny_problem()
    (fits,) = kind.fit(problem, kind.first(problem)[:1], [0])
    part, sizes = fits[0].part, Sizes(3, 2, 60, False)
    text = part.saved().text("text")
    restored = Trees.from_saved(Saved({}, {"text": as_array(text)}), part.view, sizes)
    assert (restored.outputs(problem) == part.outputs(problem)).all()
    of_both = [each.contributions(problem.x) for each in (restored, part)]
    assert (of_both[0] == of_both[1]).all()
    for old, new, message in (
        ("right_child=-2", "right_child=-1", "tree 0 is damaged"),
        ("feature_names=", "feature_names=more ", "4 features"),
    ):
        hostile = text.replace(old, new, 1)
        assert hostile != text
        with pytest.raises(UsageError, match=message):
            Trees.from_saved(Saved({}, {"text": as_array(hostile)}), part.view, sizes)


def test_trees_for_something_else_are_refused(trees):
    for classes in (2, 4, 0):
        with pytest.raises(UsageError, match="the trees are for multiclass"):
            safe_trees(trees, classes)


@pytest.mark.parametrize(
    ("classes", "y"),
    [
        (3, np.arange(90) % 3),
        (2, np.arange(90) % 2),
        (0, np.arange(90.0)),
        (0, np.ones(90)),  # nothing to learn: a single leaf
        (4, np.arange(90) % 3),  # a class without rows
    ],
)
def test_what_lightgbm_writes_is_read(classes, y):
    text = made(classes, y)
    safe, features = safe_trees(text, classes)
    assert features == FEATURES
    x = np.random.default_rng(1).normal(size=(50, FEATURES))
    for options in ({}, {"pred_contrib": True}):
        said, expected = (
            lightgbm.Booster(model_str=each).predict(x, num_threads=1, **options)
            for each in (safe, text)
        )
        assert np.array_equal(said, expected)
