r"""Where the stored entries of a sparse matrix are, and products with values that vary.

A :class:`Pattern` knows the places of the entries and of those of the transpose. Values come
separately, in the order of the entries. Everything has a leading axis of :math:`K` matrices that
share the pattern: the heads of an attention layer, the members of a population, or both. The
``vmap`` rules fold the members into that axis, so that a population is one call and not many.

PyTorch's own CSR product transposes the matrix in every backward pass; here the transpose is
stored, which is several times faster.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from memohop.data.sparse_features import csr_tensor
from memohop.nn._backends.torch.column_blocks import (
    ColumnBlocks,
    collects_from_afar,
    product_by_blocks,
)
from memohop.nn._ops.fused import (
    cpu_kernels,
    cpu_kernels_backward,
    in_plain_backward,
    kernels,
    kernels_for,
    use_kernels,
)
from memohop.nn._ops.operation import Operation, batch_first

_GATHERED_ELEMENTS = 1 << 26  # how many products `inner` holds at once on a GPU
_NARROW = 16  # widths up to which the CPU kernels are quicker than PyTorch's products


class Pattern:
    """The places of stored entries, sorted by row and column, and how to reach the transpose.

    Args:
        row: the row of each entry, int64, together with ``col`` in lexicographic order.
        col: the column of each entry.
        shape: rows and columns of the matrix.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        order = torch.argsort(col, stable=True)
        there = torch.empty_like(order)
        there[order] = torch.arange(len(order), device=order.device)
        self._fill(row, col, shape, order)
        self.transpose = Pattern.__new__(Pattern)
        self.transpose._fill(col[order], row[order], (shape[1], shape[0]), there)
        self.transpose.transpose = self

    def _fill(self, row: Tensor, col: Tensor, shape: tuple[int, int], order: Tensor) -> None:
        self.row, self.col, self.shape = row, col, shape
        self.order = order  # values[order] are the values of the transpose
        counts = torch.bincount(row, minlength=shape[0])
        self._pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
        self.row_start = self._pointers[row].long()  # for each entry, the first one of its row
        self._columns, self._rows = col.to(torch.int32), row.to(torch.int32)
        self._order = order.to(torch.int32)
        self._blocks: dict[int, tuple[Tensor, Tensor]] = {}
        self._column_blocks: dict[int, ColumnBlocks] = {}
        self._transposed_blocks: dict[int, ColumnBlocks] = {}

    def __len__(self) -> int:
        return len(self.row)

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        return Pattern(self.row.to(device), self.col.to(device), self.shape)

    @property
    def csr_indices(self) -> tuple[Tensor, Tensor]:
        """Where the entries of each row begin, and the column of each entry, int32."""
        return self._pointers, self._columns

    def csr(self, values: Tensor) -> Tensor:
        """A sparse tensor of one matrix, from its values ``[entries]``."""
        return csr_tensor(self._pointers, self._columns, values, self.shape)

    def product(
        self, values: Tensor, dense: Tensor, *, bias: Tensor | None = None, drop: Any = None
    ) -> Tensor:
        """On a GPU, ``K`` products with values ``[entries]`` or ``[K, entries]``.

        A bias ``[K, D]`` is added to every row. ``drop`` holds keys, rates and the two words of
        a place, for dropout on the values.
        """
        assert kernels is not None
        return kernels.product(
            self._pointers, self._columns, values, dense, self.shape[0], bias=bias, drop=drop
        )

    def transposed_product(self, values: Tensor, dense: Tensor, *, drop: Any = None) -> Tensor:
        """The same with the transposed matrix; the values stay in the order of this one."""
        assert kernels is not None
        turned = self.transpose
        return kernels.product(
            turned._pointers,
            turned._columns,
            values,
            dense,
            turned.shape[0],
            entries=self._order,
            drop=drop,
        )

    def row_sums(self, values: Tensor) -> Tensor:
        """Sums of values ``[K, entries]`` within rows: ``[K, rows]``."""
        if (served := kernels_for(values)) is not None:
            return served.row_sums(self._pointers, values)
        ones = values.new_ones(len(values), self.shape[1], 1)
        return weighted_product(values, ones, self)[..., 0]

    def row_softmax(self, scores: Tensor) -> Tensor:
        """Softmax of scores ``[K, entries]`` within rows; rows of -inf alone give 0."""
        if (served := kernels_for(scores)) is not None:
            return served.row_softmax(self._pointers, scores)
        top = scores.new_full((len(scores), self.shape[0]), -torch.inf)
        top = top.scatter_reduce(1, self.row.expand_as(scores), scores, "amax")
        weights = (scores - top.nan_to_num(neginf=0.0).index_select(1, self.row)).exp_()
        sums = self.row_sums(weights).clamp(min=torch.finfo(scores.dtype).tiny)
        return weights.div_(sums.index_select(1, self.row))

    @cached_property
    def incidence(self) -> tuple[Pattern, Pattern]:
        """Rows against entries, and columns against entries: who gathers what entries hold."""
        numbers = torch.arange(len(self), device=self.row.device)
        rows, columns = self.shape
        return (
            Pattern(self.row, numbers, (rows, len(self))),
            Pattern(self.transpose.row, self.order, (columns, len(self))),
        )

    def column_blocks(self, width: int) -> ColumnBlocks:
        """The entries in blocks of columns, for operands of this width."""
        if width not in self._column_blocks:
            blocks = ColumnBlocks(self.row, self.col, self.shape, width)
            self._column_blocks[width] = blocks
        return self._column_blocks[width]

    def transposed_blocks(self, width: int) -> ColumnBlocks:
        """Those of the transpose; the values stay in the order of this one."""
        if width not in self._transposed_blocks:
            turned = self.transpose
            blocks = ColumnBlocks(turned.row, turned.col, turned.shape, width, self.order)
            self._transposed_blocks[width] = blocks
        return self._transposed_blocks[width]

    def block_csr(self, values: Tensor) -> Tensor:
        """A block-diagonal sparse tensor of several matrices, from ``[K, entries]``."""
        count, (rows, columns) = len(values), self.shape
        if count not in self._blocks:
            offset = torch.arange(count, device=values.device, dtype=torch.int32)[:, None]
            pointers = (self._pointers[None, :-1] + offset * len(self)).flatten()
            end = pointers.new_full((1,), count * len(self))
            places = (self._columns[None] + offset * columns).flatten()
            self._blocks = {count: (torch.cat([pointers, end]), places)}
        return csr_tensor(*self._blocks[count], values.flatten(), (count * rows, count * columns))

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]} x {self.shape[1]}, {len(self)} entries)"


def weighted_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """``K`` products at once: values ``[K, entries]``, dense ``[K, columns, D]``."""
    return _WeightedProduct.apply(values, dense, pattern)


def inner(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """For each entry (i, j) the inner product of left's row i and right's row j.

    ``left`` is ``[K, rows, D]``, ``right`` is ``[K, columns, D]``, the result ``[K, entries]``:
    the gradient of :func:`weighted_product` with respect to its values.
    """
    return _Inner.apply(left, right, pattern)


def _transposed_product(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """In a backward pass, products with the transposes of what the values make of the pattern."""
    served = cpu_kernels_backward(dense)
    if served is not None and dense.shape[-1] <= _NARROW:
        return served.transposed_product(*pattern.csr_indices, values, dense, pattern.shape[1])
    if in_plain_backward() and collects_from_afar(dense, pattern.shape[1], len(pattern)):
        return _by_blocks(
            values, dense, pattern.transposed_blocks(dense.shape[-1]), pattern.shape[1]
        )
    swapped = values.index_select(-1, pattern.order)
    return weighted_product(swapped, dense, pattern.transpose)


def _by_blocks(values: Tensor, dense: Tensor, blocks: ColumnBlocks, rows: int) -> Tensor:
    """``K`` products with what values ``[K, entries]`` make of a pattern in blocks."""
    out = dense.new_empty(len(dense), rows, dense.shape[-1])
    for k in range(len(dense)):
        product_by_blocks(blocks.matrices(values[k]), dense[k], out[k])
    return out


def multiply(csr: Tensor, dense: Tensor, out: Tensor, bias: Tensor | None) -> None:
    """``out = csr @ dense + bias``; a plain product would fill ``out`` with zeros and copy it."""
    if bias is None:
        torch.addmm(out, csr, dense, beta=0, out=out)
    else:
        torch.addmm(bias.expand_as(out), csr, dense, out=out)


class _WeightedProduct(Operation):
    @staticmethod
    def forward(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        count, _, width = dense.shape
        if use_kernels(dense):
            return pattern.product(values.contiguous(), dense)
        if dense.is_cuda:
            product = pattern.block_csr(values) @ dense.reshape(-1, width)
            return product.view(count, -1, width)
        if width <= _NARROW and (served := cpu_kernels(dense)) is not None:
            return served.product(*pattern.csr_indices, values, dense, pattern.shape[0])
        if collects_from_afar(dense, pattern.shape[0], len(pattern)):
            return _by_blocks(values, dense, pattern.column_blocks(width), pattern.shape[0])
        out = dense.new_empty(count, pattern.shape[0], width)
        for k in range(count):
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
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            grad_values = inner(grads[0], dense, pattern)
        if ctx.needs_input_grad[1]:
            grad_dense = _transposed_product(values, grads[0], pattern)
        return grad_values, grad_dense, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], values: Tensor, dense: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        values = batch_first(values, in_dims[0], info.batch_size)
        dense = batch_first(dense, in_dims[1], info.batch_size)
        out = weighted_product(values.flatten(0, 1), dense.flatten(0, 1), pattern)
        return out.unflatten(0, values.shape[:2]), 0


class _Inner(Operation):
    @staticmethod
    def forward(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        if use_kernels(left):
            assert kernels is not None
            return kernels.inner(pattern._rows, pattern._columns, left, right)
        if (served := cpu_kernels(left)) is not None:
            return served.inner(*pattern.csr_indices, left, right)
        out = left.new_empty(len(left), len(pattern))
        if left.is_cuda:
            step = max(1, _GATHERED_ELEMENTS // (len(left) * left.shape[-1]))
            for start in range(0, len(pattern), step):
                part = slice(start, start + step)
                pairs = left[:, pattern.row[part]] * right[:, pattern.col[part]]
                torch.sum(pairs, -1, out=out[:, part])
            return out
        empty = pattern.csr(left.new_zeros(len(pattern)))
        for place, one, other in zip(out, left, right, strict=True):
            place.copy_(torch.sparse.sampled_addmm(empty, one, other.t(), beta=0).values())
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        left, right, ctx.pattern = inputs
        ctx.save_for_backward(left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        return (
            weighted_product(grads[0], right, pattern),
            _transposed_product(grads[0], left, pattern),
            None,
        )

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], left: Tensor, right: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        left = batch_first(left, in_dims[0], info.batch_size)
        right = batch_first(right, in_dims[1], info.batch_size)
        out = inner(left.flatten(0, 1), right.flatten(0, 1), pattern)
        return out.unflatten(0, left.shape[:2]), 0
