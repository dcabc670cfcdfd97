"""A saved model: the same when it comes back, and refused when it is not the same."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest
from scipy import sparse

import memohop
from memohop import (
    DataError,
    GraphClassifier,
    GraphRegressor,
    MMPClassifier,
    UsageError,
)
from memohop.fit import _keep as keep
from memohop.fit import _views as views
from memohop.fit._saved import checked_options
from memohop.fit.candidates.spaces import listed
from saved_models import changed, everything
from tiny_problem import QUICK, ring, tiny_data, tiny_problem


@pytest.fixture(scope="module")
def regressor(few_epochs):
    y = 1000 + 50 * tiny_problem().x[:, 0].astype(float)
    y[::6] = np.nan
    x = sparse.csr_array(np.where(tiny_problem().x > 0, tiny_problem().x, 0))
    return everything(GraphRegressor(**QUICK), x, y, ring(60)[:, :60])  # directed


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_everything_comes_back(kind, request, tmp_path):
    fitted = request.getfixturevalue(kind)
    fitted.save(tmp_path / "model")
    loaded = memohop.load_model(tmp_path / "model")
    assert type(loaded) is type(fitted)
    assert (loaded.outputs() == fitted.outputs()).all()
    for component, original in zip(loaded.model_.components, fitted.model_.components, strict=True):
        assert component.setting == original.setting
        for part, before in zip(component.models, original.models, strict=True):
            assert type(part) is type(before)
            assert (part.outputs(loaded.graph_) == before.outputs(fitted.graph_)).all()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.report_ == fitted.report_
    assert loaded.ids_.tolist() == fitted.ids_.tolist()
    assert (loaded.encoder_, loaded.reading_) == (fitted.encoder_, fitted.reading_)
    other = (tiny_problem(seed=1).x[:9], [[0, 1, 2, 3], [1, 0, 3, 4]])
    assert np.isfinite(loaded.outputs(*other)).all()
    assert (loaded.outputs(*other) == fitted.outputs(*other)).all()
    if kind == "regressor":
        assert (loaded.predict_interval() == fitted.predict_interval()).all()
    with pytest.raises(UsageError, match=f"holds a {type(fitted).__name__}; load it with that"):
        MMPClassifier.load(tmp_path / "model")


def test_the_files_are_plain_and_the_card_says_what_matters(classifier, tmp_path, monkeypatch):
    # With many classes it took longer to try models than the fit; it has tried better ones.
    monkeypatch.setattr("memohop.data.audit._examine.probe", None)
    classifier.save(tmp_path)
    names = {re.sub("-[0-9a-f]{16}", "", file.name) for file in tmp_path.iterdir()}
    assert names == {"README.md", "model.json", "weights.safetensors", "graph.safetensors"}
    card = (tmp_path / "README.md").read_text()
    words = ("ham, spam", classifier.report_.verdict(), "linear", "lightgbm: 4")
    for phrase in (*words, "## Audit", "adjusted homophily", "Each was fitted 2 times"):
        assert phrase in card


def test_the_card_says_if_a_model_without_its_graph_still_holds_data(tmp_path):
    for name in ("nearest", "extra-trees"):
        GraphClassifier(**QUICK, models=[name]).fit(tiny_data()).save(tmp_path / name)
        card = (tmp_path / name / "README.md").read_text()
        assert ("`nearest` keeps the numbers and targets" in card) == (name == "nearest")


def test_a_classifier_of_networks_with_memory_comes_back(tmp_path):
    data = memohop.load("csbm", nodes=60, classes=2, channels=4)
    fitted = MMPClassifier(trials=1, splits=2, epochs=2).fit(data.x.numpy(), data.y.numpy() + 7)
    fitted.save(tmp_path / "model")
    again = MMPClassifier.load(tmp_path / "model")
    assert again.classes_.tolist() == [7, 8]
    assert again.get_params() == fitted.get_params()
    assert (again.predict_proba(data.x.numpy()) == fitted.predict_proba()).all()


def test_one_long_id_does_not_make_all_ids_long(classifier, tmp_path, monkeypatch):
    ids = np.array([*map(str, classifier.ids_[:-1]), 100_000 * "x"], dtype=object)
    monkeypatch.setattr(classifier, "ids_", ids)
    classifier.save(tmp_path / "model")
    again = memohop.load_model(tmp_path / "model").ids_
    assert again.tolist() == ids.tolist()
    assert again.nbytes < 1000


def test_labels_that_json_lacks_cannot_be_saved(classifier, tmp_path, monkeypatch):
    dates = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    monkeypatch.setattr(classifier, "classes_", dates)
    monkeypatch.setattr(keep, "record_card", lambda _: "# A node classifier\n")
    with pytest.raises(UsageError, match="use labels that are strings or numbers"):
        classifier.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_without_its_graph_a_model_still_predicts_others(classifier, model):
    next(model.glob("graph-*")).unlink()
    loaded = memohop.load_model(model)
    other = (tiny_problem().x, ring(60))
    assert (loaded.outputs(*other) == classifier.outputs(*other, as_another_graph=True)).all()
    for call in (loaded.predict, lambda: loaded.predict(*other, append=True)):
        with pytest.raises(UsageError, match="saved without its graph"):
            call()


@pytest.mark.parametrize("kind", ["model.json", "weights-*", "graph-*"])
def test_a_changed_byte_or_a_file_that_is_gone_is_refused(model, kind):
    path = sorted(model.glob(kind))[0]
    whole = path.read_bytes()
    for where in (0, 0.1, 0.5, 0.99):
        content = bytearray(whole)
        content[int(where * len(content))] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged or was changed|in format"):
            memohop.load_model(model)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        memohop.load_model(model)
    path.unlink()
    if kind != "graph-*":
        with pytest.raises((DataError, UsageError), match=r"missing|no saved model"):
            memohop.load_model(model)


@pytest.mark.parametrize(("number", "remedy"), [(4, "fit"), (6, "update memohop, or fit")])
def test_another_format_is_refused_with_the_remedy_and_may_be_replaced(
    classifier, model, number, remedy
):
    changed(model, "format", value=number)
    changed(model, "memohop", value="9.1")
    words = rf"memohop 9\.1 in format {number}.*alone; {remedy} the model again: memohop fit .*-o"
    with pytest.raises(DataError, match=words):
        memohop.load_model(model)
    classifier.save(model)
    assert (memohop.load_model(model).outputs() == classifier.outputs()).all()


def test_numbers_that_json_lacks_come_back(classifier, tmp_path, monkeypatch):
    report = copy.copy(classifier.report_)
    object.__setattr__(report, "test", float("nan"))
    monkeypatch.setattr(classifier, "report_", report)
    monkeypatch.setattr(keep, "record_card", lambda _: "# A node classifier\n")
    classifier.save(tmp_path / "model")
    assert np.isnan(memohop.load_model(tmp_path / "model").report_.test)


@pytest.mark.parametrize("name", listed().networks)
def test_every_option_that_a_search_may_choose_can_be_read_again(name):
    for axis, choices in listed().networks[name].choices.items():
        for choice in choices:
            options = choice if isinstance(choice, dict) else {axis: choice}
            again = json.loads(json.dumps(options))
            assert checked_options(name, again).items() >= options.items()


def test_combinations_of_many_columns_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "_WIDE", 2)
    kinds = ("linear+neighbours", "linear+rows")
    model = everything(GraphClassifier(**QUICK), tiny_data(), kinds=kinds)
    assert all(kept.models[0].view.components is not None for kept in model.model_.components)
    model.save(tmp_path / "model")
    again = memohop.load_model(tmp_path / "model")
    assert np.allclose(again.predict_proba(), model.predict_proba(), atol=1e-6)
