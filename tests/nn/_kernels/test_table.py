"""The table of kernels: its lines, its switch, and operations with and without their kernels."""

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from memohop.nn import Dropout, Graph, GraphAttention, SparseFeatures, epoch_key, randomness
from memohop.nn._kernels import table
from memohop.nn._kernels.table import TABLE, Kernel, serve, without
from memohop.nn._ops.attention import attend, row_softmax
from memohop.nn._ops.dropped_linear import dropped_linear
from memohop.nn._ops.dynamic_attention import attend_dynamically
from memohop.nn._ops.pattern import Pattern, inner, weighted_product
from memohop.nn._ops.update import gated_update
from memohop.nn.decoupling import decoupling_loss
from memohop.nn.features import FeatureLinear
from memohop.nn.randomness import Draw
from numerics import assert_same_sums, generator

LINES = [(operation, kernel) for operation, kernels in TABLE.items() for kernel in kernels]
GROUPS = sorted({kernel.group for _, kernel in LINES})
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
MEMBERS, NODES, WIDTH = 3, 40, 64


@pytest.mark.parametrize(("operation", "kernel"), LINES, ids=lambda part: str(part)[:60])
def test_every_line_names_a_function(operation, kernel):
    """Found in the source, since its backend may be missing here."""
    module, function = kernel.function.rsplit(".", 1)
    source = Path(table.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    defined = ast.parse(source.read_text(encoding="utf-8")).body
    assert function in {node.name for node in defined if isinstance(node, ast.FunctionDef)}
    assert kernel.device in ("cpu", "cuda")


def test_a_kernel_is_a_function_and_a_line(monkeypatch):
    toy = ModuleType("memohop.nn._kernels.toy")
    toy.row_sums = lambda values, pattern: torch.full((len(values), pattern.shape[0]), 7.0)
    monkeypatch.setitem(sys.modules, toy.__name__, toy)
    line = Kernel("toy.row_sums", "cpu", "toy", lambda values: len(values) == 2)
    monkeypatch.setitem(TABLE, "row_sums", [line, *TABLE["row_sums"]])
    pattern = Pattern(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), (2, 2))
    assert pattern.row_sums(torch.ones(2, 3)).tolist() == [[7, 7], [7, 7]]
    assert pattern.row_sums(torch.ones(1, 3)).tolist() == [[2, 1]]
    assert pattern.row_sums(torch.ones(2, 3).double()).tolist() == [[2, 1], [2, 1]]
    with without("toy"):
        assert pattern.row_sums(torch.ones(2, 3)).tolist() == [[2, 1], [2, 1]]
        with without("toy"):
            pass
        assert serve("row_sums", torch.ones(2, 3)) is not toy.row_sums
    assert serve("row_sums", torch.ones(2, 3)) is toy.row_sums


def test_kernels_that_cannot_be_differentiated_serve_plain_backward_passes_alone(monkeypatch):
    toy = ModuleType("memohop.nn._kernels.toy")
    toy.backward = lambda *given: None
    monkeypatch.setitem(sys.modules, toy.__name__, toy)
    monkeypatch.setitem(TABLE, "toy_backward", [Kernel("toy.backward", "cpu", "toy")])
    with torch.no_grad():
        assert serve("toy_backward", torch.ones(1)) is toy.backward
    assert serve("toy_backward", torch.ones(1)) is None  # under `create_graph`


def test_a_group_that_is_not_there_is_an_error():
    with pytest.raises(AssertionError, match="no such group"), without("tabels"):
        pass


def crowded_graph(device):
    arcs = torch.randint(NODES, (2, 700), generator=generator(2))
    return Graph(arcs.to(device), NODES, direction="out", norm="row")


def everything(device):
    """Results and gradients of all operations that the table knows, by name."""
    graph, numbers = crowded_graph(device), generator(3)
    pattern = graph.pattern

    def normal(*shape):
        return torch.randn(*shape, generator=numbers).to(device)

    features = SparseFeatures(normal(NODES, 12).clamp(min=0.5) - 0.5)
    dropout, keys = Dropout(0.4).to(device), epoch_key(torch.arange(MEMBERS), torch.tensor(1))
    torch.manual_seed(0)
    linear = FeatureLinear(12, WIDTH, dropout=0.3).to(device)
    layer = GraphAttention(WIDTH, WIDTH, value_dropout=0.2, attention_dropout=0.3).to(device)
    draws = [(Draw(key, 1), Draw(key, 2)) for key in keys.to(device)]

    def update(hidden, message, weight, bias, draw):
        return torch.cat(gated_update(hidden, message, weight, bias, draw, dropout.rate)[:2], -1)

    def seeded(function):
        def one(key, *tensors):
            with randomness(key):
                return function(*tensors)

        return lambda *tensors: torch.vmap(one)(keys.to(device), *tensors)

    hidden, other = (MEMBERS, NODES, WIDTH), (MEMBERS, NODES, WIDTH)
    entries = (MEMBERS, len(pattern))
    ends = (MEMBERS, NODES)
    cases = {
        "fixed product": (torch.vmap(graph.__matmul__), [hidden]),
        "weighted product": (lambda v, d: weighted_product(v, d, pattern), [entries, hidden]),
        "narrow product": (lambda v, d: weighted_product(v, d, pattern), [entries, (*ends, 5)]),
        "inner": (lambda one, two: inner(one, two, pattern), [hidden, other]),
        "row softmax": (lambda scores: row_softmax(scores, pattern), [entries]),
        "attention": (lambda r, s: attend(r, s, pattern, negative_slope=0.2), [ends, ends]),
        "dynamic attention": (
            lambda r, s, a: attend_dynamically(r, s, a, pattern, negative_slope=0.2),
            [hidden, other, (MEMBERS, WIDTH)],
        ),
        "whole attention": (seeded(lambda h: layer(h, graph)), [hidden]),
        "dropout": (seeded(dropout), [hidden]),
        "features": (seeded(lambda h: linear(features) * h), [hidden]),
        "linear map": (
            seeded(lambda h, w: dropped_linear(h, dropout, w)),
            [hidden, (MEMBERS, 5, WIDTH)],
        ),
        "gated update": (
            lambda *tensors: torch.stack(
                [update(*one, draw) for *one, draw in zip(*tensors, draws, strict=True)]
            ),
            [hidden, other, (MEMBERS, 3, 2 * WIDTH), (MEMBERS, 3)],
        ),
        "cosine": (torch.vmap(decoupling_loss), [hidden, other]),
    }
    found = {}
    for name, (function, shapes) in cases.items():
        leaves = [normal(*shape).requires_grad_() for shape in shapes]
        out = function(*leaves)
        found[name] = out, *torch.autograd.grad((out * normal(*out.shape)).sum(), leaves)
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_operations_give_the_same_with_and_without_their_kernels(device, monkeypatch):
    monkeypatch.setattr(table, "MANY_ENTRIES", 1)
    with_kernels = everything(device)
    with without(*GROUPS):
        plain = everything(device)
    for name, parts in with_kernels.items():
        for one, other in zip(parts, plain[name], strict=True):
            # features, neighbours and channels are summed up, forwards and backwards
            assert_same_sums(one, other, length=2 * (NODES + 2 * WIDTH)), name
