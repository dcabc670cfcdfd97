r"""Sparse matrices: the positions of stored entries, and products :math:`\mathbf{A}\mathbf{H}`.

A pattern has the positions without values; with constant ones it is a fixed matrix.

PyTorch's own CSR product transposes the matrix in every backward pass; here the transpose is
stored, which is several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.sparse_features import csr_tensor
from memohop.errors import UsageError
from memohop.nn._operation import Operation, in_single, kernels_for

_MOST = (1 << 31) - 1  # entries, rows or columns that 32-bit numbers count
_PIECE = 256  # entries of a row that a GPU takes one after the other, while others wait for it ...
_FEW_ROWS = 1 << 16  # ... in a matrix that has not more rows than these

_SIDE_BY_SIDE = 64  # up to this many columns, narrow matrices are multiplied as one

T = TypeVar("T")


def made_once(make: Callable[[Any], T]) -> cached_property[T]:
    """A cached property that may be asked for first inside a transform of PyTorch.

    What a transform makes dies with it, so the value is made outside.
    """

    @wraps(make)
    def outside(owner: Any) -> T:
        with torch._C._DisableFuncTorch():
            return make(owner)

    return cached_property(outside)


class Pattern:
    """The rows and columns of stored entries, in lexicographic order, and those of the transpose.

    Kept are the index at which each row begins and the column of each entry, both ways and with 32
    bits. All else is made when it is first asked for: most networks on a GPU need nothing else.

    A pattern holds its transpose, which holds the same tensors and not the pattern: if both held
    each other, they would stay until the garbage collector comes by, and those of a large graph
    are gigabytes.

    Args:
        row: the row of each entry, together with ``col`` in lexicographic order.
        col: the column of each entry.
        shape: rows and columns of the matrix.

    Attributes:
        pointers: int32 ``[rows + 1]``, the index at which each row begins.
        col: int32, the column of each entry.
        shape: rows and columns of the matrix.
        exchange: set if this process has the operand's rows only in part: fetches the others, see
            :meth:`collect`.
    """

    exchange: Callable[[Tensor], Tensor] | None = None

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        _check_size(len(row), shape)
        self.pointers, self.col, self.shape = _pointers(row, shape[0]), col.int(), shape
        order = torch.argsort(col, stable=True)
        self._turned: tuple[Tensor, Tensor] | None = _pointers(col, shape[1]), row[order].int()
        self.order = order.int()

    @classmethod
    def of(cls, matrix: sparse.csr_array, device: torch.device) -> Pattern:
        """The positions of the entries of a SciPy matrix, whose columns are in order."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        row, col = (torch.from_numpy(end).to(device) for end in (rows, matrix.indices))
        return cls(row, col, matrix.shape)

    @classmethod
    def symmetric(cls, pointers: Tensor, col: Tensor) -> Pattern:
        """A pattern that is its own transpose, for which nothing more is kept.

        ``pointers`` and ``col`` are as in the attributes; columns ascend within a row.
        """
        shape = len(pointers) - 1, len(pointers) - 1
        _check_size(len(col), shape)
        return cls._made_of(pointers, col, shape, None)

    @classmethod
    def _made_of(
        cls,
        pointers: Tensor,
        col: Tensor,
        shape: tuple[int, int],
        turned: tuple[Tensor, Tensor] | None,
    ) -> Pattern:
        pattern = cls.__new__(cls)
        pattern.pointers, pattern.col, pattern.shape = pointers, col, shape
        pattern._turned = turned
        return pattern

    @property
    def transpose(self) -> Pattern:
        """The pattern of the transposed matrix."""
        return self if self._turned is None else self._transpose

    @cached_property
    def _transpose(self) -> Pattern:
        assert self._turned is not None
        return self._made_of(*self._turned, self.shape[::-1], (self.pointers, self.col))

    @made_once
    def row(self) -> Tensor:
        """The row of each entry, int32."""
        return self.of_rows(torch.arange(self.shape[0], device=self.col.device).int())

    @made_once
    def row_start(self) -> Tensor:
        """For each entry the first one of its row, int32."""
        return self.of_rows(self.pointers[:-1])

    @made_once
    def order(self) -> Tensor:
        """int32; ``values[order]`` are the values of the transpose."""
        return torch.argsort(self.col, stable=True).int()

    @made_once
    def pieces(self) -> tuple[Tensor, Tensor] | None:
        """Long rows in pieces: where each piece begins, and which is the first of each row; int32.

        None if there are no long rows, or so many others that a GPU has enough to do.
        """
        counts = -(-self.pointers.diff() // _PIECE)
        if len(counts) > _FEW_ROWS or not (counts > 1).any():
            return None
        of_rows = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
        row = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        place = torch.arange(len(row), device=counts.device) - of_rows[row]
        starts = self.pointers[row] + place * _PIECE
        return torch.cat([starts, self.pointers[-1:]]).int(), of_rows

    def __len__(self) -> int:
        return len(self.col)

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        pointers, col = self.pointers.to(device), self.col.to(device)
        if self._turned is None:
            return self._made_of(pointers, col, self.shape, None)
        turned = self._turned[0].to(device), self._turned[1].to(device)
        return self._made_of(pointers, col, self.shape, turned)

    def of_rows(self, numbers: Tensor) -> Tensor:
        """For each entry the number of its row, from numbers ``[rows]``."""
        return numbers.repeat_interleave(self.pointers.diff(), output_size=len(self))

    def of_columns(self, numbers: Tensor) -> Tensor:
        """For each entry the number of its column, from numbers ``[columns]``."""
        return numbers.index_select(0, self.col)

    def collect(self, dense: Tensor) -> Tensor:
        """The rows of an operand for all columns, ``[K, columns, D]``, from those that are here."""
        return dense if self.exchange is None else self.exchange(dense)

    def csr(self, values: Tensor) -> Tensor:
        """A sparse tensor of one matrix, from its values ``[entries]``."""
        return csr_tensor(self.pointers, self.col, values, self.shape)

    def matrix(self, values: NDArray[Any]) -> sparse.csr_array:
        """A SciPy matrix, from its values ``[entries]``; on a CPU it shares the other arrays."""
        arrays = values, self.col.cpu().numpy(), self.pointers.cpu().numpy()
        return sparse.csr_array(arrays, shape=self.shape)

    @made_once
    def incidence(self) -> tuple[Pattern, Pattern]:
        """Matrices of rows by entries and of columns by entries, which sum over the entries."""
        numbers = torch.arange(len(self), device=self.col.device)
        rows, columns = self.shape
        return (
            Pattern(self.row, numbers, (rows, len(self))),
            Pattern(self.transpose.row, self.order, (columns, len(self))),
        )

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {len(self)} entries)"


def _pointers(row: Tensor, rows: int) -> Tensor:
    """The index at which each row begins, from the row of each entry."""
    counts = torch.bincount(row, minlength=rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)


def _check_size(entries: int, shape: tuple[int, int]) -> None:
    """Refuse what 32-bit numbers cannot count."""
    if max(entries, *shape) > _MOST:
        raise UsageError(
            f"a matrix of {shape[0]} x {shape[1]} with {entries} entries is too large: one process "
            f"counts to {_MOST}; cut the graph into parts, with workers=2 or more"
        )


def multiply(csr: Tensor, dense: Tensor, out: Tensor, bias: Tensor | None) -> None:
    """``out = csr @ dense + bias``; a plain product would fill ``out`` with zeros and copy it."""
    if bias is None:
        torch.addmm(out, csr, dense, beta=0, out=out)
    else:
        torch.addmm(bias.expand_as(out), csr, dense, out=out)


class FixedMatrix:
    """A pattern with constant values, and its transpose.

    It is an object, not a tuple: ``vmap`` looks into tuples and cannot handle sparse tensors. Like
    a :class:`Pattern` it holds its transpose, but not the other way round.

    Args:
        pattern: the positions of the values.
        values: ``[entries]``.
        turned: the values in the order of the transpose's entries, if they are known.
    """

    def __init__(self, pattern: Pattern, values: Tensor, turned: Tensor | None = None) -> None:
        self.pattern, self.values = pattern, values.contiguous()
        self._turned = values.index_select(0, pattern.order) if turned is None else turned

    @cached_property
    def transpose(self) -> FixedMatrix:
        """The transposed matrix."""
        return FixedMatrix(self.pattern.transpose, self._turned, self.values)

    @made_once
    def csr(self) -> Tensor:
        """A sparse tensor of the same arrays."""
        return self.pattern.csr(self.values)


def fixed_product(dense: Tensor, matrix: FixedMatrix, bias: Tensor | None = None) -> Tensor:
    """``K`` products with constant values: dense ``[K, columns, D]`` to ``[K, rows, D]``.

    A bias ``[K, D]`` is added to every row. Operands may be of bfloat16 beside float32 values.
    """
    dense = matrix.pattern.collect(dense)
    if dense.dtype == torch.bfloat16 and kernels_for(dense) is None:
        return in_single(_FixedProduct.apply, dense, bias, matrix)
    return _FixedProduct.apply(dense, bias, matrix)


class _FixedProduct(Operation):
    tensors = 2

    @staticmethod
    def forward(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
        if (kernels := kernels_for(dense)) is not None:
            return kernels.product(matrix.values, dense, matrix.pattern, bias=bias)
        count, _, width = dense.shape
        out = dense.new_empty(count, matrix.pattern.shape[0], width)
        several = _SIDE_BY_SIDE // max(width, 1)
        if several > 1 and count > 1:  # the overhead of a row of few columns outweighs its work
            for start in range(0, count, several):
                part = slice(start, start + several)
                out[part] = _side_by_side(matrix.csr, dense[part])
            return out if bias is None else out.add_(bias[:, None])
        for k in range(count):  # one at a time stays in the cache
            multiply(matrix.csr, dense[k], out[k], None if bias is None else bias[k])
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, bias, ctx.matrix = inputs
        ctx.has_bias = bias is not None

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        bias = grads[0].sum(1) if ctx.has_bias else None
        return fixed_product(grads[0], ctx.matrix.transpose), bias, None


def _side_by_side(matrix: Tensor, dense: Tensor) -> Tensor:
    """``K`` products with ``[K, columns, D]`` as a single one."""
    count, columns, width = dense.shape
    folded = dense.transpose(0, 1).reshape(columns, count * width)
    return (matrix @ folded).view(-1, count, width).transpose(0, 1)
