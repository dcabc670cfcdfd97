"""The CPU kernels against the plain computations in float64. They need Numba."""

from functools import partial

import pytest
import torch

from numerics import assert_rounded, assert_same_sums, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import Dropout, epoch_key, randomness
from memohop.nn._kernels.numba import kernels as cpu_kernels
from memohop.nn._ops.attention import attend, row_softmax
from memohop.nn._ops.pattern import Pattern, inner, weighted_product
from memohop.nn.randomness import draw_masks

COUNT = 6


def random_pattern(rows, columns, entries):
    """Some rows and columns of these are empty, and some entries are self-loops."""
    drawn = torch.rand(rows, columns, generator=generator()).flatten()
    chosen = drawn.argsort()[:entries].sort().values
    return Pattern(chosen // columns, chosen % columns, (rows, columns))


PATTERNS = {
    "random": random_pattern(31, 31, 60),
    "crowded": random_pattern(40, 30, 900),
    "wide": random_pattern(9, 50, 70),
    "one node": Pattern(torch.tensor([0]), torch.tensor([0]), (1, 1)),
    "no entries": Pattern(*torch.empty(2, 0, dtype=torch.long), (3, 2)),
}
patterns = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())


def normal(*shape):
    return torch.randn(*shape, generator=generator(1))


def values_and_gradients(function, *tensors):
    """In the type of the tensors, the last of which is the gradient from above: float32 goes
    through the kernels, float64 does not.
    """
    *leaves, upstream = (tensor.clone().requires_grad_() for tensor in tensors)
    out = function(*leaves)
    return out, *torch.autograd.grad((out * upstream).sum(), leaves)


def agree(function, *tensors, length):
    tensors = *tensors, normal(*function(*tensors).shape)
    found = values_and_gradients(function, *tensors)
    assert_rounded(found, partial(values_and_gradients, function), *tensors, length=length)


def ends(pattern):
    rows, columns = pattern.shape
    return normal(COUNT, rows), normal(COUNT, columns) * 3


@patterns
@pytest.mark.parametrize("kept", [1.0, 0.5, 0.0])
def test_attention_and_its_gradients(pattern, kept):
    keep = (torch.rand(len(pattern), generator=generator()) < kept).float()
    keep = None if kept == 1 else keep
    agree(
        lambda r, s: attend(r, s, pattern, negative_slope=0.2, keep=keep),
        *ends(pattern),
        length=2 * sum(pattern.shape),
    )


def test_attention_leaves_out_exactly_and_survives_large_scores():
    pattern = PATTERNS["crowded"]
    receive, send = (1000 * end for end in ends(pattern))
    keep = torch.arange(len(pattern)) % 3
    weights = attend(receive, send, pattern, negative_slope=0.2, keep=keep)
    assert not weights[:, keep == 0].any()
    sums = torch.stack([pattern.csr(weight).to_dense().sum(1) for weight in weights])
    assert ((sums - 1).abs() <= 2 * pattern.shape[1] * torch.finfo(torch.float32).eps).all()


def test_a_number_that_is_none_spoils_its_own_row_alone():
    pattern = PATTERNS["crowded"]
    receive, send = ends(pattern)
    receive[2, 5] = torch.nan
    spoilt = attend(receive, send, pattern, negative_slope=0.2).isnan()
    assert torch.equal(spoilt[2], pattern.row == 5)
    assert not spoilt[[0, 1, 3, 4, 5]].any()


def test_rows_on_one_side_of_the_kink_have_no_gradient_at_all():
    pattern = PATTERNS["crowded"]
    receive, send = ends(pattern)
    send = send.clamp(-5, 5)
    receive[:, ::2] = 6.0
    receive[:, 1::4] = -6.0
    _, of_receive, of_send = values_and_gradients(
        lambda r, s: attend(r, s, pattern, negative_slope=0.2),
        receive,
        send,
        normal(COUNT, len(pattern)),
    )
    assert not of_receive[:, ::2].any()
    assert not of_receive[:, 1::4].any()
    assert of_receive[:, 3::4].any()
    assert of_send.any()


@patterns
@pytest.mark.parametrize("width", [1, 3, 8, 13, 16, 40])
def test_weighted_products_and_their_gradients(pattern, width):
    values, dense = normal(COUNT, len(pattern)), normal(COUNT, pattern.shape[1], width)
    length = max(*pattern.shape, width)
    agree(lambda v, d: weighted_product(v, d, pattern), values, dense, length=length)
    agree(lambda d: weighted_product(values.to(d.dtype), d, pattern), dense, length=length)
    agree(lambda v: weighted_product(v, dense.to(v.dtype), pattern), values, length=length)


@patterns
@pytest.mark.parametrize("width", [2, 64])
def test_inner_products_and_their_gradients(pattern, width):
    left, right = (normal(COUNT, length, width) for length in pattern.shape)
    length = max(*pattern.shape, width)
    agree(lambda one, two: inner(one, two, pattern), left, right, length=length)


@patterns
def test_the_softmax_of_rows_and_its_gradient(pattern):
    scores = normal(COUNT, len(pattern)) * 5
    agree(lambda scores: row_softmax(scores, pattern), scores, length=2 * pattern.shape[1])


@patterns
def test_sums_of_rows(pattern):
    values = normal(COUNT, len(pattern))
    assert_rounded(pattern.row_sums(values), pattern.row_sums, values, length=pattern.shape[1])


def test_second_derivatives_are_those_of_the_plain_computation():
    pattern = PATTERNS["random"]

    def slope(receive, send):
        leaves = [end.clone().requires_grad_() for end in (receive, send)]
        weights = attend(*leaves, pattern, negative_slope=0.2)
        product = weighted_product(weights, leaves[1][..., None], pattern)
        first = torch.autograd.grad((product**2).sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum((part**2).sum() for part in first), leaves)

    given = ends(pattern)
    assert_rounded(slope(*given), slope, *given, length=6 * sum(pattern.shape))


def test_gradients_inside_vmap_are_those_outside():
    pattern = PATTERNS["random"]
    receive, send = ends(pattern)

    def loss(r, s):
        weights = attend(r[None], s[None], pattern, negative_slope=0.2)
        return (weighted_product(weights, s[None, :, None], pattern) ** 2).sum()

    inside = torch.vmap(torch.func.grad(loss, argnums=(0, 1)))

    def outside(*ends):
        leaves = [end.clone().requires_grad_() for end in ends]
        return torch.autograd.grad(torch.vmap(loss)(*leaves).sum(), leaves)

    for found in (inside(receive, send), outside(receive, send)):
        assert_rounded(found, outside, receive, send, length=3 * sum(pattern.shape))


def test_dropout_of_a_population_forwards_and_backwards():
    keys = epoch_key(torch.arange(COUNT), torch.tensor(1))
    layer = Dropout(0.3)

    def one(key, values):
        with randomness(key):
            return layer(layer(values))

    values = normal(COUNT, 9, 4).requires_grad_()
    out = torch.vmap(one)(keys, values)
    rates = layer.rate.expand(COUNT)
    first, second = draw_masks(keys, rates, (1, 2), (9, 4), torch.float32)
    assert_rounded(out, lambda values: values * first * second, values, length=2)
    (grad,) = torch.autograd.grad(out.sum(), values)
    assert torch.equal(grad, first * second)
    assert torch.equal(one(keys[2], values[2]), out[2])


def everything(members, pattern):
    """What all kernels find for the first members."""
    rows, columns = pattern.shape
    receive, send = (end[:members] for end in ends(pattern))
    dense, grad = normal(COUNT, columns, 5)[:members], normal(COUNT, rows, 5)[:members]
    weights = cpu_kernels.attention(receive, send, None, 0.2, pattern)
    of_weights = cpu_kernels.inner(grad, dense, pattern)
    return [
        weights,
        *cpu_kernels.attention_backward(receive, send, weights, of_weights, 0.2, pattern),
        cpu_kernels.weighted_product(weights, dense, pattern),
        cpu_kernels.weighted_product_backward(weights, grad, pattern),
        of_weights,
        cpu_kernels.row_softmax(of_weights, pattern),
        cpu_kernels.row_softmax_backward(weights, of_weights, pattern),
        cpu_kernels.row_sums(of_weights, pattern),
    ]


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_depend_neither_on_the_company_nor_on_threads(three_threads, monkeypatch):
    pattern = PATTERNS["crowded"]
    together = everything(COUNT, pattern)
    for members in (1, 2, 5):
        for alone, one in zip(everything(members, pattern), together, strict=True):
            assert torch.equal(alone, one[:members])
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1 << 40)
    for in_one, one in zip(everything(COUNT, pattern), together, strict=True):
        assert torch.equal(in_one, one)


def test_rows_in_several_blocks_are_those_in_one(monkeypatch):
    pattern = PATTERNS["crowded"]
    whole = everything(COUNT, pattern)
    monkeypatch.setattr(cpu_kernels, "_AT_ONCE", 50)
    for part, one in zip(everything(COUNT, pattern), whole, strict=True):
        assert_same_sums(part, one, length=max(pattern.shape))
