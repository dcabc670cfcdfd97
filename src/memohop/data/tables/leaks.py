r"""Columns that may be the label under another name, such as the outcome in other words.

On the :math:`n` nodes that have a label and a value, such a column has one value for each of
:math:`k` classes and no other, or, being a number, divides two classes by a threshold, or has the
rank correlation 1 or -1 with a label that is a number, up to what rounding makes of it. If labels
were dealt to nodes at random, the probability of this would be at most

.. math:: k!\, \frac{\prod_c n_c!}{n!},

where :math:`n_c` nodes have the label :math:`c` and :math:`k = 2` for thresholds and correlations.
A column is told where this is so small that hardly any table would be told by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln

from memohop.data.tables.cells import Cells
from memohop.outputs import count

_BY_CHANCE = 1e-6  # the probability below which it is none
_ROUNDED = 1e-3  # by how much rounding lowers a rank correlation
_SOME = 200  # labelled nodes that are looked at first


class Target(NamedTuple):
    """The label.

    Attributes:
        name: Of its column.
        y: Class numbers, -1 without a label; or numbers, NaN without one.
        made_of: The columns of the edge table that columns of nodes are made of, by their names.
    """

    name: str
    y: NDArray[Any]
    made_of: Mapping[str, Sequence[str]] = {}

    def leak(self, cells: Cells) -> str | None:
        """A line if a column may be the label under another name."""
        classes = self.y.dtype.kind != "f"
        are_numbers = cells.stored != "text" or (
            cells.reading != "categorical" and cells.are_spelled
        )
        there = ~np.isnan(cells.numbers) if are_numbers else cells.text.is_valid().to_numpy()
        known = np.flatnonzero((self.y >= 0 if classes else ~np.isnan(self.y)) & there)
        if len(known) < 2 or not (classes or are_numbers):
            return None
        some = known[np.linspace(0, len(known) - 1, min(_SOME, len(known)), dtype=np.int64)]
        for rows in (some, known):
            x, y = cells.numbers[rows] if are_numbers else _codes(cells.text, rows), self.y[rows]
            one_to_one = classes and _are_one_to_one(x, y)
            if not (one_to_one or (are_numbers and _rise_alike(x, y))):
                return None
        if _by_chance(y, one_to_one) > _BY_CHANCE:
            return None
        return (
            f"column {cells.name!r} tells the label {self.name!r} of all "
            f"{count(len(known), 'node')} that have both: it may be the label under another name, "
            f"or known only after it; unless new nodes have it, {self._remedy(cells.name)}"
        )

    def _remedy(self, name: str) -> str:
        if name not in self.made_of:
            return f"leave it out (drop=[{name!r}], --drop {name})"
        if columns := self.made_of[name]:
            dropped = ",".join(columns)
            return f"leave out what it is made of (drop={[*columns]}, --drop {dropped})"
        return "give only edges that a new node has"


def _codes(text: pa.ChunkedArray, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number for each string."""
    some = text.take(pa.array(rows))
    return np.asarray(pc.index_in(some, value_set=some.unique()).to_numpy(), dtype=np.float64)


def _are_one_to_one(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether each of several values has one class, and each class has one value."""
    pairs = np.unique(np.stack([x, y]), axis=1)
    return pairs.shape[1] > 1 and all(len(np.unique(each)) == len(each) for each in pairs)


def _rise_alike(x: NDArray[np.float64], y: NDArray[Any]) -> bool:
    """Whether a number divides two classes, or rises or falls with another number."""
    if y.dtype.kind == "f":
        constant = min(np.ptp(x), np.ptp(y)) == 0
        return not constant and bool(abs(stats.spearmanr(x, y).statistic) >= 1 - _ROUNDED)
    if len(classes := np.unique(y)) != 2:
        return False
    first, second = (x[y == label] for label in classes)
    return bool(first.max() < second.min() or second.max() < first.min())


def _by_chance(y: NDArray[Any], one_to_one: bool) -> float:
    """The bound of the probability above."""
    sizes = np.unique(y, return_counts=True)[1]
    ways = len(sizes) if one_to_one else 2
    logarithm = gammaln(ways + 1) + gammaln(sizes + 1).sum() - gammaln(len(y) + 1)
    return float(np.exp(logarithm))
