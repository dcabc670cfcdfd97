"""Predictions from the disk, block by block, are those of the same graph in RAM."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

import memohop
from memohop import GraphClassifier, GraphRegressor, UsageError
from memohop.cli import main
from memohop.data.adjacency import DIRECTIONS, NORMS, SELF_LOOPS, adjacency
from memohop.fit import by_blocks
from memohop.fit.candidates import network
from memohop.fit.candidates.spaces import SPACES, Learned
from memohop.fit.ensemble import Component, Ensemble
from memohop.fit.predictions import write_predictions
from memohop.fit.problem import Inputs
from memohop.fit.views import View, side_by_side
from memohop.inference import from_disk

pytest.importorskip("duckdb")

NODES = 90
KINDS = ("lightgbm", "linear+neighbours", "linear+rows", "mlp", "gcn+mmp", "gcn-res")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of 13 nodes and networks of three epochs."""
    whole = network.train
    monkeypatch.setattr(
        network, "train", lambda *args, **more: whole(*args, **more | {"epochs": 3})
    )
    monkeypatch.setattr(from_disk, "_ROWS", 13)
    monkeypatch.setattr(by_blocks, "_ROWS", 13)


@pytest.fixture(scope="module", params=["directed", "sparse", "wide", "weighted"])
def tables(request, tmp_path_factory):
    """Two files, and how they are prepared."""
    folder = tmp_path_factory.mktemp(request.param)
    generator = np.random.default_rng(1)
    y = np.arange(NODES) % 3
    columns = {
        "id": [f"n{number}" for number in range(NODES)],
        "v": generator.normal(size=NODES) + y,
        "w": pa.array(generator.normal(size=NODES), mask=generator.random(NODES) < 0.2),
        "k": pa.array(np.array(["a", "b", "c"])[y], mask=generator.random(NODES) < 0.2),
        "amount": y + generator.normal(size=NODES),
    }
    if request.param == "sparse":
        columns["city"] = [f"city{number}" for number in generator.integers(60, size=NODES)]
        columns |= {f"z{n}": (generator.random(NODES) < 0.1).astype(int) for n in range(60)}
    if request.param == "wide":
        columns |= {f"z{number}": generator.normal(size=NODES) for number in range(260)}
    ends = generator.integers(NODES, size=(2, 200))
    ends[:, :3] = 5  # arcs from a node to itself
    names = np.array(columns["id"])[ends]
    pa.parquet.write_table(pa.table(columns), folder / "n.parquet")
    pairs = {"s": names[0], "t": names[1]}
    if request.param == "weighted":
        pairs["weight"] = generator.integers(5, size=200) / 2
    pa.parquet.write_table(pa.table(pairs), folder / "e.parquet")
    directed = request.param in ("directed", "weighted")
    return folder / "n.parquet", folder / "e.parquet", directed


@pytest.fixture(scope="module")
def graph(tables):
    nodes, edges, directed = tables
    options = {"label": "k", "drop": ["amount"], "directed": directed}
    if "weight" in pa.parquet.read_schema(edges).names:
        options["weight"] = "weight"
    return memohop.prepare(nodes, edges, nodes.parent / "graph", **options)


def everything(estimator, data, kinds):
    """An estimator that keeps a model of each kind, whatever validation thinks, and no graph."""
    fitted = [
        copy.copy(estimator).set_params(models=[name]).fit(data).model_.components[0]
        for name in kinds
    ]
    found = estimator.set_params(models=["linear"]).fit(data)
    found.model_ = Ensemble(
        tuple(Component(one.setting, 1 / len(fitted), one.models) for one in fitted),
        replace(found.model_.calibration, temperature=1.3),
    )
    del found.graph_  # the same graph is another one then
    return found


def block_outputs(model, graph, tmp_path, tell=lambda text: None):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = list(by_blocks.outputs_by_block(model, graph, scratch, tell))
    assert len(found) == 7
    return np.concatenate([said for _, said in found])


def in_ram(model, graph):
    return model.outputs(graph.in_ram(), as_another_graph=True)


def test_every_kind_says_what_it_says_in_ram(graph, tmp_path):
    model = everything(GraphClassifier(trials=1, time=None, splits=2), graph.in_ram(), KINDS)
    told = []
    found = block_outputs(model, graph, tmp_path, told.append)
    assert np.abs(found - in_ram(model, graph)).max() < 1e-5
    assert np.ptp(found) > 0.01
    assert told == ["gcn-res is part of the model and needs the whole graph in RAM"]


@pytest.mark.parametrize("sees", ["neighbours", "rows"])
def test_features_of_trees_are_those_in_ram(graph, tmp_path, sees):
    """Not their outputs: a rounding error may send a node down another branch."""
    model = GraphClassifier(models=["linear"], trials=1, time=None, splits=2).fit(graph.in_ram())
    view = View.fit(model.own_graph(), sees, 3)
    seen = by_blocks._Graph(model, graph, tmp_path)
    blocks = [seen._features(view, rows) for rows in from_disk.slices(NODES, 13)]
    found = side_by_side(
        [sparse.vstack(blocks) if sparse.issparse(blocks[0]) else np.vstack(blocks)]
    )
    other = Inputs(
        model.graph_.x,
        model.graph_.arcs,
        np.full(NODES, -1),
        directed=model.directed_,
        overall=model.overall_,
        weights=model.graph_.weights,
    )
    expected = view.features(other, other.y)
    assert found.shape == expected.shape
    assert sparse.issparse(found) == sparse.issparse(expected)
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
@pytest.mark.parametrize(("readout", "labels"), [("last", "none"), ("jumping", "memory")])
def test_every_form_of_the_memory_network(graph, tmp_path, readout, labels):
    space = SPACES["gcn+mmp"]
    model = GraphClassifier(models=["gcn+mmp"], trials=1, time=None, splits=2)
    more = {"readout": readout, "labels": labels, "address": "rows", "num_layers": 3}
    first = [Learned({**one.options, **more}, one.numbers) for one in space.own]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(space), "first", lambda self, model, directed: first)
        model.fit(graph.in_ram())
    del model.graph_
    options = model.model_.components[0].models[0].options
    assert (options["readout"], options["labels"], options["address"]) == (readout, labels, "rows")
    found = block_outputs(model, graph, tmp_path)
    assert np.abs(found - in_ram(model, graph)).max() < 1e-5


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("self_loops", SELF_LOOPS)
@pytest.mark.parametrize("norm", NORMS)
def test_rows_from_the_disk_are_those_of_the_matrix(graph, direction, self_loops, norm):
    policies = {"direction": direction, "self_loops": self_loops, "norm": norm}
    matrix = from_disk.DiskMatrix(graph, **policies)
    rows = sparse.vstack([matrix.rows(nodes) for nodes in matrix.blocks()]).toarray()
    data = graph.in_ram().data
    weights = data.get("edge_weight")
    expected = adjacency(data.edge_index, graph.nodes, **policies, weights=weights).toarray()
    assert np.abs(rows - expected).max() < 1e-6


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
def test_a_regression_is_written_while_it_goes(tables, tmp_path):
    nodes, edges, directed = tables
    options = {"label": "amount", "drop": ["k"], "directed": directed}
    graph = memohop.prepare(nodes, edges, tmp_path / "graph", **options)
    estimator = GraphRegressor(trials=1, time=None, splits=2)
    model = everything(estimator, graph.in_ram(), ("linear+neighbours", "gcn+mmp"))
    (tmp_path / "scratch").mkdir()
    output = tmp_path / "said.parquet"
    tables = by_blocks.tables_by_block(model, graph, tmp_path / "scratch")
    assert write_predictions(output, tables) == (90, 0)
    table = pa.parquet.read_table(output)
    assert table["id"].to_pylist() == graph.ids.to_pylist()
    numbers = in_ram(model, graph)[:, 0]
    assert np.abs(table["predicted"].to_numpy() - numbers).max() < 1e-4
    width = table["high"].to_numpy() - table["low"].to_numpy()
    assert np.abs(width - 2 * model.report_.residual).max() < 1e-4
    assert pa.parquet.ParquetFile(output).num_row_groups == 7


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
class TestCommands:
    def test_prepare_fit_and_predict(self, tables, tmp_path, capsys):
        nodes, edges, directed = map(str, tables)
        graph, model, output = (str(tmp_path / name) for name in ("g", "m", "p.parquet"))
        way = "--directed" if directed == "True" else "--undirected"
        assert main(["prepare", nodes, edges, "--label", "k", way, "-o", graph]) == 0
        fit = ["--models", "linear+neighbours", "--trials", "1", "--splits", "2"]
        assert main(["fit", graph, *fit, "-o", model]) == 0
        assert main(["predict", model, graph, "-o", output]) == 0
        prepared = memohop.open_prepared(graph)
        expected = memohop.load_model(model).predict(prepared.in_ram())
        table = pa.parquet.read_table(output)
        assert table["predicted"].to_pylist() == expected.tolist()
        again = str(tmp_path / "again")
        assert main(["prepare", nodes, edges, "--model", model, "-o", again]) == 0
        assert memohop.open_prepared(again).encoder == prepared.encoder
        capsys.readouterr()
        assert main(["prepare", nodes, edges, "--drop", "w", "-o", again]) == 0
        assert main(["predict", model, again, "-o", output]) == 2
        assert "prepared with other features" in capsys.readouterr().err
        assert main(["fit", again, "-o", model]) == 2
        assert "prepared without labels" in capsys.readouterr().err
        assert main(["predict", model, graph, "-o", str(tmp_path / "p.csv")]) == 2
        assert "ends in .parquet" in capsys.readouterr().err
        assert main(["fit", graph, "--label", "k", "-o", model]) == 2
        assert "leave out the options of tables" in capsys.readouterr().err
        assert main(["fit", "-o", model]) == 2
        assert "--nodes is missing" in capsys.readouterr().err


def test_weights_count_as_they_do_in_ram(tmp_path):
    generator = np.random.default_rng(2)
    size = generator.normal(size=NODES)
    nodes = {"id": np.arange(NODES), "size": size, "k": np.where(size > 0, "a", "b")}
    source, target = generator.integers(NODES, size=(2, 200))
    edges = {"s": source, "t": target, "w": generator.random(200)}
    for name, table in (("n", nodes), ("e", edges)):
        pa.parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    tables = [str(tmp_path / name) for name in ("n.parquet", "e.parquet")]
    graph, model, output = (str(tmp_path / name) for name in ("g", "m", "p.parquet"))
    assert main(["prepare", *tables, "--label", "k", "--weight", "w", "-o", graph]) == 0
    fit = ["--models", "linear+neighbours", "--trials", "1", "--splits", "2"]
    assert main(["fit", graph, *fit, "-o", model]) == 0
    assert main(["prepare", *tables, "--model", model, "-o", str(tmp_path / "again")]) == 0
    assert main(["predict", model, str(tmp_path / "again"), "-o", output]) == 0
    found, prepared = memohop.load_model(model), memohop.open_prepared(graph)
    assert found.reading_["weight"] == "w"
    shares = pa.parquet.read_table(output)["probability of a"].to_numpy()
    assert np.abs(shares - found.predict_proba(prepared.in_ram())[:, 0]).max() < 1e-6
    plain = prepared.in_ram()
    del plain.data.edge_weight
    assert np.abs(shares - found.predict_proba(plain)[:, 0]).max() > 1e-3
    found.mean_weight_ = None  # as if it had been fitted without weights
    said = block_outputs(found, prepared, tmp_path)
    assert np.abs(said - found.predict_proba(plain)).max() < 1e-6


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
def test_the_graph_of_fit_is_predicted_with_its_labels(graph, tmp_path):
    model = GraphClassifier(models=["linear+neighbours"], trials=1, time=None, splits=2)
    model.fit(graph.in_ram())
    assert (block_outputs(model, graph, tmp_path) == model.outputs()).all()
    assert np.abs(model.outputs() - in_ram(model, graph)).max() > 0.01


def test_a_model_of_arrays_is_refused(graph, tmp_path):
    data = graph.in_ram()
    model = GraphClassifier(models=["linear"], trials=1, time=None, splits=2)
    model.fit(data.x, np.array(["a", "b", "c"])[data.data.y.numpy()], data.data.edge_index)
    with pytest.raises(UsageError, match="fitted on arrays"):
        block_outputs(model, graph, tmp_path)
