"""A graph for the tests of graphs in parts."""

import pytest

import memohop
from numerics import seeded


@pytest.fixture(scope="module")
def data():
    return memohop.load("csbm", nodes=60, channels=8, homophily=0.4, seed=seeded(1))
