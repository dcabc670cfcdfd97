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

If nodes have times, only labels of earlier ones count, and of those without a time.

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
_EVER = float(np.finfo(np.float64).min)  # the moment of nodes without a time


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
        values: The number of a value, ``[entries]``.
        labels: A label that nodes with this value have, ``[entries]``.
        moments: A time of such nodes, ``[entries]``; the lowest of all numbers for none.
        counts: How many of them, ``[entries]``.
    """

    values: NDArray[np.uint64]
    labels: NDArray[Any]
    moments: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        x: Matrix,
        columns: Mapping[str, Ends],
        y: NDArray[Any],
        classes: int,
        times: NDArray[np.float64] | None = None,
    ) -> ValueLabels | None:
        """Those of a graph; None without such columns."""
        if not columns:
            return None
        codes = codes_of(x, columns.values())
        there = (codes != 0) & is_known(y, classes)[:, None]
        distinct, places = [], []
        for each in (codes, y[:, None], _moments(times, len(y))[:, None]):
            spelled = np.broadcast_to(each, codes.shape)[there]
            different, place = np.unique(spelled, return_inverse=True)
            distinct.append(different)
            places.append(place)
        entries, counts = np.unique(places, axis=1, return_counts=True)
        values, labels, moments = (
            different[place] for different, place in zip(distinct, entries, strict=True)
        )
        return cls(values, labels, moments, counts)

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
        moments = saved.array("moments", values.shape, np.float64)
        counts = saved.array("counts", values.shape, np.int64)
        sound = bool((values > 0).all() and (counts > 0).all() and (counts <= sizes.nodes).all())
        if not sound or (sizes.classes and not np.isin(labels, np.arange(sizes.classes)).all()):
            raise UsageError("the labels of values are damaged")
        return cls(values, labels, moments, counts)

    def sums(self, classes: int) -> _Sums:
        """The sums of labels for each value."""
        return _Sums.of(self.values[:, None], self.labels, classes, self.moments, self.counts)


class _Sums(NamedTuple):
    """Sums of labels over the nodes with each value, up to each time at which there are some.

    Attributes:
        values: Their numbers, in order, ``[values]``.
        moments: All times, in order; the first is that of nodes without one.
        keys: The index of a value times the number of moments, and the index of a moment, in order,
            ``[entries]``.
        sums: The number of labels of each class, or the sum of the numbers, and the number of
            labels, of nodes with this value at this moment or before, ``[entries, outputs + 1]``.
    """

    values: NDArray[np.uint64]
    moments: NDArray[np.float64]
    keys: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        codes: NDArray[np.uint64],
        y: NDArray[Any],
        classes: int,
        times: NDArray[np.float64],
        counts: Any = 1.0,
    ) -> _Sums:
        """Those of nodes with these labels and moments, each of which may stand for several."""
        there = codes != 0
        labels, times, counts = (
            np.broadcast_to(np.reshape(each, (-1, 1)), codes.shape)[there]
            for each in (y, times, counts)
        )
        values, of_value = np.unique(codes[there], return_inverse=True)
        moments = np.unique(np.append(times, _EVER))
        of_moment = np.searchsorted(moments, times)
        keys, at = np.unique(of_value * len(moments) + of_moment, return_inverse=True)
        sums: NDArray[Any]
        if classes:
            places = at * classes + labels
            sums = np.bincount(places, counts, len(keys) * classes).reshape(-1, classes)
        else:
            sums = np.bincount(at, counts * labels, len(keys))[:, None]
        sums = np.column_stack([sums, np.bincount(at, counts, len(keys))])
        ends = np.append(np.flatnonzero(np.diff(keys // len(moments))) + 1, len(keys))
        for first, end in zip(np.append(0, ends), ends, strict=False):
            if end - first > 1:  # one value by itself: a sum over all would round by later labels
                np.cumsum(sums[first:end], axis=0, out=sums[first:end])
        return cls(values, moments, keys, sums)

    def at(self, codes: NDArray[np.uint64], times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums over earlier nodes with these values, and over those without a time.

        They are ``[nodes, columns, outputs + 1]``, zeros for values without any label.
        """
        values, sums = np.append(self.values, 0), np.vstack([self.sums, 0 * self.sums.sum(axis=0)])
        of_value = np.searchsorted(self.values, codes)
        before = np.maximum(np.searchsorted(self.moments, times), 1)[:, None]
        last = np.searchsorted(self.keys, of_value * len(self.moments) + before) - 1
        keys = np.append(self.keys, -1)
        known = (values[of_value] == codes) & (keys[last] // len(self.moments) == of_value)
        return sums[np.where(known, last, -1)]


def value_shares(
    x: Matrix,
    y: NDArray[Any],
    classes: int,
    columns: Mapping[str, Ends],
    overall: NDArray[Any] | None = None,
    of_fit: ValueLabels | None = None,
    times: NDArray[np.float64] | None = None,
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
        times: Of the nodes, NaN where missing: labels are those of nodes that are earlier, or have
            none.
        rows: The nodes to compute them for; by default all.
    """
    known, codes = is_known(y, classes), codes_of(x, columns.values())
    moments = _moments(times, len(y))
    overall = overall_of(y, classes) if overall is None else overall
    numbers = np.random.PCG64(1).random_raw(len(y)) % _FOLDS
    fold = np.where(known, numbers, _FOLDS)[rows]
    wanted, when = codes[rows], moments[rows]
    sums = np.empty((*wanted.shape, max(classes, 1) + 1))
    for number in np.unique(fold):
        if of_fit is None:
            others = known & (numbers != number)
            told = _Sums.of(codes[others], y[others], classes, moments[others])
        else:
            told = of_fit.sums(classes)
        sums[fold == number] = told.at(wanted[fold == number], when[fold == number])
    shares = [drawn(column[:, :-1], column[:, -1:], overall) for column in sums.swapaxes(0, 1)]
    return np.hstack(shares).astype(np.float32)


def _moments(times: NDArray[np.float64] | None, nodes: int) -> NDArray[np.float64]:
    """Times, and the lowest of all numbers for none."""
    return np.full(nodes, _EVER) if times is None else np.where(np.isnan(times), _EVER, times)
