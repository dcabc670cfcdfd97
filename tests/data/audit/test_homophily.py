"""Measures of homophily against published figures, documented examples and plain loops."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from memohop.data.audit import audit
from memohop.data.audit._measures import homophily, homophily_bins, informativeness_of_a_neighbour
from memohop.data.datasets.load import load

# Adjusted homophily and label informativeness as printed by Platonov et al. (2023), with edge
# homophily of the undirected graph without self-loops as measured on the files by other means.
PRINTED = {
    "cora": (0.77, 0.59, 0.810),
    "citeseer": (0.67, 0.45, 0.736),
    "pubmed": (0.69, 0.41, 0.802),
    "actor": (0.00, 0.00, 0.217),
    "chameleon-filtered": (0.03, 0.01, 0.236),
    "squirrel-filtered": (0.01, 0.00, 0.207),
    "minesweeper": (0.01, 0.00, 0.683),
    "tolokers": (0.09, 0.01, 0.595),
}


def matrix(edges, nodes):
    """Symmetric, each edge once in each direction, without self-loops."""
    dense = np.zeros((nodes, nodes), dtype=np.float32)
    source, target = np.array(edges, dtype=int).reshape(-1, 2).T
    dense[source, target] = dense[target, source] = 1
    np.fill_diagonal(dense, 0)
    return sparse.csr_array(dense)


@pytest.mark.parametrize("name", PRINTED)
def test_the_figures_are_the_printed_ones(name, data_root):
    report = audit(load(name, root=data_root), probes=False)
    adjusted, informativeness, edge = PRINTED[name]
    assert round(report.adjusted_homophily, 2) == adjusted
    assert round(report.label_informativeness, 2) == informativeness
    assert report.edge_homophily == pytest.approx(edge, abs=5.01e-4)


def test_the_examples_in_the_documentation_of_dgl():
    """Both functions make the graph undirected first."""
    measures = homophily(matrix([(1, 0), (2, 1), (0, 2), (4, 3)], 5), np.array([0, 0, 0, 0, 1]))
    assert measures.adjusted_homophily == pytest.approx(-0.1428571492433548, rel=1e-6)
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5)]
    measures = homophily(matrix(edges, 6), np.array([0, 0, 0, 0, 1, 1]))
    assert measures.label_informativeness == pytest.approx(0.25177597999572754, rel=1e-6)


def slow(edges, labels):
    """The definitions, pair by pair."""
    pairs = {(u, v) for a, b in edges if a != b for u, v in ((a, b), (b, a))}
    pairs = {(u, v) for u, v in pairs if labels[u] >= 0 and labels[v] >= 0}
    if not pairs:
        return (None,) * 5
    kinds = Counter((labels[u], labels[v]) for u, v in pairs)
    ends = Counter(labels[u] for u, _ in pairs)
    sizes = Counter(label for label in labels if label >= 0)
    edge = sum(labels[u] == labels[v] for u, v in pairs) / len(pairs)
    around = defaultdict(list)
    for u, v in pairs:
        around[u].append(labels[u] == labels[v])
    node = sum(sum(same) / len(same) for same in around.values()) / len(around)
    excess = [
        max(0, kinds[c, c] / ends[c] - size / sizes.total()) for c, size in sizes.items() if ends[c]
    ]
    chance = sum((count / len(pairs)) ** 2 for count in ends.values())
    entropy = -sum(n / len(pairs) * math.log(n / len(pairs)) for n in ends.values())
    mutual = sum(
        n / len(pairs) * math.log(n * len(pairs) / (ends[c] * ends[d]))
        for (c, d), n in kinds.items()
    )
    several = len(ends) > 1
    return (
        edge,
        node,
        sum(excess) / (len(sizes) - 1) if len(sizes) > 1 else None,
        (edge - chance) / (1 - chance) if several else None,
        mutual / entropy if several else None,
    )


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 9))
    node = st.integers(0, nodes - 1)
    labels = draw(st.lists(st.integers(-1, 3), min_size=nodes, max_size=nodes))
    return draw(st.lists(st.tuples(node, node), max_size=20)), labels


@settings(deadline=None)
@given(graphs())
def test_every_measure_is_its_definition(graph):
    edges, labels = graph
    measures = homophily(matrix(edges, len(labels)), np.array(labels))
    for value, expected in zip(measures, slow(edges, labels), strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_a_neighbour_in_one_direction_tells_and_in_the_other_does_not():
    """Two of each class point to their own hub, and hubs point to whom they like."""
    y = np.array([0, 0, 1, 1, 0, 1])
    dense = np.zeros((6, 6))
    dense[[0, 1, 2, 3], [4, 4, 5, 5]] = 1
    dense[4:, :4] = 1
    out = sparse.csr_array(dense)
    # Of the six nodes four hear their own class and two hear both alike: p(c, c) is 5/12.
    expected = 2 * (5 / 12 * math.log(5 / 3) + 1 / 12 * math.log(1 / 3)) / math.log(2)
    assert informativeness_of_a_neighbour(out, y) == pytest.approx(expected)
    # The first four hear both hubs, and the hubs their own class.
    against = 2 * (4 / 12 * math.log(4 / 3) + 2 / 12 * math.log(2 / 3)) / math.log(2)
    assert informativeness_of_a_neighbour(sparse.csr_array(out.T), y) == pytest.approx(against)
    assert informativeness_of_a_neighbour(sparse.csr_array((6, 6)), y) is None


def test_bins_hold_every_node_that_has_a_neighbour_and_empty_ones_are_left_out():
    local = np.array([0.0, 1 / 6, 1 / 5, np.nan, 3 / 5, 1.0, 4 / 5])
    bins = [(low, high, np.flatnonzero(inside)) for low, high, inside in homophily_bins(local)]
    assert [(low, high) for low, high, _ in bins] == [(0, 0.2), (0.2, 0.4), (0.6, 0.8), (0.8, 1)]
    assert [nodes.tolist() for _, _, nodes in bins] == [[0, 1], [2], [4], [5, 6]]
