"""Products block by block of a large operand, against dense ones."""

import pytest
import torch

from memohop.nn import column_blocks
from memohop.nn.column_blocks import ColumnBlocks, collects_from_afar, product_by_blocks
from memohop.nn.fixed_matrix import FixedMatrix, fixed_product
from memohop.nn.pattern import Pattern, weighted_product


@pytest.mark.parametrize("height", [1, 3, 4, 100])
def test_the_blocks_of_a_small_matrix(height, monkeypatch):
    monkeypatch.setattr(column_blocks, "_BLOCK", 2 * height)
    matrix = torch.tensor([[0, 2, 0, 0, 6], [1, 0, 0, 4, 0], [0, 3, 0, 5, 0.0]])
    row, col = matrix.nonzero(as_tuple=True)
    blocks = ColumnBlocks(row, col, (3, 5), 2).matrices(matrix[row, col])
    assert [block.shape[1] for block in blocks[:-1]] == [height] * (len(blocks) - 1)
    assert torch.equal(torch.cat([block.to_dense() for block in blocks], dim=1), matrix)
    operand, out = torch.rand(5, 2), torch.full((3, 2), torch.nan)
    product_by_blocks(blocks, operand, out)
    torch.testing.assert_close(out, matrix @ operand)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(
    ("shape", "share"), [((4000, 30), 0.2), ((30, 4000), 0.2), ((4000, 4000), 0.02)]
)
def test_large_products_and_their_gradients_equal_dense_ones(shape, share, members):
    torch.manual_seed(0)
    rows, columns = shape
    matrix = torch.rand(shape) * (torch.rand(shape) < share)
    matrix[:, 7] = matrix[5] = 0
    row, col = matrix.nonzero(as_tuple=True)
    pattern, values = Pattern(row, col, shape), matrix[row, col]
    operand = torch.rand(members, columns, 300, requires_grad=True)
    upstream = torch.rand(members, rows, 300)
    by_blocks = (
        collects_from_afar(operand, rows, len(pattern)),
        collects_from_afar(upstream, columns, len(pattern)),
    )
    assert by_blocks == (columns == 4000, rows == 4000)
    bias = torch.rand(members, 300)
    found = fixed_product(operand, FixedMatrix(pattern, values), bias)
    exact = matrix.double()
    product, gradient = exact @ operand.double(), exact.t() @ upstream.double()
    close(found, product + bias[:, None])
    close(torch.autograd.grad(found, operand, upstream)[0], gradient)
    varying = torch.stack([values * (k + 1) for k in range(members)])
    times = torch.arange(1, members + 1)[:, None, None]
    found = weighted_product(varying, operand, pattern)
    close(found, product * times)
    close(torch.autograd.grad(found, operand, upstream)[0], gradient * times)


def close(found, expected):
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
