r"""The positions of the stored entries of a sparse matrix, and products with values that vary.

A :class:`Pattern` holds the columns of the entries and of the transpose's entries. Values
come separately, in the order of the entries. Everything has a leading axis of :math:`K` matrices
that share the pattern: the heads of an attention layer, the members of a population, or both.
Under ``vmap`` the members are folded into that axis: a population is one call, not many.

PyTorch's own CSR product transposes the matrix in every backward pass; here the transpose is
stored, which is several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

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


class _Entries:
    """What a :class:`Pattern` holds of one matrix: of itself or of its transpose.

    Kept are the index at which each row begins and the column of each entry, with 32 bits. All
    else is made when it is first asked for: most networks on a GPU need nothing else.
    """

    def __init__(self, pointers: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        self.pointers, self.columns, self.shape = pointers, columns, shape

    @cached_property
    def row32(self) -> Tensor:
        with torch._C._DisableFuncTorch():  # what a transform makes dies with it
            return self.of_rows(torch.arange(self.shape[0], device=self.columns.device).int())

    @cached_property
    def row(self) -> Tensor:
        with torch._C._DisableFuncTorch():
            return self.row32.long()

    @cached_property
    def col(self) -> Tensor:
        with torch._C._DisableFuncTorch():
            return self.columns.long()

    @cached_property
    def row_start(self) -> Tensor:
        with torch._C._DisableFuncTorch():
            return self.of_rows(self.pointers[:-1].long())

    @cached_property
    def order32(self) -> Tensor:
        with torch._C._DisableFuncTorch():
            return torch.argsort(self.columns, stable=True).int()

    @cached_property
    def order(self) -> Tensor:
        with torch._C._DisableFuncTorch():
            return self.order32.long()

    @cached_property
    def pieces(self) -> tuple[Tensor, Tensor] | None:
        with torch._C._DisableFuncTorch():
            counts = -(-self.pointers.diff() // _PIECE)
            if len(counts) > _FEW_ROWS or not (counts > 1).any():
                return None
            of_rows = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
            row = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
            place = torch.arange(len(row), device=counts.device) - of_rows[row]
            starts = self.pointers[row] + place * _PIECE
            return torch.cat([starts, self.pointers[-1:]]).int(), of_rows

    def of_rows(self, numbers: Tensor) -> Tensor:
        """For each entry the number of its row, from numbers ``[rows]``."""
        counts = self.pointers.diff()
        return numbers.repeat_interleave(counts, output_size=len(self.columns))


class Pattern:
    """The rows and columns of stored entries, in lexicographic order, and those of the transpose.

    The transpose is made of the same tensors on each request: if both held each other, they would
    stay until the garbage collector comes by, and those of a large graph are gigabytes.

    Args:
        row: the row of each entry, together with ``col`` in lexicographic order.
        col: the column of each entry.
        shape: rows and columns of the matrix.

    Attributes:
        exchange: set if this process has the operand's rows only in part: fetches the others, see
            :meth:`collect`.
    """

    exchange: Callable[[Tensor], Tensor] | None = None

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        _check_size(len(row), shape)
        self._own = _Entries(_pointers(row, shape[0]), col.to(torch.int32), shape)
        order = torch.argsort(col, stable=True)
        turned = _pointers(col, shape[1]), row[order].to(torch.int32), (shape[1], shape[0])
        self._turned = _Entries(*turned)
        self._own.order32 = order.to(torch.int32)
        self._turned.order32 = _inverse(self._own.order32)

    @classmethod
    def of(cls, matrix: sparse.csr_array, device: torch.device) -> Pattern:
        """The positions of the entries of a SciPy matrix, whose columns are in order."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        row, col = (torch.from_numpy(end).to(device) for end in (rows, matrix.indices))
        return cls(row, col, matrix.shape)

    @classmethod
    def symmetric(cls, pointers: Tensor, columns: Tensor) -> Pattern:
        """A pattern that is its own transpose, for which nothing more is kept.

        Args:
            pointers: int32 ``[rows + 1]``, the index at which each row begins.
            columns: int32 ``[entries]``, ascending within a row.
        """
        shape = len(pointers) - 1, len(pointers) - 1
        _check_size(len(columns), shape)
        pattern = cls.__new__(cls)
        pattern._own = pattern._turned = _Entries(pointers, columns, shape)
        return pattern

    @property
    def transpose(self) -> Pattern:
        """The pattern of the transposed matrix."""
        pattern = Pattern.__new__(Pattern)
        pattern._own, pattern._turned = self._turned, self._own
        return pattern

    @property
    def is_symmetric(self) -> bool:
        """Whether it is known to be its own transpose."""
        return self._own is self._turned

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self._own.shape

    @property
    def row(self) -> Tensor:
        """The row of each entry, int64."""
        return self._own.row

    @property
    def col(self) -> Tensor:
        """The column of each entry, int64."""
        return self._own.col

    @property
    def row32(self) -> Tensor:
        """The row of each entry, int32."""
        return self._own.row32

    @property
    def row_start(self) -> Tensor:
        """For each entry the first one of its row, int64."""
        return self._own.row_start

    @property
    def order(self) -> Tensor:
        """int64; ``values[order]`` are the values of the transpose."""
        return self._own.order

    @property
    def order32(self) -> Tensor:
        """The same, int32."""
        return self._own.order32

    def __len__(self) -> int:
        return len(self._own.columns)

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        if self.is_symmetric:
            return Pattern.symmetric(*(part.to(device) for part in self.csr_indices))
        return Pattern(self.row.to(device), self.col.to(device), self.shape)

    def of_rows(self, numbers: Tensor) -> Tensor:
        """For each entry the number of its row, from numbers ``[rows]``."""
        return self._own.of_rows(numbers)

    def of_columns(self, numbers: Tensor) -> Tensor:
        """For each entry the number of its column, from numbers ``[columns]``."""
        return numbers.index_select(0, self._own.columns)

    def collect(self, dense: Tensor) -> Tensor:
        """The rows of an operand for all columns, ``[K, columns, D]``, from those that are here."""
        return dense if self.exchange is None else self.exchange(dense)

    @property
    def csr_indices(self) -> tuple[Tensor, Tensor]:
        """The index at which each row begins, and the column of each entry, int32."""
        return self._own.pointers, self._own.columns

    @property
    def pieces(self) -> tuple[Tensor, Tensor] | None:
        """Long rows in pieces: where each piece begins, and which is the first of each row; int32.

        None if no row is long, or if there are so many rows that a long one does not matter.
        """
        return self._own.pieces

    def csr(self, values: Tensor) -> Tensor:
        """A sparse tensor of one matrix, from its values ``[entries]``."""
        return csr_tensor(*self.csr_indices, values, self.shape)

    def matrix(self, values: NDArray[Any]) -> sparse.csr_array:
        """A SciPy matrix, from its values ``[entries]``; on a CPU it shares the other arrays."""
        pointers, columns = (part.cpu().numpy() for part in self.csr_indices)
        return sparse.csr_array((values, columns, pointers), shape=self.shape)

    def row_sums(self, values: Tensor) -> Tensor:
        """Sums of values ``[K, entries]`` within rows: ``[K, rows]``."""
        if (kernels := kernels_for(values)) is not None:
            return kernels.row_sums(values, self)
        ones = values.new_ones(len(values), self.shape[1], 1)
        return _WeightedProduct.apply(values, ones, self)[..., 0]

    def row_softmax(self, scores: Tensor) -> Tensor:
        """Softmax of scores ``[K, entries]`` within rows; rows with only -inf give 0."""
        if (kernels := kernels_for(scores)) is not None:
            return kernels.row_softmax(scores, self)
        top = scores.new_full((len(scores), self.shape[0]), -torch.inf)
        top = top.scatter_reduce(1, self.row.expand_as(scores), scores, "amax")
        weights = (scores - top.nan_to_num(neginf=0.0).index_select(1, self.row)).exp_()
        sums = self.row_sums(weights).clamp(min=torch.finfo(scores.dtype).tiny)
        return weights.div_(sums.index_select(1, self.row))

    @cached_property
    def incidence(self) -> tuple[Pattern, Pattern]:
        """Matrices of rows by entries and of columns by entries, which sum over the entries."""
        numbers = torch.arange(len(self), device=self._own.columns.device)
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


def _inverse(order: Tensor) -> Tensor:
    """The permutation that undoes another one, int32."""
    there = torch.empty_like(order)
    there[order.long()] = torch.arange(len(order), dtype=torch.int32, device=order.device)
    return there


def _check_size(entries: int, shape: tuple[int, int]) -> None:
    """Refuse what 32-bit numbers cannot count."""
    if max(entries, *shape) > _MOST:
        raise UsageError(
            f"a matrix of {shape[0]} x {shape[1]} with {entries} entries is too large: one process "
            f"counts to {_MOST}; cut the graph into parts, with workers=2 or more"
        )


def weighted_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """``K`` products at once: values ``[K, entries]``, dense ``[K, columns, D]``."""
    return in_single(_WeightedProduct.apply, values, pattern.collect(dense), pattern)


def inner(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The inner product of left's row i and right's row j for each entry (i, j).

    ``left`` is ``[K, rows, D]``, ``right`` is ``[K, columns, D]``, the result ``[K, entries]``:
    the gradient of :func:`weighted_product` with respect to its values.
    """
    return in_single(_Inner.apply, left, pattern.collect(right), pattern)


def _transposed_product(values: Tensor, grad: Tensor, pattern: Pattern) -> Tensor:
    """Products with the transposes, for a backward pass; values stay in the pattern's order."""
    swapped = values.index_select(-1, pattern.order)
    return weighted_product(swapped, grad, pattern.transpose)


def multiply(csr: Tensor, dense: Tensor, out: Tensor, bias: Tensor | None) -> None:
    """``out = csr @ dense + bias``; a plain product would fill ``out`` with zeros and copy it."""
    if bias is None:
        torch.addmm(out, csr, dense, beta=0, out=out)
    else:
        torch.addmm(bias.expand_as(out), csr, dense, out=out)


class _WeightedProduct(Operation):
    tensors = 2

    @staticmethod
    def forward(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(dense)) is not None:
            return kernels.weighted_product(values, dense, pattern)
        out = dense.new_empty(len(dense), pattern.shape[0], dense.shape[-1])
        for k in range(len(dense)):
            multiply(pattern.csr(values[k]), dense[k], out[k], None)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        values, dense, ctx.pattern = inputs
        ctx.save_for_backward(values, dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        of_values = of_dense = None
        if ctx.needs_input_grad[0]:
            of_values = _Inner.apply(grads[0], dense, pattern)
        if ctx.needs_input_grad[1]:
            of_dense = _transposed_product(values, grads[0], pattern)
        return of_values, of_dense, None


class _Inner(Operation):
    tensors = 2

    @staticmethod
    def forward(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        if (kernels := kernels_for(left)) is not None:
            return kernels.inner(left, right, pattern)
        out = left.new_empty(len(left), len(pattern))
        empty = pattern.csr(left.new_zeros(len(pattern)))
        for k in range(len(out)):
            out[k] = torch.sparse.sampled_addmm(empty, left[k], right[k].t(), beta=0).values()
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        left, right, ctx.pattern = inputs
        ctx.save_for_backward(left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        of_left = _WeightedProduct.apply(grads[0], right, pattern)
        return of_left, _transposed_product(grads[0], left, pattern), None
