"""What the neighbours of a node have, against sums over a literal graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from memohop.data.arcs import in_unit, mean_weight
from memohop.fit._neighbourhood import Neighbourhood

# 0 - 1 - 2 and 1 - 3; arcs both ways, one of them twice, and a self-loop
ARCS = np.array([[0, 1, 1, 2, 1, 3, 0, 2], [1, 0, 2, 1, 3, 1, 1, 2]])


def test_arcs_are_counted_once_and_self_loops_not_at_all():
    near = Neighbourhood(ARCS, 4)
    assert near.both.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    assert not near.directed


def test_the_mean_over_neighbours():
    x = np.array([[1.0], [2.0], [4.0], [9.0]], dtype=np.float32)
    assert np.allclose(Neighbourhood(ARCS, 4).mean(x)[:, 0], [2, 14 / 3, 2, 2])


def test_the_mean_of_sparse_columns_stays_sparse():
    x = sparse.csr_array(np.eye(4, dtype=np.float32))
    means = Neighbourhood(ARCS, 4).mean(x)
    assert sparse.issparse(means)
    assert np.allclose(means.toarray()[1], [1 / 3, 0, 1 / 3, 1 / 3])


def test_label_shares_of_one_and_two_hops_without_the_own_label():
    y = np.array([0, -1, 1, 1])  # overall: a third of class 0, two thirds of class 1
    shares = Neighbourhood(ARCS, 4).label_shares(y, classes=2)
    one_hop, one_count = shares[:, :2], shares[:, 2]
    two_hops, two_count = shares[:, 3:5], shares[:, 5]
    assert np.allclose(one_hop[1], [(1 + 1 / 3) / 4, (2 + 2 / 3) / 4])
    assert np.allclose(one_count[1], np.log(4))
    assert np.allclose(one_hop[0], [1 / 3, 2 / 3])  # its only neighbour has no label
    assert np.allclose(two_hops[0], [(1 / 3) / 3, (2 + 2 / 3) / 3])  # 2 and 3, not itself
    assert np.allclose(two_count[1], 0)  # two steps from 1 lead back to 1 alone


def test_directions_are_kept_apart():
    near = Neighbourhood(np.array([[0, 1], [1, 2]]), 3)
    assert near.directed
    assert [way.named(()) for way in near.ways] == ["", "out ", "in "]
    assert np.allclose(np.expm1(near.degrees()), [[1, 1, 0], [2, 1, 1], [1, 0, 1]])
    assert near.label_shares(np.array([0, 1, -1]), classes=2).shape == (3, 3 * 2 * 3)


def test_numbers_have_means():
    y = np.array([1.0, np.nan, 4.0, 7.0])
    shares = Neighbourhood(ARCS, 4).label_shares(y, classes=0)
    assert np.allclose(shares[1, 0], (1 + 4 + 7 + 4) / 4)


@pytest.mark.parametrize("weight", [1234.56, 12345.67, 1e-9, 1e20])
def test_of_two_nodes_neither_sees_its_own_label_however_heavy_the_edge(weight):
    near = Neighbourhood(np.array([[0, 1], [1, 0]]), 2, np.full(2, weight, dtype=np.float32))
    for y in ([0, 1], [1, 0]):
        two_hops = near.label_shares(np.array(y), 2, np.array([0.5, 0.5]))[:, 3:]
        assert two_hops.tolist() == [[0.5, 0.5, 0], [0.5, 0.5, 0]]


@st.composite
def weighted_graphs(draw):
    """A small graph with weights of very different sizes in any unit, and classes or numbers."""
    seed = draw(st.integers(0, 2**32 - 1))
    generator, nodes = np.random.default_rng(seed), draw(st.integers(2, 9))
    pairs = np.argwhere(generator.random((nodes, nodes)) < draw(st.floats(0.1, 0.9))).T
    weights = 10.0 ** generator.uniform(-1, 1, pairs.shape[1]) ** draw(st.sampled_from([1, 4]))
    weights *= generator.random(pairs.shape[1]) < 0.9  # some are 0
    if draw(st.booleans()):
        pairs, weights = np.hstack([pairs, pairs[::-1]]), np.tile(weights, 2)
    y = generator.integers(-1, 3, nodes)
    if draw(st.booleans()):
        y = np.where(y < 0, np.nan, 10.0 ** generator.uniform(-3, 3, nodes) * (1 - y))
    return pairs, weights, y


@pytest.mark.fuzz
@given(weighted_graphs(), st.integers(-30, 30))
def test_weights_in_any_unit_and_no_trace_of_the_own_label(graph, power):
    """Against sums over a graph in which the label of the node is hidden."""
    pairs, weights, y = graph
    classes, overall = (0, np.array([0.5])) if y.dtype == float else (3, np.array([0.2, 0.3, 0.5]))

    def near(unit: float) -> Neighbourhood:
        return Neighbourhood(pairs, len(y), in_unit(weights * unit, mean_weight(weights * unit)))

    shares = near(10.0**power).label_shares(y, classes, overall)
    plain = near(1.0)
    for node in range(len(y)):
        hidden, other = y.copy(), y.copy()
        hidden[node] = -1 if classes else np.nan
        if hidden[node] != y[node]:
            other[node] = (y[node] + 1) % 3 if classes else 1e6 * y[node] - 7
        mine = shares[node]
        assert mine == pytest.approx(_shares(plain, hidden, node, classes, overall), rel=2e-6)
        assert mine == pytest.approx(plain.label_shares(other, classes, overall)[node], rel=2e-6)


def _shares(near, y, node, classes, overall):
    """What a node without a label of its own is told, from dense products."""
    known = y >= 0 if classes else ~np.isnan(y)
    values = np.eye(3)[np.maximum(y, 0)] if classes else np.nan_to_num(y)[:, None]
    values = np.hstack([values, np.ones((len(y), 1))]) * known[:, None]
    shares = []
    for way in map(near.matrix, near.ways):
        matrix = way.toarray().astype(np.float64)
        for sums in (matrix[node] @ values, matrix[node] @ (matrix @ values)):
            shares += [*((sums[:-1] + overall) / (sums[-1] + 1)), np.log1p(sums[-1])]
    return shares
