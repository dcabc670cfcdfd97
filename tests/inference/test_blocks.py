"""Prediction in blocks of rows against the plain network, and its matrix against `Graph`."""

from itertools import product
from weakref import WeakValueDictionary

import pytest
import torch
from scipy import sparse
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from memohop import Graph, build
from memohop.data.adjacency import DIRECTIONS, NORMS, SELF_LOOPS, adjacency
from memohop.inference import Blocks, block_logits, blocks
from memohop.networks.passing import Watch
from numerics import assert_rounded, generator, in_float64, seeded, with_parameters

NODES = 9
ARCS = torch.tensor([[0, 1, 1, 2, 0, 3, 4, 4, 4, 0], [1, 0, 2, 0, 2, 1, 4, 5, 5, 1]])


def networks(**options):
    found = []
    for seed in range(2):
        torch.manual_seed(seeded(seed))
        network = build("gcn+mmp", 5, 3, hidden_channels=8, num_nodes=NODES, **options).eval()
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter)
        if "labels" in options:
            network.know(torch.tensor([0, -1, 2, seed, -1, 1, 1, -1, 0]))
        found.append(network)
    return found


def features():
    x = torch.rand(NODES, 5, generator=generator())
    return x * (x > 0.4)


@pytest.mark.parametrize(
    ("direction", "self_loops", "norm"), [*product(DIRECTIONS, SELF_LOOPS, NORMS)]
)
def test_the_matrix_is_that_of_the_graph(direction, self_loops, norm):
    policies = {"direction": direction, "self_loops": self_loops, "norm": norm}
    graph = Graph(ARCS, NODES, **policies).to(dtype=torch.float64)
    found = torch.from_numpy(adjacency(ARCS, NODES, **policies).toarray())
    exact = graph @ torch.eye(NODES, dtype=torch.float64)
    # A sum of whole numbers, its root, a product of two and a division.
    few = 4 * torch.finfo(torch.float32).eps
    torch.testing.assert_close(found.double(), exact, rtol=few, atol=0)


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "out", "message_norm": "layer", "num_layers": 3, "gate_sharing": "layer"},
        {"self_loops": "add", "norm": "symmetric", "num_layers": 1},
        {"readout": "jumping", "num_layers": 3},
        {"labels": "memory"},
        {"address": "rows", "direction": "in", "norm": "symmetric"},
        {"labels": "memory", "address": "rows", "message_norm": "layer"},
        {"gate": "gru", "per": "channel", "memory_from": "hidden", "bias": False},
    ],
)
def test_blocks_of_rows_give_what_the_whole_network_gives(monkeypatch, options, rows):
    monkeypatch.setattr(blocks, "_ROWS", rows)
    x, found = features(), networks(**options)
    agree([block_logits(one, x, ARCS) for one in found], found, x, ARCS)


@pytest.mark.parametrize("options", [{}, {"direction": "out", "address": "rows"}])
def test_weights_count_as_in_the_whole_network(options):
    x, found = features(), networks(**options)
    weights = torch.arange(ARCS.shape[1]) % 5 / 2
    by_blocks = [block_logits(one, x, ARCS, weights) for one in found]
    agree(by_blocks, found, x, ARCS, weights)
    plain = [block_logits(one, x, ARCS) for one in found]
    assert all(
        (one - other).abs().max() > 1e-3 for one, other in zip(by_blocks, plain, strict=True)
    )


@torch.no_grad()
def agree(by_blocks, found, x, arcs, weights=None):
    """The logits of each network with those of the whole networks in float64."""

    def whole(x, *parameters):
        exact = with_parameters(found, parameters)
        with in_float64():
            graphs = [network.prepare(arcs, len(x), weights) for network in exact]
        return [one(x, graph).logits for one, graph in zip(exact, graphs, strict=True)]

    parameters = [parameter for network in found for parameter in network.parameters()]
    # Up to three rounds, with sums of neighbours, of a state, and of two states in the gate.
    assert_rounded(by_blocks, whole, x, *parameters, length=5 + 3 * (NODES + 8 + 16) + 8)


class Held(TorchDispatchMode):
    """The most bytes that tensors made under it held at once."""

    def __init__(self):
        super().__init__()
        self.live, self.most = WeakValueDictionary(), 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                self.live[id(tensor)] = tensor
        storages = [one.untyped_storage() for one in self.live.values()]
        held = {storage.data_ptr(): storage.nbytes() for storage in storages}
        self.most = max(self.most, sum(held.values()))
        return made


def test_hidden_state_and_memory_are_all_that_is_large(monkeypatch):
    nodes, channels = 2000, 80
    monkeypatch.setattr(blocks, "_ROWS", 50)
    found = build("gcn+mmp", 5, 3, hidden_channels=channels, readout="jumping").eval()
    x, arcs = torch.rand(nodes, 5), torch.stack([torch.arange(nodes), torch.arange(nodes) // 2])
    with Held() as held:
        block_logits(found, x, arcs)
    # Two of this size, one block of 16 columns, and what has but a few numbers for each node.
    assert 2 * 4 * nodes * channels < held.most < 2.6 * 4 * nodes * channels


def test_sparse_features_and_no_arcs(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 4)
    x, found = features(), networks()
    nothing = torch.empty(2, 0, dtype=torch.int64)
    for given in (x, sparse.csr_array(x.numpy()), x.to_sparse()):
        agree([block_logits(one, given, nothing) for one in found], found, x, nothing)
    agree([block_logits(one, x[:1], nothing) for one in found], found, x[:1], nothing)


def test_sparse_features_are_not_made_dense(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 50)
    nodes, words = 100, 20_000
    found = build("gcn+mmp", words, 3, hidden_channels=2).eval()
    stored = torch.arange(nodes)
    x = sparse.csr_array((torch.ones(nodes), (stored, 7 * stored)), (nodes, words))
    with Held() as held:
        block_logits(found, x, torch.empty(2, 0, dtype=torch.int64))
    assert held.most < 4 * 50 * words  # of one block, dense


def test_a_graph_without_nodes():
    nothing = torch.empty(2, 0, dtype=torch.int64)
    assert block_logits(networks()[0], torch.empty(0, 5), nothing).shape == (0, 3)


def test_who_looks_on_sees_each_round_and_then_its_rows_in_order(monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 4)
    network = networks(per="channel")[0]
    seen = []

    class Diary(Watch):
        def before_round(self, mmp):
            seen.append(mmp)

        def see_gates(self, rows, gates):
            seen.append((rows.start, rows.stop, *(gate.shape for gate in gates)))

    matrix = adjacency(ARCS, NODES, **network.policies_in_force)
    network.pass_messages(Blocks(features(), matrix, channels=8), Diary())
    of_round = [(0, 4, *[(4, 8)] * 3), (4, 8, *[(4, 8)] * 3), (8, 9, *[(1, 8)] * 3)]
    assert seen == [network.rounds[0], *of_round, network.rounds[1], *of_round]
