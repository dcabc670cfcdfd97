"""A feature matrix that columns fill one after the other, sparse if it is mostly zeros."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.sparse_features import as_matrix

FEW = 50
"""Up to this many features are always dense."""
MOSTLY_ZERO = 0.2
"""Features are sparse if a smaller share of them is not 0."""

Matrix: TypeAlias = Any
"""``NDArray[np.float32]`` or ``scipy.sparse.csr_array``, which has no type parameters."""


class FeatureMatrix:
    """Takes the values that are not 0; the others are not stored on the way either.

    Args:
        rows: Number of rows.
        features: Number of features.
    """

    def __init__(self, rows: int, features: int) -> None:
        self.shape = rows, features
        self.offset = 0
        """The first feature of the column that is written now."""
        self._dense = _zeros(self.shape) if features <= FEW else None
        self._entries: list[tuple[NDArray[Any], ...]] = []

    def put(self, rows: NDArray[np.integer[Any]], feature: Any, values: Any) -> None:
        """Write values into rows of one feature, or of one feature for each row.

        Features are counted from :attr:`offset`. An entry must be written only once.
        """
        columns = np.asarray(feature) + self.offset
        if self._dense is not None:
            self._dense[rows, columns] = values
            return
        entries = np.broadcast_arrays(rows, columns, values)
        types = np.int32, np.int32, np.float32
        self._entries.append(tuple(map(np.ndarray.astype, entries, types)))

    def put_all(self, feature: int, values: NDArray[Any]) -> None:
        """Write the values of all rows for one feature."""
        rows = np.flatnonzero(values)
        self.put(rows, feature, values[rows])

    def finish(self) -> Matrix:
        """The matrix: a dense array or a ``csr_array``."""
        if self._dense is not None:
            return self._dense
        if is_mostly_zero(sum(len(rows) for rows, *_ in self._entries), self.shape):
            rows, columns, values = (
                np.concatenate(parts) for parts in zip(*self._entries, strict=True)
            )
            self._entries.clear()
            return sparse.coo_array((values, (rows, columns)), shape=self.shape).tocsr()
        dense = _zeros(self.shape)
        while self._entries:
            rows, columns, values = self._entries.pop()
            dense[rows, columns] = values
        return dense


def as_features(x: Any) -> Matrix:
    """A matrix of numbers, dense or of SciPy, as a dense array or a ``csr_array``."""
    if not sparse.issparse(x):
        return np.ascontiguousarray(x, dtype=np.float32)
    if is_mostly_zero(x.nnz, x.shape):
        return as_matrix(x, torch.float32)
    return x.toarray().astype(np.float32)


def is_mostly_zero(stored: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix with so many values that are not 0 is kept sparse."""
    return shape[1] > FEW and stored < MOSTLY_ZERO * shape[0] * shape[1]


def _zeros(shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.zeros(shape, dtype=np.float32)
