"""The GPU kernels on bfloat16, and on tensors with more elements than 32 bits count."""

import pytest
import torch

from numerics import generator

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU here", allow_module_level=True)

from memohop.nn import _kernels as kernels
from memohop.nn import epoch_key
from memohop.nn._randomness import _fold, _hash, _words, _wrapped, place_words

MEMBERS, NODES, WIDTH = 3, 37, 12
KEYS = epoch_key(torch.arange(MEMBERS), torch.tensor(3)).cuda()
RATES = torch.tensor([0.0, 0.3, 0.9]).cuda()
LARGE = (1 << 31) + (1 << 20)  # elements: offsets of the last ones need more than 32 bits


def states(*shape, offset=0):
    return torch.randn(*shape, generator=generator(offset)).cuda().bfloat16()


def assert_half(half, single):
    """A result of float32 arithmetic that is rounded once, to the 8 bits of bfloat16."""
    assert half.dtype == torch.bfloat16
    scale = float(single.abs().max())
    torch.testing.assert_close(half.float(), single, rtol=2**-7, atol=1e-5 * scale)


@pytest.fixture
def room():
    """Enough memory for a dozen large tensors."""
    if torch.cuda.mem_get_info()[0] < 12 * 2 * LARGE:
        pytest.skip("the GPU has too little memory for tensors of 2 ** 31 elements")
    yield
    torch.cuda.empty_cache()


@pytest.mark.parametrize(("rows", "inner", "columns"), [(37, 64, 64), (64, 2500, 5), (5, 33, 70)])
def test_batched_products(rows, inner, columns):
    left, right = states(MEMBERS, inner, rows).mT, states(MEMBERS, inner, columns, offset=1)
    assert_half(kernels.batched_product(left, right), (left.double() @ right.double()).float())


@pytest.mark.usefixtures("room")
def test_dropout_of_a_large_tensor():
    """Elements are numbered modulo 2 ** 33: two of them share one of 2 ** 32 hashes."""
    values = torch.ones(1, LARGE, dtype=torch.bfloat16, device="cuda")
    dropped = kernels.dropout(values, KEYS[1:2], RATES[1:2], *place_words(9))
    kept = dropped[0, -4096:] != 0
    pairs = torch.arange((LARGE - 4096) // 2, LARGE // 2, dtype=torch.int64)
    key = KEYS[1].cpu()
    halves = _hash(_fold(_wrapped(pairs)), _words((9,), key.device) ^ key)  # as on a CPU
    assert torch.equal(kept.cpu(), halves[0] >= round(float(RATES[1]) * 65536) - 32768)


@pytest.mark.usefixtures("room")
def test_a_gated_update_of_many_nodes():
    width = 64
    nodes = LARGE // width
    hidden = torch.ones(1, nodes, width, dtype=torch.bfloat16, device="cuda")
    message = torch.full_like(hidden, 2)
    hidden[:, -100:], message[:, -100:] = states(100, width), states(100, width, offset=1)
    weight, bias = states(1, 3, 2 * width, offset=2), states(1, 3, offset=3)
    nothing = KEYS[:1], RATES[:1], None
    new, memory, gates = kernels.gated_update(hidden, message, weight, bias, *nothing, True)
    last = [tensor[:, -100:].contiguous() for tensor in (hidden, message)]
    for whole, part in zip(
        (new, memory, gates),
        kernels.gated_update(*last, weight, bias, *nothing, True),
        strict=True,
    ):
        torch.testing.assert_close(whole[:, -100:], part, rtol=2**-7, atol=1e-5)
    back = kernels.gated_update_backward(hidden, message, weight, gates, new, None, *nothing)
    few = gates[:, -100:].contiguous(), new[:, -100:].contiguous()
    exact = kernels.gated_update_backward(*last, weight, *few, None, *nothing)
    for whole, part in zip(back[:2], exact[:2], strict=True):
        torch.testing.assert_close(whole[:, -100:], part, rtol=2**-7, atol=1e-4)


@pytest.mark.usefixtures("room")
def test_a_matrix_product_of_many_rows():
    """Both a result with many rows, and a sum over more parts than a grid is long."""
    rows = 70_000_000
    left = torch.zeros(1, rows, 32, dtype=torch.bfloat16, device="cuda")
    left[:, -100:], left[:, :100] = states(100, 32), states(100, 32, offset=1)
    right = states(1, 32, 32, offset=2)
    product = kernels.batched_product(left, right)
    assert_half(product[:, -100:], (left[:, -100:].double() @ right.double()).float())
    sums = kernels.batched_product(left.mT, left)
    ends = torch.cat([left[:, :100], left[:, -100:]], dim=1).double()
    assert_half(sums, (ends.mT @ ends).float())
