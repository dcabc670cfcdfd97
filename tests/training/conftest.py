"""Graphs for the tests of the trainer."""

import pytest

import memohop
from memohop import Graph
from memohop.training import standardised
from numerics import seeded


@pytest.fixture(scope="module")
def data():
    return doubled(memohop.load("csbm", nodes=120, channels=12, homophily=0.6, seed=seeded(1)))


@pytest.fixture(scope="module")
def words():
    """The same with sparse features."""
    data = memohop.load("csbm", nodes=120, channels=30, homophily=0.3, seed=seeded(2))
    data.x = data.x > 0.22
    return doubled(data)


@pytest.fixture(scope="module")
def labelled():
    """Three classes, whose labels are given to networks."""
    return doubled(
        memohop.load(
            "csbm", nodes=60, classes=3, channels=6, degree=4, homophily=0.7, seed=seeded(1)
        )
    )


@pytest.fixture
def numbers(float64):
    """90 nodes; the target is the mean feature of the node and its neighbours."""
    graph = doubled(memohop.load("csbm", nodes=90, channels=6, splits=2, seed=seeded(1)))
    del graph.metric
    policies = {"direction": "undirected", "self_loops": "add", "norm": "row"}
    graph.y = 3 * (Graph(graph.edge_index, 90, **policies) @ graph.x).mean(1)
    return standardised(graph)[0]


def doubled(data):
    """In float64: how epochs magnify rounding errors is not what these tests are about."""
    data.x = data.x.double()
    return data
