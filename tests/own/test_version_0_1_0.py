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

from memohop import MMPClassifier
from memohop.data.tables import read_graph

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
    assert report.score().mean == pytest.approx(2 / 3)
    assert "It is 16.7 points worse" in report.verdict()
    assert "2 splits of 15 training, 6 validation and 6 test nodes" in report.legend()


def test_saved_over_itself_it_becomes_a_model_of_this_version(model, tmp_path):
    folder = shutil.copytree(FOLDER / "model", tmp_path / "model")
    model.save(folder)
    assert len(list(folder.iterdir())) == 4
    assert not (folder / "weights.safetensors").exists()
    found = MMPClassifier.load(folder)
    assert_as_predicted(found, found.ids_, found.predict_proba(), "predictions.csv")
