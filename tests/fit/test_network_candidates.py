"""Networks as candidates, against a forward pass by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import sparse

import memohop.jobs.train
from memohop.fit import _candidate as candidate
from memohop.fit._candidate import Setting, variations
from memohop.fit._graph import Inputs
from memohop.fit.candidates import _network as network
from memohop.fit.candidates._network import NetworkFamily, feature_scale, network_cost
from memohop.fit.candidates.spaces import listed, taught
from memohop.networks import build
from memohop.nn import Graph
from memohop.training import Enough, Member
from memohop.training.device import TooLittleError
from memohop.training.trainer import DivergedWarning
from tiny_problem import tiny_problem


def family(name="gcn-res", **options):
    return NetworkFamily(name, epochs=3, patience=3, **options)


def fitted(problem, name="gcn-res", splits=(0,), **more):
    """The fits of the first setting, by split, and the setting."""
    kind = family(name)
    setting = kind.first(problem)[0]
    (fits,) = kind.fit(problem, [setting], splits, **more)
    return fits, setting


def one_way():
    return tiny_problem(arcs=np.array([[0, 1], [1, 2]]))


@pytest.mark.parametrize("name", ["mlp", "gcn-res", "gcn+mmp"])
def test_outputs_are_those_of_a_forward_pass(name):
    problem = tiny_problem(classes=3)
    fits, setting = fitted(problem, name, [0, 1])
    x = torch.from_numpy(problem.x) / np.sqrt(np.mean(problem.x.astype(np.float64) ** 2))
    if name != "mlp":
        degree = np.bincount(problem.arcs[0], minlength=60)
        x = torch.cat([x, torch.from_numpy(np.log1p(degree) / 3)[:, None]], dim=1)
    for split, fit in fits.items():
        network = build(name, x.shape[1], 3, num_nodes=60, **of_network(setting)).eval()
        network.load_state_dict(dict(fit.part.state))
        if name == "gcn+mmp":
            network.know(torch.from_numpy(problem.known(split)))
        policies = getattr(network, "policies_in_force", None)
        graph = (Graph(torch.from_numpy(problem.arcs), 60, **policies),) if policies else ()
        with torch.no_grad():
            said = network(x.float(), *graph)
        logits = said[0] if isinstance(said, tuple) else said
        expected = logits.softmax(-1).numpy()
        assert fit.val.shape == expected[problem.masks.val[:, split]].shape  # of other epochs
        assert np.allclose(fit.test, expected[problem.masks.test], atol=1e-5)
        shown = Inputs(problem.x, problem.arcs, problem.known(split), of_fit=60)
        assert np.allclose(fit.part.outputs(shown), expected, atol=1e-5)


def weighted():
    """A ring whose edges weigh a half, 1 and 1.5 in turns."""
    weights = (1 + np.tile(np.arange(60), 2) % 3) / 2
    return tiny_problem(weights=weights.astype(np.float32))


@pytest.mark.parametrize(
    "name", [name for name in listed().networks if name not in ("mlp", "dir-gcn")]
)
def test_weights_of_arcs_reach_every_network(name):
    problem = weighted()
    part = fitted(problem, name)[0][0].part
    alike = Inputs(problem.x, problem.arcs, problem.y, of_fit=60)
    alike.__dict__["neighbourhood"] = problem.neighbourhood  # the degrees are not in question
    assert np.abs(part.outputs(alike) - part.outputs(problem)).max() > 1e-5


def test_arcs_of_weight_1_are_arcs_without_weights():
    equal = tiny_problem(weights=np.ones(120, dtype=np.float32))
    plain, other = (fitted(problem)[0][0].test for problem in (tiny_problem(), equal))
    assert np.array_equal(plain, other)


def test_a_network_with_weights_by_hand():
    problem = weighted()
    part = fitted(problem)[0][0].part
    network, data = part.ready(problem)
    said = part.outputs(problem)
    assert data.edge_weight.tolist() == pytest.approx([0.5, 1, 1.5] * 40)
    matrix = np.eye(60)
    for node, following in zip(range(60), np.roll(range(60), -1), strict=True):
        matrix[node, following] = matrix[following, node] = (1 + node % 3) / 2
    degrees = matrix.sum(axis=1)
    expected = matrix / np.sqrt(np.outer(degrees, degrees))
    normalised = network.prepare_data(data, "cpu") @ torch.eye(60)
    assert np.allclose(normalised.numpy(), expected)
    with torch.no_grad():
        logits = network(data.x, network.prepare_data(data, "cpu"))
    assert np.allclose(logits.softmax(-1), said, atol=1e-6)


def test_members_that_diverged_are_left_out():
    problem, kind = tiny_problem(), family("mlp")
    first = kind.first(problem)[0]
    wild = Setting("mlp", first.options, {**first.numbers, "lr": 1e30})
    with pytest.warns(DivergedWarning):
        sound, diverged = kind.fit(problem, [first, wild], [0])
    assert list(sound) == [0]
    assert diverged == {}


@pytest.fixture
def sizes(monkeypatch):
    """How many members each call of the trainer had."""
    called = []

    def train(data, model, members, **options):
        called.append(len(members))
        return memohop.jobs.train.train(data, model, members, **options)

    monkeypatch.setattr("memohop.fit.candidates._network.train", train)
    return called


@pytest.mark.parametrize(("large", "calls"), [(61, [4]), (60, [1] * 4)])
def test_networks_of_a_large_graph_are_fitted_one_by_one(large, calls, sizes, monkeypatch):
    monkeypatch.setattr("memohop.fit.candidates._network._LARGE", large)
    problem, kind = tiny_problem(), family("gcn-res")
    first = kind.first(problem)[0]
    other = Setting("gcn-res", first.options, {**first.numbers, "lr": 0.02})
    fits_by_setting = kind.fit(problem, [first, other], [0, 1])
    assert sizes == calls
    assert [list(fits) for fits in fits_by_setting] == [[0, 1], [0, 1]]
    if calls == [1] * 4:  # the same to the bit as in a fit of their own
        alone = kind.fit(problem, [other], [1])[0][1]
        assert np.array_equal(fits_by_setting[1][1].test, alone.test)


def test_networks_that_time_is_too_short_for_have_no_result(sizes, monkeypatch):
    monkeypatch.setattr("memohop.fit.candidates._network._LARGE", 60)

    def look():
        if len(sizes) == 2:
            raise Enough

    assert list(fitted(tiny_problem(), splits=[0, 1, 2], look=look)[0]) == [0, 1]


def test_labels_of_test_nodes_change_nothing():
    problem, other = tiny_problem(), tiny_problem()
    object.__setattr__(other, "y", np.where(problem.masks.test, 1 - problem.y, problem.y))
    states = [fitted(each, "gcn+mmp")[0][0].part.state for each in (problem, other)]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


def test_the_scale_is_of_what_is_not_zero():
    x = np.array([[3.0, 0.0], [0.0, 4.0]], dtype=np.float32)
    assert feature_scale(x) == pytest.approx(np.sqrt(12.5))
    assert feature_scale(sparse.csr_array(x)) == pytest.approx(np.sqrt(12.5))
    assert feature_scale(np.zeros((2, 2), dtype=np.float32)) == 1


def of_network(setting):
    """Its options, without what else of the graph is an input."""
    return {name: value for name, value in setting.options.items() if name != "extras"}


@pytest.mark.parametrize("name", listed().networks)
@pytest.mark.parametrize("directed", [False, True])
def test_every_first_setting_builds(name, directed):
    problem = one_way() if directed else tiny_problem()
    for first in family(name).first(problem):
        build(name, 3, 2, num_nodes=5, **of_network(first))
        assert {*first.numbers} <= {*listed().numbers["networks"]}
        if not directed:
            assert first.options.get("direction", "undirected") == "undirected"


@pytest.mark.parametrize("name", listed().networks)
@pytest.mark.parametrize("directed", [False, True])
def test_variations_change_one_choice_and_build(name, directed):
    problem = one_way() if directed else tiny_problem()
    kind, generator, directions = family(name), np.random.default_rng(0), set()
    for best in kind.first(problem)[:1]:
        for _ in range(60):
            variation, other = variations(kind, problem, best, 2, generator)
            assert variation.options == other.options
            assert set(variation.options) == set(best.options)
            changed = {
                axis for axis in best.options if variation.options[axis] != best.options[axis]
            }
            together = [
                {*choice}
                for choices in listed().networks[name].choices.values()
                for choice in choices
                if isinstance(choice, dict)
            ]
            assert len(changed) <= 1 or any(changed <= names for names in together)
            build(name, 3, 2, num_nodes=5, **of_network(variation))
            directions.add(variation.options.get("direction"))
            assert (variation.numbers["lam"] == best.numbers["lam"]) or kind.has_memory
            Member(**variation.numbers)
        assert len(directions) == (3 if directed and "direction" in best.options else 1)


def test_variations_that_do_not_fit_keep_the_structure(monkeypatch):
    problem, kind = tiny_problem(), family("sage-res", memory=1)
    best, generator = kind.first(problem)[0], np.random.default_rng(0)
    for _ in range(20):
        (variation,) = variations(kind, problem, best, 1, generator)
        assert variation.options == best.options


def test_a_network_costs_by_arcs_nodes_layers_and_width(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    problem, options = tiny_problem(), {"num_layers": 2, "hidden_channels": 64}

    def cost(problem=problem, sees_graph=True, **more):
        return network_cost(problem, options | more, sees_graph=sees_graph)

    twice = [cost(num_layers=4), cost(hidden_channels=128), cost(tiny_problem(120))]
    for larger in twice:
        assert 1.4 * cost().seconds < larger.seconds < 2.1 * cost().seconds
        assert 1.4 * cost().bytes < larger.bytes < 2.1 * cost().bytes
    assert cost(sees_graph=False).seconds < cost().seconds / 2
    assert cost(hops=2).seconds > 2 * cost().seconds  # six maps, on two graphs


@pytest.mark.parametrize("spare", [-1, 0])
def test_a_network_that_is_too_large_is_never_worth_it(spare, monkeypatch):
    """It takes all that the process may hold beside what it holds, or a byte more."""
    problem, memory = tiny_problem(), 10**9
    kind = family("sage-res", memory=memory)
    first = kind.first(problem)[0]
    cost = network_cost(problem, first.options, sees_graph=True)
    monkeypatch.setattr(candidate, "resident_bytes", lambda: memory - cost.bytes - spare)
    seconds = math.inf if spare < 0 else cost.seconds
    assert kind.cost(problem, first) == (seconds, cost.bytes)


def test_what_is_for_directed_graphs_alone_is_not_tried_on_others():
    assert family("dir-gcn").first(tiny_problem()) == []
    learned = [setting for setting in taught() if setting.family == "dir-gcn"]
    assert len(family("dir-gcn").first(one_way())) == 3 + len(learned)


@pytest.mark.parametrize(("rare", "epoch"), [(20, "loss"), (500, "first")])
def test_the_epoch_of_the_best_ranking_counts_if_it_is_no_luck(rare, epoch, monkeypatch):
    problem = tiny_problem(y=np.repeat([0, 1], [500, rare]), metric="roc_auc")
    given = {}

    def train(data, model, members, *, rules, **options):
        given["keep"] = rules.keep
        raise KeyboardInterrupt

    monkeypatch.setattr("memohop.fit.candidates._network.train", train)
    with pytest.raises(KeyboardInterrupt):
        fitted(problem, "mlp")
    assert given["keep"] == epoch


def test_a_network_that_does_not_fit_in_the_memory_has_no_result(monkeypatch):
    def too_large(*args, **options):
        raise TooLittleError("one member does not fit", 2e9, 1e9)

    monkeypatch.setattr(network, "train", too_large)
    assert fitted(tiny_problem(), splits=[0, 1])[0] == {}
