r"""Extremely randomised trees, on columns or on columns and neighbours.

P. Geurts, D. Ernst and L. Wehenkel, *Extremely randomized trees*, Machine Learning 2006: each of
:math:`T` trees divides the training nodes at random thresholds, the best of a few features at a
time, and leaf :math:`l` says the class shares :math:`\mathbf{p}_l` of its nodes, or their mean. The
forest says the mean over its trees,

.. math:: \frac{1}{T} \sum_t \mathbf{p}_{l_t(\mathbf{x})},

where one more tree that is a single leaf keeps any class from being impossible. Unlike boosting, a
tree has all classes, however many, and its leaves have few of them each, so they are kept as a
sparse matrix. scikit-learn grows the trees, one by one: its forest would hold the shares of all
classes for every leaf of all trees, and could not be stopped. LightGBM's random forests grow a tree
for each class.

Of a large table, each tree is given another draw of some rows, which bounds time, RAM and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from memohop.errors import UsageError
from memohop.fit._candidate import Cost, Look, Setting
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._view_family import Learned, ViewFamily, ViewModel, check_width
from memohop.training import Enough

_TREES = 100
_ROWS = 16_384  # of a tree, at most
_DEEPEST = 200
_KEPT = 30  # bytes of a leaf: its share of nodes and of values
_AT_ONCE = 1_000_000  # features, places in trees or outputs that are computed at once
_ROUNDED = 1e-3  # the largest error of a sum of shares


@dataclass(frozen=True, eq=False)
class ExtraTrees(ViewModel):
    """A fitted forest. Nodes of all trees are numbered one after the other, and leaves as well.

    Attributes:
        width: The number of features.
        roots: The first node of each tree, ``[trees]``; negative numbers are leaves: -1 is leaf 0.
        below: Where a node leads to if its feature is at most the threshold, and where otherwise,
            ``[nodes, 2]``.
        feature: The feature that each node compares, ``[nodes]``.
        threshold: With this, ``[nodes]``.
        values: What leaves say, ``[leaves, outputs]``.
    """

    width: int
    roots: NDArray[np.int32]
    below: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    values: sparse.csr_array

    def of_features(self, features: Matrix) -> Outputs:
        """Probabilities of the classes, or the number, whatever the order of the rows."""
        (rows, width), outputs = features.shape, self.values.shape[1]
        said = np.empty((rows, outputs), dtype=np.float32)
        each = max(_AT_ONCE // max(width, len(self.roots), outputs), 1)
        for begin in range(0, rows, each):
            some = features[begin : begin + each]
            leaves = self._leaves(some.toarray() if sparse.issparse(some) else some)
            ends = np.arange(len(leaves) + 1) * len(self.roots)
            ones = np.ones(leaves.size, dtype=np.float32)
            reached = sparse.csr_array(
                (ones, leaves.ravel(), ends), shape=(len(leaves), self.values.shape[0])
            )
            said[begin : begin + each] = (reached @ self.values).toarray() / len(self.roots)
        return said / said.sum(axis=1, keepdims=True) if self.view.classes else said

    def _leaves(self, features: NDArray[np.float32]) -> NDArray[np.int32]:
        """The leaf of each tree that each row reaches, ``[rows, trees]``."""
        places = np.repeat(self.roots[None], len(features), axis=0)
        at, row = places.ravel(), np.repeat(np.arange(len(features)), len(self.roots))
        going = np.flatnonzero(at >= 0)
        while going.size:
            nodes = at[going]
            above = features[row[going], self.feature[nodes]] > self.threshold[nodes]
            at[going] = self.below[nodes, above.astype(np.int8)]
            going = going[at[going] >= 0]
        return -1 - at.reshape(places.shape)

    def saved(self) -> Saved:
        """All arrays, those of the sparse matrix one by one."""
        arrays = {name: getattr(self, name) for name in ("roots", "below", "feature", "threshold")}
        parts = {"shares": "data", "classes": "indices", "ends": "indptr"}
        arrays |= {name: getattr(self.values, part) for name, part in parts.items()}
        return Saved({"width": self.width}, arrays)

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> ExtraTrees:
        """The model that was saved; a ``UsageError`` if a walk could leave a tree or not end.

        All children of a node have higher numbers than its own, and each node but the roots, and
        each leaf, is the child of one.
        """
        check_width(view, width := saved.value("width", int), sizes)
        roots, feature, classes, ends = (
            saved.array(name, (None,), np.int32) for name in ("roots", "feature", "classes", "ends")
        )
        nodes, leaves = len(feature), len(ends) - 1
        below = saved.array("below", (nodes, 2), np.int32)
        threshold, shares = saved.array("threshold", (nodes,)), saved.array("shares", (None,))
        reached = np.sort(np.concatenate([roots, below.ravel()]))
        sound = (
            leaves > 0
            and np.array_equal(reached, np.arange(-leaves, nodes))
            and bool(((below < 0) | (below > np.arange(nodes)[:, None])).all())
            and bool(((feature >= 0) & (feature < width)).all())
            and _depth(roots, below) <= _DEEPEST
        )
        try:
            values = sparse.csr_array((shares, classes, ends), shape=(leaves, sizes.outputs))
            values.check_format(full_check=True)
        except ValueError:
            sound = False
        if sound and sizes.classes:
            sums = values.sum(axis=1)
            sound = bool((shares >= 0).all() and (abs(sums - 1) <= _ROUNDED).all())
        if not sound:
            raise UsageError("the extra trees are damaged")
        return cls(view, width, roots, below, feature, threshold, values)


class ExtraTreesFamily(ViewFamily):
    """``extra-trees`` and ``extra-trees+neighbours``."""

    learner = "extra-trees"
    # Of thousands of words drawn at random, few would say anything, and of their means even less.
    tables = (("numbers", "numbers"), ("all", "numbers"), ("low-rank", "all"))

    def _openers(self, problem: Problem) -> int:
        """Without words, if there are some, and with them; with labels of values, and without."""
        return 1 + problem.has_words(self.sees) + bool(problem.values)

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """That of the features, the trees, and all shares of classes of the tree that grows."""
        cost, outputs = super().cost(problem, setting), max(problem.classes, 1)
        rows = min(int(problem.masks.train[:, 0].sum()), _ROWS)
        held = rows * (2 * 8 * outputs + _KEPT * _TREES) + 50 * _AT_ONCE
        return cost._replace(bytes=cost.bytes + held).within(self.memory)

    def learn(
        self,
        problem: Problem,
        view: View,
        features: Matrix,
        numbers: Mapping[str, float],
        split: int,
        look: Look,
    ) -> Learned:
        """As many trees as there is time for, up to a hundred, and one at least."""
        rows = np.flatnonzero(problem.masks.train[problem.labelled, split])
        y, (_, width) = problem.y[problem.labelled], features.shape
        weights = np.ones(len(y))
        if self.balanced:
            weights[rows] = compute_sample_weight("balanced", y[rows])
        kind = ExtraTreeClassifier if problem.classes else ExtraTreeRegressor
        generator, forest = np.random.default_rng(split), _Forest(max(problem.classes, 1))
        if problem.classes:
            forest.add_leaf(np.bincount(y[rows], weights[rows], problem.classes) + 1)
        x = _columns(features[rows]) if len(rows) <= _ROWS else None
        for number in range(_TREES):
            if number:
                try:
                    look()
                except Enough:
                    break
            some, taken = rows, x
            if taken is None:
                some = np.sort(generator.choice(rows, _ROWS, replace=False))
                taken = _columns(features[some])
            tree = kind(
                max_features=max(round(width ** numbers["feature_power"]), 1),
                min_samples_leaf=int(numbers["min_samples_leaf"]),
                max_depth=_DEEPEST,
                random_state=int(generator.integers(2**31)),
            )
            tree.fit(taken, y[some], sample_weight=weights[some])
            forest.add(tree)
        model = forest.model(view, width)
        return model, model.of_features

    def bytes_of_feature(self, outputs: int) -> int:
        """None beside the table."""
        return 0


class _Forest:
    """Trees of scikit-learn, taken over one by one into arrays for all of them."""

    def __init__(self, outputs: int) -> None:
        self.outputs, self.nodes, self.leaves = outputs, 0, 0
        self.parts: dict[str, list[Any]] = {
            name: [] for name in ("roots", "below", "feature", "threshold", "values")
        }

    def add_leaf(self, counts: NDArray[Any]) -> None:
        """A tree that is a leaf with these counts of classes."""
        self._add(np.array([-1]), np.empty((0, 2)), [], [], (counts / counts.sum())[None])

    def add(self, model: ExtraTreeClassifier | ExtraTreeRegressor) -> None:
        """A tree, whose leaves are numbered by themselves here.

        No feature in single precision lies between a threshold and the next lower number of single
        precision, so that is the same threshold.
        """
        tree = model.tree_
        inner = tree.children_left >= 0
        numbers = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner))
        below = np.stack([tree.children_left[inner], tree.children_right[inner]], axis=1)
        exact = tree.threshold[inner]
        threshold = exact.astype(np.float32)
        threshold = np.where(
            threshold > exact, np.nextafter(threshold, -np.float32(np.inf)), threshold
        )
        said = tree.value[~inner, 0]
        if hasattr(model, "classes_"):
            values = np.zeros((len(said), self.outputs))
            values[:, model.classes_] = said / said.sum(axis=1, keepdims=True)
            said = values
        self._add(numbers[:1], numbers[below], tree.feature[inner], threshold, said)

    def _add(self, roots: Any, below: Any, feature: Any, threshold: Any, said: Any) -> None:
        for name, children in (("roots", roots), ("below", below)):
            shift = np.where(children >= 0, self.nodes, -self.leaves)
            self.parts[name].append((children + shift).astype(np.int32))
        self.parts["feature"].append(np.asarray(feature, dtype=np.int32))
        self.parts["threshold"].append(np.asarray(threshold, dtype=np.float32))
        self.parts["values"].append(sparse.csr_array(said.astype(np.float32)))
        self.nodes, self.leaves = self.nodes + len(below), self.leaves + len(said)

    def model(self, view: View, width: int) -> ExtraTrees:
        """The whole."""
        values = sparse.csr_array(sparse.vstack(self.parts.pop("values"), format="csr"))
        arrays: dict[str, Any] = {name: np.concatenate(of) for name, of in self.parts.items()}
        return ExtraTrees(view, width, **arrays, values=values)


def _columns(features: Matrix) -> Matrix:
    """Features in the form that scikit-learn's trees take: no sparse ones with long indices."""
    if not sparse.issparse(features):
        return features
    columns = sparse.csc_matrix(features)
    columns.indices = columns.indices.astype(np.int32)
    columns.indptr = columns.indptr.astype(np.int32)
    return columns


def _depth(roots: NDArray[np.int32], below: NDArray[np.int32]) -> int:
    """How many nodes there are at most from a root to a leaf; all are reached once."""
    depth, at = 0, roots[roots >= 0]
    while at.size:
        depth, at = depth + 1, below[at].ravel()
        at = at[at >= 0]
    return depth
