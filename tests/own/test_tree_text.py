"""Trees as text: only what LightGBM can follow safely is read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop import UsageError
from memohop.own.candidates.tree_text import END, check_trees
from memohop.own.candidates.trees import TreeFamily
from memohop.own.saved import Saved, Sizes
from tiny_problem import tiny_problem


@pytest.fixture(scope="module")
def part():
    kind = TreeFamily("lightgbm+neighbours", "neighbours")
    problem = tiny_problem()
    (fits,) = kind.fit(problem, kind.first(problem)[:1], [0], keep=True)
    return fits[0].part


@pytest.fixture(scope="module")
def trees(part):
    return part.saved().text


def with_its_sizes(text):
    """As LightGBM reads them, so that what is changed inside a tree is read, too."""
    header, *blocks = re.split("(?=Tree=)", text.removesuffix(END))
    sizes = " ".join(str(len(block)) for block in blocks)
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", header) + "".join(blocks) + END


@pytest.mark.fuzz
@given(data=st.data())
def test_trees_that_were_changed_are_refused_or_work(part, trees, data):
    """LightGBM would follow any index: this test would crash."""
    lines = trees.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("Tree="))
    number = data.draw(st.integers(0, min(len(lines), start + 40) - 1))
    words = re.split("([= ])", lines[number])
    index = data.draw(st.integers(0, len(words) - 1))
    words[index] = data.draw(
        st.sampled_from(["", "-1", "-9", "0", "3", "9999999", "nan", "x", "="])
    )
    lines[number] = "".join(words)
    text = with_its_sizes("\n".join(lines))
    sizes = Sizes(3, 2, 60, False)
    try:
        found = type(part).from_saved(Saved({}, text=text), part.view, sizes)
    except UsageError:
        return
    assert found.outputs(tiny_problem()).shape == (60, 2)


def test_trees_for_something_else_are_refused(trees):
    assert with_its_sizes(trees) == trees
    assert check_trees(trees, {"objective": "binary"}) > 3
    for text, goal in (
        ("", "binary"),
        (trees, "regression"),
        (trees.replace(END, ""), "binary"),
        (trees.replace("num_cat=0", "num_cat=1", 1), "binary"),
        (with_its_sizes(trees.replace("left_child=", "left_child=0 ", 1)), "binary"),
        (trees + END, "binary"),
    ):
        with pytest.raises(UsageError):
            check_trees(text, {"objective": goal})
