"""The GPU kernels against dense products in float64. They need Triton and a GPU."""

import pytest
import torch

from numerics import assert_rounded, generator, mask_of, seeded

pytest.importorskip("triton", reason="Triton is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU here", allow_module_level=True)

from memohop.nn import Graph, SparseFeatures, epoch_key
from memohop.nn import _kernels as kernels
from memohop.nn._ops import update
from memohop.nn._randomness import Draw, Place, place_words

MEMBERS, NODES, WIDTH = 5, 37, 12


def keys():
    return epoch_key(torch.arange(MEMBERS), torch.tensor(3)).cuda()


RATES = torch.tensor([0.0, 0.2, 0.5, 0.7, 0.9])


def masks(shape, place):
    drawn = [
        mask_of(Draw(key, Place(place)), shape, rate, torch.float64)
        for key, rate in zip(keys(), RATES.cuda(), strict=True)
    ]
    return torch.stack(drawn)


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_products_with_long_rows_do_not_depend_on_the_company(turned, dropout):
    dense = torch.rand(NODES, 1500, generator=generator(3)) * (torch.arange(NODES) % 3 > 0)[:, None]
    dense = (dense.t() if turned else dense).contiguous().cuda()
    sparse, bias = SparseFeatures(dense), torch.randn(MEMBERS, WIDTH, device="cuda")
    assert (sparse.pattern.transpose if turned else sparse.pattern).pieces is not None
    operand = torch.randn(MEMBERS, 1500, WIDTH, device="cuda")
    drop = (keys(), RATES.cuda(), *place_words(4)) if dropout else None
    dropped = dense.double().expand(MEMBERS, -1, -1).clone()
    if dropout:
        dropped[:, dense != 0] *= masks((len(sparse.values),), 4)
    full = dropped.mT if turned else dropped
    how = {"drop": drop, "transposed": turned}
    product = kernels.product(sparse.values, operand, sparse.pattern, bias=bias, **how)
    exact = lambda operand, bias: full @ operand + bias[:, None]  # noqa: E731
    assert_rounded(product, exact, operand, bias, length=1500)
    if not dropout:
        given = sparse.values, operand[:1], sparse.pattern
        alone = kernels.product(*given, bias=bias[:1], **how)
        assert torch.equal(alone[0], product[0])


@pytest.mark.parametrize("width", [1, 8, 64, 100])
def test_graph_products_and_inner_products(width):
    arcs = torch.randint(NODES, (2, 150), generator=generator(2))
    graph = Graph(arcs.cuda(), NODES, direction="out", norm="row")
    pattern, values = graph.pattern, torch.randn(MEMBERS, len(graph.pattern), device="cuda")
    hidden = torch.randn(MEMBERS, NODES, width, device="cuda")
    other = torch.randn(MEMBERS, NODES, width, device="cuda")

    def matrices(values, elsewhere=0.0):
        full = values.new_full((MEMBERS, NODES, NODES), elsewhere)
        full[:, pattern.row, pattern.col] = values
        return full

    def inner(other, hidden):
        return (other[:, pattern.row] * hidden[:, pattern.col]).sum(-1)

    def row_softmax(values):
        return matrices(values, -torch.inf).softmax(-1)[:, pattern.row, pattern.col]

    product = kernels.product(values, hidden, pattern)
    assert_rounded(product, lambda v, h: matrices(v) @ h, values, hidden, length=NODES)
    inner_products = kernels.inner(other, hidden, pattern)
    assert_rounded(inner_products, inner, other, hidden, length=width)
    sums = kernels.row_sums(values, pattern)
    assert_rounded(sums, lambda v: matrices(v).sum(-1), values, length=NODES)
    softmax = kernels.row_softmax(values, pattern)
    assert_rounded(softmax, row_softmax, values, length=NODES)


@pytest.mark.parametrize("width", [1, 5, 16, 32])
def test_scores_of_arcs_forward_and_backward(width):
    arcs = torch.randint(NODES, (2, 300), generator=generator(2))
    pattern = Graph(arcs.cuda(), NODES, direction="out", norm="row").pattern
    numbers = torch.Generator(device="cuda").manual_seed(seeded())
    shapes = (NODES, width), (NODES, width), (width,), (len(pattern),)
    receive, send, score, grad = (
        torch.randn(MEMBERS, *shape, device="cuda", generator=numbers) for shape in shapes
    )
    means = kernels.row_sums(grad, pattern) / pattern.pointers.diff()
    grad = grad - means.index_select(1, pattern.row)  # a softmax's gradients add up to 0 in a row

    def by_hand(receive, send, score, grad):
        leaves = [tensor.clone().requires_grad_() for tensor in (receive, send, score)]
        sums = leaves[0][:, pattern.row] + leaves[1][:, pattern.col]
        scores = (torch.nn.functional.leaky_relu(sums, 0.2) * leaves[2][:, None]).sum(-1)
        return scores, *torch.autograd.grad((scores * grad).sum(), leaves)

    arc_scores = kernels.dynamic_scores(receive, send, score, 0.2, pattern)
    parts = kernels.dynamic_scores_backward(grad, receive, send, score, 0.2, pattern)
    length = width + len(pattern) // NODES + len(pattern)
    assert_rounded([arc_scores, *parts], by_hand, receive, send, score, grad, length=length)
    for size in (1, 3):
        given = (tensor[:size] for tensor in (grad, receive, send, score))
        some = kernels.dynamic_scores_backward(*given, 0.2, pattern)
        assert all(torch.equal(few, whole[:size]) for few, whole in zip(some, parts, strict=True))


def test_who_does_not_ask_for_the_gates_gradient_does_not_pay_for_it(monkeypatch):
    monkeypatch.delattr(update, "_backward")  # what serves where the kernels do not
    shapes = (NODES, WIDTH), (NODES, WIDTH), (3, 2 * WIDTH), (3,)
    tensors = [torch.randn(*shape, device="cuda", requires_grad=True) for shape in shapes]
    hidden, memory, gates = update.gated_update(*tensors, (None, None), RATES[0].cuda())
    torch.autograd.grad((hidden.sin() + memory.cos()).sum(), tensors, retain_graph=True)
    with pytest.raises(NameError):
        gates.sum().backward()


def test_dropout_masks_are_those_of_the_cpu():
    values = torch.randn(MEMBERS, NODES, WIDTH, device="cuda")
    dropped = kernels.dropout(values, keys(), RATES.cuda(), *place_words(9))
    on_cpu = torch.stack([
        mask_of(Draw(key, Place(9)), (NODES, WIDTH), rate, torch.float32)
        for key, rate in zip(keys().cpu(), RATES, strict=True)
    ])  # fmt: skip
    assert torch.equal((dropped != 0).cpu(), on_cpu != 0)
    assert_rounded(dropped.cpu(), lambda values: values * on_cpu, values.cpu(), length=2)


SHAPES = [(37, 64, 64), (64, 2500, 5), (1, 1, 1), (5, 33, 70), (192, 40, 7)]


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_batched_products_do_not_depend_on_the_batch(rows, inner, columns):
    numbers = torch.Generator(device="cuda").manual_seed(seeded())
    left = torch.randn(40, inner, rows, device="cuda", generator=numbers).mT
    right = torch.randn(40, inner, columns, device="cuda", generator=numbers)
    whole = kernels.batched_product(left, right)
    assert_rounded(whole, torch.matmul, left, right, length=inner)
    for size in (1, 3, 17):
        assert torch.equal(kernels.batched_product(left[:size], right[:size]), whole[:size])
    shared = right[:1].expand(40, -1, -1)
    assert torch.equal(kernels.batched_product(left, shared)[0], whole[0])
