"""Products by tables of sums against the dense ones in float64. They need Numba."""

import pytest
import torch

from numerics import assert_rounded, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop import Graph
from memohop.nn._kernels import table
from memohop.nn._kernels.numba import kernels as cpu_kernels
from memohop.nn._kernels.numba import table_kernels
from memohop.nn._kernels.numba.table_kernels import PackedMatrix
from memohop.nn._ops.fixed_matrix import FixedMatrix, fixed_product
from memohop.nn._ops.pattern import Pattern

NODES = 45


def normal(*shape):
    return torch.randn(*shape, generator=generator(1))


def crowded_pattern(rows, columns, share=0.4):
    """Of these the second row and the second column are empty."""
    chosen = torch.rand(rows, columns, generator=generator()) < share
    chosen[1:2], chosen[:, 1:2] = False, False
    return Pattern(*chosen.nonzero(as_tuple=True), (rows, columns))


def matrix_with_factors(rows, columns, share=0.4):
    made = crowded_pattern(rows, columns, share)
    factors = normal(rows).exp(), normal(columns)
    return FixedMatrix(made, factors[0][made.row] * factors[1][made.col], factors)


def has_tables(matrix):
    dense = matrix.values.new_empty(1, matrix.pattern.shape[1], 8)
    return table.serve("fixed_product", dense, matrix) is table_kernels.fixed_product


@pytest.fixture
def any_size(monkeypatch):
    """Small matrices go through the tables as well, and those with few entries or none."""
    monkeypatch.setattr(table, "LARGE_FOR_TABLES", 0)
    monkeypatch.setattr(table, "CROWDED_FOR_TABLES", -1)


SHAPES = [(1, 1), (2, 2), (3, 2), (7, 31), (33, 32), (50, 67), (40, 128), (130, 30)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("width", [1, 5, 16, 50, 64, 70, 128])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_products_and_their_gradients(any_size, shape, width, count, share):
    matrix = matrix_with_factors(*shape, share)
    full = matrix.csr.to_dense().double()
    for of_matrix, of_full in ((matrix, full), (matrix.transpose, full.t())):
        assert has_tables(of_matrix)
        rows, columns = of_full.shape
        dense = normal(count, columns, width).requires_grad_()
        bias = normal(count, width).requires_grad_()
        out = fixed_product(dense, of_matrix, bias)
        assert_rounded(
            out, lambda d, b, m=of_full: m @ d + b[:, None], dense, bias, length=columns + 8
        )
        grad = normal(count, rows, width)
        assert_rounded(
            torch.autograd.grad(out, (dense, bias), grad),
            lambda g, m=of_full: (m.t() @ g, g.sum(1)),
            grad,
            length=rows + 8,
        )


@pytest.mark.parametrize("norm", ["none", "row", "symmetric"])
@pytest.mark.parametrize("direction", ["out", "in", "undirected"])
def test_graphs_whose_arcs_count_once(any_size, norm, direction):
    made = crowded_pattern(NODES, NODES)
    arcs = torch.stack([made.row, made.col])
    graph = Graph(arcs, NODES, direction=direction, norm=norm)
    plain = graph.to(dtype=torch.float64)
    hidden = normal(NODES, 20)
    for one, other in ((graph, plain), (graph.reversed, plain.reversed)):
        assert has_tables(one.matrix)
        assert not has_tables(other.matrix)
        assert_rounded(one @ hidden, other.__matmul__, hidden, length=NODES)


def test_an_arc_that_counts_twice_needs_its_value(any_size):
    made = crowded_pattern(NODES, NODES)
    arcs = torch.stack([made.row, made.col])
    graph = Graph(torch.cat([arcs, arcs[:, :1]], 1), NODES, direction="out", norm="row")
    assert not has_tables(graph.matrix)
    hidden = normal(NODES, 20)
    exact = graph.to(dtype=torch.float64)
    assert_rounded(graph @ hidden, exact.__matmul__, hidden, length=NODES)


def test_a_population_is_its_members_forwards_and_backwards(any_size):
    matrix = matrix_with_factors(NODES, NODES)
    hidden = normal(6, NODES, 5).requires_grad_()

    def one(own):
        return fixed_product(own[None], matrix).squeeze(0)

    together = torch.vmap(one)(hidden)
    grad = normal(*together.shape)
    (gradient,) = torch.autograd.grad(together, hidden, grad)
    for k in range(6):
        alone = one(hidden[k])
        assert torch.equal(alone, together[k])
        assert torch.equal(torch.autograd.grad(alone, hidden, grad[k])[0][k], gradient[k])
    inside = torch.vmap(torch.func.grad(lambda own: (one(own) ** 2).sum()))(hidden)
    (outside,) = torch.autograd.grad((torch.vmap(one)(hidden) ** 2).sum(), hidden)
    full = matrix.csr.to_dense().double()
    for found in (inside, outside):
        assert_rounded(found, lambda h: 2 * full.t() @ (full @ h), hidden, length=2 * NODES)


def test_second_derivatives(any_size):
    matrix = matrix_with_factors(NODES, NODES)
    full = matrix.csr.to_dense().double()

    def slope(product, hidden):
        hidden = hidden.requires_grad_()
        (first,) = torch.autograd.grad((product(hidden) ** 3).sum(), hidden, create_graph=True)
        return torch.autograd.grad((first**2).sum(), hidden)[0]

    hidden = normal(1, NODES, 5) / 10
    found = slope(lambda h: fixed_product(h, matrix), hidden.clone())
    assert_rounded(found, lambda h: slope(lambda own: full @ own, h), hidden, length=4 * NODES)


def test_results_depend_neither_on_width_nor_on_threads(any_size, monkeypatch):
    matrix = matrix_with_factors(NODES, 70)
    dense = normal(1, 70, 64)
    whole = table_kernels.fixed_product(dense, None, matrix)
    for width in (1, 8, 33):
        assert torch.equal(
            table_kernels.fixed_product(dense[..., :width], None, matrix), whole[..., :width]
        )
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert torch.equal(table_kernels.fixed_product(dense, None, matrix), whole)
    finally:
        torch.set_num_threads(before)


def test_a_number_that_is_none_spoils_only_rows_that_have_it(any_size):
    matrix = matrix_with_factors(NODES, NODES)
    dense = normal(1, NODES, 8)
    dense[0, 2, 3] = torch.nan
    spoilt = fixed_product(dense, matrix).isnan()
    has_it = matrix.csr.to_dense()[:, 2] != 0
    assert torch.equal(spoilt[0, :, 3], has_it)
    assert spoilt.sum() == has_it.sum()


def test_tables_serve_crowded_and_large_graphs_alone(monkeypatch):
    served = []

    def product(self, dense, bias):
        served.append(self.shape)
        return multiply(self, dense, bias)

    multiply = PackedMatrix.product
    monkeypatch.setattr(PackedMatrix, "product", product)
    for nodes, share, times in ((1030, 0.2, 2), (1030, 0.1, 0), (100, 0.2, 0)):
        made = crowded_pattern(nodes, nodes, share)
        graph = Graph(torch.stack([made.row, made.col]), nodes, direction="out", norm="symmetric")
        hidden = normal(nodes, 4).requires_grad_()
        (graph @ hidden).sum().backward()
        assert served == [(nodes, nodes)] * times
        with pytest.raises(RuntimeError):
            graph @ hidden[1:]
        with pytest.raises(RuntimeError):
            graph @ hidden.double()
        served.clear()
