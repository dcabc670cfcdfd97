"""Gradient-boosted trees, by LightGBM, on columns or on columns and neighbours.

LightGBM trusts whatever text it reads, so saved trees are read and checked here first, and then
written again for LightGBM. The text is a header and the trees, each a list of arrays: node ``i`` of
``num_leaves - 1`` compares feature ``split_feature[i]`` with ``threshold[i]`` and leads to
``left_child[i]`` or ``right_child[i]``, another node or, if negative, leaf ``-1 - child``.
"""

from __future__ import annotations

import math
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
from memohop.fit._candidate import Look
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved, Sizes, as_array
from memohop.fit._views import View
from memohop.fit.candidates._view_family import SMALL, Learned, ViewFamily, ViewModel, check_width
from memohop.training import Enough

_ROUNDS = 2000  # at most; early stopping ends nearly all fits sooner
_PATIENCE = 50
_WHOLE = ("num_leaves", "min_data_in_leaf")

END = "end of trees\n"

_ARRAYS: dict[str, Callable[[str], Any]] = {
    "split_feature": int,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "internal_count": int,
    "leaf_value": float,
    "leaf_count": int,
}
_DECISIONS = {0, 2, 4, 6, 8, 10}  # comparisons with a threshold, by the branch for missing values
_MOST_LEAVES = 1024
_MOST_ROWS = 10**9


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
        return Saved({}, {"text": as_array(self.text.partition(END)[0] + END)})

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> Trees:
        """The model that was saved."""
        text, features = safe_trees(saved.text("text"), sizes.classes)
        check_width(view, features, sizes)
        return cls(view, text)

    @cached_property
    def _booster(self) -> lightgbm.Booster:
        return lightgbm.Booster(model_str=self.text)


class TreeFamily(ViewFamily):
    """``lightgbm``, ``lightgbm+neighbours`` and ``lightgbm+positions``."""

    learner = "lightgbm"
    tables = (("all", "numbers"), ("all", "all"), ("low-rank", "all"), ("numbers", "numbers"))

    def _openers(self, problem: Problem) -> int:
        """With and without the means of words, if there are some."""
        return 1 + (self.sees_graph and problem.has_words(self.sees))

    def learn(
        self,
        problem: Problem,
        view: View,
        features: Matrix,
        numbers: Mapping[str, float],
        split: int,
        look: Look,
    ) -> Learned:
        """Add trees until the validation loss has not fallen for a while."""
        features = _taken(features)

        def chosen(mask: Mask, reference: lightgbm.Dataset | None = None) -> lightgbm.Dataset:
            rows = mask[problem.labelled, split]
            y = problem.y[problem.labelled[rows]]
            weight = compute_sample_weight("balanced", y) if self.balanced else None
            return lightgbm.Dataset(features[rows], y, weight=weight, reference=reference)

        data = chosen(problem.masks.train)
        objective, at_once = _goal(problem.classes)
        parameters = {
            "objective": objective,
            "num_class": at_once,
            **numbers,
            **{name: int(numbers[name]) for name in _WHOLE},
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
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False), partial(_ask, look)],
            keep_training_booster=True,  # otherwise it is written and read again, which takes long
        )
        part = Trees(view, booster.model_to_string())
        return part, partial(_outputs, booster, classes=problem.classes)

    def bytes_of_feature(self, outputs: int) -> int:
        """Those of its histograms: 255 bins, for some leaves."""
        return 255 * 16 * 15


def _ask(look: Look, environment: lightgbm.callback.CallbackEnv) -> None:
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


def _goal(classes: int) -> tuple[str, int]:
    """The objective, and how many trees are added at once."""
    objective = {0: "regression", 2: "binary"}.get(classes, "multiclass")
    return objective, classes if classes > 2 else 1


def _outputs(booster: lightgbm.Booster, features: Matrix, classes: int) -> Outputs:
    taken = _taken(features)
    said = np.asarray(booster.predict(taken, num_threads=_threads(taken.shape[0])))
    if classes == 2:
        said = np.stack([1 - said, said], axis=1)
    return said.reshape(len(said), -1).astype(np.float32)


def _taken(features: Matrix) -> Matrix:
    """Features in the form that LightGBM takes: it copies SciPy's sparse arrays with a warning."""
    return sparse.csr_matrix(features) if sparse.issparse(features) else features


def safe_trees(text: str, classes: int) -> tuple[str, int]:
    """Trees as LightGBM spells them, however they were spelled, and their number of features.

    A ``UsageError`` if they are unsafe for LightGBM, or for another number of classes.
    """
    header, *trees = text.partition(END)[0].split("Tree=")
    told, (objective, outputs) = _lines(header), _goal(classes)
    objective += {"binary": " sigmoid:1", "multiclass": f" num_class:{outputs}"}.get(objective, "")
    features = len(told.get("feature_names", "").split())
    if END not in text or told.get("version") != "v4" or not (features and trees):
        raise UsageError("these are not trees that this version can read")
    if told.get("objective") != objective:
        raise UsageError(f"the trees are for {told.get('objective')}")
    if len(trees) % outputs:
        raise UsageError(f"there are {len(trees)} trees for {outputs} outputs")
    parts = [
        f"tree\nversion=v4\nnum_class={outputs}\nnum_tree_per_iteration={outputs}\n",
        f"label_index=0\nmax_feature_idx={features - 1}\nobjective={objective}\n",
        f"feature_names={' '.join(f'Column_{number}' for number in range(features))}\n",
        f"feature_infos={' '.join(['none'] * features)}\n\n",
        *(_safe_tree(number, tree, features) for number, tree in enumerate(trees)),
        END,
    ]
    return "".join(parts), features


def _lines(text: str) -> dict[str, str]:
    """What stands behind each name."""
    return {name: value for name, _, value in (line.partition("=") for line in text.split("\n"))}


def _safe_tree(number: int, text: str, features: int) -> str:
    """The text of a tree in which nodes and leaves are reached once each.

    A child that is a node has a higher number than its parent. With each node but the root, and
    each leaf, the child of one node, all are reached from the root then, and none twice.
    """
    try:
        told = _lines(text)
        arrays = {name: list(map(read, told[name].split())) for name, read in _ARRAYS.items()}
        *of_nodes, values, of_leaves = arrays.values()
        looked_at, _, decisions, left, right, counts = of_nodes
        leaves = len(values)
        sound = (
            told["num_cat"] == told["is_linear"] == "0"
            and 1 <= leaves <= _MOST_LEAVES
            and {len(array) for array in of_nodes} == {leaves - 1}
            and len(of_leaves) in {leaves, leaves - (leaves == 1)}  # which some versions leave out
            and sorted(left + right) == [*range(-leaves, 0), *range(1, leaves - 1)] * (leaves > 1)
            and all(child < 0 or child > node for node, child in enumerate(left))
            and all(child < 0 or child > node for node, child in enumerate(right))
            and all(0 <= feature < features for feature in looked_at)
            and _DECISIONS.issuperset(decisions)
            and all(0 < count < _MOST_ROWS for count in counts)  # contributions divide by it
            and all(0 <= count < _MOST_ROWS for count in of_leaves)
            and all(map(math.isfinite, values))
        )
    except (KeyError, ValueError):
        sound = False
    if not sound:
        raise UsageError(f"tree {number} is damaged")
    lines = [f"{name}={' '.join(map(repr, array))}\n" for name, array in arrays.items()]
    return f"Tree={number}\nnum_leaves={leaves}\nnum_cat=0\n{''.join(lines)}\n\n"
