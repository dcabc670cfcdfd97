"""What every model of the registry must be able to do."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import memohop
from memohop import Member, UsageError, build, models, train
from memohop.networks.registry import entry
from memohop.nn import SparseFeatures, epoch_key, randomness
from numerics import assert_rounded, in_float64, seeded, with_parameters
from six_nodes import ARCS, CLASSES, FEATURES, NODES, features, logits_of

float64 = pytest.mark.usefixtures("float64")
SMALL = {"hidden_channels": 16, "num_layers": 2, "heads": 2}

every_model = pytest.mark.parametrize("name", models())


def small(name, in_channels=FEATURES, out_channels=CLASSES, num_nodes=NODES, **options):
    """A small network, by options that the model has."""
    known = {key: value for key, value in SMALL.items() if key in entry(name).options()}
    return build(name, in_channels, out_channels, num_nodes=num_nodes, **known | options)


@pytest.fixture(scope="module")
def graph():
    data = memohop.load(
        "csbm", nodes=90, classes=3, channels=12, degree=6, homophily=0.9, strength=1.0,
        seed=seeded(1),
    )  # fmt: skip
    data.x = data.x.double()
    return data


@float64
@every_model
def test_sparse_features_give_what_dense_ones_give(name):
    network, x = small(name).eval(), features().round()
    logits = logits_of(network, x)
    assert logits.shape == (NODES, CLASSES)
    assert logits.std(0).max() > 0
    torch.testing.assert_close(logits_of(network, SparseFeatures(x)), logits)


# The latent space of geom-gcn is found up to mirroring; its own tests permute a given one.
@float64
@pytest.mark.parametrize("name", [name for name in models() if name != "geom-gcn"])
def test_the_order_of_the_nodes_does_not_matter(name):
    network, x = small(name).eval(), features()
    logits = logits_of(network, x)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    state = network.state_dict()
    for parameter in network.per_node:
        state[parameter] = state[parameter][order]
    network.load_state_dict(state)
    torch.testing.assert_close(logits_of(network, x[order], order.argsort()[ARCS]), logits[order])


@float64
@every_model
@pytest.mark.parametrize(
    ("arcs", "nodes"),
    [
        (ARCS, NODES),
        (torch.tensor([[0, 1, 3, 4], [1, 0, 4, 5]]), NODES),
        (torch.tensor([[2, 2], [2, 2]]), NODES),
        (torch.empty(2, 0, dtype=torch.int64), NODES),
        (torch.empty(2, 0, dtype=torch.int64), 1),
        (torch.tensor([[0], [0]]), 1),
    ],
    ids=["directed", "disconnected", "loops", "no-arcs", "one-node", "one-node-with-a-loop"],
)
def test_odd_graphs_give_finite_logits_and_gradients(name, arcs, nodes):
    network = small(name, num_nodes=nodes)
    x = features(nodes)
    assert logits_of(network.eval(), x, arcs).isfinite().all()
    output = network.train()(x, network.prepare(arcs, nodes))
    logits, penalty = output if isinstance(output, tuple) else (output, None)
    loss = logits.logsumexp(-1).sum() + (0 if penalty is None else penalty)
    loss.backward()
    grads = [p.grad for p in network.parameters() if p.grad is not None]
    assert grads
    assert all(grad.isfinite().all() and grad.abs().max() < steepest(network) for grad in grads)


def steepest(network):
    """Of a row whose channels are equal, a norm after the first one makes so much more."""
    norms = [module.eps**-0.5 for module in network.modules() if isinstance(module, nn.LayerNorm)]
    return max(1e4, 10 * math.prod(norms[1:]))


@float64
@every_model
def test_a_member_alone_equals_the_member_in_company_and_learns(name, graph):
    members = [
        Member(split=0, seed=seeded(0), lr=0.06),
        Member(split=1, seed=seeded(1), lr=0.03, weight_decay=0.0, lam=0.3),
        Member(split=2, seed=seeded(2), lr=0.1, input_dropout=0.0, lam=1.0),
    ]

    rates = {"dropout": 0.2} if "dropout" in entry(name).options() else {}

    def make():
        return small(name, 12, 3, graph.num_nodes, **rates)

    together = train(graph, make, members, epochs=18)
    for member, result in zip(members, together, strict=True):
        (alone,) = train(graph, make, [member], epochs=5)
        np.testing.assert_allclose(alone.loss_curve, result.loss_curve[:5], atol=1e-7, rtol=0)
        np.testing.assert_allclose(alone.val_curve, result.val_curve[:5], atol=1e-7, rtol=0)
    # By chance a third would be right, and one of three may start where its rectifiers are dead.
    assert np.median([result.val for result in together]) > 0.8
    assert all(result.loss_curve[-1] < result.loss_curve[0] for result in together)


BAD = [
    ("hidden_channels", 0, "hidden_channels must be a whole number of at least 1, not 0"),
    ("num_layers", 0, "num_layers must be a whole number of at least 1, not 0"),
    ("num_layers", 10**9, "num_layers must be at most 1000, not 1000000000"),
    ("hops", 0, "hops=0 is too small"),
    ("hops", 2.5, "hops=2.5 is not a whole number"),
    ("edge_layers", 0, "edge_layers=0 is too small"),
    ("heads", 0, "heads must be a whole number of at least 1, not 0"),
    ("heads", 7, "heads=7 must divide the width"),
    ("chunks", 7, "chunks=7 must divide the width 16"),
    *((rate, 1.0, "below 1, not 1.0") for rate in ("dropout", "edge_dropout", "attention_dropout")),
    ("input_dropout", -0.1, "below 1, not -0.1"),
    ("propagation_dropout", 1.0, "below 1, not 1.0"),
    ("label_rate", 1.0, "label_rate must be above 0 and below 1, not 1.0"),
    ("alpha", 1.5, "alpha=1.5 is out of range; give a number from 0 to 1"),
    ("theta", -0.5, "theta=-0.5 is out of range; give a number from 0"),
    ("epsilon", -0.1, "epsilon=-0.1 is out of range; give a number from 0"),
    ("epsilon", "much", "epsilon='much' is not a number"),
    ("readout", "first", "readout must be one of"),
    ("gate_sharing", "some", "gate_sharing must be one of (shared, layer|layer, shared)"),
    ("decoupling", "sum", "decoupling must be one of mean, paper, official"),
    ("message_norm", "batch", "message_norm must be one of none, layer"),
    ("labels", "some", "labels must be one of none, memory"),
    ("address", "some", "address must be one of none, rows"),
    ("hidden_norm", "row", "hidden_norm must be one of batch, layer, none"),
    ("order", "some", "order must be one of filter-first, rectify-first"),
    ("init", "ws", "init must be one of (ppr, nppr, sgc, random|glorot, released), not 'ws'"),
    ("embedding", "struc2vec", "embedding must be one of auto, isomap, poincare"),
]


@float64
@every_model
def test_what_a_model_does_not_have_is_refused(name):
    with pytest.raises(UsageError, match=f"{name.replace('+', '[+]')} has no option 'nonsense'"):
        small(name, nonsense=1)
    options = entry(name).options()
    for option, bad, words in BAD:
        if option in options:
            with pytest.raises(UsageError, match=words):
                small(name, **{option: bad})
    for option in ("direction", "self_loops", "norm"):
        if option in options:
            with pytest.raises(UsageError, match=f"{option} must be one of"):
                small(name, **{option: "up"}).prepare(ARCS, NODES)


@pytest.mark.parametrize("training", [False, True])
@every_model
def test_float32_gives_what_float64_gives(name, training):
    """With kernels where there are some."""
    wide = {"hidden_channels": 64} if "hidden_channels" in entry(name).options() else {}
    network, x = small(name, **wide).train(training), features() + 0.1

    def logits(network, x):
        with randomness(epoch_key(torch.tensor(4), torch.tensor(2))):
            return logits_of(network, SparseFeatures(x))

    def exact(x, *parameters):
        with in_float64():
            return logits(*with_parameters([network], parameters), x)

    # Features, then up to eleven steps of neighbours and of two states.
    length = FEATURES + 11 * (NODES + 2 * 64)
    with torch.no_grad():
        assert_rounded(logits(network, x), exact, x, *network.parameters(), length=length)
