"""Checks of trees that LightGBM wrote as text, since it follows any index that it reads.

The text is a header with the lengths of the trees in bytes, then the trees, each a list of arrays:
node ``i`` of ``num_leaves - 1`` compares feature ``split_feature[i]`` with ``threshold[i]`` and
leads to ``left_child[i]`` or ``right_child[i]``, another node or, if negative, leaf ``-1 - child``.
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
    r"label_index=0\nmax_feature_idx=(?P<last>\d{1,9})\nobjective=(?P<objective>\w+)[ \w:.]*\n"
    r"feature_names=(?P<names>.*)\nfeature_infos=(?P<infos>.*)\ntree_sizes=(?P<sizes>[\d ]*)\n\n"
)
_WHOLE = r"-?\d{1,9}"
_REAL = r"-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|inf|nan)"
_ARRAYS = {
    **dict.fromkeys(("num_leaves", "num_cat", "is_linear"), _WHOLE),
    **dict.fromkeys(("split_feature", "decision_type", "left_child", "right_child"), _WHOLE),
    **dict.fromkeys(("leaf_count", "internal_count"), _WHOLE),
    **dict.fromkeys(("split_gain", "threshold", "leaf_value", "leaf_weight"), _REAL),
    **dict.fromkeys(("internal_value", "internal_weight", "shrinkage"), _REAL),
}
_SPELLED = {name: re.compile(f"(?:{one}(?: {one})*)?") for name, one in _ARRAYS.items()}
_ONE = ("num_leaves", "num_cat", "is_linear", "shrinkage")
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_OF_NODES = tuple(name for name in _ARRAYS if name not in (*_ONE, *_OF_LEAVES))
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
    if told != (goal["objective"], several, several):
        raise UsageError(f"the trees are for {told[0]} with {told[1]} output(s)")
    start, sizes = header.end(), header["sizes"].split()
    for number, size in enumerate(sizes):
        end = start + int(size[:9])
        if not _is_sound(text[start:end].rstrip("\n").split("\n"), number, features):
            raise UsageError(f"tree {number} is damaged")
        start = end
    if len(sizes) % several or text[start:] != END:
        raise UsageError(f"there are more or fewer than {len(sizes)} trees")
    return features


def _is_sound(lines: list[str], number: int, features: int) -> bool:
    """Whether a tree has all its arrays, and every index stays inside them and leads forward."""
    title, *rest = lines
    pairs = [line.partition("=")[::2] for line in rest]
    if title != f"Tree={number}" or sorted(name for name, _ in pairs) != sorted(_ARRAYS):
        return False
    if not all(_SPELLED[name].fullmatch(values) for name, values in pairs):
        return False
    arrays = {name: values.split() for name, values in pairs}
    if any(len(arrays[name]) != 1 for name in _ONE):
        return False
    leaves, categories, linear = (int(arrays[name][0]) for name in _ONE[:3])
    children = [
        (node, int(child))
        for side in ("left_child", "right_child")
        for node, child in enumerate(arrays[side])
    ]
    looked_at = [int(feature) for feature in arrays["split_feature"]]
    decisions = {int(kind) for kind in arrays["decision_type"]}
    values = [float(value) for value in arrays["leaf_value"]]
    lengths = dict.fromkeys(_OF_NODES, leaves - 1) | dict.fromkeys(_OF_LEAVES, leaves)
    if leaves == 1:  # a single leaf has no weight, and in some versions no count
        lengths = {name: lengths[name] for name in (*_OF_NODES, "leaf_value")}
    return (
        (1 <= leaves <= _MOST_LEAVES and categories == linear == 0)
        and all(len(arrays[name]) == length for name, length in lengths.items())
        and all(-leaves <= child < leaves - 1 for _, child in children)
        and all(child < 0 or child > node for node, child in children)
        and all(0 <= feature < features for feature in looked_at)
        and decisions <= _DECISIONS
        and all(map(math.isfinite, values))
    )
