"""Graphs of one's own from NetworkX and from arrays, against what they literally say."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse

from memohop.data.tables import from_arrays, from_networkx
from memohop.errors import UsageError


def arcs(graph):
    return sorted(map(tuple, graph.data.edge_index.T.tolist()))


class TestNetworkX:
    def test_attributes_are_columns(self):
        graph = nx.DiGraph()
        graph.add_node(("p", 1), kind="x", v=1.0, on=True)
        graph.add_node("q", kind="y", v=3.0, on=False)
        graph.add_node("r", v=2.0)
        graph.add_node("s", kind="x", v=2.0, on=True)
        graph.add_edges_from([(("p", 1), "q"), ("q", "r"), ("r", "r")])
        own = from_networkx(graph, label="kind")
        assert own.ids.tolist() == [("p", 1), "q", "r", "s"]
        assert own.data.y.tolist() == [0, 1, -1, 0]
        assert own.encoder.feature_names == ["v", "on", "on is missing"]
        assert own.data.x[:, 1:].tolist() == [[1, 0], [0, 0], [0, 1], [1, 0]]
        assert arcs(own) == [(0, 1), (1, 2), (2, 2)]

    def test_an_undirected_multigraph_is_an_arc_each_way_and_once(self):
        graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
        nx.set_node_attributes(graph, {0: "x", 1: "x", 2: "y"}, "kind")
        own = from_networkx(graph, label="kind")
        assert arcs(own) == [(0, 1), (1, 0), (1, 2), (2, 1)]
        assert own.data.x.tolist() == [[1], [1], [1]]

    def test_a_second_graph_needs_no_label(self):
        graph = nx.path_graph(4)
        nx.set_node_attributes(graph, dict(enumerate([1, 2, 3, 4])), "v")
        nx.set_node_attributes(graph, dict(enumerate("xyxy")), "kind")
        first = from_networkx(graph, label="kind")
        other = nx.path_graph(2)
        nx.set_node_attributes(other, {0: 2, 1: 4}, "v")
        own = from_networkx(other, label="kind", encoder=first.encoder, classes=first.classes)
        assert torch.equal(own.data.x, first.data.x[[1, 3]])
        assert own.data.y.tolist() == [-1, -1]

    def test_weights(self):
        graph = nx.MultiDiGraph([(0, 1, {"w": 2}), (0, 1, {"w": 0.5}), (1, 2, {"w": 4})])
        nx.set_node_attributes(graph, {0: "x", 1: "x", 2: "y"}, "kind")
        own = from_networkx(graph, label="kind", weight="w")
        assert arcs(own) == [(0, 1), (1, 2)]
        assert own.data.edge_weight.tolist() == [2.5, 4]
        assert not any("not used" in text for text in own.warnings)
        unweighted = from_networkx(graph, label="kind")
        assert "every edge counts alike; not used: attribute 'w'" in unweighted.warnings
        other = from_networkx(graph.to_undirected(), label="kind", weight="w")
        assert other.data.edge_weight.tolist() == [2.5, 2.5, 4, 4]
        for missing_or_huge in ({}, {"w": 1e308}):
            graph.add_edge(2, 0, 0, **missing_or_huge)
            with pytest.raises(UsageError, match="the edge attribute 'w' has 1 weight"):
                from_networkx(graph, label="kind", weight="w")

    def test_mistakes(self):
        with pytest.raises(UsageError, match="no nodes"):
            from_networkx(nx.Graph(), label="kind")
        graph = nx.path_graph(3)
        nx.set_node_attributes(graph, {0: 1, 1: "x", 2: []}, "v")
        nx.set_node_attributes(graph, {0: "x", 1: "x", 2: "y"}, "kind")
        with pytest.raises(UsageError, match="no node attribute named 'kidn'"):
            from_networkx(graph, label="kidn")
        with pytest.raises(UsageError, match="'v' has values of several types"):
            from_networkx(graph, label="kind")


class TestArrays:
    X = np.array([[0.5, 1], [1, 0], [2, 2], [0, 0]])

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
    def test_what_is_not_zero_is_an_edge(self, form):
        matrix = np.zeros((4, 4))
        matrix[0, 1] = matrix[2, 3] = 2.5
        matrix[3, 3] = 1
        own = from_arrays(form(matrix), form(self.X), ["x", "y", None, "x"])
        assert arcs(own) == [(0, 1), (1, 0), (2, 3), (3, 2), (3, 3)]
        assert torch.equal(own.data.x, torch.tensor(self.X, dtype=torch.float32))
        assert (own.data.y.tolist(), own.classes) == ([0, 1, -1, 0], ["x", "y"])
        assert own.ids.tolist() == [0, 1, 2, 3]
        assert "the weights of the edges are not used; weighted=True uses them" in own.notes
        assert "3 edges, one arc each way" in own.notes
        directed = from_arrays(form(matrix), form(self.X), [0, 1, -1, 0], directed=True, ids="abcd")
        assert arcs(directed) == [(0, 1), (2, 3), (3, 3)]
        assert (directed.data.y.tolist(), directed.classes) == ([0, 1, -1, 0], [0, 1])

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_entries_are_weights_if_asked(self, form):
        matrix = np.zeros((4, 4))
        matrix[0, 1], matrix[1, 0], matrix[2, 3], matrix[3, 3] = 2.5, 0.5, 4, 7
        own = from_arrays(form(matrix), self.X, [0, 1, 0, 1], weighted=True)
        assert arcs(own) == [(0, 1), (1, 0), (2, 3), (3, 2), (3, 3)]
        assert own.data.edge_weight.tolist() == [3, 3, 4, 4, 7]
        own = from_arrays(form(matrix), self.X, [0, 1, 0, 1], weighted=True, directed=True)
        assert own.data.edge_weight.tolist() == [2.5, 0.5, 4, 7]
        both = form(np.maximum(matrix, matrix.T))  # as a symmetric matrix lists them
        own = from_arrays(both, self.X, [0, 1, 0, 1], weighted=True)
        assert own.data.edge_weight.tolist() == [2.5, 2.5, 4, 4, 7]

    def test_labels_with_gaps_or_none_at_all(self):
        empty = sparse.csr_array((4, 4))
        assert from_arrays(empty, self.X, [2.0, np.nan, 5.0, 2.0]).data.y.tolist() == [0, -1, 1, 0]
        own = from_arrays(empty, self.X, classes=["x", "y"])
        assert (own.data.y.tolist(), own.classes) == ([-1] * 4, ["x", "y"])

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"adjacency": np.eye(3)}, r"adjacency has shape \[3, 3\]"),
            ({"features": np.ones(4)}, r"features has shape \[4\]"),
            ({"features": np.array([["a"]] * 4)}, "features has shape"),
            ({"features": np.full((4, 2), np.nan)}, "holds nan at node 0, column 0"),
            ({"labels": [0, 1]}, "labels has 2 entries"),
            ({"ids": "abc"}, "ids has 3 entries"),
            ({"adjacency": -np.eye(4), "weighted": True}, "adjacency has 4 weight"),
        ],
    )
    def test_mistakes(self, change, complaint):
        arguments = {"adjacency": np.eye(4), "features": self.X, "labels": [0, 1, 0, 1]} | change
        with pytest.raises(UsageError, match=complaint):
            from_arrays(**arguments)
