"""What networks of the registry learn from attributes of arcs."""

import numpy as np
import pytest
import torch

from memohop import Member, UsageError, build, train
from memohop.networks.registry import MODELS
from memohop.nn import SparseFeatures
from memohop.pyg import Data
from memohop.training import Job
from numerics import generator, in_float64, seeded
from six_nodes import CLASSES, FEATURES

float64 = pytest.mark.usefixtures("float64")
MODES = ("weights", "relations")
NODES = 80
KNOWN = [
    (name, edges)
    for name, entry in MODELS.items()
    if entry.backbone is not None
    for edges in entry.backbone.edges
    if not (name.endswith("+de") and edges == "relations")  # whose arcs are not dropped
]
every_use = pytest.mark.parametrize(("name", "edges"), KNOWN)


@pytest.fixture(scope="module")
def told():
    """The label is that of one of a node's four neighbours: an attribute tells which of them."""
    with in_float64():
        draws = generator(5)
        source = torch.randint(NODES, (4, NODES), generator=draws)
        kind = torch.tensor([1.0, 0, 0, 0])[:, None].expand(4, NODES)
        sent = (torch.rand(NODES, generator=draws) > 0.5).long()
        arcs = torch.stack([source.flatten(), torch.arange(NODES).repeat(4)])
        columns = torch.stack([kind.flatten(), torch.randn(4 * NODES, generator=draws)], 1)
        x = torch.cat([sent[:, None] - 0.5, torch.zeros(NODES, FEATURES - 1)], 1)
        train_mask = torch.arange(NODES)[:, None].expand(NODES, 3) % 2 == 0
        return Data(
            x=x,
            y=sent[source[0]],
            edge_index=arcs,
            edge_attr=columns.double(),
            relations=[0],
            train_mask=train_mask,
            val_mask=~train_mask,
        )


def small(name, edges, **options):
    known = MODELS[name].options()
    options = {"heads": 2, "num_layers": 2, "direction": "in", **options}
    options = {key: value for key, value in options.items() if key in known}
    return build(
        name,
        FEATURES,
        CLASSES,
        hidden_channels=16,
        edges=edges,
        arc_attributes=2,
        relations=1,
        **options,
    )


def logits_of(network, data, x=None):
    output = network(data.x if x is None else x, network.prepare_data(data, "cpu"))
    return output[0] if isinstance(output, tuple) else output


@torch.no_grad()
def elsewhere(network):
    """The network with parameters that are not those it starts with."""
    draws = generator(3)
    for parameter in network.parameters():
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=draws))
    return network.eval()


@float64
@every_use
def test_neither_the_order_of_nodes_nor_that_of_arcs_matters(name, edges, told):
    network = elsewhere(small(name, edges))
    logits = logits_of(network, told)
    torch.testing.assert_close(logits_of(network, told, SparseFeatures(told.x)), logits)
    nodes = torch.randperm(NODES, generator=generator())
    arcs = torch.randperm(4 * NODES, generator=generator(1))
    other = told.clone()
    other.x = told.x[nodes]
    other.edge_index = nodes.argsort()[told.edge_index[:, arcs]]
    other.edge_attr = told.edge_attr[arcs]
    torch.testing.assert_close(logits_of(network, other), logits[nodes])
    other.edge_attr = told.edge_attr.flip(0).contiguous()
    assert not torch.allclose(logits_of(network, other), logits[nodes])


@float64
@pytest.mark.parametrize("edges", MODES)
@pytest.mark.parametrize("name", ["gcn+mmp", "sage+mmp", "gatv2+mmp", "sage-res", "gatv2"])
def test_a_member_alone_equals_the_member_in_company(name, edges, told):
    members = [
        Member(split=0, seed=seeded(0), lr=0.03),
        Member(split=1, seed=seeded(1), lr=0.01, weight_decay=0.0, lam=0.3),
    ]
    together = train(told, lambda: small(name, edges), members, epochs=6)
    for member, result in zip(members, together, strict=True):
        (alone,) = train(told, lambda: small(name, edges), [member], epochs=6)
        np.testing.assert_allclose(alone.loss_curve, result.loss_curve, atol=1e-7, rtol=0)
        np.testing.assert_allclose(alone.val_curve, result.val_curve, atol=1e-7, rtol=0)


@pytest.mark.parametrize("name", ["gcn+mmp", "gatv2+mmp", "sage"])
def test_the_message_depends_on_what_the_arcs_say(name, told):
    """Nothing but the attribute tells which neighbour's label it is."""
    told = told.clone()
    told.x, told.edge_attr = told.x.float(), told.edge_attr.float()
    members = [Member(split=0, seed=seeded(seed), lr=0.05, weight_decay=0) for seed in range(2)]
    options = {"direction": "in", "hidden_channels": 16, "dropout": 0.0, "input_dropout": 0.0}
    options |= {"num_layers": 1 if "+" in name else 2, "self_loops": "remove"}
    scores = {}
    for edges in ("none", *MODES):
        results = train(told, name, members, options={**options, "edges": edges}, epochs=80)
        scores[edges] = np.mean([result.val for result in results])
    assert min(scores["weights"], scores["relations"]) > scores["none"] + 0.05, scores


def test_a_network_that_does_not_ask_for_them_is_the_same_with_and_without(told):
    plain = Data(**{key: told[key] for key in ("x", "y", "edge_index", "train_mask", "val_mask")})
    curves = [
        train(data, "gcn+mmp", [Member()], epochs=3, options={"hidden_channels": 8})[0].loss_curve
        for data in (told, plain)
    ]
    np.testing.assert_array_equal(*curves)


@float64
def test_types_of_edges_are_relations(told):
    """A type of PyTorch Geometric is an attribute with a 1 where an arc is of it."""
    typed = told.clone()
    kinds = told.edge_attr[:, 0].long()
    typed.edge_type, typed.edge_attr = kinds, told.edge_attr[:, 1]
    del typed["relations"]
    other = told.clone()
    other.edge_attr = torch.stack([told.edge_attr[:, 1], 1.0 - kinds, kinds.double()], 1)
    other.relations = [1, 2]
    sizes = {"hidden_channels": 8, "arc_attributes": 3, "relations": 2}
    for edges in MODES:
        network = elsewhere(build("gcn+mmp", FEATURES, CLASSES, edges=edges, **sizes))
        torch.testing.assert_close(logits_of(network, typed), logits_of(network, other))
        options = {"edges": edges, "hidden_channels": 8}
        (result,) = train(typed, "gcn+mmp", [Member()], options=options, epochs=1)
        assert result.loss_curve[0] > 0


def test_runs_that_do_not_use_them_have_the_digests_they_had():
    from memohop.jobs.named import NamedGraph

    job = Job(data=NamedGraph(name="csbm"), model="gcn+mmp")
    assert "edges" not in job.recipe["options"]
    weighed = Job(data=NamedGraph(name="csbm"), model="gcn+mmp", options={"edges": "weights"})
    assert weighed.recipe["options"]["edges"] == "weights"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("gcn", {"edges": "some"}, "edges must be one of none, weights, relations"),
        (
            "gat+mmp",
            {"edges": "weights", "arc_attributes": 2},
            "gat.mmp learns no weights of arcs; take gatv2",
        ),
        ("gcn+mmp", {"edges": "weights"}, "edges='weights' needs attributes of arcs"),
        (
            "gcn",
            {"edges": "relations", "arc_attributes": 2},
            "edges='relations' needs attributes of arcs",
        ),
        ("mlp", {"edges": "weights"}, "mlp has no option 'edges'"),
    ],
)
def test_what_cannot_be_is_refused(name, given, words):
    with pytest.raises(UsageError, match=words):
        build(name, 3, 2, **given)


def test_a_graph_without_attributes_and_one_in_parts_are_refused(told):
    plain = Data(**{key: told[key] for key in ("x", "y", "edge_index", "train_mask", "val_mask")})
    for edges in MODES:
        with pytest.raises(UsageError, match=f"edges='{edges}' needs attributes of arcs"):
            train(plain, "gcn+mmp", [Member()], options={"edges": edges}, epochs=1)
        with pytest.raises(UsageError, match=r"learns from attributes of arcs, .* in parts"):
            train(told, "gcn+mmp", [Member()], options={"edges": edges}, epochs=1, workers=2)
