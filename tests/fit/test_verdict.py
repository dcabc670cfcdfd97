"""What the graph, memory and later nodes add or cost, against the slow way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import toy_kind
from memohop.fit._candidate import Candidate, Fit, Search, Setting
from memohop.fit._ensemble import Chosen
from memohop.fit._graph import Inputs
from memohop.fit._record import LaterNodes
from memohop.fit._verdict import answers, measure_later, on_test_nodes
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.training import Enough
from memohop.training.metrics import METRICS, Interval
from tiny_problem import tiny_problem
from toy_kind import Toy, says


def candidate(problem, name, val, right):
    """A candidate with a validation score, and right on some of the test nodes."""
    everywhere = np.zeros(problem.nodes, dtype=bool)
    everywhere[problem.masks.test] = right
    tried = toy_kind.candidate(problem, says(problem, everywhere, 1.0), name)
    tried.scores = dict.fromkeys(tried.scores, val)
    return tried


def test_each_group_is_represented_by_the_best_of_it_on_validation():
    problem = tiny_problem()
    kinds = {
        "columns": Toy("columns", 0.5, sees_graph=False),
        "poor columns": Toy("poor columns", 0.5, sees_graph=False),
        "graph": Toy("graph", 0.5),
        "memory": Toy("memory", 0.5, has_memory=True),
    }
    nodes = np.arange(12)
    tried = [
        candidate(problem, "poor columns", 0.5, nodes >= 0),
        candidate(problem, "columns", 0.6, nodes < 6),
        candidate(problem, "graph", 0.8, nodes < 9),
        candidate(problem, "memory", 0.7, nodes < 11),
        candidate(problem, "memory", 0.4, nodes < 1),
    ]
    graph, memory = answers(problem, kinds, Search(tried, [0, 1]))
    assert (graph.question, graph.better, graph.than) == ("graph", "graph", "columns")
    assert graph.gain.mean == pytest.approx(3 / 12)
    assert (memory.question, memory.better, memory.than) == ("memory", "memory", "graph")
    assert memory.gain.mean == pytest.approx(2 / 12)


@pytest.mark.parametrize("stopped", ["graph", "columns"])
def test_that_the_one_behind_had_too_little_time_is_told(stopped):
    problem, nodes = tiny_problem(), np.arange(12)
    kinds = {name: Toy(name, 0.5, sees_graph=name == "graph") for name in ("graph", "columns")}
    candidates = [
        candidate(problem, "graph", 0.8, nodes < 9),
        candidate(problem, "columns", 0.6, nodes < 6),
    ]
    cut_off = next(tried for tried in candidates if tried.setting.family == stopped)
    cut_off.unfinished = frozenset([1])
    (answer,) = answers(problem, kinds, Search(candidates, [0, 1]))
    assert answer.behind == "columns"
    assert answer.short_of_time is (stopped == "columns")
    (on_other_splits,) = answers(problem, kinds, Search(candidates, [0]))
    assert not on_other_splits.short_of_time


def test_a_question_without_models_has_no_answer():
    problem = tiny_problem()
    tried = candidate(problem, "graph", 0.8, np.ones(12, dtype=bool))
    search = Search([tried], [0, 1])
    assert answers(problem, {"graph": Toy("graph", 0.5)}, search) == []


def test_what_is_said_of_test_nodes_is_the_mean_over_splits():
    said = [np.full((3, 2), value, dtype=np.float32) for value in (0.2, 0.6)]
    fits = {split: Fit(each, each) for split, each in enumerate(said)}
    assert np.allclose(on_test_nodes(Candidate(Setting("a", {}, {}), fits)), 0.4)


ROWS = {"labels": "memory", "address": "rows", "hidden_channels": 4}
NUMBERS = {"lr": 0.1, "weight_decay": 0.0, "dropout": 0.0, "input_dropout": 0.0, "lam": 0.0}


def model(name, problem, options=None):
    """A fitted part, as a candidate."""
    if name.startswith("linear"):
        kind = LinearFamily(name, name.partition("+")[2] or "columns")
        setting = Setting(name, {}, {"freedom": 10.0})
    else:
        kind = NetworkFamily(name, epochs=5, patience=5)
        setting = Setting(name, options or {}, NUMBERS)
    (fits,) = kind.fit(problem, [setting], [0, 1])
    return Candidate(setting, fits=dict(fits))


@pytest.mark.parametrize("name", ["linkx", "gcn+mmp"])
def test_hidden_rows_are_those_of_a_network_without_them(name):
    """The last two nodes hidden, and the same network with rows for the others alone."""
    problem = tiny_problem()
    part = model(name, problem, ROWS if name == "gcn+mmp" else None).fits[0].part
    assert part.has_rows
    rows = "neighbours.weight" if name == "linkx" else "address.weight"
    shorter = replace(
        part, sizes=(*part.sizes[:2], 58), state={**part.state, rows: part.state[rows][:58]}
    )
    hidden = np.arange(60) >= 58
    given = (problem.x, problem.arcs, problem.known(0))
    outputs = part.outputs(Inputs(*given, of_fit=60, directed=False, hidden=hidden))
    assert np.allclose(outputs, shorter.outputs(Inputs(*given, of_fit=58, directed=False)))
    assert not np.allclose(outputs, part.outputs(Inputs(*given, of_fit=60, directed=False)))


def test_hidden_rows_of_a_linear_model():
    problem = tiny_problem()
    part = model("linear+rows", problem).fits[0].part
    without = part.weight.copy()
    without[-2:] = 0  # the rows of the graph come last
    hidden = np.arange(60) >= 58
    given = (problem.x, problem.arcs, problem.known(0))
    outputs = part.outputs(Inputs(*given, of_fit=60, directed=False, hidden=hidden))
    whole = Inputs(*given, of_fit=60, directed=False)
    assert np.allclose(outputs, replace(part, weight=without).outputs(whole), atol=1e-6)


def chosen(*candidates):
    return Chosen(dict.fromkeys(candidates, 1 / len(candidates)))


def test_costs_are_differences_of_scores_on_the_test_nodes():
    problem = tiny_problem(200)
    plain, with_rows = (model(name, problem) for name in ("linear", "linear+rows"))
    later = measure_later(problem, chosen(plain, with_rows), [0, 1])
    test = problem.masks.test
    now = (plain.fits[0].test + with_rows.fits[0].test) / 2
    known = problem.known(0)
    inputs = {
        "appended": Inputs(problem.x, problem.arcs, known, of_fit=200, hidden=test),
        "elsewhere": Inputs(
            problem.x, problem.arcs, np.full(200, -1), overall=np.bincount(known[known >= 0]) / 128
        ),
    }
    for name, hidden in inputs.items():
        then = (plain.fits[0].test + with_rows.fits[0].part.outputs(hidden)[test]) / 2
        right = [(said.argmax(axis=1) == problem.y[test]).mean() for said in (then, now)]
        assert getattr(later, name).mean == pytest.approx(right[0] - right[1], abs=1e-6)


def test_a_model_that_uses_neither_loses_nothing():
    problem = tiny_problem()
    later = measure_later(problem, chosen(model("linear", problem), model("mlp", problem)), [0])
    assert later == LaterNodes(None, None)
    later = measure_later(problem, chosen(model("linear+neighbours", problem)), [0])
    assert later.appended is None
    assert later.elsewhere is not None


def test_the_sentence():
    text = LaterNodes(None, Interval(-0.0812, -0.12, -0.04, 0.95)).text(METRICS["accuracy"])
    assert text == (
        "Nodes that come later: nothing is lost if they are appended to this graph, -8.12 (-12.00 "
        "to -4.00) on another graph, where no label is known."
    )
    assert "lose nothing" in LaterNodes(None, None).text(METRICS["accuracy"])
    unsure = LaterNodes(Interval(-0.1, -1, 1, 0.95), None).text(METRICS["accuracy"])
    assert "-10.00, by too few test nodes to tell, if they are appended" in unsure


def test_it_is_not_measured_without_time_or_models():
    def enough():
        raise Enough

    problem = tiny_problem()
    with_rows = model("linear+rows", problem)
    assert measure_later(problem, chosen(with_rows), [0], enough) is None
    with_rows.fits[0] = replace(with_rows.fits[0], part=None)
    assert measure_later(problem, chosen(with_rows), [0]) is None
