"""Gates, shares of neighbours, and PyG's explainers, against slow second computations."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer

import memohop
from memohop import GraphClassifier, MMPClassifier, UsageError
from memohop.explain import as_pyg
from memohop.explain._contributions import memory_shares
from memohop.explain._pyg import PyGClassifier
from memohop.explain.gates import gate_readout
from memohop.fit._ensemble import Ensemble
from numerics import assert_rounded, in_float64, seeded, with_parameters

NODES = 60
FIRST_OR_SECOND = np.array([1.0, -1.0, 0.0])  # the margin of the first class over the second
KINDS = [
    {},
    {"direction": "out", "message_norm": "layer", "num_layers": 3, "gate_sharing": "layer"},
    {"self_loops": "add", "norm": "symmetric", "num_layers": 1},
    {"direction": "both", "norm": "none", "per": "channel", "memory_from": "hidden"},
    {"readout": "jumping"},
    {"labels": "memory", "address": "rows"},
]


def networks(**options):
    """Two networks, their parameters far from where they begin."""
    made = []
    for seed in range(2):
        torch.manual_seed(seeded(seed))
        network = memohop.build("gcn+mmp", 6, 3, num_nodes=NODES, hidden_channels=5, **options)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter)
        if "labels" in options:
            network.know((torch.arange(NODES) + seed) % 4 - 1)
        made.append(network.eval())
    return made


@pytest.fixture(scope="module")
def graph():
    data = memohop.load(
        "csbm", nodes=NODES, classes=3, channels=6, degree=4, homophily=0.7, seed=seeded()
    )
    data.y[::6] = -1
    arcs = data.edge_index[:, ::3]  # so that direction matters
    return Data(x=data.x, y=data.y, edge_index=arcs)


@torch.no_grad()
def agree(graph, networks, function, *results):
    """The results, with a function of the networks in float64, the features and the graphs."""

    def exact(x, *parameters):
        others = with_parameters(networks, parameters)
        with in_float64():
            graphs = [network.prepare(graph.edge_index, NODES) for network in others]
        return function(others, x, graphs)

    parameters = [parameter for network in networks for parameter in network.parameters()]
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in results]
    widest = max(max(parameter.shape) for parameter in parameters)
    # Up to three rounds, with sums of neighbours, of a state, and of two states in the gate.
    length = 3 * (NODES + 3 * widest)
    assert_rounded(tensors, exact, graph.x, *parameters, length=length)


def logits_of(networks, x, graphs):
    return torch.stack(
        [network(x, graph).logits for network, graph in zip(networks, graphs, strict=True)]
    )


@pytest.fixture(scope="module")
@torch.no_grad()
def readout(graph):
    gates = [
        network.gates(graph.x, network.prepare(graph.edge_index, NODES)) for network in networks()
    ]
    return gate_readout(gates, graph.edge_index, graph.y.numpy())


class TestGates:
    def test_means_over_rounds_and_networks(self, graph, readout):
        def means(exact, x, graphs):
            every = [network.gates(x, graph) for network, graph in zip(exact, graphs, strict=True)]
            mean = torch.stack(every).mean(0)
            # What is passed on after the last round is read by nobody.
            return mean[:, :, 0].mean(0), mean[:, :, 1].mean(0), mean[:-1, :, 2].mean(0)

        agree(graph, networks(), means, readout.kept, readout.absorbed, readout.passed_on)

    def test_degree_and_local_homophily_counted_by_hand(self, graph, readout):
        joined = {frozenset(arc) for arc in graph.edge_index.T.tolist()}
        for node, label in enumerate(graph.y.tolist()):
            others = [other for pair in joined if node in pair for other in pair - {node}]
            alike = [graph.y[other] == label for other in others if graph.y[other] >= 0]
            share = np.mean(alike) if label >= 0 and alike else np.nan
            assert readout.degree[node] == len(others)
            assert readout.homophily[node] == pytest.approx(share, nan_ok=True)

    def test_groups_hold_every_node_once(self, readout):
        by_degree = readout.by_degree()
        assert sum(group.nodes for group in by_degree) == NODES
        assert sum(g.nodes for g in readout.by_homophily()) == (~np.isnan(readout.homophily)).sum()
        mean = np.average([g.kept for g in by_degree], weights=[g.nodes for g in by_degree])
        assert mean == pytest.approx(readout.kept.mean())
        assert readout.overall().kept == pytest.approx(mean)


class TestShares:
    @torch.no_grad()
    @pytest.mark.parametrize("options", KINDS)
    @pytest.mark.parametrize("node", [0, 17, 44])
    def test_a_share_is_what_is_missing_when_the_neighbour_sends_nothing(
        self, graph, options, node
    ):
        """With gates and standard deviations held: the logits with and without one memory."""
        network = networks(**options)[0].double()
        with in_float64():
            arcs = network.prepare(graph.edge_index, NODES)
        x = graph.x.double()
        shares = torch.stack(
            [torch.from_numpy(memory_shares(network, x, arcs, node, row)) for row in np.eye(3)]
        )
        pairs = [*network.pass_messages(x, arcs)]
        gates = [each.gates for each in pairs[1:]]

        def logits(silent, silent_round):
            states = [pairs[0].hidden]
            for number, mmp in enumerate(network.rounds):
                sent = pairs[number].memory.clone()
                if number == silent_round:
                    sent[silent] = 0
                conv = getattr(mmp.conv, "conv", None)
                if conv is None or "message_norm" not in options:
                    message = mmp.conv(sent, arcs)
                else:
                    norm, message = mmp.conv.norm, conv(sent, arcs)
                    whole = conv(pairs[number].memory, arcs)
                    held = (whole.var(dim=1, correction=0, keepdim=True) + norm.eps).sqrt()
                    message = (message - message.mean(dim=1, keepdim=True)) / held
                    message = message * norm.weight + norm.bias
                states.append(gates[number][0] * states[-1] + gates[number][1] * message)
            return network.classify(states)[node]

        whole = network(x, arcs).logits[node]
        torch.testing.assert_close(logits(0, None), whole)
        near = torch.from_numpy(np.unique(graph.edge_index[:, (graph.edge_index == node).any(0)]))
        for sender in [*near.tolist(), node, (node + 1) % NODES]:
            rounds = range(len(network.rounds))
            missing = sum(whole - logits(sender, number) for number in rounds)
            torch.testing.assert_close(shares[:, sender], missing)

    def test_a_node_with_very_many_neighbours(self):
        """As a dense matrix the neighbourhood of the middle of this star would take 149 GiB."""
        leaves = 200_000
        ends = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
        x = torch.rand(leaves + 1, 6, generator=torch.Generator().manual_seed(0))
        network = memohop.build("gcn+mmp", 6, 3, hidden_channels=5).eval()
        shares = memory_shares(network, x, network.prepare(ends, leaves + 1), 0, FIRST_OR_SECOND)
        assert np.flatnonzero(shares).tolist() == list(range(1, leaves + 1))


class TestPyG:
    @pytest.mark.parametrize("options", KINDS)
    def test_the_module_says_what_the_networks_say(self, graph, options):
        module = PyGClassifier(networks(**options), graph)
        shares = module(module.x, module.arcs).exp().detach()
        agree(
            graph, networks(**options), lambda *given: logits_of(*given).softmax(-1).mean(0), shares
        )

    def test_gnn_explainer_and_the_shares_find_the_neighbour_that_tells(self, planted):
        networks, data, tellers = planted
        module = PyGClassifier(networks, data).eval()
        explainer = Explainer(
            module,
            GNNExplainer(epochs=40, lr=0.1),
            explanation_type="model",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "log_probs",
            },
        )
        torch.manual_seed(seeded(0))
        graph, margin = networks[0].prepare(data.edge_index, 120), np.array([1.0, -1.0])
        for node in range(20, 26):
            shares = sum(memory_shares(each, data.x, graph, node, margin) for each in networks)
            assert np.abs(shares).argmax() == tellers[node]
            mask = explainer(module.x, module.arcs, index=node).edge_mask
            into = (module.arcs[1] == node).nonzero().flatten().tolist()
            masks = {int(module.arcs[0, arc]): float(mask[arc]) for arc in into}
            assert masks[tellers[node]] > 0.9
        assert not module.training

    def test_a_fitted_classifier(self, graph):
        classifier = MMPClassifier(trials=1, splits=2, epochs=3, ensemble=False).fit(graph)
        classifier.model_ = Ensemble(classifier.model_.components)
        module = as_pyg(classifier)
        said = module(module.x, module.arcs).exp().detach().numpy()
        assert said == pytest.approx(classifier.predict_proba(), abs=1e-4)

    def test_a_classifier_without_such_networks_is_refused(self, graph):
        few = GraphClassifier(models=["linear"], trials=1, time=None, splits=2).fit(graph)
        with pytest.raises(UsageError, match="kept no network with memory"):
            as_pyg(few)


@pytest.fixture(scope="module")
def planted():
    """Ten nodes of each class know it; the others know nothing and hear one of these and three of
    their own kind.
    """
    generator = np.random.default_rng(seeded())
    y = np.concatenate([np.arange(20) % 2, generator.integers(2, size=100)])
    x = generator.normal(scale=0.1, size=(120, 2))
    x[np.arange(20), y[:20]] += 2
    tellers = {node: int(2 * generator.integers(10) + y[node]) for node in range(20, 120)}
    arcs = list({(teller, node) for node, teller in tellers.items()})
    arcs += [
        (int(other), node) for node in tellers for other in generator.integers(20, 120, size=3)
    ]
    learned = torch.from_numpy(generator.random(120) < 0.7)
    data = Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        edge_index=torch.tensor(arcs).T,
        train_mask=learned,
        val_mask=~learned,
    )
    options = {"gate_sharing": "layer", "classifier_dropout": True}
    members = [memohop.Member(seed=seed, lr=0.01, weight_decay=1e-3) for seed in range(2)]
    results = memohop.train(
        data, "gcn+mmp", members, options=options, epochs=60, patience=None, keep_models=True
    )
    networks = [memohop.build("gcn+mmp", 2, 2, **options).eval() for _ in results]
    for network, result in zip(networks, results, strict=True):
        network.load_state_dict(result.state)
    return networks, data, tellers
