"""What is known of arcs, beside their weight, from a graph in any form to a saved model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import memohop
from memohop import GraphClassifier, UsageError
from memohop.errors import MemohopWarning
from memohop.explain import explain_fit
from memohop.fit import _given
from memohop.fit._candidate import Setting
from memohop.fit._inputs import read_alike
from memohop.fit.candidates._linear import LinearFamily
from saved_models import tables
from tiny_problem import QUICK, ring, tiny_data

RING = ring(60)
ATTRIBUTES = np.random.default_rng(1).normal(size=(120, 2)).astype(np.float32)
TYPES = np.arange(120) % 3


def as_data(arcs=RING, **more):
    more = {"edge_attr": ATTRIBUTES, "edge_type": TYPES} | more
    return tiny_data(edge_index=arcs, **more)


def fitted_to(*data):
    """A model that takes them."""
    apart = Setting("linear+neighbours", {"ways": "apart"}, {"freedom": 1.0})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LinearFamily, "first", lambda self, problem: [apart])
        return GraphClassifier(models=["linear+neighbours"], **QUICK).fit(*data)


@pytest.fixture(scope="module")
def fitted():
    return fitted_to(as_data())


def test_those_of_a_data_are_numbers_and_relations(fitted):
    assert [tuple(attribute) for attribute in fitted.arc_attributes_] == [
        ("edge attribute 0", False),
        ("edge attribute 1", False),
        ("edge type 0", True),
        ("edge type 1", True),
        ("edge type 2", True),
    ]
    assert np.array_equal(fitted.graph_.attributes[:, :2], ATTRIBUTES)
    assert np.array_equal(fitted.graph_.attributes[:, 2:].argmax(axis=1), TYPES)


def test_a_saved_model_knows_them(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model")
    assert again.arc_attributes_ == fitted.arc_attributes_
    assert np.array_equal(again.graph_.attributes, fitted.graph_.attributes)
    assert again.graph_.described == fitted.graph_.described
    assert again.is_graph_of_fit(as_data())
    assert np.array_equal(again.outputs(), fitted.outputs())


def test_the_graph_of_fit_is_known_by_them_in_whatever_order(fitted):
    order = np.random.default_rng(0).permutation(120)
    shuffled = as_data(RING[:, order], edge_attr=ATTRIBUTES[order], edge_type=TYPES[order])
    assert fitted.is_graph_of_fit(shuffled)
    other = ATTRIBUTES.copy()
    other[7] += 1
    assert not fitted.is_graph_of_fit(as_data(edge_attr=other))
    assert not fitted.is_graph_of_fit(as_data(edge_type=(TYPES + 1) % 3))


def test_new_nodes_come_with_them(fitted):
    arcs = np.array([[60, 0], [0, 60]])
    new = as_data(arcs, edge_attr=ATTRIBUTES[:2], edge_type=np.array([1, 0]))
    new.x, new.y = new.x[:1], new.y[:1]
    assert fitted.outputs(new, append=True).shape == (1, 2)
    given = _given.as_given(new, None, None)
    joined = fitted.graph_.with_new_nodes(
        given.x, arcs, np.array([-1]), None, np.pad(given.attributes, ((0, 0), (0, 1)))
    )
    for arc, row in zip(joined.arcs.T, joined.attributes, strict=True):
        same = (arc == RING.T).all(axis=1)
        place = np.flatnonzero((arc == arcs.T).all(axis=1))
        want = fitted.graph_.attributes[same][0] if same.any() else given.attributes[place[0]]
        assert row[: len(want)].tolist() == want.tolist()


def test_explanations_leave_arcs_out_with_them(fitted):
    explanation = explain_fit(fitted, 7)
    assert {neighbour.id for neighbour in explanation.node.neighbours} == {6, 8}


@pytest.mark.parametrize(
    ("graph", "complaint"),
    [
        (tiny_data(), "5 attributes, such as 'edge attribute 0', and these have none"),
        (tiny_data(edge_attr=ATTRIBUTES[:, :1]), "and these have 1; give tables like those"),
        (as_data(edge_type=TYPES + 1), "and these have 6"),
    ],
)
def test_graphs_that_lack_some_are_refused(fitted, graph, complaint):
    with pytest.raises(UsageError, match=complaint):
        fitted.outputs(graph)


def test_a_graph_without_arcs_or_without_some_relation_lacks_nothing(fitted):
    nothing = as_data(
        np.empty((2, 0), int), edge_attr=np.empty((0, 2)), edge_type=np.empty(0, dtype=int)
    )
    assert np.isfinite(fitted.outputs(nothing)).all()
    assert np.isfinite(fitted.outputs(fitted.graph_.x, [])).all()
    assert not fitted.is_graph_of_fit(as_data(edge_type=TYPES * 0))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"edge_attr": ATTRIBUTES[:7]}, r"edge_attr has shape \[7, 2\].*of shape \[120, attr"),
        ({"edge_attr": ATTRIBUTES[None]}, r"edge_attr has shape \[1, 120, 2\]"),
        ({"edge_attr": np.full((120, 1), np.nan)}, "edge_attr holds NaN"),
        ({"edge_attr": np.full(120, np.inf)}, "edge_attr holds NaN, infinite"),
        ({"edge_attr": np.full(120, 1e300)}, "edge_attr holds NaN, infinite"),
        ({"edge_type": TYPES - 1}, r"edge_type has shape \[120\].*whole number from 0 on"),
        ({"edge_type": TYPES[:7]}, r"edge_type has shape \[7\]"),
        ({"edge_type": TYPES / 2}, "edge_type has .* type torch.float64"),
    ],
)
def test_what_cannot_be_right_is_refused(wrong, complaint):
    with pytest.raises(UsageError, match=complaint):
        fitted_to(as_data(**wrong))


def test_what_is_no_tensor_is_refused():
    for name in ("edge_attr", "edge_type"):
        data = as_data()
        data[name] = [1] * 120
        with pytest.raises(UsageError, match=f"{name} is of type list; give a tensor"):
            fitted_to(data)


def test_too_many_are_left_out_and_it_is_told(monkeypatch):
    monkeypatch.setattr(_given, "LARGEST_ATTRIBUTES", 500)
    with pytest.warns(MemohopWarning, match="5 attributes of 120 arcs are too many"):
        model = fitted_to(as_data())
    assert model.arc_attributes_ == []
    assert model.graph_.attributes is None
    with pytest.warns(MemohopWarning, match="1000001 attributes of 120 arcs"):
        fitted_to(tiny_data(edge_type=np.where(TYPES == 1, 10**6, 0)))  # without so many columns


@pytest.fixture(scope="module")
def tables_with_edges():
    nodes, edges = tables()
    how = [["car", "bus", "boat"][number % 3] for number in range(60)]
    return nodes, {
        "source": edges["source"] * 2,
        "target": edges["target"] * 2,
        "how": how + how[1:] + how[:1],
    }


@pytest.fixture(scope="module")
def of_tables(tables_with_edges):
    return fitted_to(memohop.read_graph(*tables_with_edges, label="kind"))


def test_those_of_tables_reach_the_model_and_are_read_alike(tables_with_edges, of_tables, tmp_path):
    graph, model = tables_with_edges, of_tables
    names = [name for name, _ in model.arc_attributes_]
    assert names == ["how=boat", "how=bus", "how=car", "logarithm of the number of edges"]
    assert model.graph_.attributes.shape == (model.graph_.arcs.shape[1], 4)
    model.save(tmp_path / "model")
    again = memohop.load_model(tmp_path / "model")
    for of in (model, again):
        assert of.is_graph_of_fit(*graph)
        assert (of.outputs(*graph) == model.outputs()).all()


def test_another_graph_and_new_nodes_from_tables(tables_with_edges, of_tables):
    (nodes, _), model, graph = tables_with_edges, of_tables, tables_with_edges
    assert model.outputs(*graph, as_another_graph=True).shape == (60, 2)
    new = {name: [*cells[:1]] for name, cells in nodes.items()} | {"id": ["new"]}
    arcs = {"source": ["new", "new"], "target": ["n3", "n3"], "how": ["car", "bus"]}
    joined = read_alike(model, new, arcs, append=True)
    assert torch.allclose(joined.data.edge_attr[0, :3], torch.tensor([0, 0.5, 0.5]))
    assert model.outputs(new, arcs, append=True).shape == (1, 2)
