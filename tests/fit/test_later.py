"""What nodes that come later cost, against models that never had rows for them."""

from dataclasses import replace

import numpy as np
import pytest

from memohop.fit.candidate import Candidate
from memohop.fit.candidates.family import Setting
from memohop.fit.candidates.linear import LinearFamily
from memohop.fit.candidates.networks import NetworkFamily
from memohop.fit.candidates.spaces import SPACES
from memohop.fit.finish import Chosen
from memohop.fit.later import LaterNodes, measure_later
from memohop.fit.problem import Inputs
from memohop.training import Enough
from memohop.training.metrics import METRICS, Interval
from tiny_problem import tiny_problem

ROWS = {"labels": "memory", "address": "rows", "hidden_channels": 4}
NUMBERS = {"lr": 0.1, "weight_decay": 0.0, "dropout": 0.0, "input_dropout": 0.0, "lam": 0.0}


def model(name, problem, options=None):
    """A fitted part, as a candidate."""
    if name.startswith("linear"):
        kind = LinearFamily(name, name.partition("+")[2] or "columns")
        setting = Setting(name, {}, {"freedom": 10.0})
    else:
        kind = NetworkFamily(name, SPACES[name], epochs=5, patience=5)
        setting = Setting(name, options or {}, NUMBERS)
    (fits,) = kind.fit(problem, [setting], [0, 1], keep=True)
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
    found = part.outputs(Inputs(*given, of_fit=60, directed=False, hidden=hidden))
    assert np.allclose(found, shorter.outputs(Inputs(*given, of_fit=58, directed=False)))
    assert not np.allclose(found, part.outputs(Inputs(*given, of_fit=60, directed=False)))


def test_hidden_rows_of_a_linear_model():
    problem = tiny_problem()
    part = model("linear+rows", problem).fits[0].part
    without = part.weight.copy()
    without[-2:] = 0  # the rows of the graph come last
    hidden = np.arange(60) >= 58
    given = (problem.x, problem.arcs, problem.known(0))
    found = part.outputs(Inputs(*given, of_fit=60, directed=False, hidden=hidden))
    whole = Inputs(*given, of_fit=60, directed=False)
    assert np.allclose(found, replace(part, weight=without).outputs(whole), atol=1e-6)


def chosen(*candidates):
    weights = np.full(len(candidates), 1 / len(candidates))
    return Chosen(tuple(candidates), weights)


def test_costs_are_differences_of_scores_on_the_test_nodes():
    problem = tiny_problem(200)
    one, other = (model(name, problem) for name in ("linear", "linear+rows"))
    later = measure_later(problem, chosen(one, other), [0, 1])
    test = problem.masks.test
    now = (one.fits[0].test + other.fits[0].test) / 2
    known = problem.known(0)
    inputs = {
        "appended": Inputs(problem.x, problem.arcs, known, of_fit=200, hidden=test),
        "elsewhere": Inputs(
            problem.x, problem.arcs, np.full(200, -1), overall=np.bincount(known[known >= 0]) / 128
        ),
    }
    for name, hidden in inputs.items():
        then = (one.fits[0].test + other.fits[0].part.outputs(hidden)[test]) / 2
        right = [(said.argmax(axis=1) == problem.y[test]).mean() for said in (then, now)]
        assert getattr(later, name).mean == pytest.approx(right[0] - right[1], abs=1e-6)


def test_a_model_that_uses_neither_loses_nothing():
    problem = tiny_problem()
    found = measure_later(problem, chosen(model("linear", problem), model("mlp", problem)), [0])
    assert found == LaterNodes(None, None)
    found = measure_later(problem, chosen(model("linear+neighbours", problem)), [0])
    assert found.appended is None
    assert found.elsewhere is not None


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
    one = model("linear+rows", problem)
    assert measure_later(problem, chosen(one), [0], enough) is None
    one.fits[0] = replace(one.fits[0], part=None)
    assert measure_later(problem, chosen(one), [0]) is None
