"""Products with crowded graphs on a CPU, in Numba, by tables of sums.

``h2gcn`` needs them for its second neighbourhood: without them a step takes 2.3 times as long on
Squirrel and 2.1 times on Chameleon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.nn._kernels.numba import table_loops
from memohop.nn._kernels.numba.kernels import as_array, run_loop
from memohop.nn._kernels.numba.table_loops import BITS, GROUPS, LANES, WIDE

if TYPE_CHECKING:
    from memohop.nn._ops.fixed_matrix import FixedMatrix

_ALMOST_WIDE = 48  # columns from which a table of full width is quicker than a narrower one


def fixed_product(dense: Tensor, bias: Tensor | None, matrix: FixedMatrix) -> Tensor:
    """``K`` products: dense ``[K, columns, D]``, and a bias ``[K, D]`` for every row."""
    if "packed" not in matrix.made:
        assert matrix.factors is not None
        matrix.made["packed"] = PackedMatrix(*matrix.pattern.csr_indices, *matrix.factors)
    return matrix.made["packed"].product(dense, bias)


class PackedMatrix:
    """A bit matrix: entry (i, j) is 0 or the product of row i's factor and column j's.

    Columns are computed by themselves and in a fixed order: a result depends neither on the
    others nor on the threads, which share out rows.

    Args:
        pointers: where the entries of each row begin, int32.
        columns: the column of each entry, int32.
        row_factors: ``[rows]``.
        column_factors: ``[columns]``.
    """

    def __init__(
        self, pointers: Tensor, columns: Tensor, row_factors: Tensor, column_factors: Tensor
    ) -> None:
        self.shape = len(row_factors), len(column_factors)
        words = torch.zeros(-(-self.shape[1] // (BITS * GROUPS)), self.shape[0], dtype=torch.int32)
        self._words = as_array(words).view(np.uint32)
        self._factors = row_factors, column_factors
        table_loops.pack(as_array(pointers), as_array(columns), self._words)

    def product(self, dense: Tensor, bias: Tensor | None) -> Tensor:
        """``K`` products: dense ``[K, columns, D]``, and a bias ``[K, D]`` for every row."""
        (rows, columns), (count, _, width) = self.shape, dense.shape
        total = count * width
        tables, wide = _tables(total)
        if width == wide:
            out = self._multiply(dense.reshape(count, columns, width))
        else:
            folded = dense.transpose(0, 1).reshape(columns, total)
            folded = F.pad(folded, (0, tables * wide - total))
            out = self._multiply(folded.view(columns, tables, wide).transpose(0, 1))
            out = out.transpose(0, 1).reshape(rows, tables * wide)[:, :total]
            out = out.unflatten(1, (count, width)).transpose(0, 1)
        return out if bias is None else out.add_(bias[:, None])

    def _multiply(self, dense: Tensor) -> Tensor:
        """The same products for a width that a table has."""
        rows = self.shape[0]
        out = dense.new_empty(len(dense), rows, dense.shape[-1])
        run_loop(
            table_loops.product, out.numel() * len(self._words), rows, self._words,
            *self._factors, dense, out,
        )  # fmt: skip
        return out


def _tables(columns: int) -> tuple[int, int]:
    """The number and the width of the tables for this many columns of dense matrices."""
    tables = max(1, -(-columns // WIDE))
    width = -(-columns // (tables * LANES)) * LANES
    return tables, WIDE if width > _ALMOST_WIDE else width
