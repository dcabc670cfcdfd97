"""Two graphs for the tests of the trainer."""

import pytest

import memohop
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


def doubled(data):
    """In float64: how epochs magnify rounding errors is not what these tests are about."""
    data.x = data.x.double()
    return data
