r"""The position of a node: the few numbers that say most of who its neighbours are.

With the adjacency matrix :math:`\mathbf{A}`, degrees :math:`d` and the leading right singular
vectors :math:`\mathbf{V}` of :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`, nodes have the
positions

.. math:: \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2} \mathbf{V}

so nodes with the same neighbours have the same position, also nodes that come later. In a directed
graph there is one for the targets of a node's arcs and one for the sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from memohop.fit.neighbourhood import EVERY, Rows

if TYPE_CHECKING:
    from memohop.fit.problem import Inputs

_VECTORS = 32  # for each direction


def basis_of(inputs: Inputs) -> NDArray[np.float32]:
    r""":math:`\mathbf{D}^{-1/2} \mathbf{V}` of each direction, side by side."""
    found = []
    for end in _ends(inputs).values():
        rows, columns = _inverse_root(end), _inverse_root(sparse.csr_array(end.T))
        scaled = sparse.diags_array(rows) @ end @ sparse.diags_array(columns)
        count = min(_VECTORS, max(inputs.nodes - 1, 1))
        svd = TruncatedSVD(count, random_state=0).fit(sparse.csr_array(scaled))
        found.append(columns[:, None] * svd.components_.T)
    return np.hstack(found).astype(np.float32)


def positions(
    inputs: Inputs, basis: NDArray[np.float32], rows: Rows = EVERY
) -> NDArray[np.float32]:
    """The positions of some nodes; zeros in another graph than the one that the basis is of."""
    nodes = len(basis)
    if inputs.of_fit != nodes:
        return np.zeros((len(inputs.y[rows]), basis.shape[1]), dtype=np.float32)
    if inputs.hidden is not None:
        basis = np.where(inputs.hidden[:, None], np.float32(0), basis)
    ends = _ends(inputs).values()
    found = []
    for end, of_end in zip(ends, np.split(basis, len(ends), axis=1), strict=True):
        some = end[rows]
        found.append(_inverse_root(some)[:, None] * (some[:, :nodes] @ of_end))
    return np.hstack(found).astype(np.float32)


def position_names(inputs: Inputs, count: int) -> list[str]:
    """The names of as many coordinates, by direction."""
    ends = _ends(inputs)
    return [f"{end}{number}" for end in ends for number in range(1, count // len(ends) + 1)]


def _ends(inputs: Inputs) -> dict[str, sparse.csr_array]:
    """The matrices that positions are made of."""
    near = inputs.neighbourhood
    return {"out ": near.out, "in ": near.into} if near.directed else {"": near.both}


def _inverse_root(matrix: sparse.csr_array) -> NDArray[np.float32]:
    """One by the square root of the sum of each row; 0 where that is 0."""
    total = matrix.sum(axis=1)
    return np.divide(1, np.sqrt(total), out=np.zeros_like(total), where=total > 0)
