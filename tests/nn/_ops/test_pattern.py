"""The weighted product and its relatives against loops over entries."""

import pytest
import torch

from memohop.errors import UsageError
from memohop.nn._ops.fixed_matrix import FixedMatrix, fixed_product
from memohop.nn._ops.pattern import Pattern, inner, weighted_product

ROW, COL, SHAPE = [0, 0, 1, 3, 3, 3], [1, 4, 0, 0, 2, 4], (4, 5)


def pattern() -> Pattern:
    return Pattern(torch.tensor(ROW), torch.tensor(COL), SHAPE)


def slow_product(values, dense):
    out = torch.zeros(len(values), SHAPE[0], dense.shape[-1], dtype=dense.dtype)
    for k in range(len(values)):
        for e, (i, j) in enumerate(zip(ROW, COL, strict=True)):
            out[k, i] += values[k, e] * dense[k, j]
    return out


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_products_of_several_matrices():
    values, dense = random(3, 6), random(3, 5, 2)
    torch.testing.assert_close(
        weighted_product(values, dense, pattern()), slow_product(values, dense)
    )
    same = values[:1].expand(3, 6)
    matrix = FixedMatrix(pattern(), values[0])
    torch.testing.assert_close(fixed_product(dense, matrix), slow_product(same, dense))
    turned = pattern().transpose
    left = random(3, 4, 2)
    torch.testing.assert_close(
        weighted_product(values[:, pattern().order], left, turned),
        torch.stack(
            [pattern().csr(v).to_dense().t() @ part for v, part in zip(values, left, strict=True)]
        ),
    )


def test_inner_products():
    left, right = random(2, 4, 3), random(2, 5, 3)
    found = inner(left, right, pattern())
    for k in range(2):
        for e, (i, j) in enumerate(zip(ROW, COL, strict=True)):
            torch.testing.assert_close(found[k, e], left[k, i] @ right[k, j])


def test_gradients():
    values, dense = random(2, 6).requires_grad_(), random(2, 5, 2).requires_grad_()
    left, right = random(2, 4, 2).requires_grad_(), random(2, 5, 2).requires_grad_()
    here = pattern()
    assert torch.autograd.gradcheck(lambda v, d: weighted_product(v, d, here), (values, dense))
    assert torch.autograd.gradgradcheck(lambda v, d: weighted_product(v, d, here), (values, dense))
    assert torch.autograd.gradcheck(lambda a, b: inner(a, b, here), (left, right))


def test_vmap_folds_members_with_and_without_a_batch():
    here, values, dense = pattern(), random(4, 3, 6), random(4, 3, 5, 2)
    slow = torch.stack([slow_product(v, d) for v, d in zip(values, dense, strict=True)])
    both = torch.vmap(lambda v, d: weighted_product(v, d, here))(values, dense)
    torch.testing.assert_close(both, slow)
    shared = torch.vmap(lambda d: weighted_product(values[0], d, here))(dense)
    torch.testing.assert_close(shared[2], slow_product(values[0], dense[2]))
    grads = torch.vmap(torch.func.grad(lambda v, d: (weighted_product(v, d, here) ** 2).sum()))
    alone = torch.func.grad(lambda v, d: (slow_product(v, d) ** 2).sum())
    torch.testing.assert_close(
        grads(values, dense), torch.stack([alone(v, d) for v, d in zip(values, dense, strict=True)])
    )


def test_second_derivatives_through_a_transform_that_is_over():
    row, col = (torch.rand(6, 6) > 0.5).nonzero(as_tuple=True)
    pattern = Pattern(row, col, (6, 6))
    values = torch.rand(1, len(pattern), dtype=torch.double, requires_grad=True)
    dense = torch.rand(1, 6, 3, dtype=torch.double, requires_grad=True)

    def slow(values, dense):
        place = (torch.zeros_like(row), row, col)
        return torch.zeros(1, 6, 6, dtype=torch.double).index_put(place, values[0]) @ dense

    def second(product):
        _, pull_back = torch.func.vjp(lambda *both: product(*both).pow(3), values, dense)
        first = pull_back(torch.ones(1, 6, 3, dtype=torch.double))
        return torch.autograd.grad(sum(grad.square().sum() for grad in first), (values, dense))

    found = second(lambda values, dense: weighted_product(values, dense, pattern))
    torch.testing.assert_close(found, second(slow))


def test_a_symmetric_pattern_is_its_own_transpose():
    row, col = torch.tensor([0, 0, 1, 2, 2, 3]), torch.tensor([1, 2, 0, 0, 3, 2])
    plain = Pattern(row, col, (4, 4))
    once = Pattern.symmetric(*plain.csr_indices)
    assert once.is_symmetric
    assert not plain.is_symmetric
    for one, other in ((once, plain), (once.transpose, plain.transpose)):
        for name in ("row", "col", "row32", "order", "order32", "row_start"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
    values, dense = random(2, 6).requires_grad_(), random(2, 4, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda v, d: weighted_product(v, d, once), (values, dense))
    assert torch.equal(once.to("cpu").col, col)


def test_what_is_made_inside_a_transform_outlives_it():
    here = pattern()
    names = ("row", "col", "row32", "row_start", "order")
    torch.func.grad(lambda one: sum(one * getattr(here, name).sum() for name in names))(
        torch.tensor(1.0)
    )
    for name in names:
        assert not torch._C._functorch.is_functorch_wrapped_tensor(getattr(here, name)), name


def test_more_entries_than_32_bits_count_are_refused(monkeypatch):
    monkeypatch.setattr("memohop.nn._ops.pattern._MOST", 5)
    with pytest.raises(UsageError, match=r"with 6 entries is too large.*workers=2 or more"):
        pattern()
    with pytest.raises(UsageError, match="too large"):
        Pattern.symmetric(torch.arange(7), torch.zeros(6, dtype=torch.int32))


def test_pieces_of_long_rows_add_up(monkeypatch):
    monkeypatch.setattr("memohop.nn._ops.pattern._PIECE", 2)
    row = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3, 3, 3])
    here = Pattern(row, torch.tensor([0, 1, 2, 0, 3, 0, 1, 2, 3, 4]), (5, 5))
    starts, of_rows = here.pieces
    assert starts.tolist() == [0, 2, 3, 5, 7, 9, 10]  # none is longer than two
    values = random(10)
    sums = torch.stack([part.sum() for part in values.split(starts.diff().tolist())])
    whole = torch.stack([part.sum() for part in sums.split(of_rows.diff().tolist())])
    torch.testing.assert_close(whole, here.row_sums(values[None])[0])
    assert Pattern(row[3:5], row[3:5], (5, 5)).pieces is None
