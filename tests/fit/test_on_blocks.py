"""Predictions of a prepared graph in blocks are those of the same graph in RAM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

import memohop
from commands import fails, run, write_parquet
from memohop import DataError, GraphClassifier, GraphRegressor, UsageError
from memohop.cli import main
from memohop.data.arcs import DIRECTIONS, SELF_LOOPS, adjacency
from memohop.fit._views import View
from memohop.fit.candidates import _network as network
from memohop.fit.candidates.spaces import listed
from memohop.fit.on_blocks import (
    BlockInputs,
    Prediction,
    outputs_of_prepared,
    predict_share,
)
from memohop.jobs.executor import Lost
from memohop.parts.folder import matrix_rows, starts_of
from memohop.parts.halo import Group
from own_processes import predict_and_count, quick_processes
from saved_models import everything
from tiny_problem import QUICK

pytestmark = pytest.mark.usefixtures("few_epochs")
NODES, WORKERS = 90, 3
KINDS = (
    "lightgbm",
    "extra-trees",
    "linear+neighbours",
    "linear+rows",
    "mlp",
    "gcn+mmp",
    "gcn-res",
    "linkx",
)


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
    pairs = {"s": names[0], "t": names[1]}
    if request.param == "weighted":
        pairs["weight"] = generator.integers(5, size=200) / 2
    directed = request.param in ("directed", "weighted")
    return *write_parquet(folder, columns, pairs), directed


@pytest.fixture(scope="module")
def graph(tables):
    nodes, edges, directed = tables
    options = {"label": "k", "drop": ["amount"], "directed": directed}
    if "weight" in pa.parquet.read_schema(edges).names:
        options["weight"] = "weight"
    return memohop.prepare(nodes, edges, nodes.parent / "graph", **options)


def of_all_kinds(graph, kinds, estimator=GraphClassifier):
    """An estimator that keeps a model of each kind, and no graph: the same is another one then."""
    model = everything(estimator(**QUICK), graph.in_ram(), kinds=kinds)
    calibration = replace(model.model_.calibration, temperature=1.3)
    model.model_ = replace(model.model_, calibration=calibration)
    del model.graph_
    return model


def fitted(graph, kind="linear"):
    return GraphClassifier(models=[kind], **QUICK).fit(graph.in_ram())


@pytest.fixture(scope="module")
def staff():
    with quick_processes(WORKERS, predict_share) as processes:
        yield processes


def block_outputs(staff, model, graph):
    """Those of three workers."""
    ((_, outputs),) = staff([Prediction.of(model, graph)])
    assert [len(each) for each in outputs] == np.diff(starts_of(graph, WORKERS)).tolist()
    return np.concatenate(outputs)


def in_ram(model, graph):
    return model.outputs(graph.in_ram(), as_another_graph=True)


def test_every_kind_says_what_it_says_in_ram(graph, staff):
    model = of_all_kinds(graph, KINDS)
    outputs = block_outputs(staff, model, graph)
    assert np.abs(outputs - in_ram(model, graph)).max() < 1e-5
    assert np.ptp(outputs) > 0.01


@pytest.mark.parametrize("tables", ["directed", "sparse"], indirect=True)
def test_so_do_nearest_neighbours_of_a_few_numbers(graph, staff):
    model = of_all_kinds(graph, ["nearest"])
    outputs = block_outputs(staff, model, graph)
    assert np.abs(outputs - in_ram(model, graph)).max() < 1e-5
    assert np.ptp(outputs) > 0.01


@pytest.mark.parametrize("tables", ["directed", "sparse"], indirect=True)
def test_no_process_holds_all_arcs(graph):
    model = of_all_kinds(graph, ("linear+neighbours", "gcn+mmp"))
    with quick_processes(WORKERS, predict_and_count) as staff:
        ((_, read),) = staff([Prediction.of(model, graph)])
    both_ways = (1 + graph.directed) * graph.arcs  # arcs in either direction are taken
    assert sum(read) == both_ways
    assert max(read) < 0.6 * both_ways


@pytest.mark.parametrize("ways", ["merged", "sides", "apart"])
@pytest.mark.parametrize("sees", ["neighbours", "rows"])
def test_features_of_trees_are_those_in_ram(graph, sees, ways):
    """Not their outputs: a rounding error may send a node down another branch."""
    model = fitted(graph)
    view = View.fit(model.own_graph(), sees, 3, ways=ways)
    block = BlockInputs.of(model, graph, Group())
    features = view.features(block, block.y)
    unlabelled = replace(model.graph_, y=np.full(NODES, -1), of_fit=0, overall=model.overall_)
    expected = view.features(unlabelled, unlabelled.y)
    assert features.shape == expected.shape
    assert sparse.issparse(features) == sparse.issparse(expected)
    assert np.abs(features - expected).max() < 1e-5


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
@pytest.mark.parametrize(("readout", "labels"), [("last", "none"), ("jumping", "memory")])
def test_every_form_of_the_memory_network(graph, staff, readout, labels):
    own = listed().networks["gcn+mmp"].own
    more = {"readout": readout, "labels": labels, "address": "rows", "num_layers": 3}
    first = [replace(setting, options={**setting.options, **more}) for setting in own]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network.NetworkFamily, "first", lambda self, problem: first)
        model = fitted(graph, "gcn+mmp")
    del model.graph_
    options = model.model_.components[0].models[0].options
    assert (options["readout"], options["labels"], options["address"]) == (readout, labels, "rows")
    outputs = block_outputs(staff, model, graph)
    assert np.abs(outputs - in_ram(model, graph)).max() < 1e-5


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("self_loops", SELF_LOOPS)
def test_rows_from_the_disk_are_those_of_the_matrix(graph, direction, self_loops):
    policies = {"direction": direction, "self_loops": self_loops}
    some = [slice(start, min(start + 13, NODES)) for start in range(0, NODES, 13)]
    rows = sparse.vstack([matrix_rows(graph, nodes, **policies) for nodes in some]).toarray()
    data = graph.in_ram().data
    weights = data.get("edge_weight")
    expected = adjacency(data.edge_index, graph.nodes, **policies, weights=weights).toarray()
    assert np.abs(rows - expected).max() < 1e-6


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
def test_a_regression(tables, tmp_path, staff):
    nodes, edges, directed = tables
    options = {"label": "amount", "drop": ["k"], "directed": directed}
    graph = memohop.prepare(nodes, edges, tmp_path / "graph", **options)
    model = of_all_kinds(graph, ("linear+neighbours", "gcn+mmp"), GraphRegressor)
    assert np.abs(block_outputs(staff, model, graph) - in_ram(model, graph)).max() < 1e-4


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
        run(capsys, "prepare", nodes, edges, "--drop", "w", "-o", again)
        for command, told in {
            ("predict", model, again, "-o", output): "prepared with other features",
            ("fit", again, "-o", model): "prepared without labels",
            ("predict", model, graph, "--ray", "auto"): "--ray auto goes with --workers",
            ("predict", model, "--workers", "2"): "--workers 2 goes with a prepared graph",
            ("predict", model, graph, "-o", "p.csv"): "ends in .parquet",
            ("fit", graph, "--label", "k", "-o", model): "leave out the options of tables",
            ("fit", "-o", model): "--nodes is missing",
        }.items():
            assert told in fails(capsys, *command)


def test_weights_count_as_they_do_in_ram(tmp_path, staff):
    generator = np.random.default_rng(2)
    size = generator.normal(size=NODES)
    nodes = {"id": np.arange(NODES), "size": size, "k": np.where(size > 0, "a", "b")}
    source, target = generator.integers(NODES, size=(2, 200))
    edges = {"s": source, "t": target, "w": generator.random(200)}
    tables = [*map(str, write_parquet(tmp_path, nodes, edges))]
    graph, model, output = (str(tmp_path / name) for name in ("g", "m", "p.parquet"))
    assert main(["prepare", *tables, "--label", "k", "--weight", "w", "-o", graph]) == 0
    fit = ["--models", "linear+neighbours", "--trials", "1", "--splits", "2"]
    assert main(["fit", graph, *fit, "-o", model]) == 0
    assert main(["prepare", *tables, "--model", model, "-o", str(tmp_path / "again")]) == 0
    assert main(["predict", model, str(tmp_path / "again"), "-o", output]) == 0
    loaded, prepared = memohop.load_model(model), memohop.open_prepared(graph)
    assert loaded.reading_["weight"] == "w"
    shares = pa.parquet.read_table(output)["probability of a"].to_numpy()
    assert np.abs(shares - loaded.predict_proba(prepared.in_ram())[:, 0]).max() < 1e-6
    plain = prepared.in_ram()
    del plain.data.edge_weight
    assert np.abs(shares - loaded.predict_proba(plain)[:, 0]).max() > 1e-3
    loaded.mean_weight_ = None  # as if it had been fitted without weights
    said = block_outputs(staff, loaded, prepared)
    assert np.abs(said - loaded.predict_proba(plain)).max() < 1e-6


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
def test_the_graph_of_fit_is_predicted_with_its_labels(graph):
    model = fitted(graph, "linear+neighbours")
    own = model.outputs()
    assert (outputs_of_prepared(model, graph) == own).all()
    assert (outputs_of_prepared(model, graph, 2, pool="not asked") == own).all()
    assert np.abs(own - in_ram(model, graph)).max() > 0.01


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
@pytest.mark.parametrize("sees", [{"structure": "quick"}, {"spread_of": np.arange(1)}])
def test_a_model_that_sees_more_than_a_block_is_refused(graph, sees):
    model = fitted(graph, "linear+neighbours")
    del model.graph_
    for part in model.model_.components[0].models:
        object.__setattr__(part, "view", replace(part.view, **sees))
    with pytest.raises(UsageError, match=r"the whole graph.*: predict without workers"):
        outputs_of_prepared(model, graph, 2, pool="not asked")


def test_a_model_of_arrays_is_refused(graph):
    data = graph.in_ram()
    model = GraphClassifier(models=["linear"], **QUICK)
    model.fit(data.x, np.array(["a", "b", "c"])[data.data.y.numpy()], data.data.edge_index)
    with pytest.raises(UsageError, match="fitted on arrays"):
        outputs_of_prepared(model, graph)


@pytest.mark.parametrize("tables", ["directed"], indirect=True)
def test_lost_workers_end_it(graph):
    model = fitted(graph)
    del model.graph_
    parts = [np.zeros((40, 3)), np.ones((50, 3))]

    def asked(answer):
        """Of a pool that answers as it is told."""
        pool = lambda work, jobs, together: [(job, answer) for job in jobs]  # noqa: E731
        return outputs_of_prepared(model, graph, 2, pool)

    assert (asked(parts) == np.concatenate(parts)).all()
    with pytest.raises(DataError, match=r"lost again and again \(gone\)"):
        asked(Lost("gone"))
