"""A sample of a prepared graph: arcs and features are those of the whole."""

import json

import numpy as np
import pytest

import memohop
from commands import write_parquet
from memohop.cli import main
from memohop.data.prepared import _reading, sample


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def graph(request, tmp_path):
    generator = np.random.default_rng(0)
    nodes = 200
    ids = np.arange(nodes) + 1000
    kind = np.array(["a", "b"])[generator.integers(2, size=nodes)]
    table = {"id": ids, "v": generator.normal(size=nodes), "k": kind}
    ends = ids[generator.integers(nodes, size=(2, 900))]
    ends[0, :80] = ids[3]  # a hub
    files = write_parquet(tmp_path, table, {"s": ends[0], "t": ends[1]})
    return memohop.prepare(*files, tmp_path / "graph", label="k", directed=request.param)


@pytest.fixture
def _large(monkeypatch):
    """Two hundred nodes are too many to be taken whole."""
    for name, value in {"_WHOLE_NODES": 100, "_CENTRES": 20, "_NEIGHBOURS": 3}.items():
        monkeypatch.setattr(_reading, name, value)


def test_a_small_graph_is_taken_whole(graph):
    found, said = sample(graph)
    assert said is None
    assert found.data.num_nodes == 200


@pytest.mark.usefixtures("_large")
def test_arcs_and_features_are_those_of_the_whole(graph):
    found, said = sample(graph)
    whole = graph.in_ram()
    ids = found.ids.tolist()
    assert 20 < len(ids) < 200
    assert f"{len(ids)} nodes and {found.data.num_edges} arcs" in said
    arcs = {(whole.ids[u], whole.ids[v]) for u, v in whole.data.edge_index.T.tolist()}
    inside = {(u, v) for u, v in arcs if u in ids and v in ids}
    assert {(ids[u], ids[v]) for u, v in found.data.edge_index.T.tolist()} == inside
    rows = [whole.ids.tolist().index(node) for node in ids]
    assert np.array_equal(found.x, whole.x[rows])
    assert found.data.y.tolist() == whole.data.y[rows].tolist()
    assert found.directed == graph.directed


@pytest.mark.usefixtures("_large")
def test_the_command_says_that_it_samples(graph, capsys):
    assert main(["audit", str(graph.folder), "--json"]) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert row["nodes"] < 200
    assert "these figures are those of a sample, 20 random nodes" in said.err
