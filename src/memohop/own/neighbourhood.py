r"""Features from a node's neighbours: means of their columns, and shares of their labels.

With the adjacency matrix :math:`\mathbf{A}` (every pair of neighbours once, no self-loops) and the
degrees :math:`d_i`, the mean over one hop is :math:`\bar{\mathbf{X}}^1 = \mathbf{D}^{-1}
\mathbf{A}\mathbf{X}`, and over two hops :math:`\bar{\mathbf{X}}^2 = \mathbf{D}^{-1}\mathbf{A}
\bar{\mathbf{X}}^1`. Given the labels that may be used, :math:`\mathbf{Y}` with a row of zeros for
a node without one, a node gets the shares

.. math::
    \mathbf{S}^1 = \frac{\mathbf{A}\mathbf{Y}}{\mathbf{A}\mathbf{1}_Y}, \qquad
    \mathbf{S}^2 = \frac{(\mathbf{A}^2 - \operatorname{diag}(\mathbf{A}^2))\mathbf{Y}}
        {(\mathbf{A}^2 - \operatorname{diag}(\mathbf{A}^2))\mathbf{1}_Y}

where :math:`\mathbf{1}_Y` marks the nodes with a label. A walk of two steps may return: the
diagonal of :math:`\mathbf{A}^2` is subtracted, so a node never uses its own label.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Matrix: TypeAlias = Any  # NDArray[np.float32] or sparse.csr_array, which has no type parameters

Rows: TypeAlias = NDArray[np.int64] | slice
"""Some of the nodes."""
EVERY = slice(None)

_UNSURE = 1.0  # weight of the overall shares, in labels, beside a node's neighbours


class Neighbourhood:
    """The adjacency matrix of a graph, and matrices derived from it.

    Args:
        arcs: ``[2, arcs]``, sources above targets.
        nodes: The number of nodes.
        weights: Of the arcs, those of the same pair added up; by default all pairs count 1.
        directed: Whether directions count; by default, if some arc lacks its opposite.
    """

    def __init__(
        self,
        arcs: NDArray[np.int64],
        nodes: int,
        weights: NDArray[np.float32] | None = None,
        directed: bool | None = None,
    ) -> None:
        source, target = arcs
        proper = source != target
        counted = np.ones(len(source), dtype=np.float32) if weights is None else weights
        pairs = (source[proper], target[proper])
        self.out = sparse.csr_array((counted[proper], pairs), shape=(nodes, nodes))
        self.out.sum_duplicates()
        if weights is None:
            self.out.data[:] = 1
        self.directed = not self.is_symmetric if directed is None else directed

    @cached_property
    def into(self) -> sparse.csr_array:
        """The same with arcs reversed: a row for each target."""
        return sparse.csr_array(self.out.T)

    @cached_property
    def both(self) -> sparse.csr_array:
        """Every neighbour, in either direction."""
        return self.out if self.is_symmetric else sparse.csr_array(self.out.maximum(self.into))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every arc has its opposite."""
        return (self.out != self.into).nnz == 0

    @property
    def ways(self) -> dict[str, sparse.csr_array]:
        """The matrices that collect labels."""
        if not self.directed:
            return {"": self.both}
        return {"": self.both, "out ": self.out, "in ": self.into}

    @cached_property
    def _returning(self) -> dict[str, NDArray[np.float32]]:
        """The diagonal of the square of each of :attr:`ways`: walks of two steps that return."""
        found = {"": self.both.power(2).sum(axis=1)}
        if self.directed:
            found |= dict.fromkeys(("out ", "in "), self.out.multiply(self.into).sum(axis=1))
        return found

    def degrees(self) -> tuple[NDArray[np.float32], list[str]]:
        """The logarithm of one plus the degree, in each direction, and the feature names."""
        found = [np.log1p(way.sum(axis=1)) for way in self.ways.values()]
        names = [f"{name}degree" for name in self.ways]
        return np.stack(found, axis=1).astype(np.float32), names

    def mean(self, x: Matrix, rows: Rows = EVERY) -> Matrix:
        """The mean of some columns over the neighbours; zeros for a node without neighbours."""
        return _of_rows(self._averaging, rows) @ x

    @cached_property
    def _averaging(self) -> sparse.csr_array:
        totals = self.both.sum(axis=1)
        inverse = np.divide(1, totals, out=np.zeros(len(totals)), where=totals > 0)
        return sparse.csr_array(sparse.diags_array(inverse.astype(np.float32)) @ self.both)

    def label_shares(
        self,
        y: NDArray[Any],
        classes: int,
        overall: NDArray[Any] | None = None,
        rows: Rows = EVERY,
    ) -> NDArray[np.float32]:
        """The known labels one hop and two hops away.

        For classes, the share of each one, drawn towards its overall share as if the node had one
        more neighbour; for numbers, their mean in the same way. Beside them is the logarithm of the
        number of labels.

        Args:
            y: Class numbers, -1 for unknown; or numbers, NaN for unknown.
            classes: The number of classes; 0 for numbers.
            overall: The overall shares, or the overall mean; by default those of ``y``.
            rows: The nodes to compute them for; by default all.
        """
        marked = y >= 0 if classes else ~np.isnan(y)
        values = np.zeros((len(y), max(classes, 1)))
        if classes:
            values[np.flatnonzero(marked), y[marked]] = 1
        else:
            values[marked, 0] = y[marked]
        if overall is None:
            overall = values[marked].mean(axis=0)
        values = np.hstack([values, marked[:, None]])
        found = []
        for name, way in self.ways.items():
            one = way @ values
            returned = self._returning[name][rows, None] * values[rows]
            for collected in (one[rows], _of_rows(way, rows) @ one - returned):
                count = collected[:, -1:]
                found += [
                    (collected[:, :-1] + _UNSURE * overall) / (count + _UNSURE),
                    np.log1p(count),
                ]
        return np.hstack(found).astype(np.float32)


def _of_rows(matrix: sparse.csr_array, rows: Rows) -> sparse.csr_array:
    """Some rows of a matrix; all of them without a copy."""
    return matrix if rows is EVERY else matrix[rows]
