r"""What labels say of the values of columns: of a club, a card, a shop.

Nodes with the same value of a column are neighbours, if there are many values and most nodes share
theirs with others. With the incidence matrix :math:`\mathbf{B}` of nodes and values, and the labels
that may be used, :math:`\mathbf{Y}` with a row of zeros for a node without one, a node of fold
:math:`f` gets the shares

.. math::
    \frac{\mathbf{B} \mathbf{B}^\top \mathbf{Y}_{-f} + \mathbf{\bar{y}}}
        {\mathbf{B} \mathbf{B}^\top \mathbf{1}_{Y, -f} + 1}

where :math:`\mathbf{1}_Y` marks the nodes with a label, :math:`-f` leaves out those of its own
fold, and :math:`\mathbf{\bar{y}}` are the overall shares; a node without a label gets those of all
folds. To leave out a node's own label alone is not enough: sums of nodes with the same value would
differ by nothing but their own labels, and trees that recognise the value would read them off.

The value of a node is known by its features that are not 0 of those that the column makes (a value
that has no feature, since it is missing or too rare, is none): each of them is a number drawn once
and for all, and their sum stands for the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memohop.errors import UsageError
from memohop.fit._neighbourhood import EVERY, Matrix, Rows, drawn, is_known, overall_of
from memohop.fit._saved import Saved, Sizes

Ends: TypeAlias = tuple[int, int]
"""The first feature of a column, and the first of the next one."""

_MANY = 20  # values that have several nodes: of so few or fewer, indicators say it all
_SHARED = 0.5  # share of nodes, at least, that have such a value
_WIDEST = 256  # shares of all columns together
_FOLDS = 5


def many_valued(x: Matrix, columns: Mapping[str, Ends], outputs: int) -> dict[str, Ends]:
    """Of some columns, those with many values that most nodes share with others.

    If there are too many, those are chosen of which most nodes share a value.
    """
    shared: dict[str, int] = {}
    for name, ends in columns.items():
        values, times = np.unique(codes_of(x, [ends]), return_counts=True)
        several = times[(values != 0) & (times > 1)]
        if len(several) > _MANY and several.sum() >= _SHARED * x.shape[0]:
            shared[name] = int(several.sum())
    chosen = sorted(shared, key=lambda name: -shared[name])[: _WIDEST // outputs]
    return {name: columns[name] for name in columns if name in chosen}


def codes_of(x: Matrix, ends: Any) -> NDArray[np.uint64]:
    """A number for the value of each node in each of some columns, ``[nodes, columns]``.

    0 is none.
    """
    numbers = np.random.PCG64(0).random_raw(x.shape[1])  # the same with every version of NumPy
    codes = [(x[:, first:end] != 0).astype(np.uint64) @ numbers[first:end] for first, end in ends]
    return np.stack(codes, axis=1)


class ValueLabels(NamedTuple):
    """Labels of nodes, by the values that they have.

    Attributes:
        values: The number of a value, ``[pairs]``.
        labels: A label that nodes with this value have, ``[pairs]``.
        times: How many of them, ``[pairs]``.
    """

    values: NDArray[np.uint64]
    labels: NDArray[Any]
    times: NDArray[np.int64]

    @classmethod
    def of(
        cls, x: Matrix, columns: Mapping[str, Ends], y: NDArray[Any], classes: int
    ) -> ValueLabels | None:
        """Those of a graph; None without such columns."""
        if not columns:
            return None
        codes = codes_of(x, columns.values())
        there = (codes != 0) & is_known(y, classes)[:, None]
        values, of_value = np.unique(codes[there], return_inverse=True)
        labels, of_label = np.unique(
            np.broadcast_to(y[:, None], codes.shape)[there], return_inverse=True
        )
        pairs, times = np.unique(of_value * len(labels) + of_label, return_counts=True)
        return cls(values[pairs // len(labels)], labels[pairs % len(labels)], times)

    def saved(self) -> Saved:
        """What :meth:`from_saved` needs."""
        return Saved({}, self._asdict())

    @classmethod
    def from_saved(cls, saved: Saved, sizes: Sizes) -> ValueLabels | None:
        """Those that were saved; None if there are none."""
        if not saved.arrays:
            return None
        values = saved.array("values", (None,), np.uint64)
        labels = saved.array("labels", values.shape, np.int64 if sizes.classes else np.float64)
        times = saved.array("times", values.shape, np.int64)
        sound = bool((values > 0).all() and (times > 0).all() and (times <= sizes.nodes).all())
        if not sound or (sizes.classes and not np.isin(labels, np.arange(sizes.classes)).all()):
            raise UsageError("the labels of values are damaged")
        return cls(values, labels, times)

    def sums(self, classes: int) -> _Sums:
        """The sums of labels for each value."""
        return _Sums.of(self.values[:, None], self.labels, classes, self.times)


class _Sums(NamedTuple):
    """Sums of labels over the nodes with each value.

    Attributes:
        values: Their numbers, in order, ``[values]``.
        sums: For each the number of labels of each class, or the sum of the numbers, and the number
            of labels, ``[values, outputs + 1]``.
    """

    values: NDArray[np.uint64]
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls, codes: NDArray[np.uint64], y: NDArray[Any], classes: int, times: Any = 1.0
    ) -> _Sums:
        """Those of nodes with these labels, each of which may stand for several."""
        there = codes != 0
        values, at = np.unique(codes[there], return_inverse=True)
        labels, times = (
            np.broadcast_to(np.reshape(each, (-1, 1)), codes.shape)[there] for each in (y, times)
        )
        if classes:
            places = at * classes + labels
            sums = np.bincount(places, times, len(values) * classes).reshape(-1, classes)
        else:
            sums = np.bincount(at, times * labels, len(values))[:, None]
        return cls(values, np.column_stack([sums, np.bincount(at, times, len(values))]))

    def at(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The sums for values, ``[..., outputs + 1]``; zeros for those without any label."""
        values, sums = np.append(self.values, 0), np.vstack([self.sums, 0 * self.sums.sum(axis=0)])
        place = np.searchsorted(self.values, codes)
        return sums[np.where(values[place] == codes, place, -1)]


def value_shares(
    x: Matrix,
    y: NDArray[Any],
    classes: int,
    columns: Mapping[str, Ends],
    overall: NDArray[Any] | None = None,
    of_fit: ValueLabels | None = None,
    rows: Rows = EVERY,
) -> NDArray[np.float32]:
    """The known labels of nodes with the same values, as of neighbours.

    Args:
        x: All features of the nodes.
        y: Class numbers, -1 for unknown; or numbers, NaN for unknown.
        classes: The number of classes; 0 for numbers.
        columns: Those whose values count, and their features.
        overall: The overall shares, or the overall mean; by default those of ``y``.
        of_fit: Of another graph than that of ``fit``, the labels of values in that one.
        rows: The nodes to compute them for; by default all.
    """
    known, codes = is_known(y, classes), codes_of(x, columns.values())
    overall = overall_of(y, classes) if overall is None else overall
    numbers = np.random.PCG64(1).random_raw(len(y)) % _FOLDS
    fold = np.where(known, numbers, _FOLDS)[rows]
    wanted = codes[rows]
    sums = np.empty((*wanted.shape, max(classes, 1) + 1))
    for number in np.unique(fold):
        if of_fit is None:
            others = known & (numbers != number)
            told = _Sums.of(codes[others], y[others], classes)
        else:
            told = of_fit.sums(classes)
        sums[fold == number] = told.at(wanted[fold == number])
    shares = [drawn(column[:, :-1], column[:, -1:], overall) for column in sums.swapaxes(0, 1)]
    return np.hstack(shares).astype(np.float32)
