"""Sparse features: SciPy's matrices and PyTorch's sparse tensors, as one kind of tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.errors import UsageError


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix of SciPy or a sparse tensor."""
    return sparse.issparse(x) or (isinstance(x, torch.Tensor) and x.layout != torch.strided)


def stored_values(x: Any) -> torch.Tensor:
    """The values that sparse features store; those of one entry may come in several parts."""
    if not isinstance(x, torch.Tensor):
        return _tensor((x if x.format in ("csr", "csc", "coo") else x.tocoo()).data)
    return x._values() if x.layout == torch.sparse_coo else x.values()


def as_csr(x: Any, dtype: torch.dtype) -> torch.Tensor:
    """The tensor that shares the arrays of :func:`as_matrix`."""
    return sharing(as_matrix(x, dtype))


def as_matrix(x: Any, dtype: torch.dtype) -> sparse.csr_array:
    """Sparse features as a matrix of SciPy, without making them dense.

    Its entries are in order of row and column. Entries that were given in several parts are their
    sum, and no zero is stored.
    """
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        csr = (x.to_dense() if x.dense_dim() else x).to_sparse_csr()  # rows that are dense
        parts = csr.values().to(dtype), csr.col_indices(), csr.crow_indices()
    else:
        csr = x.tocsr()
        parts = _tensor(csr.data).to(dtype), _tensor(csr.indices), _tensor(csr.indptr)
    matrix = sparse.csr_array(tuple(part.numpy() for part in parts), shape=tuple(x.shape))
    try:
        matrix.check_format()
    except ValueError as error:
        raise UsageError(f"data.x is not a sound sparse matrix: {error}") from None
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()  # the arrays may be the caller's
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def sharing(matrix: sparse.csr_array) -> torch.Tensor:
    """A sparse tensor that shares the arrays of a matrix."""
    pointers, columns, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
    return csr_tensor(pointers, columns, values, matrix.shape)


def csr_tensor(
    pointers: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    """A CSR tensor of parts that are known to be sound."""
    return torch.sparse_csr_tensor(pointers, columns, values, size=shape, check_invariants=False)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    try:
        return torch.from_numpy(np.require(array, requirements="W"))  # torch takes no others
    except TypeError:
        raise UsageError(f"data.x has type {array.dtype}; give floating-point features") from None


with warnings.catch_warnings():
    # PyTorch says once per process that CSR is in beta, and 2.11 and 2.12 also, whatever
    # `check_invariants` is, that invariants are not checked.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
    sharing(sparse.csr_array((0, 0)))
