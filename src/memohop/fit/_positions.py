r"""Positions of nodes: the few numbers that say most of who their neighbours are.

With the adjacency matrix :math:`\mathbf{A}`, degrees :math:`d` and the leading right singular
vectors :math:`\mathbf{V}` of :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`, nodes have the
positions

.. math:: \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2} \mathbf{V}

so nodes with the same neighbours have the same position, also nodes that come later. In a directed
graph there is one for the targets of a node's arcs and one for the sources. From the other end of
the spectrum, :math:`\mathbf{V}` are the leading singular vectors of
:math:`\mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` of the graph without directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from memohop.fit._neighbourhood import EVERY, Rows

if TYPE_CHECKING:
    from memohop.fit._graph import Inputs

OTHER_END = "other end "
"""How positions from there are called."""
_VECTORS = 32  # for each direction


def basis_of(ends: Mapping[str, sparse.csr_array], nodes: int) -> NDArray[np.float32]:
    r""":math:`\mathbf{D}^{-1/2} \mathbf{V}` of each direction, side by side."""
    vectors = []
    for name, end in ends.items():
        rows, columns = _inverse_root(end), _inverse_root(sparse.csr_array(end.T))
        scaled = sparse.diags_array(rows) @ end @ sparse.diags_array(columns)
        if name == OTHER_END:
            scaled = sparse.eye_array(nodes, dtype=np.float32) - scaled
        count = min(_VECTORS, max(nodes - 1, 1))
        svd = TruncatedSVD(count, random_state=0).fit(sparse.csr_array(scaled))
        vectors.append(columns[:, None] * svd.components_.T)
    return np.hstack(vectors).astype(np.float32)


def positions(
    inputs: Inputs,
    ends: Mapping[str, sparse.csr_array],
    basis: NDArray[np.float32],
    rows: Rows = EVERY,
) -> NDArray[np.float32]:
    """The positions of some nodes; zeros in another graph than the one that the basis is of."""
    nodes = len(basis)
    if inputs.of_fit != nodes:
        return np.zeros((len(inputs.y[rows]), basis.shape[1]), dtype=np.float32)
    if inputs.hidden is not None:
        basis = np.where(inputs.hidden[:, None], np.float32(0), basis)
    parts = []
    for end, of_end in zip(ends.values(), np.split(basis, len(ends), axis=1), strict=True):
        some = end[rows]
        parts.append(_inverse_root(some)[:, None] * (some[:, :nodes] @ of_end))
    return np.hstack(parts).astype(np.float32)


def _inverse_root(matrix: sparse.csr_array) -> NDArray[np.float32]:
    """One by the square root of the sum of each row; 0 where that is 0."""
    total = matrix.sum(axis=1)
    return np.divide(1, np.sqrt(total), out=np.zeros_like(total), where=total > 0)
