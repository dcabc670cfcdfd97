"""Gradient-boosted trees, by LightGBM, on columns or on columns and neighbours.

LightGBM trusts whatever text it reads, so saved trees are checked first. The text is a header with
the lengths of the trees in bytes, then the trees, each a list of arrays: node ``i`` of
``num_leaves - 1`` compares feature ``split_feature[i]`` with ``threshold[i]`` and leads to
``left_child[i]`` or ``right_child[i]``, another node or, if negative, leaf ``-1 - child``.

LightGBM looks for the next ``=`` wherever it is, ends lines at carriage returns as well, and of two
lines with the same name takes the last. So the text must be spelled as LightGBM spells it, in the
same order, and not merely contain the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import lightgbm
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight

from memohop.data.splits import Mask
from memohop.errors import UsageError
from memohop.fit._candidate import Setting
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Outputs, Problem, check_width
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._view_family import SMALL, ViewFamily, ViewModel
from memohop.jobs.space import Range
from memohop.training import Enough

_ROUNDS = 2000  # at most; early stopping ends nearly all fits sooner
_PATIENCE = 50
_NAMES = ("learning_rate", "num_leaves", "min_data_in_leaf", "feature_fraction", "lambda_l2")
_FIRST = (
    (0.05, 15, 10, 0.5, 1.0),
    (0.03, 63, 20, 0.2, 1.0),
    (0.03, 7, 5, 0.8, 5.0),
)
_WHOLE = ("num_leaves", "min_data_in_leaf")

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
_WHOLES, _REALS = (f"(?:{each}(?: {each})*)?" for each in (r"-?\d{1,9}", _REAL))
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


@dataclass(frozen=True, eq=False)
class Trees(ViewModel):
    """A fitted ensemble of trees.

    Attributes:
        text: The trees as LightGBM writes them.
    """

    text: str

    def of_features(self, features: Matrix) -> Outputs:
        """Probabilities of the classes, or the number."""
        return _outputs(self._booster, features, self.view.classes)

    @property
    def count(self) -> int:
        """The number of trees, of all classes together."""
        return max(int(self._booster.num_trees()), 1)

    def contributions(self, features: Matrix) -> NDArray[np.float64]:
        """The contribution of each feature to logits or number, ``[rows, features, outputs]``.

        By LightGBM (S. Lundberg and others, *Consistent individualized feature attribution for tree
        ensembles*, 2018). For two classes there is one output, the logit of the second.
        """
        taken = _taken(features)
        shares: Any = self._booster.predict(taken, pred_contrib=True)
        parts = shares if isinstance(shares, list) else [shares]  # sparse arrays come by class
        dense = [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in parts]
        of_rows = np.hstack(dense).reshape(taken.shape[0], -1, taken.shape[1] + 1)
        return of_rows[:, :, :-1].transpose(0, 2, 1)  # without the constant, which comes last

    def saved(self) -> Saved:
        """The trees alone, without the importances and parameters at the end of LightGBM's text."""
        return Saved({}, text=self.text.partition(END)[0] + END)

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> Trees:
        """The model that was saved."""
        trees = cls(view, saved.text or "")
        check_width(view, check_trees(trees.text, _goal(sizes.classes)), sizes)
        try:
            _ = trees._booster
        except lightgbm.basic.LightGBMError as error:
            raise UsageError(f"LightGBM cannot read the trees: {error}") from error
        return trees

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        return lightgbm.Booster(model_str=self.text)


class TreeFamily(ViewFamily):
    """``lightgbm``, ``lightgbm+neighbours`` and ``lightgbm+positions``."""

    starts = tuple(dict(zip(_NAMES, numbers, strict=True)) for numbers in _FIRST)
    numbers = {  # noqa: RUF012
        "learning_rate": Range(0.005, 0.2),
        "num_leaves": [4, 7, 15, 31, 63],
        "min_data_in_leaf": [3, 5, 10, 20, 40],
        "feature_fraction": [0.1, 0.2, 0.5, 0.8, 1.0],
        "lambda_l2": [0.0, 1.0, 5.0, 20.0],
    }

    def learning_bytes(self, width: int, outputs: int) -> int:
        """Histograms of 255 bins, for some leaves."""
        return 255 * 16 * 15 * width

    def learn(
        self,
        problem: Problem,
        features: Matrix,
        setting: Setting,
        split: int,
        look: Callable[[], None],
    ) -> tuple[ViewModel, Callable[[Matrix], Outputs]]:
        """Add trees until the validation loss has not fallen for a while."""
        features = _taken(features)

        def chosen(mask: Mask, reference: lightgbm.Dataset | None = None) -> lightgbm.Dataset:
            rows = mask[problem.labelled, split]
            y = problem.y[problem.labelled[rows]]
            weight = compute_sample_weight("balanced", y) if self.balanced else None
            return lightgbm.Dataset(features[rows], y, weight=weight, reference=reference)

        data = chosen(problem.masks.train)
        whole = {name: int(setting.numbers[name]) for name in _WHOLE}
        parameters = {
            **_goal(problem.classes),
            **setting.numbers,
            **whole,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "seed": split,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": _threads(features.shape[0]),
            "verbosity": -1,
        }
        booster = lightgbm.train(
            parameters,
            data,
            num_boost_round=_ROUNDS,
            valid_sets=[chosen(problem.masks.val, data)],
            callbacks=[
                lightgbm.early_stopping(_PATIENCE, verbose=False),
                partial(_ask, look),
            ],
            keep_training_booster=True,  # otherwise it is written and read again, which takes long
        )
        part = Trees(self.view(problem, setting), booster.model_to_string())
        return part, partial(_outputs, booster, classes=problem.classes)


def _ask(look: Callable[[], None], environment: lightgbm.callback.CallbackEnv) -> None:
    """Stop with the trees so far when asked to: with many classes, even a few rounds take long."""
    try:
        look()
    except Enough:
        raise lightgbm.callback.EarlyStopException(
            environment.iteration, environment.evaluation_result_list or []
        ) from None


def _threads(rows: int) -> int:
    """One thread for a small table, where several would wait more than work."""
    return 1 if rows < SMALL else torch.get_num_threads()


def _goal(classes: int) -> dict[str, Any]:
    if classes == 0:
        return {"objective": "regression", "metric": "l2"}
    if classes == 2:
        return {"objective": "binary", "metric": "binary_logloss"}
    return {"objective": "multiclass", "metric": "multi_logloss", "num_class": classes}


def _outputs(booster: lightgbm.Booster, features: Matrix, classes: int) -> Outputs:
    taken = _taken(features)
    said = np.asarray(booster.predict(taken, num_threads=_threads(taken.shape[0])))
    if classes == 2:
        said = np.stack([1 - said, said], axis=1)
    return said.reshape(len(said), -1).astype(np.float32)


def _taken(features: Matrix) -> Matrix:
    """Features in the form that LightGBM takes: it copies SciPy's sparse arrays with a warning."""
    return sparse.csr_matrix(features) if sparse.issparse(features) else features


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
