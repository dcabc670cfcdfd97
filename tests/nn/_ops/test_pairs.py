"""Chosen rows of the parts of a product, against the whole product. They need Numba."""

from functools import partial

import pytest
import torch

from numerics import assert_rounded, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn._kernels.numba import kernels as cpu_kernels
from memohop.nn._ops.pairs import Pairs, pair_product
from memohop.nn._ops.pattern import Pattern

COUNT, ROWS, COLUMNS, PARTS = 4, 12, 7, 3
STORED = torch.rand(ROWS, COLUMNS, generator=generator()) < 0.4
STORED[5] = False  # a row without entries, which is wanted
PATTERN = Pattern(*STORED.nonzero(as_tuple=True), (ROWS, COLUMNS))
WANTED = torch.tensor([[5, 0], [9, 0], [0, 1], [5, 1], [11, 1], [3, 2]])
PAIRS = Pairs(*WANTED.t(), PARTS)
widths = pytest.mark.parametrize("width", [1, 13, 16, 48])


def normal(*shape):
    return torch.randn(*shape, generator=generator(1))


def numbers(width, matrices=COUNT):
    """Values, a third of which are zeros, and what they are multiplied with."""
    values = normal(matrices, len(PATTERN)) * (torch.arange(len(PATTERN)) % 3 > 0)
    return values, normal(COUNT, COLUMNS, PARTS * width)


def by_whole_products(values, dense):
    """In float64."""
    matrices = torch.stack([PATTERN.csr(value).to_dense() for value in values.double()])
    products = (matrices @ dense.double()).unflatten(-1, (PARTS, -1))
    return products[:, WANTED[:, 0], WANTED[:, 1]]


@widths
@pytest.mark.parametrize("matrices", [1, COUNT])
def test_rows_of_parts_and_their_gradients(width, matrices):
    values, dense = numbers(width, matrices)
    slope = normal(COUNT, len(WANTED), width)

    def rows_and_gradient(product, values, dense, slope):
        dense = dense.clone().requires_grad_()
        rows = product(values, dense)
        return rows, *torch.autograd.grad((rows * slope).sum(), dense)

    given = values, dense, slope
    assert_rounded(
        rows_and_gradient(
            lambda v, d: pair_product(v, d, PATTERN, PAIRS, cpu_kernels.pair_product), *given
        ),
        partial(rows_and_gradient, by_whole_products),
        *given,
        length=max(ROWS, COLUMNS),
    )


@widths
def test_matrices_may_lie_among_other_numbers(width):
    values, dense = numbers(width)
    among = torch.full((COUNT, dense[0].numel() + 5), torch.nan)
    among[:, 2:-3] = dense.flatten(1)
    found = pair_product(
        values, among[:, 2:-3].view_as(dense), PATTERN, PAIRS, cpu_kernels.pair_product
    )
    assert torch.equal(found, pair_product(values, dense, PATTERN, PAIRS, cpu_kernels.pair_product))
    turned = dense.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(
        found, pair_product(values, turned, PATTERN, PAIRS, cpu_kernels.pair_product)
    )


@pytest.mark.parametrize("shared", [True, False])
def test_gradients_inside_vmap_are_those_outside(shared):
    values, dense = numbers(16, 1 if shared else COUNT)
    slope = normal(COUNT, len(WANTED), 16)

    def loss(value, one, weight):
        return (
            pair_product(value[None], one[None], PATTERN, PAIRS, cpu_kernels.pair_product)[0]
            * weight
        ).sum() ** 2

    value, dims = (values[0], (None, 0, 0)) if shared else (values, 0)
    inside = torch.func.vmap(torch.func.grad(loss, argnums=1), dims)(value, dense, slope)
    leaf = dense.clone().requires_grad_()
    (outside,) = torch.autograd.grad(torch.func.vmap(loss, dims)(value, leaf, slope).sum(), leaf)

    def by_loop(values, dense, slope):
        leaf = dense.clone().requires_grad_()
        sums = (by_whole_products(values, leaf) * slope).sum((1, 2))
        return torch.autograd.grad((sums**2).sum(), leaf)

    length = 2 * COLUMNS + len(WANTED) * 16 + ROWS
    for found in (inside, outside):
        assert_rounded([found], by_loop, values, dense, slope, length=length)


def test_second_derivatives_are_those_of_whole_products():
    given = numbers(5)

    def slope_of_slope(function, values, dense):
        dense = dense.clone().requires_grad_()
        cubes = (function(values, dense) ** 3).sum()
        (first,) = torch.autograd.grad(cubes, dense, create_graph=True)
        return torch.autograd.grad((first**2).sum(), dense)[0]

    found = slope_of_slope(
        lambda v, d: pair_product(v, d, PATTERN, PAIRS, cpu_kernels.pair_product), *given
    )
    exact = partial(slope_of_slope, by_whole_products)
    assert_rounded(found, exact, *given, length=2 * (ROWS + COLUMNS))


@pytest.mark.usefixtures("one_thread")  # several leave a single member to PyTorch
def test_results_depend_neither_on_the_company_nor_on_threads(monkeypatch):
    values, dense = numbers(16)

    def results(part):
        leaf = dense[part].clone().requires_grad_()
        out = pair_product(values[part], leaf, PATTERN, PAIRS, cpu_kernels.pair_product)
        return out, *torch.autograd.grad((out**2).sum(), leaf)

    one_thread = results(slice(None))
    threads = torch.get_num_threads()
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1)
    torch.set_num_threads(3)
    try:
        several = results(slice(None))
    finally:
        torch.set_num_threads(threads)
    alone = results(slice(2, 3))
    for one, other, single in zip(one_thread, several, alone, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one[2:3], single)
