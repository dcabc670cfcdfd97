"""Products block by block of a large operand, against dense ones."""

import pytest
import torch

from memohop.nn._kernels.table import serve
from memohop.nn._kernels.torch import column_blocks
from memohop.nn._kernels.torch.column_blocks import product_by_blocks
from memohop.nn._ops.fixed_matrix import FixedMatrix, fixed_product
from memohop.nn._ops.pattern import Pattern, weighted_product
from numerics import assert_rounded


@pytest.mark.parametrize("height", [1, 3, 4, 100])
def test_the_blocks_of_a_small_matrix(height, monkeypatch):
    monkeypatch.setattr(column_blocks, "_BLOCK", 2 * height)
    matrix = torch.tensor([[0, 2, 0, 0, 6], [1, 0, 0, 4, 0], [0, 3, 0, 5, 0.0]])
    row, col = matrix.nonzero(as_tuple=True)
    fixed = FixedMatrix(Pattern(row, col, (3, 5)), matrix[row, col])
    blocks = column_blocks.column_blocks(fixed, 2)
    assert [block.shape[1] for block in blocks[:-1]] == [height] * (len(blocks) - 1)
    assert torch.equal(torch.cat([block.to_dense() for block in blocks], dim=1), matrix)
    operand, out = torch.rand(5, 2), torch.full((3, 2), torch.nan)
    product_by_blocks(blocks, operand, out)
    assert_rounded(out, lambda operand: matrix.double() @ operand, operand, length=5)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(
    ("shape", "share"), [((4000, 30), 0.2), ((30, 4000), 0.2), ((4000, 4000), 0.02)]
)
def test_large_products_and_their_gradients_equal_dense_ones(shape, share, members):
    rows, columns = shape
    matrix = torch.rand(shape) * (torch.rand(shape) < share)
    matrix[:, 7] = matrix[5] = 0
    row, col = matrix.nonzero(as_tuple=True)
    pattern, values = Pattern(row, col, shape), matrix[row, col]
    operand = torch.rand(members, columns, 300, requires_grad=True)
    upstream = torch.rand(members, rows, 300)
    matrix_and_transpose = FixedMatrix(pattern, values), FixedMatrix(pattern, values).transpose
    by_blocks = [
        serve("fixed_product", dense, one) is column_blocks.fixed_product
        for dense, one in zip((operand, upstream), matrix_and_transpose, strict=True)
    ]
    assert by_blocks == [columns == 4000, rows == 4000]
    bias = torch.rand(members, 300)
    found = fixed_product(operand, FixedMatrix(pattern, values), bias)
    exact = matrix.double()
    assert_sums(found, exact @ operand.double() + bias.double()[:, None], columns)
    (gradient,) = torch.autograd.grad(found, operand, upstream)
    assert_sums(gradient, exact.t() @ upstream.double(), rows)
    times = torch.arange(1.0, members + 1)[:, None]
    found = weighted_product(times * values, operand, pattern)
    assert_sums(found, times[..., None] * (exact @ operand.double()), columns)
    (gradient,) = torch.autograd.grad(found, operand, upstream)
    assert_sums(gradient, times[..., None] * (exact.t() @ upstream.double()), rows)


def assert_sums(found, exact, length):
    """Sums of so many products of positive numbers, and so all their terms added up."""
    assert ((found - exact).abs() <= length * torch.finfo(torch.float32).eps * exact).all()
