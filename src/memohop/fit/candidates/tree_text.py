"""Checks of trees that LightGBM wrote as text, since it trusts whatever it reads.

The text is a header with the lengths of the trees in bytes, then the trees, each a list of arrays:
node ``i`` of ``num_leaves - 1`` compares feature ``split_feature[i]`` with ``threshold[i]`` and
leads to ``left_child[i]`` or ``right_child[i]``, another node or, if negative, leaf ``-1 - child``.

LightGBM looks for the next ``=`` wherever it is, ends lines at carriage returns as well, and of two
lines with the same name takes the last. So the text must be spelled as LightGBM spells it, in the
same order, and not merely contain the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from memohop.errors import UsageError

END = "end of trees\n"

_HEADER = re.compile(
    r"tree\nversion=v4\nnum_class=(?P<classes>\d{1,9})\nnum_tree_per_iteration=(?P<trees>\d{1,9})\n"
    r"label_index=0\nmax_feature_idx=(?P<last>\d{1,9})\nobjective=(?P<objective>[\w:. ]+)\n"
    r"feature_names=(?P<names>[ -~]*)\nfeature_infos=(?P<infos>[ -~]*)\n"
    r"tree_sizes=(?P<sizes>\d{1,9}(?: \d{1,9})*)\n\n"
)
_OBJECTIVES = {
    "regression": "regression",
    "binary": "binary sigmoid:1",
    "multiclass": "multiclass num_class:{}",
}
_REAL = r"-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|inf|nan)"
_WHOLES, _REALS = (f"(?:{one}(?: {one})*)?" for one in (r"-?\d{1,9}", _REAL))
_SPELLED = {
    "num_leaves": r"\d{1,9}",
    "num_cat": "0",  # only comparisons with a threshold
    "split_feature": _WHOLES,
    "split_gain": _REALS,
    "threshold": _REALS,
    "decision_type": _WHOLES,
    "left_child": _WHOLES,
    "right_child": _WHOLES,
    "leaf_value": _REALS,
    "leaf_weight": _REALS,
    "leaf_count": _WHOLES,
    "internal_value": _REALS,
    "internal_weight": _REALS,
    "internal_count": _WHOLES,
    "is_linear": "0",
    "shrinkage": _REAL,
}
_TREE = re.compile(
    r"Tree=(?P<number>\d{1,9})\n"
    + "".join(f"{name}=(?P<{name}>{spelled})\n" for name, spelled in _SPELLED.items())
    + r"\n\n"
)
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_ONE = ("num_leaves", "num_cat", "is_linear", "shrinkage")
_OF_NODES = tuple(name for name in _SPELLED if name not in (*_ONE, *_OF_LEAVES))
_DECISIONS = {0, 2, 4, 6, 8, 10}  # comparisons with a threshold, by the branch for missing values
_MOST_LEAVES = 1024


def check_trees(text: str, goal: Mapping[str, Any]) -> int:
    """The number of features of the trees; a ``UsageError`` if they are unsafe for LightGBM.

    Args:
        text: The trees.
        goal: ``objective`` and, for more than two classes, ``num_class``.
    """
    header = _HEADER.match(text)
    if header is None or not text.isascii() or not text.endswith(END):
        raise UsageError("these are not trees that this version can read")
    features, several = int(header["last"]) + 1, goal.get("num_class", 1)
    if {len(header["names"].split(" ")), len(header["infos"].split(" "))} != {features}:
        raise UsageError(f"the trees do not name their {features} features")
    told = (header["objective"], int(header["classes"]), int(header["trees"]))
    if told != (_OBJECTIVES[goal["objective"]].format(several), several, several):
        raise UsageError(f"the trees are for {told[0]} with {told[1]} output(s)")
    start, sizes = header.end(), header["sizes"].split(" ")
    for number, size in enumerate(sizes):
        end = start + int(size)
        tree = _TREE.fullmatch(text, start, end)
        if tree is None or int(tree["number"]) != number or not _is_sound(tree, features):
            raise UsageError(f"tree {number} is damaged")
        start = end
    if len(sizes) % several or text[start:] != END:
        raise UsageError(f"there are more or fewer than {len(sizes)} trees")
    return features


def _is_sound(tree: re.Match[str], features: int) -> bool:
    """Whether a tree has all its arrays, and nodes and leaves are reached once each.

    A child that is a node has a higher number than its parent. With each node but the root, and
    each leaf, the child of one node, all are reached from the root then, and none twice.
    """
    arrays = {name: tree[name].split() for name in (*_OF_NODES, *_OF_LEAVES)}
    leaves = int(tree["num_leaves"])
    if not 1 <= leaves <= _MOST_LEAVES:
        return False
    lengths = dict.fromkeys(_OF_NODES, leaves - 1) | dict.fromkeys(_OF_LEAVES, leaves)
    if leaves == 1:  # a single leaf has no weight, and in some versions no count
        lengths = {name: lengths[name] for name in (*_OF_NODES, "leaf_value")}
    if any(len(arrays[name]) != length for name, length in lengths.items()):
        return False
    left, right, looked_at, decisions, counts = (
        [int(number) for number in arrays[name]]
        for name in (
            "left_child",
            "right_child",
            "split_feature",
            "decision_type",
            "internal_count",
        )
    )
    return (
        sorted([*left, *right]) == [*range(-leaves, 0), *range(1, leaves - 1)] * (leaves > 1)
        and all(
            child < 0 or child > node for way in (left, right) for node, child in enumerate(way)
        )
        and all(0 <= feature < features for feature in looked_at)
        and _DECISIONS.issuperset(decisions)
        and all(count > 0 for count in counts)  # what contributions are divided by
        and all(math.isfinite(float(value)) for value in arrays["leaf_value"])
    )
