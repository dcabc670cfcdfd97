"""What a network costs is guessed from the size of the graph."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memohop.fit.candidates import cost
from memohop.fit.candidates.cost import least_seconds, network_bytes
from memohop.fit.candidates.networks import NetworkFamily
from memohop.fit.candidates.spaces import SPACES
from tiny_problem import tiny_problem

OPTIONS = {"num_layers": 2, "hidden_channels": 64}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)


def test_an_epoch_costs_by_arcs_nodes_layers_and_width():
    problem = tiny_problem(nodes=60)  # a ring: 120 arcs
    epoch = 2 * 64 * (120 * 5e-9 + 60 * 3e-8)
    found = least_seconds(problem, OPTIONS, "cpu", sees_graph=True)
    assert found == pytest.approx(120 * 1e-6 + 50 * epoch)
    alone = least_seconds(problem, OPTIONS, "cpu", sees_graph=False)
    assert alone == pytest.approx(50 * 2 * 64 * 60 * 1e-8)
    hops = least_seconds(problem, {"hops": 2, "hidden_channels": 64}, "cpu", sees_graph=True)
    assert hops == pytest.approx(2 * 120 * 1e-6 + 3 * 50 * epoch)


def test_a_network_that_is_too_large_is_never_worth_it(monkeypatch):
    problem = tiny_problem(nodes=60)
    held = network_bytes(problem, OPTIONS, sees_graph=True)
    assert held > 200 * 120 + 40 * 2 * 64 * 60
    monkeypatch.setattr(cost, "available_bytes", lambda device: held - 1)
    assert least_seconds(problem, OPTIONS, "cpu", sees_graph=True) == math.inf
    monkeypatch.setattr(cost, "available_bytes", lambda device: held)
    assert least_seconds(problem, OPTIONS, "cpu", sees_graph=True) < math.inf


def test_variations_that_do_not_fit_keep_the_structure(monkeypatch):
    problem, kind = tiny_problem(), NetworkFamily("sage-res", SPACES["sage-res"])
    best, generator = kind.first(problem)[0], np.random.default_rng(0)
    monkeypatch.setattr(cost, "available_bytes", lambda device: 0)
    for _ in range(20):
        assert all(one.options == best.options for one in kind.near(problem, best, 2, generator))
