"""A model that version 0.1.0 fitted and saved predicts what it predicted then.

That version wrote everything in ``version_0_1_0``: ``memohop fit`` the model, with two trials, two
splits and 40 epochs, and ``memohop predict`` the predictions, for the nodes of the model and for
those of the new tables.
"""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from memohop import MMPClassifier, load_model
from memohop.data.tables import read_graph
from memohop.explain import explain_fit
from memohop.report.fit_page import fit_page

FOLDER = Path(__file__).parent / "version_0_1_0"


def assert_as_predicted(classifier, ids, probabilities, name):
    with (FOLDER / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    classes = classifier.classes_.tolist()
    expected = [[float(row[f"probability of {one}"]) for one in classes] for row in rows]
    assert list(ids) == [row["id"] for row in rows]
    assert np.abs(probabilities - expected).max() < 1e-5
    predicted = classifier.classes_[probabilities.argmax(axis=1)]
    assert predicted.tolist() == [row["predicted"] for row in rows]


@pytest.fixture(scope="module")
def model():
    return MMPClassifier.load(FOLDER / "model")


def test_the_graph_of_the_model(model):
    assert_as_predicted(model, model.ids_, model.predict_proba(), "predictions.csv")


def test_tables_of_another_graph(model):
    tables = (FOLDER / "new-nodes.csv", FOLDER / "new-edges.csv")
    classes = model.classes_.tolist()
    graph = read_graph(*tables, encoder=model.encoder_, classes=classes, **model.reading_)
    assert_as_predicted(model, graph.ids, model.predict_proba(graph), "new-predictions.csv")


def test_the_report_of_the_model(model):
    report = model.report_
    assert (report.nodes, report.arcs, report.labelled, report.splits) == (30, 59, 27, 2)
    assert report.test == pytest.approx(2 / 3)
    assert {one.family: one.test for one in report.families} == pytest.approx(
        {"gcn+mmp": 2 / 3, "mlp": 0.75, "gcn": 5 / 6}
    )
    assert "Memory does not help: -16.67" in report.verdict()
    assert "2 splits of 15 training and 6 validation nodes" in report.legend()
    assert "an earlier version fitted it" in report.notes[-1]


def test_new_nodes_in_the_graph_of_the_model(model):
    """Without arcs a node is alone, appended or not."""
    x = model.graph_.x[:3]
    alone = model.predict_proba(x, edges=[])
    assert model.predict_proba(x, edges=[], append=True) == pytest.approx(alone, abs=1e-6)


def test_its_page_shows_the_gates_and_a_node(model):
    found = explain_fit(model, model.ids_[7])
    assert found.gates_weight == 1
    assert found.node.probability == pytest.approx(model.predict_proba()[7].max())
    assert f"Node {model.ids_[7]}" in fit_page(found)


def test_saved_over_itself_it_becomes_a_model_of_this_version(model, tmp_path):
    folder = shutil.copytree(FOLDER / "model", tmp_path / "model")
    model.save(folder)
    assert len(list(folder.iterdir())) == 4
    assert not (folder / "weights.safetensors").exists()
    found = load_model(folder)
    assert_as_predicted(found, found.ids_, found.predict_proba(), "predictions.csv")
