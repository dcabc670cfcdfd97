"""Derivatives of every operation, by all of PyTorch's ways, against those of dense products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad

from memohop import MMP, Graph
from memohop.nn import SparseFeatures, epoch_key, randomness
from memohop.nn._decoupling import decoupling_loss
from memohop.nn._dropout import Dropout
from memohop.nn._features import FeatureLinear
from memohop.nn._operation import Operation
from memohop.nn._ops.attention import attend, attend_dynamically
from memohop.nn._ops.pattern import FixedMatrix, Pattern, fixed_product
from memohop.nn._ops.products import inner, row_softmax, weighted_product
from memohop.nn._ops.update import gated_update
from memohop.nn._randomness import Draw, Place
from numerics import generator, mask_of

# Node 4 sends to one and receives from nobody; the loop of node 1 is all that it receives.
ROW, COL, NODES = [0, 0, 0, 1, 2, 2, 3], [0, 1, 3, 1, 0, 4, 2], 5
ENTRIES = len(ROW)
KEEP = [1, 0, 1, 1, 1, 1, 0]
SLOPE, RATE = 0.2, 0.375
ON_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@dataclass
class Case:
    """An operation, the same from dense products, and the shapes of what both take."""

    ours: Callable[..., Tensor]
    dense: Callable[..., Tensor]
    shapes: list[tuple[int, ...]]


def normal(*shape: int, seed: int = 0) -> Tensor:
    """The same numbers whatever the type and device."""
    return torch.randn(*shape, generator=generator(seed))


class Cases:
    """The cases on a device, in a type; the dense ones are on the same device, in float64."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self.row, self.col = (torch.tensor(part, device=device) for part in (ROW, COL))
        self.pattern = Pattern(self.row, self.col, (NODES, NODES))
        self.rate = torch.tensor(RATE, device=device, dtype=dtype)
        self.key = epoch_key(torch.tensor(3), torch.tensor(1)).to(device)
        places = F.one_hot(self.row * NODES + self.col, NODES * NODES)
        self.entries = places.double()  # [entries, nodes * nodes]
        self.there = self.entries.sum(0).unflatten(0, (NODES, NODES))

    def matrix(self, values: Tensor) -> Tensor:
        return (values @ self.entries).unflatten(-1, (NODES, NODES))

    def of_entries(self, full: Tensor) -> Tensor:
        return full.flatten(-2) @ self.entries.t()

    def mask(self, place: int, *shape: int) -> Tensor:
        return mask_of(Draw(self.key, Place(place)), shape, self.rate, self.dtype).double()

    def dropout(self) -> Dropout:
        return Dropout(RATE).to(self.device, self.dtype)

    def softmax(self, scores: Tensor, keep: list[int] | None = None) -> Tensor:
        """From ``[..., nodes, nodes]`` to weights of the entries."""
        there = self.there
        if keep is not None:
            there = self.matrix(torch.tensor(keep, device=self.device).double())
        powers = scores.exp() * there
        return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)

    def fixed_product(self) -> Case:
        values = normal(ENTRIES, seed=9).to(self.device)
        matrix = FixedMatrix(self.pattern, values.to(self.dtype))
        full = self.matrix(values.double())
        return Case(
            lambda dense, bias: fixed_product(dense, matrix, bias),
            lambda dense, bias: full @ dense + bias[:, None],
            [(2, NODES, 3), (2, 3)],
        )

    def weighted_product(self) -> Case:
        return Case(
            lambda values, dense: weighted_product(values, dense, self.pattern),
            lambda values, dense: self.matrix(values) @ dense,
            [(2, ENTRIES), (2, NODES, 3)],
        )

    def inner(self) -> Case:
        return Case(
            lambda left, right: inner(left, right, self.pattern),
            lambda left, right: self.of_entries(left @ right.mT),
            [(2, NODES, 3), (2, NODES, 3)],
        )

    def row_softmax(self) -> Case:
        return Case(
            lambda scores: row_softmax(scores, self.pattern),
            lambda scores: self.of_entries(self.softmax(self.matrix(scores))),
            [(2, ENTRIES)],
        )

    def attention(self, keep: list[int] | None = None) -> Case:
        kept = None if keep is None else torch.tensor(keep, device=self.device)

        def dense(receive: Tensor, send: Tensor) -> Tensor:
            scores = F.leaky_relu(receive[..., None] + send[..., None, :], SLOPE)
            return self.of_entries(self.softmax(scores, keep))

        return Case(
            lambda receive, send: attend(
                receive, send, self.pattern, negative_slope=SLOPE, keep=kept
            ),
            dense,
            [(2, NODES), (2, NODES)],
        )

    def dynamic_attention(self, keep: list[int] | None = None) -> Case:
        kept = None if keep is None else torch.tensor(keep, device=self.device)

        def dense(receive: Tensor, send: Tensor, score: Tensor) -> Tensor:
            arcs = F.leaky_relu(receive[:, :, None] + send[:, None], SLOPE)
            scores = (arcs * score[:, None, None]).sum(-1)
            return self.of_entries(self.softmax(scores, keep))

        return Case(
            lambda receive, send, score: attend_dynamically(
                receive, send, score, self.pattern, negative_slope=SLOPE, keep=kept
            ),
            dense,
            [(2, NODES, 3), (2, NODES, 3), (2, 3)],
        )

    def attention_with_attributes(self) -> Case:
        attributes = normal(ENTRIES, 2, seed=9).to(self.device, self.dtype)
        there = self.entries.to(self.device) > 0  # the entry of each pair of nodes

        def dense(receive: Tensor, send: Tensor, score: Tensor, edge_map: Tensor) -> Tensor:
            of_pairs = (attributes.double() @ edge_map).mT @ there.double()
            arcs = receive[:, :, None] + send[:, None]
            arcs = arcs + of_pairs.unflatten(-1, (NODES, NODES)).permute(0, 2, 3, 1)
            scores = (F.leaky_relu(arcs, SLOPE) * score[:, None, None]).sum(-1)
            return self.of_entries(self.softmax(scores))

        return Case(
            lambda receive, send, score, edge_map: attend_dynamically(
                receive,
                send,
                score,
                self.pattern,
                negative_slope=SLOPE,
                edge_map=edge_map,
                attributes=attributes,
            ),
            dense,
            [(2, NODES, 3), (2, NODES, 3), (2, 3), (2, 2, 3)],
        )

    def dropped(self) -> Case:
        dropout = self.dropout()

        def ours(values: Tensor) -> Tensor:
            with randomness(self.key):
                return dropout(values)

        return Case(ours, lambda values: values * self.mask(1, NODES, 4), [(NODES, 4)])

    def features(self) -> Case:
        """Sparse features times weights, with dropout of what is stored."""
        values = normal(ENTRIES, seed=9).to(self.device)
        sparse = SparseFeatures(self.matrix(values.double()).to(self.dtype))
        layer = FeatureLinear(NODES, 3, dropout=RATE).to(self.device, self.dtype)
        full = self.matrix(values.double() * self.mask(1, ENTRIES))

        def ours(weight: Tensor, bias: Tensor) -> Tensor:
            with randomness(self.key):
                return functional_call(layer, {"weight": weight, "bias": bias}, sparse)

        return Case(ours, lambda weight, bias: full @ weight + bias, [(NODES, 3), (3,)])

    def gated_update(self, drops: bool = False, used: Sequence[int] = (0, 1, 2)) -> Case:
        """Of the hidden state, the memory and the gates, those that are used."""
        draws = (Draw(self.key, Place(1)), Draw(self.key, Place(2))) if drops else (None, None)

        def ours(*tensors: Tensor) -> Tensor:
            outputs = gated_update(*tensors, draws, self.rate, 1 in used)
            return torch.cat([outputs[which] for which in used], -1)

        def dense(hidden: Tensor, message: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            seen = hidden, message
            if drops:
                seen = hidden * self.mask(1, NODES, 4), message * self.mask(2, NODES, 4)
            gates = (torch.cat(seen, -1) @ weight.mT + bias).sigmoid()
            keep, absorb, pass_on = gates.split(1, -1)
            outputs = keep * hidden + absorb * message, pass_on * message, gates
            return torch.cat([outputs[which] for which in used], -1)

        return Case(ours, dense, [(NODES, 4), (NODES, 4), (3, 8), (3,)])

    def cosine(self) -> Case:
        return Case(
            lambda hidden, memory: decoupling_loss(hidden, memory, form="paper"),
            lambda hidden, memory: F.cosine_similarity(hidden, memory, dim=-1).abs().sum(),
            [(NODES, 4), (NODES, 4)],
        )


ANYWHERE: dict[str, Callable[[Cases], Case]] = {
    "fixed product": Cases.fixed_product,
    "weighted product": Cases.weighted_product,
    "inner products": Cases.inner,
    "row softmax": Cases.row_softmax,
    "attention": Cases.attention,
    "attention, some arcs dropped": partial(Cases.attention, keep=KEEP),
    "dynamic attention": Cases.dynamic_attention,
    "dynamic attention, some arcs dropped": partial(Cases.dynamic_attention, keep=KEEP),
    "dynamic attention with attributes": Cases.attention_with_attributes,
    "dropout": Cases.dropped,
    "sparse features": Cases.features,
    "gated update": Cases.gated_update,
    "gated update with dropout": partial(Cases.gated_update, drops=True),
    "gated update, states alone": partial(Cases.gated_update, drops=True, used=(0, 1)),
    "gated update, hidden state alone": partial(Cases.gated_update, used=(0,)),
    "gated update, hidden state and gates": partial(Cases.gated_update, used=(0, 2)),
    "gated update, gates alone": partial(Cases.gated_update, drops=True, used=(2,)),
    "cosine": Cases.cosine,
}


def check_case(check, case, like):
    inputs = [normal(*shape, seed=k).to(like) for k, shape in enumerate(case.shapes)]
    check(case.ours, case.dense, inputs)


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_operations(dtype, name, check_derivatives):
    check_case(check_derivatives, ANYWHERE[name](Cases("cpu", dtype)), torch.empty(0, dtype=dtype))


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize(
    "check_derivatives",
    ["backward of vmap", "jacrev of vmap", "create_graph"],
    indirect=True,
)
@ON_A_GPU
def test_operations_on_a_gpu(name, check_derivatives):
    case = ANYWHERE[name](Cases("cuda", torch.float32))
    check_case(check_derivatives, case, torch.empty(0, device="cuda"))


@pytest.mark.parametrize("name", [name for name in ANYWHERE if name != "cosine"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_A_GPU)])
def test_states_of_16_bits_are_computed_in_float32(name, device):
    case = ANYWHERE[name](Cases(device, torch.float32))
    shapes = enumerate(case.shapes)
    half = [
        normal(*shape, seed=k).to(device, torch.bfloat16).requires_grad_() for k, shape in shapes
    ]
    single = [tensor.detach().float().requires_grad_() for tensor in half]
    output, expected = case.ours(*half), case.ours(*single)
    roundings = 3 if "dynamic" in name else 1  # scores of vectors are states of 16 bits themselves
    assert_half(output, expected, roundings)
    upstream = normal(*expected.shape, seed=20).to(device).bfloat16()
    for own, other in zip(
        torch.autograd.grad((output * upstream).sum(), half),
        torch.autograd.grad((expected * upstream).sum(), single),
        strict=True,
    ):
        assert_half(own, other, roundings)


def assert_half(half, single, roundings):
    """The same, but for roundings to the 8 bits of bfloat16."""
    largest = max(1.0, float(single.detach().abs().max()))
    torch.testing.assert_close(half.float(), single, rtol=0, atol=roundings * 2**-8 * largest)


def test_these_are_all_operations(monkeypatch):
    applied = set()
    plain = Operation.apply.__func__

    def noted(cls, *inputs):
        applied.add(cls.__name__)
        return plain(cls, *inputs)

    monkeypatch.setattr(Operation, "apply", classmethod(noted))
    for make in ANYWHERE.values():
        case = make(Cases("cpu", torch.float32))
        inputs = [torch.ones(shape) for shape in case.shapes]
        grad(lambda *given, case=case: case.ours(*given).sum())(*inputs)
    elsewhere = {"_Dropped", "_DroppedProduct"} | {"BothWays"}  # on a GPU, and in parts of a graph
    known = [cls for cls in Operation.__subclasses__() if cls.__module__.startswith("memohop.nn.")]
    assert applied | elsewhere == {cls.__name__ for cls in known}


@pytest.mark.parametrize("per", ["node", "channel"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_round_of_message_passing(dtype, per, check_derivatives):
    """Its parameters are inputs as well; the dense one has another message and no fast path."""
    arcs = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 0, 2]])
    graph = Graph(arcs, 4, direction="out", norm="row").to(dtype=dtype)
    full = graph.matrix.csr.to_dense().double()
    mmp = MMP(lambda memory, _: graph @ memory, 4, per=per)
    names = [name for name, _ in mmp.named_parameters()]

    def ours(hidden, memory, *parameters):
        given = dict(zip(names, parameters, strict=True))
        return torch.cat(functional_call(mmp, given, (hidden, memory, None)), -1)

    def dense(hidden, memory, weight, bias):
        message = full @ memory
        gates = (torch.cat([hidden, message], -1) @ weight.mT + bias).sigmoid()
        keep, absorb, send = gates.chunk(3, -1)
        return torch.cat([keep * hidden + absorb * message, send * message], -1)

    shapes = [(4, 4), (4, 4), *(parameter.shape for parameter in mmp.parameters())]
    check_derivatives(ours, dense, [normal(*s, seed=k).to(dtype) for k, s in enumerate(shapes)])
