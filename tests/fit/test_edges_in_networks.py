"""Networks that learn from attributes of arcs, from the search to a saved model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memohop import DataError, GraphClassifier, UsageError, load_model
from memohop.data.arcs import ArcAttribute
from memohop.explain import as_pyg, explain_fit
from memohop.fit._candidate import variations
from memohop.fit._ensemble import Component, Ensemble
from memohop.fit._saved import Saved, Sizes
from memohop.fit.candidates._fitted_network import Network
from memohop.fit.candidates._network import NetworkFamily
from saved_models import changed
from tiny_problem import QUICK, ring, tiny_data, tiny_problem

ARCS = ring(60)
ATTRIBUTES = np.random.default_rng(1).normal(size=(120, 2)).astype(np.float32)
TYPES = np.arange(120) % 3
USES = ("weights", "relations")
every_use = pytest.mark.parametrize("use", USES)


def family(name="gcn+mmp", **more):
    return NetworkFamily(name, epochs=3, patience=3, **more)


def with_attributes(relations=3, numbers=2):
    """A problem whose arcs have relations and numbers."""
    told = [ArcAttribute(f"number {i}") for i in range(numbers)]
    told += [ArcAttribute(f"kind {i}", True) for i in range(relations)]
    kinds = np.eye(max(relations, 1), dtype=np.float32)[np.arange(120) % max(relations, 1)]
    values = np.hstack([ATTRIBUTES[:, :numbers], kinds[:, :relations]])
    return replace(tiny_problem(), attributes=values, described=tuple(told))


def first_with(use, problem):
    return next(s for s in family().first(problem) if s.options["edges"] == use)


def fitted(use, problem):
    kind, setting = family(), first_with(use, problem)
    (fits,) = kind.fit(problem, [setting], [0])
    return fits[0].part, setting


def test_without_attributes_the_settings_are_those_they_were():
    kind, problem = family(), tiny_problem()
    settings = kind.first(problem)
    assert not any("edges" in setting.options for setting in settings)
    assert "edges" not in kind.space(problem)
    with_some = [
        replace(setting, options={k: v for k, v in setting.options.items() if k != "edges"})
        for setting in kind.first(with_attributes())
        if setting.options["edges"] == "none"
    ]
    assert with_some == settings
    assert family("gcn-res").openers(problem) == family("gcn-res").openers(with_attributes())


@pytest.mark.parametrize(
    ("relations", "uses"),
    [(3, ["weights", "relations"]), (0, ["weights"]), (11, ["weights"])],
    ids=["three", "none", "too many"],
)
def test_one_more_opener_if_arcs_have_attributes(relations, uses):
    kind, problem, plain = family(), with_attributes(relations), tiny_problem()
    settings, count = kind.first(problem), kind.openers(problem)
    assert count == kind.openers(plain) + 1
    of_openers = [setting.options["edges"] for setting in settings[:count]]
    assert of_openers == ["none"] * (count - 1) + uses[:1]
    assert [s.options["edges"] for s in settings if s.options["edges"] != "none"] == uses
    assert kind.space(problem)["edges"] == ["none", *uses]
    generator = np.random.default_rng(0)
    drawn = [variations(kind, problem, settings[0], 1, generator)[0] for _ in range(120)]
    assert {setting.options["edges"] for setting in drawn} == {"none", *uses}
    in_parts = family(in_parts=2)
    assert in_parts.first(problem) == in_parts.first(plain)
    assert "edges" not in in_parts.space(problem)


def test_nodes_with_times_do_without():
    """A relation is followed both ways, and one of them leads to later nodes."""
    timed = replace(with_attributes(), times=np.arange(60.0))
    settings = family().first(timed)
    assert settings == family().first(replace(tiny_problem(), times=np.arange(60.0)))
    assert not any(setting.options.get("edges") for setting in settings)
    assert "edges" not in family().space(timed)


def test_what_they_cost_is_counted():
    kind, problem = family(), with_attributes()
    weights, relations = (first_with(use, problem) for use in USES)
    plain = replace(weights, options={**weights.options, "edges": "none"})
    of_plain, of_weights, of_relations = (
        kind.cost(problem, setting) for setting in (plain, weights, relations)
    )
    assert of_weights.bytes > of_plain.bytes
    assert of_relations.bytes > of_plain.bytes
    assert of_relations.seconds > of_plain.seconds


@every_use
def test_a_part_says_the_same_of_the_graph_again_and_when_it_was_saved(use):
    problem = with_attributes()
    part, _ = fitted(use, problem)
    inputs = problem.with_all_labels()
    said = part.outputs(inputs)
    sizes = Sizes(problem.x.shape[1], 2, 60, False, 0, problem.described)
    again = Network.from_saved(part.saved(), None, sizes)
    np.testing.assert_array_equal(again.outputs(inputs), said)
    moved = part.state | {
        key: value + 1
        for key, value in part.state.items()
        if key.endswith(("theta", "conv.linear.weight"))
    }
    learned = replace(part, state=moved)
    order = np.random.default_rng(0).permutation(120)
    other = replace(inputs, attributes=inputs.attributes[order])
    assert not np.allclose(learned.outputs(other), learned.outputs(inputs))
    other = replace(inputs, attributes=inputs.attributes[order], arcs=inputs.arcs[:, order])
    np.testing.assert_allclose(learned.outputs(other), learned.outputs(inputs), atol=1e-5)


@every_use
def test_numbers_may_have_any_unit(use):
    problem, unit = with_attributes(), np.array([1024.0, 2**-20, 1, 1, 1], dtype=np.float32)
    in_units = replace(problem, attributes=problem.attributes * unit)
    plain, scaled = fitted(use, problem)[0], fitted(use, in_units)[0]
    said = [
        part.outputs(given.with_all_labels())
        for part, given in ((plain, problem), (scaled, in_units))
    ]
    np.testing.assert_allclose(*said, atol=1e-6)


@pytest.mark.parametrize("scales", [[], [1.0] * 4, [0.0] + [1.0] * 4, [float("inf")] + [1.0] * 4])
def test_scales_that_cannot_be_are_refused(scales):
    problem = with_attributes()
    saved = fitted("weights", problem)[0].saved()
    sizes = Sizes(problem.x.shape[1], 2, 60, False, 0, problem.described)
    scales = np.array(scales, dtype=np.float32)
    wrong = Saved(saved.about, {**saved.arrays, "scales_of_arcs": scales})
    with pytest.raises(UsageError, match="has scales_of_arcs"):
        Network.from_saved(wrong, None, sizes)
    fewer = sizes._replace(described=problem.described[:1])
    with pytest.raises(UsageError, match="has scales_of_arcs of shape"):
        Network.from_saved(saved, None, fewer)
    with pytest.raises(UsageError, match="needs attributes of arcs"):
        Network.from_saved(saved, None, sizes._replace(described=()))


def data(arcs=ARCS, **more):
    return tiny_data(edge_index=arcs, **{"edge_attr": ATTRIBUTES, "edge_type": TYPES, **more})


@pytest.fixture(scope="module", params=USES)
def model(request):
    """A classifier that is such a network alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphClassifier, "_forget_attributes", lambda self: None)
        estimator = GraphClassifier(models=["linear"], **QUICK).fit(data())
    kind = family()
    problem = replace(
        tiny_problem(),
        y=estimator.graph_.y,
        attributes=estimator.graph_.attributes,
        described=estimator.graph_.described,
    )
    part, setting = fitted(request.param, problem)
    component = Component(setting, 1.0, (part,))
    assert kind.id == setting.family
    estimator.model_ = Ensemble((component,), estimator.model_.calibration)
    return estimator


def test_a_saved_model_predicts_as_before_and_on_other_graphs(model, tmp_path):
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.outputs(), model.outputs())
    other = data(edge_attr=ATTRIBUTES[::-1].copy())
    np.testing.assert_array_equal(again.outputs(other), model.outputs(other))
    new = data(np.array([[60, 0], [0, 60]]), edge_attr=ATTRIBUTES[:2], edge_type=TYPES[:2])
    new.x, new.y = new.x[:1], new.y[:1]
    assert np.isfinite(again.outputs(new, append=True)).all()
    assert np.isfinite(again.outputs(model.graph_.x, [])).all()
    with pytest.raises(UsageError, match="5 attributes, such as"):
        again.outputs(tiny_data())


def test_it_is_explained_but_not_by_pyg(model):
    explanation = explain_fit(model, 7)
    assert {neighbour.id for neighbour in explanation.node.neighbours} == {6, 8}
    assert all(np.isfinite(neighbour.memory) for neighbour in explanation.node.neighbours)
    with pytest.raises(UsageError, match="no network that takes all arcs alike"):
        as_pyg(model)


def test_forged_models_are_refused(model, tmp_path):
    model.save(tmp_path / "model")
    path = ("components", 0, "models", 0)
    use = model.model_.components[0].setting.options["edges"]
    other = USES[use == "weights"]
    for value, words in ((other, "are not those"), ("none", "are not those"), (1, "edges=1")):
        changed(tmp_path / "model", *path, "options", "edges", value=value)
        with pytest.raises(DataError, match=words):
            load_model(tmp_path / "model")
