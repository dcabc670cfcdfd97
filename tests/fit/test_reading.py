"""Tables and NetworkX graphs: what one way of use has read, every other reads alike."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch_geometric.data import HeteroData

from commands import read_csv, write_tables
from memohop import (
    DataError,
    GraphClassifier,
    GraphRegressor,
    UsageError,
    audit,
    load_model,
    read_graph,
)
from memohop.cli import main
from memohop.explain import explain_fit
from memohop.fit._inputs import read_alike
from saved_models import changed
from tiny_problem import QUICK, tiny_data, tiny_problem

LINEAR = {"models": ["linear+neighbours"], **QUICK}
SIZES = tiny_problem().x[:, 0].tolist()
KINDS = [("a", "b", None)[(i % 5 == 0 and 2) or i % 2] for i in range(60)]
NODES = {"name": [f"n{i}" for i in range(60)], "size": SIZES, "kind": KINDS}
EDGES = {"s": [f"n{i}" for i in range(60)], "t": [f"n{(i + 1) % 60}" for i in range(60)]}
EDGES["trips"] = [1 + i % 3 for i in range(60)]
NEW = {"name": ["x", "y", "z"], "size": [0.5, None, 2.0]}
NEW_EDGES = {"s": ["x", "y"], "t": ["y", "z"], "trips": [1, 5]}
HOW = {"id": "name", "source": "s", "target": "t", "weight": "trips"}


class Frame:
    """As a frame of pandas or Polars is seen from here."""

    def __init__(self, columns):
        self.__arrow_c_stream__ = pa.table(columns).__arrow_c_stream__


@pytest.fixture(scope="module", params=["kind", "size"])
def from_python(request):
    """A classifier and a regressor."""
    kind = GraphClassifier if request.param == "kind" else GraphRegressor
    return kind(**LINEAR).fit(read_graph(NODES, EDGES, label=request.param, **HOW))


def said_by_command(model, folder, *options):
    assert main(["predict", str(model), *options, "-o", str(folder / "out.csv")]) == 0
    return [row["predicted"] for row in read_csv(folder / "out.csv")]


def test_a_model_of_python_reads_tables_at_the_command_line(from_python, tmp_path):
    from_python.save(tmp_path / "model")
    label = from_python.reading_["label"]
    new = {**NEW, "kind": ["a", None, None]} if label == "size" else NEW
    tables = write_tables(tmp_path, new, NEW_EDGES)
    for again, options in ((False, []), (True, ["--append"])):
        printed = said_by_command(tmp_path / "model", tmp_path, *tables, *options)
        expected = from_python.predict(new, NEW_EDGES, append=again)
        assert printed == [*map(str, expected)]
    assert said_by_command(tmp_path / "model", tmp_path) == [*map(str, from_python.predict())]


@pytest.mark.parametrize("of", [pa.table, Frame, dict])
def test_a_model_of_the_command_line_takes_tables_in_python(of, tmp_path):
    tables = write_tables(tmp_path, NODES, EDGES)
    nodes, edges = tables[1::2]
    columns = [word for name, column in HOW.items() for word in (f"--{name}", column)]
    fit = ["fit", *tables, "--label", "kind", *columns]
    quick = ["--models", "linear+neighbours", "--trials", "1", "--splits", "2"]
    assert main([*fit, *quick, "-o", str(tmp_path / "model")]) == 0
    model = load_model(tmp_path / "model")
    own = model.predict_proba()
    assert (model.predict_proba(of(NODES), of(EDGES)) == own).all()  # the graph of fit
    assert (model.predict_proba(nodes, [edges]) == own).all()
    assert (model.predict_proba(of(NODES), of(EDGES), as_another_graph=True) != own).any()
    right = [said == kind for said, kind in zip(model.predict(), KINDS, strict=True) if kind]
    assert model.score(of(NODES), edges=of(EDGES)) == pytest.approx(np.mean(right))
    new = model.predict_proba(of(NEW), of(NEW_EDGES))
    nodes, edges = write_tables(tmp_path, NEW, NEW_EDGES)[1::2]
    assert (model.predict_proba(nodes, edges) == new).all()


def test_labels_of_other_tables_may_be_missing_or_alike():
    model = GraphRegressor(**LINEAR).fit(read_graph(NODES, EDGES, label="size", **HOW))
    others = NEW | {"kind": ["a", "b", None]}
    expected = model.predict({name: others[name] for name in ("name", "kind")}, NEW_EDGES)
    for sizes in ([None] * 3, [2.5, None, None], ["", "", ""]):
        assert (model.predict(others | {"size": sizes}, NEW_EDGES) == expected).all()


def test_the_same_columns_and_arcs_under_other_ids_are_another_graph(from_python):
    assert from_python.is_graph_of_fit(NODES, EDGES)
    renamed = NODES | {"name": [f"m{i}" for i in range(60)]}
    edges = EDGES | {end: [f"m{node[1:]}" for node in EDGES[end]] for end in ("s", "t")}
    assert not from_python.is_graph_of_fit(renamed, edges)
    assert not from_python.is_graph_of_fit(NODES, EDGES | {"trips": [2] * 60})


def test_tables_for_a_model_of_arrays_are_refused(tmp_path):
    model = GraphClassifier(**LINEAR).fit(tiny_data())
    model.save(tmp_path / "model")
    assert main(["predict", str(tmp_path / "model"), *write_tables(tmp_path, NEW, NEW_EDGES)]) == 2
    with pytest.raises(UsageError, match="fitted on arrays, not on tables"):
        model.predict(NEW, NEW_EDGES)
    with pytest.raises(UsageError, match=r"edges is a table; read it .* fit\(memohop.read_graph"):
        model.fit(NODES, KINDS, EDGES)


def as_networkx(nodes=NODES, edges=EDGES, kind=nx.DiGraph):
    graph = kind()
    for row in zip(*nodes.values(), strict=True):
        name, *values = row
        graph.add_node(name, **dict(zip([*nodes][1:], values, strict=True)))
    graph.add_weighted_edges_from(zip(*edges.values(), strict=True))
    return graph


class TestNetworkX:
    @pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
    def test_it_is_read_as_its_tables_are(self, kind):
        how = HOW | {"directed": kind is nx.DiGraph}
        tables = GraphClassifier(**LINEAR).fit(read_graph(NODES, EDGES, label="kind", **how))
        model = GraphClassifier(**LINEAR).fit(as_networkx(kind=kind), "kind")
        assert model.directed_ == (kind is nx.DiGraph)
        assert model.ids_.tolist() == NODES["name"]
        assert (model.predict_proba() == tables.predict_proba()).all()
        assert (model.predict_proba(as_networkx(kind=kind)) == model.predict_proba()).all()
        assert model.score(as_networkx(kind=kind)) == model.score()
        new, unlike = (as_networkx(NEW, NEW_EDGES, kind) for _ in range(2))
        expected = tables.predict_proba(NEW, NEW_EDGES)
        assert model.predict_proba(new) == pytest.approx(expected, abs=1e-6)
        nx.set_edge_attributes(unlike, 1, "weight")
        assert np.abs(model.predict_proba(unlike) - expected).max() > 1e-6

    def test_numbers_without_weights(self):
        graph = as_networkx(kind=nx.Graph)
        for *_, edge in graph.edges(data=True):
            del edge["weight"]
        model = GraphRegressor(**LINEAR).fit(graph, "size")
        assert model.graph_.weights is None
        assert model.predict(graph).tolist() == model.predict().tolist()

    def test_the_label_must_be_named(self):
        with pytest.raises(UsageError, match="y=None: X is a NetworkX graph; give the name of the"):
            GraphClassifier(**LINEAR).fit(as_networkx())
        with pytest.raises(UsageError, match="no node attribute named 'kidn'; did you mean kind"):
            GraphClassifier(**LINEAR).fit(as_networkx(), "kidn")


def test_other_graphs_of_pyg_are_refused():
    several = HeteroData()
    several["shop"].x = torch.ones(3, 2)
    with pytest.raises(UsageError, match=r"X is a HeteroData; give a Data.*to_homogeneous\(\)"):
        GraphClassifier(**LINEAR).fit(several)


def test_a_score_needs_targets():
    model, data = GraphClassifier(**LINEAR).fit(tiny_data()), tiny_data()
    del data.y
    for graph in (data, tiny_data(y=np.full(60, -1))):
        with pytest.raises(UsageError, match="X has no label, and y is None; give y"):
            model.score(graph)
    with pytest.raises(UsageError, match="y has no label; give y"):
        model.score(data, np.full(60, np.nan))
    assert model.score() == model.score(data, tiny_problem().y) == model.score(tiny_data())


MORE = EDGES | {"hours": [1.5 + i % 7 for i in range(60)], "how": ["bus", "car", "car"] * 20}
LATER = NEW_EDGES | {"hours": [2.5, 6.5], "how": ["car", "bus"]}


class TestColumnsOfEdges:
    """They are columns of the nodes in every later table."""

    @pytest.fixture
    def model(self):
        graph = read_graph(NODES, MORE, label="kind", **HOW)
        assert len(graph.encoder.edges.made) == 14
        return GraphClassifier(**LINEAR).fit(graph)

    def test_the_graph_of_fit_is_recognised_by_them_too(self, model):
        assert model.is_graph_of_fit(NODES, MORE)
        assert not model.is_graph_of_fit(NODES, MORE | {"hours": [2.5] * 60})

    def test_saved_models_make_them_again(self, model, tmp_path):
        model.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        new = again.predict_proba(NEW, LATER)
        assert (new == model.predict_proba(NEW, LATER)).all()
        other = LATER | {"hours": [6.5, 2.5]}
        assert (new != again.predict_proba(NEW, other)).any()
        tables = write_tables(tmp_path, NEW, LATER)
        assert said_by_command(tmp_path / "model", tmp_path, *tables) == [
            str(kind) for kind in model.predict(NEW, LATER)
        ]

    def test_new_nodes_have_those_of_the_edges_that_come_with_them(self, model):
        """Edges to nodes of ``fit`` count too, and change nothing for those."""
        edges = LATER | {"t": ["y", "n7"]}
        graph = read_alike(model, NEW, edges, append=True)
        both = {name: [*NODES[name], *NEW.get(name, [None] * 3)] for name in NODES}
        encoder = {"encoder": model.encoder_, "classes": ["a", "b"]}
        expected = read_graph(both, edges, label="kind", **HOW, **encoder)
        assert graph.data.x.tolist() == expected.data.x[60:].tolist()
        assert model.predict(NEW, edges, append=True).shape == (3,)

    def test_new_nodes_may_have_no_columns_of_their_own(self):
        nodes = {name: NODES[name] for name in ("name", "kind")}
        model = GraphClassifier(**LINEAR)
        model.fit(read_graph(nodes, MORE, label="kind", **HOW))
        assert model.n_features_in_ == len(model.encoder_.feature_names) > 1
        new = {"name": NEW["name"]}
        assert model.predict(new, LATER, append=True).shape == (3,)

    @pytest.mark.parametrize("kind", ["linear", "nearest", "mlp"])
    def test_the_columns_alone_do_without_them(self, kind, tmp_path):
        """A model is the same whatever the edges say, but not if it sees the graph."""
        other = MORE | {"hours": MORE["hours"][::-1], "how": ["bus", "bus", "car"] * 20}

        def said(edges, kind=kind):
            model = GraphClassifier(models=[kind], **QUICK)
            return model.fit(read_graph(NODES, edges, label="kind", **HOW))

        model = said(MORE)
        assert model.graph_.x.shape[1] - model.graph_.own.shape[1] == model.graph_.of_edges > 0
        assert (model.predict_proba() == said(other).predict_proba()).all()
        linear = "linear+neighbours"
        assert (said(MORE, linear).predict_proba() != said(other, linear).predict_proba()).any()
        model.save(tmp_path / "model")
        again = load_model(tmp_path / "model")
        assert again.graph_.of_edges == model.graph_.of_edges
        later = model.predict_proba(NEW, LATER, append=True)
        assert (again.predict_proba(NEW, LATER, append=True) == later).all()
        assert (
            again.predict_proba(NEW, LATER | {"how": ["bus", "bus"]}, append=True) == later
        ).all()
        sources = explain_fit(again).sources
        assert set(sources) <= {"own", "network"}

    def test_a_forged_number_of_them_is_refused(self, model, tmp_path):
        model.save(tmp_path / "model")
        described = json.loads((tmp_path / "model" / "model.json").read_text())["encoder_"]
        many = [*described["columns"], *described["columns"]]
        changed(tmp_path / "model", "encoder_", "columns", value=many)
        with pytest.raises(DataError, match=r"36 of 19 features are made of edges"):
            load_model(tmp_path / "model")

    def test_they_are_no_columns_of_nodes_in_pages_and_audits(self, model):
        sources = explain_fit(
            GraphClassifier(models=["linear+neighbours"], **QUICK).fit(
                read_graph(NODES, MORE, label="kind", **HOW)
            ),
            node="n1",
        ).sources
        assert 0 < sources["edges"] < 1
        with_edges, without = (
            audit(read_graph(NODES, edges, label="kind", **HOW)) for edges in (MORE, EDGES)
        )
        assert with_edges.features_say == without.features_say
        assert with_edges.neighbours_say != without.neighbours_say

    def test_nodes_may_have_no_others(self):
        nodes = {name: NODES[name] for name in ("name", "kind")}
        graph = read_graph(nodes, MORE, label="kind", **HOW)
        assert audit(graph).features_say == 0
        with pytest.raises(UsageError, match="models of the columns need columns"):
            GraphClassifier(models=["linear", "mlp"], **QUICK).fit(graph)

    def test_edges_without_them_are_refused(self, model):
        for append in (False, True):
            with pytest.raises(UsageError, match=r"lacks the column\(s\) 'hours', 'how', from"):
                model.predict(NEW, NEW_EDGES, append=append)
