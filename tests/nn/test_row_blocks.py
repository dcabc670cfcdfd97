"""Products with transposes of tall matrices, block by block, against dense ones."""

import pytest
import torch

from memohop.nn.pattern import FixedMatrix, Pattern, fixed_product, weighted_product
from memohop.nn.row_blocks import RowBlocks, collects_from_afar, product_by_blocks


@pytest.mark.parametrize("height", [1, 3, 4, 100])
def test_the_blocks_of_a_small_matrix(height):
    matrix = torch.tensor([[0, 1, 0], [2, 0, 3], [0, 0, 0], [0, 4, 5], [6.0, 0, 0]])
    row, col = matrix.nonzero(as_tuple=True)
    blocks = RowBlocks(row, col, (5, 3), height).matrices(matrix[row, col])
    dense = [block.to_dense() for block in blocks]
    assert torch.equal(torch.cat(dense, dim=1), matrix.t())
    operand, out = torch.rand(5, 2), torch.full((3, 2), torch.nan)
    product_by_blocks(blocks, operand, out)
    torch.testing.assert_close(out, matrix.t() @ operand)


@pytest.mark.parametrize("members", [1, 2])
def test_gradients_of_tall_products_equal_those_of_dense_ones(members):
    torch.manual_seed(0)
    matrix = torch.rand(4000, 30) * (torch.rand(4000, 30) > 0.8)
    matrix[:, 7] = 0
    row, col = matrix.nonzero(as_tuple=True)
    pattern, values = Pattern(row, col, (4000, 30)), matrix[row, col]
    upstream = torch.rand(members, 4000, 300)
    assert collects_from_afar(upstream, pattern.shape)
    assert not collects_from_afar(upstream, (4000, 4000))
    weight = torch.rand(members, 30, 300, requires_grad=True)
    expected = matrix.t().double() @ upstream.double()
    fixed = fixed_product(weight, FixedMatrix(pattern, values))
    varying = torch.stack([values * (k + 1) for k in range(members)])
    weighted = weighted_product(varying, weight, pattern)
    (found,) = torch.autograd.grad(fixed, weight, upstream)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    (found,) = torch.autograd.grad(weighted, weight, upstream)
    times = torch.arange(1, members + 1)[:, None, None]
    torch.testing.assert_close(found.double(), expected * times, rtol=1e-5, atol=1e-4)
