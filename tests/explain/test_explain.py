"""Gates, shares of neighbours, and PyG's explainers, against slow second computations."""

import copy
import re

import numpy as np
import pytest
import torch
from memohop.own.model import OwnModel
from memohop.report.explain_page import explain_page
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer

import memohop
from memohop import MMPClassifier, UsageError
from memohop.explain import as_pyg, explain_node, read_gates
from numerics import assert_rounded, in_float64, seeded, with_parameters

NODES = 60
KINDS = [
    {},
    {"direction": "out", "message_norm": "layer", "num_layers": 3, "gate_sharing": "layer"},
    {"self_loops": "add", "norm": "symmetric", "num_layers": 1},
    {"direction": "both", "norm": "none", "per": "channel", "memory_from": "hidden"},
]


KNOWING = {"labels": "memory", "address": "rows"}


class Knowing(OwnModel):
    """Networks that know labels and addresses."""

    def networks(self):
        found = []
        for place, state in enumerate(self.states):
            network = memohop.build("gcn+mmp", 6, 3, num_nodes=NODES, **self.options)
            network.load_state_dict(state)
            network.know((torch.arange(NODES) + place) % 4 - 1)
            found.append(network.eval())
        return found


def with_networks(classifier, **options):
    """The classifier with other networks, their parameters far from where they begin."""
    states = []
    for seed in range(2):
        torch.manual_seed(seeded(seed))
        network = memohop.build("gcn+mmp", 6, 3, num_nodes=NODES, hidden_channels=5, **options)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter)
        states.append(network.state_dict())
    classifier = copy.copy(classifier)
    kind = Knowing if "labels" in options else OwnModel
    classifier.model_ = kind(6, 3, {"hidden_channels": 5, **options}, tuple(states))
    return classifier


@pytest.fixture(scope="module")
def fitted():
    data = memohop.load(
        "csbm", nodes=NODES, classes=3, channels=6, degree=4, homophily=0.7, seed=seeded()
    )
    data.y[::6] = -1
    arcs = data.edge_index[:, ::3]  # so that direction matters
    return MMPClassifier(trials=1, splits=2, epochs=4).fit(
        Data(x=data.x, y=data.y, edge_index=arcs)
    )


@torch.no_grad()
def agree(classifier, function, *found):
    """What was found, with a function of the networks in float64, the features and the graphs."""
    arcs, networks = classifier.graph_.edge_index, classifier.model_.networks()

    def exact(x, *parameters):
        others = with_parameters(networks, parameters)
        with in_float64():
            graphs = [network.prepare(arcs, NODES) for network in others]
        return function(others, x, graphs)

    parameters = [parameter for network in networks for parameter in network.parameters()]
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in found]
    widest = max(max(parameter.shape) for parameter in parameters)
    # Up to three rounds, with sums of neighbours, of a state, and of two states in the gate.
    length = 3 * (NODES + 3 * widest)
    assert_rounded(tensors, exact, classifier.graph_.x, *parameters, length=length)


def logits_of(networks, x, graphs):
    return torch.stack(
        [network(x, graph).logits for network, graph in zip(networks, graphs, strict=True)]
    )


def size(explanation):
    """What the shares come to without their signs; they are rounded by parts of that."""
    shares = [neighbour.share for neighbour in explanation.neighbours]
    return sum(map(abs, [explanation.own, explanation.constant, *shares]))


# Up to three rounds of 60 neighbours, states of five channels and gates of two states.
ROUNDED = 3 * (NODES + 15) * torch.finfo(torch.float32).eps


class TestGates:
    def test_means_over_rounds_and_networks(self, fitted):
        found = read_gates(fitted)

        def means(exact, x, graphs):
            every = [one.gates(x, graph) for one, graph in zip(exact, graphs, strict=True)]
            mean = torch.stack(every).mean(0)
            # What is passed on after the last round is read by nobody.
            return mean[:, :, 0].mean(0), mean[:, :, 1].mean(0), mean[:-1, :, 2].mean(0)

        agree(fitted, means, found.kept, found.absorbed, found.passed_on)

    def test_degree_and_local_homophily_counted_by_hand(self, fitted):
        graph, found = fitted.graph_, read_gates(fitted)
        neighbours = [set() for _ in range(NODES)]
        for u, v in graph.edge_index.T.tolist():
            neighbours[u].add(v)
            neighbours[v].add(u)
        y = graph.y.tolist()
        for node in range(NODES):
            others = neighbours[node] - {node}
            known = [y[other] for other in others if y[other] >= 0]
            assert found.degree[node] == len(others)
            if y[node] >= 0 and known:
                assert found.homophily[node] == pytest.approx(
                    np.mean([k == y[node] for k in known])
                )
            else:
                assert np.isnan(found.homophily[node])

    def test_right_goes_by_networks_that_had_not_seen_the_label(self, fitted):
        graph, found = fitted.graph_, read_gates(fitted)
        opinions = [
            network(graph.x, network.prepare(graph.edge_index, NODES)).logits.softmax(-1)
            for network in fitted.model_.networks()
        ]
        for node in range(NODES):
            unseen = [p[node] for p, split in zip(opinions, range(2), strict=True)
                      if graph.test_mask[node, split]]  # fmt: skip
            if unseen:
                chosen = torch.stack(unseen).mean(0).argmax()
                assert found.right[node] == float(chosen == graph.y[node])
            else:
                assert np.isnan(found.right[node])

    def test_groups_hold_every_node_once(self, fitted):
        found = read_gates(fitted)
        assert sum(group.nodes for group in found.by_degree()) == NODES
        assert sum(g.nodes for g in found.by_homophily()) == (~np.isnan(found.homophily)).sum()
        right, wrong = found.by_correctness()
        assert right.nodes + wrong.nodes == right.tested + wrong.tested == (found.right >= 0).sum()
        mean = np.average([g.kept for g in (right, wrong)], weights=[right.nodes, wrong.nodes])
        assert mean == pytest.approx(found.kept[found.right >= 0].mean())


class TestShares:
    @torch.no_grad()
    @pytest.mark.parametrize("options", [*KINDS, KNOWING])
    @pytest.mark.parametrize("node", [0, 17, 44])
    def test_shares_add_up_to_the_margin_of_the_whole_network(self, fitted, options, node):
        classifier = with_networks(fitted, **options)
        found = explain_node(classifier, node)

        def probability_and_margin(*networks_and_inputs):
            logits = logits_of(*networks_and_inputs)[:, node]
            margin = logits[:, found.predicted] - logits[:, found.runner_up]
            return logits.softmax(-1).mean(0).max(), margin.mean()

        agree(classifier, probability_and_margin, found.probability, found.margin)
        shares = found.own + found.constant + sum(n.share for n in found.neighbours)
        assert shares == pytest.approx(found.margin, abs=ROUNDED * size(found))

    @torch.no_grad()
    @pytest.mark.parametrize("options", [{"num_layers": 1}, {"num_layers": 1, "direction": "in"}])
    def test_a_share_is_what_is_missing_when_the_neighbour_sends_nothing(self, fitted, options):
        """In one round, with the gates held: the margin with and without one memory."""
        classifier = with_networks(fitted, **options)
        graph = classifier.graph_
        node = int(read_gates(classifier).degree.argmax())
        found = explain_node(classifier, node)
        expected = {neighbour.id: 0.0 for neighbour in found.neighbours}
        for network in classifier.model_.networks():
            with in_float64():
                arcs = network.double().prepare(graph.edge_index, NODES)
            (mmp,) = network.rounds
            start = torch.relu(network.input(graph.x.double()))
            gates = mmp.step(start, start, arcs)[2]
            weight = network.classifier.weight[found.predicted]
            weight = weight - network.classifier.weight[found.runner_up]

            def margin(memory, mmp=mmp, arcs=arcs, gates=gates, start=start, weight=weight):
                message = mmp.conv(memory, arcs)
                return float((gates[0] * start + gates[1] * message)[node] @ weight)

            for neighbour in expected:
                silent = start.clone()
                silent[neighbour] = 0
                expected[neighbour] += (margin(start) - margin(silent)) / 2
        assert expected
        for neighbour in found.neighbours:
            exact = expected[neighbour.id]
            assert neighbour.share == pytest.approx(exact, abs=ROUNDED * size(found))

    def test_an_unknown_node_is_named(self, fitted):
        with pytest.raises(UsageError, match="no node named '600'; ids of this graph are 0, 1, 2"):
            explain_node(fitted, "600")

    def test_a_node_with_very_many_neighbours(self, fitted):
        """As a dense matrix the neighbourhood of the middle of this star would take 149 GiB."""
        leaves = 200_000
        classifier = with_networks(fitted, num_layers=2)
        ends = torch.stack([torch.zeros(leaves, dtype=torch.int64), torch.arange(1, leaves + 1)])
        x = torch.rand(leaves + 1, 6, generator=torch.Generator().manual_seed(0))
        classifier.graph_ = Data(x=x, y=torch.arange(leaves + 1) % 4 - 1, edge_index=ends)
        classifier.ids_ = np.arange(leaves + 1)
        found = explain_node(classifier, 0)
        assert found.degree == len(found.neighbours) == leaves
        assert found.label is None
        every = [found.own, found.constant, *(n.share for n in found.neighbours)]
        rounding = leaves * float(np.finfo(np.float32).eps) * sum(map(abs, every))
        assert sum(every) == pytest.approx(found.margin, abs=rounding)
        assert found.probability == pytest.approx(classifier.predict_proba()[0].max(), abs=1e-5)


class TestPyG:
    @pytest.mark.parametrize("options", [*KINDS, KNOWING])
    def test_the_module_says_what_the_classifier_says(self, fitted, options):
        classifier = with_networks(fitted, **options)
        module, graph = as_pyg(classifier), classifier.graph_
        found = module(graph.x, module.arcs(graph.edge_index, NODES))
        probabilities = found.exp().detach(), classifier.predict_proba()
        for one in probabilities:
            agree(classifier, lambda *given: logits_of(*given).softmax(-1).mean(0), one)

    def test_gnn_explainer_and_the_shares_find_the_neighbour_that_tells(self, planted):
        classifier, tellers = planted
        module, graph = as_pyg(classifier), classifier.graph_
        arcs = module.arcs(graph.edge_index, graph.num_nodes)
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
        for node in range(20, 26):
            found = explain_node(classifier, node)
            assert found.neighbours[0].id == tellers[node]
            mask = explainer(graph.x, arcs, index=node).edge_mask
            into = (arcs[1] == node).nonzero().flatten().tolist()
            masks = {int(arcs[0, arc]): float(mask[arc]) for arc in into}
            assert masks[tellers[node]] > 0.9
            # It drives arcs that speak for the class to 1 and arcs that speak against it to 0.
            speaking = [one for one in found.neighbours if abs(one.share) > 0.05]
            assert all((masks[one.id] > 0.5) == (one.share > 0) for one in speaking)
        assert not module.training


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
    classifier = MMPClassifier(trials=1, splits=2, epochs=60)
    return classifier.fit(x, y, edges=np.array(arcs).T), tellers


class TestPage:
    def test_it_stands_alone_and_escapes_what_it_shows(self, fitted):
        classifier = MMPClassifier(trials=1, splits=2, epochs=2).fit(fitted.graph_, split=0)
        classifier.ids_ = np.array([f"<b>{node}</b>" for node in range(NODES)])
        classifier.classes_ = np.array(["a&b", "<i>", "c"])
        node = explain_node(classifier, "<b>3</b>")
        page = explain_page(classifier.report_, read_gates(classifier), node)
        assert "<b>3</b>" not in page
        assert "&lt;b&gt;3&lt;/b&gt;" in page
        assert "a&amp;b" in page
        assert "<i>" not in page.replace('<i class="', "")
        assert not re.search(r"(src|href)=|@import|url\(", page)
        assert f"{node.margin:+.2f}" in page
        assert page.count("<svg ") == 2
        assert "nan" not in page
