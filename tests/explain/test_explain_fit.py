"""What decides in a fitted portfolio, against predictions and slow second computations."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from scipy import sparse

from memohop import UsageError
from memohop.explain import explain_fit
from memohop.explain._fit import _OF_COLUMNS
from memohop.fit import _views as views
from memohop.fit._certainty import UNCHANGED, Calibration
from memohop.fit._record import RarePositives
from memohop.fit.candidates import _network as network
from memohop.fit.estimators import GraphClassifier
from memohop.report.fit_page import fit_page
from tiny_problem import ring, tiny_problem


@pytest.mark.parametrize("sees", ["columns", "neighbours", "rows"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_every_feature_has_a_name(sees, wide, directed, monkeypatch):
    if wide:
        monkeypatch.setattr(views, "_WIDE", 2)
        monkeypatch.setattr(views, "COMBINED", 2)
    arcs = ring(60)[:, :60] if directed else ring(60)
    problem = tiny_problem(x=sparse.csr_array(tiny_problem().x), arcs=arcs)
    view = problem.view(sees)
    features = view.features(problem, problem.y)
    names = view.names(problem, ["a", "b", "c"])
    assert len(names) == features.shape[1]
    dense = features.toarray()
    for column, letter in enumerate("abc"):
        assert np.allclose(dense[:, names.index(("own", letter))], problem.x.toarray()[:, column])
    if sees == "rows":
        near = problem.neighbourhood.both.toarray()
        assert (dense[:, names.index(("rows", "5"))] == near[:, 5]).all()


@pytest.fixture(scope="module")
def fitted():
    """A mixture of three parts, of which the last is networks with memory."""
    names = np.array(["ham", "<b>spam"])[tiny_problem().y].astype(object)
    names[:6] = None
    with pytest.MonkeyPatch.context() as patch:
        whole = network.train
        patch.setattr(network, "train", lambda *args, **how: whole(*args, **how | {"epochs": 3}))
        mixed, *others = (
            GraphClassifier(models=[model], trials=1, time=None, splits=2).fit(
                tiny_problem().x, names, ring(60)
            )
            for model in WEIGHTS
        )
    parts = [model.model_.components[0] for model in (mixed, *others)]
    weighted = [replace(part, weight=w) for part, w in zip(parts, WEIGHTS.values(), strict=True)]
    mixed.model_ = replace(mixed.model_, components=tuple(weighted))
    return mixed


WEIGHTS = {"linear+rows": 0.5, "lightgbm+neighbours": 0.25, "gcn+mmp": 0.25}


@pytest.fixture(scope="module")
def explained(fitted):
    return explain_fit(fitted, 20)


def test_shares_add_up(explained):
    assert explained.gates_weight == 0.25
    assert {part.setting.family: part.weight for part in explained.parts} == WEIGHTS
    assert all(part.leading for part in explained.parts)
    assert sum(explained.sources.values()) == pytest.approx(1)
    of_columns = sum(explained.sources.get(name, 0) for name in _OF_COLUMNS)
    assert explained.sources["network"] > 0
    assert sum(column.share for column in explained.columns) == pytest.approx(of_columns)
    assert {column.name for column in explained.columns} == {"column 0", "column 1", "column 2"}
    assert (explained.gates.kept >= 0).all()
    assert (explained.gates.kept <= 1).all()


def test_a_neighbour_counts_by_what_the_prediction_is_without_it(fitted, explained):
    node, said, graph = explained.node, fitted.predict_proba()[20], fitted.own_graph()
    assert node.predicted == fitted.classes_[said.argmax()]
    assert node.probability == pytest.approx(said.max())
    assert (node.degree, node.tried) == (2, 2)
    for neighbour in node.neighbours:
        apart = [{20, neighbour.id} != {u, v} for u, v in graph.arcs.T.tolist()]
        without = fitted.model_.outputs(replace(graph, arcs=graph.arcs[:, apart]))[20]
        assert neighbour.effect == pytest.approx(said.max() - without[said.argmax()], abs=1e-6)
        assert np.isfinite(neighbour.memory)
    assert {neighbour.id for neighbour in node.neighbours} == {19, 21}
    added = [abs(value) for value in node.reasons.values()]
    assert added == sorted(added, reverse=True)


def test_an_unknown_node_is_refused(fitted):
    with pytest.raises(UsageError, match="no node named '999'; ids of this graph are 0, 1, 2"):
        explain_fit(fitted, 999)


def test_the_page_stands_alone_and_escapes_what_it_shows(explained):
    rare = RarePositives(0.05, 0.3, (0.01, 0.05, 0.1), (1.0, 0.5, 0.25))
    page = fit_page(
        replace(explained, report=replace(explained.report, rare=rare, notes=("<i>note",)))
    )
    assert "<b>spam" not in page
    assert "&lt;b&gt;spam" in page
    assert "<i>note" not in page
    assert "Node 20" in page
    assert "The class to find" in page
    assert "The gates of the networks with memory" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<h2>Node" not in fit_page(replace(explained, node=None))


def test_the_page_tells_which_class_the_models_leaned_towards(explained):
    def words(calibration):
        page = fit_page(replace(explained, report=replace(report, calibration=calibration)))
        return unescape(re.sub(r"<[^>]+>", "", page))

    report, (ham, spam) = explained.report, explained.report.class_sizes
    shifted = words(Calibration(1.0, (-0.1, 0.3)))
    assert f"they leaned towards {ham}, the odds of {spam} against it" in shifted
    assert "were multiplied by 1.49" in shifted  # e to the 0.4
    assert "leaned towards" not in words(UNCHANGED)


@pytest.mark.parametrize("node", [None, 20])
def test_progress_is_told_up_to_the_end(fitted, node):
    told = []
    assert (explain_fit(fitted, node, progress=told.append).node is None) == (node is None)
    assert told == sorted(told)
    assert len(told) == (3 if node is None else 6)  # parts, the prediction, two neighbours
    assert all(0 < share <= 1 for share in told)


def test_one_node_is_predicted_as_among_all(fitted):
    """Trees take long for all nodes, and a page shows one."""
    graph, rows = fitted.own_graph(), np.array([7, 20])
    every = fitted.model_.outputs(graph)
    assert np.allclose(fitted.model_.outputs(graph, rows), every[rows], atol=1e-6)
