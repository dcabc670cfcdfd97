"""Graph attention as one operation against the plain computation in float64. It needs Numba."""

from functools import partial

import pytest
import torch

from numerics import assert_rounded, assert_same_sums, generator

pytest.importorskip("numba", reason="Numba is not installed")

from memohop.nn import Graph, GraphAttention, epoch_key, randomness
from memohop.nn._kernels.numba import attention_kernels as cpu_attention_kernels
from memohop.nn._kernels.numba import kernels as cpu_kernels
from memohop.nn._kernels.table import without
from memohop.nn._ops.attention import attend
from memohop.nn._ops.pattern import Pattern, weighted_product
from memohop.nn._ops.whole_attention import attend_as_a_whole
from memohop.nn.graph import ReweightedGraph
from memohop.nn.randomness import Draw, draw_masks

MEMBERS, HEADS, SLOPE = 3, 8, 0.2
RATES = torch.tensor([0.5, 0.0, 0.8]), torch.tensor([0.3, 0.6, 0.0])
KEYS = epoch_key(torch.arange(MEMBERS) + (1 << 40), torch.tensor(7))


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=generator(seed))


def random_pattern(nodes, entries):
    """Some rows and columns are empty, others are long, and some entries are self-loops."""
    likely = torch.rand(nodes, 1, generator=generator()) ** 3
    drawn = likely * torch.rand(nodes, nodes, generator=generator(2))
    chosen = drawn.flatten().argsort(descending=True)[:entries].sort().values
    return Pattern(chosen // nodes, chosen % nodes, (nodes, nodes))


PATTERNS = {
    "random": random_pattern(150, 701),
    "crowded": random_pattern(40, 1500),
    "one node": Pattern(torch.tensor([0]), torch.tensor([0]), (1, 1)),
    "no entries": Pattern(*torch.empty(2, 0, dtype=torch.long), (3, 3)),
}
patterns = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
dropouts = pytest.mark.parametrize(
    "places",
    [(None, None), (5, None), (None, 4), (5, 4)],
    ids=["none", "values", "weights", "both"],
)


def inputs(pattern, width=8):
    mapped = normal(MEMBERS, pattern.shape[0], HEADS * width)
    return mapped, normal(MEMBERS, 3, HEADS * width, seed=3)


def kept_entries(pattern, share):
    drawn = torch.rand(MEMBERS, len(pattern), generator=generator(4))
    return None if share == 1 else (drawn < share).float()


def at_once(pattern, places, keep):
    """The operation, for all members through vmap."""

    def one(mapped, vectors, key, value_rate, rate, keep):
        draws = tuple(None if place is None else Draw(key, place) for place in places)
        return attend_as_a_whole(
            mapped, vectors, pattern, heads=HEADS, negative_slope=SLOPE, keep=keep,
            draws=draws, rates=(value_rate, rate), kernel=cpu_attention_kernels.attend,
        )  # fmt: skip

    dims = (0, 0, 0, 0, 0, None if keep is None else 0)
    return lambda mapped, vectors: torch.vmap(one, dims)(mapped, vectors, KEYS, *RATES, keep)


def step_by_step(pattern, places, keep):
    """Member after member, from the operations of other backbones, with masks drawn whole."""

    def all_members(mapped, vectors):
        found = []
        for k in range(MEMBERS):
            values = mapped[k].unflatten(-1, (HEADS, -1)).transpose(0, 1)
            receive, send, _ = vectors[k].unflatten(-1, (HEADS, -1))
            weights = attend(
                (values * receive[:, None]).sum(-1), (values * send[:, None]).sum(-1), pattern,
                negative_slope=SLOPE, keep=None if keep is None else keep[k],
            )  # fmt: skip
            values, weights = (
                part if place is None else part * masks_of(rates, place, part)[k]
                for part, rates, place in zip((values, weights), RATES, places, strict=True)
            )
            collected = weighted_product(weights, values, pattern)
            found.append(collected.transpose(0, 1).flatten(1) + vectors[k, 2])
        return torch.stack(found)

    return all_members


def masks_of(rates, place, part):
    return draw_masks(KEYS, rates, (place,), tuple(part.shape), part.dtype)[0]


def values_and_gradients(function, *tensors):
    """The last tensor is the gradient from above."""
    *leaves, upstream = (tensor.clone().requires_grad_() for tensor in tensors)
    out = function(*leaves)
    return out, *torch.autograd.grad((out * upstream).sum(), leaves)


def agree(pattern, places, keep, given):
    given = *given, normal(*given[0].shape, seed=5)
    nodes, width = pattern.shape[0], given[0].shape[-1] // HEADS
    assert_rounded(
        values_and_gradients(at_once(pattern, places, keep), *given),
        partial(values_and_gradients, step_by_step(pattern, places, keep)),
        *given,
        # Forwards a head, a row and a row again, backwards the same and columns, or all nodes.
        length=2 * (width + 2 * nodes) + nodes,
    )


@patterns
@dropouts
@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_values_and_gradients(pattern, places, share):
    agree(pattern, places, kept_entries(pattern, share), inputs(pattern))


@pytest.mark.parametrize("width", [4, 12, 16])
def test_other_widths(width):
    pattern = PATTERNS["random"]
    agree(pattern, (5, 4), None, inputs(pattern, width))


def test_large_scores_and_numbers_that_are_none_stay_in_their_rows():
    pattern = PATTERNS["crowded"]
    mapped, vectors = inputs(pattern)
    large = at_once(pattern, (None, None), None)(mapped, 1000 * vectors)
    assert large.isfinite().all()
    receive = vectors.clone()
    receive[1, 0, 8:16] = torch.nan  # the second head of the second member
    spoilt = at_once(pattern, (None, None), None)(mapped, receive).isnan()
    full = pattern.csr_indices[0].diff() > 0
    assert spoilt[1, full, 8:16].all()
    assert spoilt.sum() == spoilt[1, full, 8:16].sum()


def test_rows_on_one_side_of_the_kink_send_no_gradient_to_their_receiver():
    pattern = PATTERNS["crowded"]
    mapped, vectors = inputs(pattern)
    mapped = mapped.abs()
    vectors[:, 0] = vectors[:, 0].abs()
    vectors[0, 1] = vectors[0, 1].abs()
    upstream = normal(*mapped.shape, seed=5)
    _, _, of_vectors = values_and_gradients(
        at_once(pattern, (5, 4), None), mapped, vectors, upstream
    )
    assert not of_vectors[0, 0].any()
    assert of_vectors[1, 0].any()
    assert of_vectors[0, 1].any()


def test_second_derivatives_are_those_of_the_plain_computation():
    pattern, places, keep = PATTERNS["random"], (5, 4), kept_entries(PATTERNS["random"], 0.7)

    def slope(function, *tensors):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        first = torch.autograd.grad((function(*leaves) ** 2).sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum((part**2).sum() for part in first), leaves)

    given = [tensor / 4 for tensor in inputs(pattern)]
    assert_rounded(
        slope(at_once(pattern, places, keep), *given),
        partial(slope, step_by_step(pattern, places, keep)),
        *given,
        length=4 * (8 + 2 * pattern.shape[0]),
    )


def test_gradients_inside_vmap_are_those_outside():
    pattern = PATTERNS["random"]
    given = inputs(pattern)

    def loss(mapped, vectors, key, value_rate, rate):
        out = attend_as_a_whole(
            mapped, vectors, pattern, heads=HEADS, negative_slope=SLOPE, keep=None,
            draws=(Draw(key, 5), Draw(key, 4)), rates=(value_rate, rate),
            kernel=cpu_attention_kernels.attend,
        )  # fmt: skip
        return (out**2).sum()

    inside = torch.vmap(torch.func.grad(loss, argnums=(0, 1)))(*given, KEYS, *RATES)
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    outside = torch.autograd.grad(torch.vmap(loss)(*leaves, KEYS, *RATES).sum(), leaves)

    def by_steps(*tensors):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        out = step_by_step(pattern, (5, 4), None)(*leaves)
        return torch.autograd.grad((out**2).sum(), leaves)

    for found in (inside, outside):
        assert_rounded(found, by_steps, *given, length=2 * (8 + 2 * pattern.shape[0]))


def everything(members, pattern):
    """What the kernels find for the first members."""
    mapped, vectors = (tensor[:members] for tensor in inputs(pattern))
    keep = kept_entries(pattern, 0.7)[:members] != 0
    drops = tuple(
        (KEYS[:members], rates[:members], place) for rates, place in zip(RATES, (5, 4), strict=True)
    )
    arguments = pattern, mapped, vectors, keep, SLOPE, drops
    out, *kept = cpu_attention_kernels.attend(*arguments)
    return [out, *kept, *cpu_attention_kernels.attend_backward(*arguments, kept, out)]


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_depend_neither_on_the_company_nor_on_threads(two_threads, monkeypatch):
    pattern = PATTERNS["crowded"]
    together = everything(MEMBERS, pattern)
    for members in (1, 2):
        for alone, one in zip(everything(members, pattern), together, strict=True):
            assert torch.equal(alone, one[:members])
    monkeypatch.setattr(cpu_kernels, "_LARGE", 1 << 40)
    for in_one, one in zip(everything(MEMBERS, pattern), together, strict=True):
        assert torch.equal(in_one, one)


def test_rows_in_several_blocks_are_those_in_one(monkeypatch):
    pattern = PATTERNS["random"]
    whole = everything(MEMBERS, pattern)
    monkeypatch.setattr(cpu_attention_kernels, "_AT_ONCE", 20)
    for part, one in zip(everything(MEMBERS, pattern), whole, strict=True):
        assert_same_sums(part, one, length=pattern.shape[0])


@pytest.mark.usefixtures("one_thread")  # several leave a single member to PyTorch
@pytest.mark.parametrize("dropped", [False, True])
def test_the_layer_draws_the_masks_it_draws_without_the_operation(dropped, monkeypatch):
    arcs = torch.randint(0, 30, (2, 120), generator=generator(6))
    graph = Graph(arcs, 30, direction="undirected", self_loops="add")
    exact_graph = graph.to(dtype=torch.float64)
    if dropped:
        keep = torch.rand(len(graph.pattern), generator=generator(7)) < 0.6
        exact_graph = exact_graph.reweighted(keep.double())
        graph = graph.reweighted(keep.float())
        assert isinstance(graph, ReweightedGraph)
    layer = GraphAttention(10, 64, value_dropout=0.4, attention_dropout=0.6)
    hidden = normal(MEMBERS, 30, 10)

    def one(values, key):
        with randomness(key):
            return layer(layer(values, graph)[:, :10], graph)

    fused = torch.vmap(one)(hidden, KEYS)
    assert torch.equal(fused[1], one(hidden[1], KEYS[1]))
    with without("whole_attention"):
        plain = torch.vmap(one)(hidden, KEYS)
    layer, graph = layer.double(), exact_graph
    for found in (fused, plain):
        assert_rounded(found, lambda h: torch.vmap(one)(h, KEYS), hidden, length=4 * (10 + 2 * 30))
