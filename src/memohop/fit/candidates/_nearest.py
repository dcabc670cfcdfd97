r"""The nearest neighbours in the space of the columns.

The columns are those that are rarely 0, numbers for the most part: distances in words and rare
categories say little. They are standardised by mean and standard deviation of the training nodes.
Instead of longitude and latitude these are points in space, with one scale for all its directions.
With distances :math:`d_1 \le \dots \le d_k` to the :math:`k` nearest of these, neighbour :math:`j`
votes for its class, or with its number, with the weight

.. math:: w_j = (d_j / d_k + \epsilon)^{-q},

so for :math:`q = 0` all count alike, and for higher :math:`q` the nearer ones more; the small
:math:`\epsilon` bounds the weight of one in the same place. One more vote goes to the classes by
their shares, which keeps any from being impossible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import KDTree
from sklearn.utils.class_weight import compute_sample_weight

from memohop.errors import UsageError
from memohop.fit._candidate import Cost, Look, Setting
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._view_family import Learned, ViewFamily, ViewModel, check_width

_WIDEST = 64  # columns: in more, all distances are about alike
_LARGEST = 10_000_000  # values of training nodes, which each model keeps
_MOST = 1000  # neighbours
_STEEPEST = 10.0  # power of distances
_SAME = 1e-3  # share of the largest distance
_LEAF = 40  # points at the end of a branch of the search tree
_SECONDS = 3e-9  # for a column of a point that a search looks at


@dataclass(frozen=True, eq=False)
class Nearest(ViewModel):
    """Training nodes to look for the nearest among.

    Attributes:
        neighbours: How many of them vote.
        closeness: The power :math:`q`.
        width: The number of features.
        columns: Those that count, ``[columns]``.
        mean: Of each, ``[columns]``.
        spread: The standard deviation, ``[columns]``.
        places: The standardised columns, ``[nodes, columns]``.
        targets: Numbers of the classes, or the numbers to predict, ``[nodes]``.
        weights: Of votes for each class, ``[outputs]``.
        shares: Of the classes, ``[outputs]``.
    """

    neighbours: int
    closeness: float
    width: int
    columns: NDArray[np.int32]
    mean: NDArray[np.float32]
    spread: NDArray[np.float32]
    places: NDArray[np.float32]
    targets: NDArray[np.float32]
    weights: NDArray[np.float32]
    shares: NDArray[np.float32]

    def of_features(self, features: Matrix) -> Outputs:
        """Probabilities of the classes, or the number, whatever the order of the rows."""
        count = min(self.neighbours, len(self.places))
        distance, index = self._tree.query(self._places(features), range(1, count + 1))
        farthest = np.maximum(distance[:, -1:], np.finfo(np.float64).tiny)
        votes, targets = (distance / farthest + _SAME) ** -self.closeness, self.targets[index]
        if not self.view.classes:
            return np.average(targets, axis=1, weights=votes).astype(np.float32)[:, None]
        classes = targets.astype(np.int64)
        votes *= self.weights[classes]
        ends = np.arange(len(votes) + 1) * count
        shape = (len(votes), self.view.classes)
        said = sparse.csr_array((votes.ravel(), classes.ravel(), ends), shape=shape).toarray()
        said += self.shares
        return (said / said.sum(axis=1, keepdims=True)).astype(np.float32)

    def _places(self, features: Matrix) -> NDArray[np.float64]:
        return (_dense(features, self.columns).astype(np.float64) - self.mean) / self.spread

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.places, leafsize=_LEAF)

    def saved(self) -> Saved:
        """All of it: the columns and targets of the training nodes are the model."""
        names = ("columns", "mean", "spread", "places", "targets", "weights", "shares")
        about = {name: getattr(self, name) for name in ("neighbours", "closeness", "width")}
        return Saved(about, {name: getattr(self, name) for name in names})

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> Nearest:
        """The model that was saved."""
        neighbours, closeness = saved.value("neighbours", int), saved.value("closeness", float)
        check_width(view, width := saved.value("width", int), sizes)
        columns = saved.array("columns", (None,), np.int32)
        places = saved.array("places", (None, len(columns)))
        mean, spread = (saved.array(name, columns.shape) for name in ("mean", "spread"))
        targets = saved.array("targets", places.shape[:1])
        weights, shares = (saved.array(name, (sizes.outputs,)) for name in ("weights", "shares"))
        sound = (
            min(places.shape) > 0
            and bool(((columns >= 0) & (columns < width)).all())
            and 1 <= neighbours <= _MOST
            and 0 <= closeness <= _STEEPEST
            and bool((spread > 0).all() and (weights > 0).all() and (shares > 0).all())
        )
        if sound and sizes.classes:
            sound = bool(np.isin(targets, np.arange(sizes.classes)).all())
        if not sound:
            raise UsageError("the nearest neighbours are damaged")
        of_columns = columns, mean, spread
        return cls(
            view, neighbours, closeness, width, *of_columns, places, targets, weights, shares
        )


class NearestFamily(ViewFamily):
    """``nearest``, for tables with some numbers."""

    learner = "nearest"

    def first(self, problem: Problem) -> list[Setting]:
        """The first settings; none without numbers, with many, or with too many nodes to keep."""
        width = len(problem.numbers)
        fits = 0 < width <= _WIDEST and problem.nodes * width <= _LARGEST
        return super().first(problem) if fits else []

    def _tables(self, problem: Problem) -> list[dict[str, bool | int | float | str]]:
        """The columns alone."""
        return [{}]

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """A search looks at a few branches in each dimension, at worst at all points."""
        cost, width = super().cost(problem, setting), len(problem.numbers)
        points = int(problem.masks.train[:, 0].sum())
        rows = int(problem.masks.val[:, 0].sum() + problem.masks.test.sum())
        looked_at = min(float(_LEAF * 2**width), points)
        held = 8 * (points * width + rows * (width + 5 * _neighbours(setting.numbers)))
        seconds = max(cost.seconds, _SECONDS * rows * looked_at * width)
        return Cost(seconds, cost.bytes + held).within(self.memory)

    def learn(
        self,
        problem: Problem,
        view: View,
        features: Matrix,
        numbers: Mapping[str, float],
        split: int,
        look: Look,
    ) -> Learned:
        """Standardise the columns: the rest is done when it is asked for neighbours."""
        train = problem.masks.train[problem.labelled, split]
        columns = _columns(problem, features.shape[1])
        x, y = _dense(features[train], columns), problem.y[problem.labelled[train]]
        mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
        if problem.places is not None:  # one scale for all directions in space
            of_points = spread[-3 * len(problem.places) :].reshape(-1, 3)
            of_points[:] = np.sqrt(np.mean(of_points**2, axis=1, keepdims=True))
        mean, spread = mean.astype(np.float32), np.where(spread > 0, spread, 1).astype(np.float32)
        weights, shares = np.ones((2, max(problem.classes, 1)))
        if problem.classes:
            of_rows = compute_sample_weight("balanced" if self.balanced else None, y)
            weights[y] = of_rows
            shares += np.bincount(y, of_rows, problem.classes)
        part = Nearest(
            view,
            _neighbours(numbers),
            float(numbers["closeness"]),
            features.shape[1],
            columns,
            mean,
            spread,
            (x - mean) / spread,
            y.astype(np.float32),
            weights.astype(np.float32),
            (shares / shares.sum()).astype(np.float32),
        )
        return part, part.of_features

    def bytes_of_feature(self, outputs: int) -> int:
        """None beside the table."""
        return 0


def _columns(problem: Problem, features: int) -> NDArray[np.int32]:
    """The numbers; of places the points in space, which are the last of the features."""
    columns = problem.numbers
    if problem.places is not None:
        columns = np.setdiff1d(columns, problem.places[:, :, 0])
        columns = np.append(columns, np.arange(features - 3 * len(problem.places), features))
    return columns.astype(np.int32)


def _dense(features: Matrix, columns: NDArray[np.int32]) -> NDArray[np.float32]:
    """Some of the columns."""
    some = features[:, columns]
    return some.toarray() if sparse.issparse(some) else some


def _neighbours(numbers: Mapping[str, float]) -> int:
    """How many, of a number that is drawn from a range."""
    return round(numbers["neighbours"])
