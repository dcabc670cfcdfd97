"""A saved model: the same when it comes back, and refused when it is not the same."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import sparse

import memohop
from memohop import DataError, GraphClassifier, GraphRegressor, MMPClassifier, UsageError
from memohop.fit import folder as files
from memohop.fit import keep, views
from memohop.fit.calibration import Calibration
from memohop.fit.candidates import networks
from memohop.fit.candidates.family import Setting
from memohop.fit.candidates.linear import LinearFamily
from memohop.fit.candidates.spaces import SPACES
from memohop.fit.ensemble import Component, Ensemble
from memohop.fit.record import FitRecord
from memohop.fit.saved import checked_options
from tiny_problem import ring, tiny_problem

PARTS = (
    "linear",
    "lightgbm",
    "linear+rows",
    "lightgbm+neighbours",
    "linkx",
    "gcn+mmp",
    "lightgbm+positions",
)
FAST = {"trials": 1, "time": None, "splits": 2}


@pytest.fixture(scope="module", autouse=True)
def _short():
    """Networks of three epochs."""
    whole = networks.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "train", lambda *args, **more: whole(*args, **more | {"epochs": 3}))
        yield


def everything(estimator, *data):
    """An estimator that keeps a model of each kind, whatever validation thinks."""
    fitted = [
        copy.copy(estimator).set_params(models=[name]).fit(*data).model_.components[0]
        for name in PARTS
    ]
    found = estimator.set_params(models=PARTS[:1]).fit(*data)
    weights = 1 / len(fitted)
    components = [Component(one.setting, weights, one.models) for one in fitted]
    views = {}
    for one in components:  # as in one fit, kinds that see the same have one view
        for model in one.models:
            if hasattr(model, "view"):
                view = views.setdefault((model.view.sees, one.setting.family), model.view)
                object.__setattr__(model, "view", view)
    found.model_ = Ensemble(tuple(components), found.model_.calibration)
    return found


@pytest.fixture(scope="module")
def classifier():
    names = np.array(["ham", "spam"])[tiny_problem().y].astype(object)
    names[::6] = None
    return everything(GraphClassifier(**FAST), tiny_problem().x, names, ring(60))


@pytest.fixture(scope="module")
def regressor():
    y = 1000 + 50 * tiny_problem().x[:, 0].astype(float)
    y[::6] = np.nan
    x = sparse.csr_array(np.where(tiny_problem().x > 0, tiny_problem().x, 0))
    return everything(GraphRegressor(**FAST), x, y, ring(60)[:, :60])  # directed


@pytest.fixture(scope="module")
def original(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    classifier.save(path)
    return path


@pytest.fixture
def model(original, tmp_path):
    return shutil.copytree(original, tmp_path / "model")


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_everything_comes_back(kind, request, tmp_path):
    fitted = request.getfixturevalue(kind)
    fitted.save(tmp_path / "model")
    found = memohop.load_model(tmp_path / "model")
    assert type(found) is type(fitted)
    assert (found.outputs() == fitted.outputs()).all()
    for one, other in zip(found.model_.components, fitted.model_.components, strict=True):
        assert one.setting == other.setting
        for model, before in zip(one.models, other.models, strict=True):
            assert type(model) is type(before)
            assert (model.outputs(found.graph_) == before.outputs(fitted.graph_)).all()
    assert found.get_params() == fitted.get_params()
    assert found.report_ == fitted.report_
    assert found.ids_.tolist() == fitted.ids_.tolist()
    other = (tiny_problem(seed=1).x[:9], [[0, 1, 2, 3], [1, 0, 3, 4]])
    assert np.isfinite(found.outputs(*other)).all()
    assert (found.outputs(*other) == fitted.outputs(*other)).all()


def test_numbers_and_their_intervals_come_back(regressor, tmp_path):
    regressor.save(tmp_path / "model")
    found = GraphRegressor.load(tmp_path / "model")
    assert (found.predict_interval() == regressor.predict_interval()).all()
    assert 900 < found.predict().mean() < 1100
    with pytest.raises(UsageError, match="holds a GraphRegressor; load it with that class"):
        GraphClassifier.load(tmp_path / "model")


def test_the_files_are_plain_and_the_card_says_what_matters(classifier, model):
    names = {re.sub("-[0-9a-f]{16}", "", one.name) for one in model.iterdir()}
    expected = {"README.md", "model.json", "weights.safetensors", "graph.safetensors", "trees.txt"}
    assert names == expected
    card = (model / "README.md").read_text()
    words = ("ham, spam", classifier.report_.verdict(), "linear", "lightgbm: 4")
    for one in (*words, "## Audit", "adjusted homophily"):
        assert one in card


def test_the_card_tries_no_models(classifier, tmp_path, monkeypatch):
    """With many classes they took longer than the fit; it has tried better ones."""
    monkeypatch.setattr("memohop.data.audit.examine.probe", None)
    classifier.save(tmp_path / "model")
    assert "edge homophily" in (tmp_path / "model" / "README.md").read_text()


def test_a_model_of_another_class_is_refused(model):
    with pytest.raises(UsageError, match="holds a GraphClassifier; load it with that class"):
        MMPClassifier.load(model)


def test_a_classifier_of_networks_with_memory_comes_back(tmp_path):
    data = memohop.load("csbm", nodes=60, classes=2, channels=4)
    found = MMPClassifier(trials=1, splits=2, epochs=2).fit(data.x.numpy(), data.y.numpy() + 7)
    found.save(tmp_path / "model")
    again = MMPClassifier.load(tmp_path / "model")
    assert again.classes_.tolist() == [7, 8]
    assert again.get_params() == found.get_params()
    assert (again.predict_proba(data.x.numpy()) == found.predict_proba()).all()


def test_one_long_id_does_not_make_all_ids_long(classifier, tmp_path, monkeypatch):
    ids = np.array([*map(str, classifier.ids_[:-1]), 100_000 * "x"], dtype=object)
    monkeypatch.setattr(classifier, "ids_", ids)
    classifier.save(tmp_path / "model")
    found = memohop.load_model(tmp_path / "model").ids_
    assert found.tolist() == ids.tolist()
    assert found.nbytes < 1000


def test_tables_are_read_as_those_of_the_model(tmp_path):
    names = [f"n{node}" for node in range(40)]
    nodes = {
        "id": names,
        "size": tiny_problem().x[:40, 0],
        "town": ["Rome", "Oslo"] * 20,
        "kind": [("a", "b")[node % 2] if node % 5 else None for node in range(40)],
    }
    edges = {"source": names, "target": names[1:] + names[:1]}
    fitted = GraphClassifier(models=["linear"], **FAST)
    fitted.fit(memohop.read_graph(nodes, edges, label="kind")).save(tmp_path / "model")
    found = memohop.load_model(tmp_path / "model")
    assert found.encoder_ == fitted.encoder_
    again = memohop.read_graph(nodes, edges, label=None, encoder=found.encoder_)
    assert (found.predict_proba(again) == fitted.predict_proba()).all()
    del nodes["town"]
    with pytest.raises(UsageError, match=r"lacks the column.*'town'"):
        memohop.read_graph(nodes, edges, label="kind", encoder=found.encoder_)
    with pytest.raises(ValueError, match="expecting 3 features"):
        found.predict(np.zeros((4, 5)), edges=[])


def test_without_its_graph_a_model_still_predicts_others(classifier, model):
    next(model.glob("graph-*")).unlink()
    found = memohop.load_model(model)
    other = (tiny_problem().x, ring(60))
    assert (found.outputs(*other) == classifier.outputs(*other, as_another_graph=True)).all()
    for call in (found.predict, lambda: found.predict(*other, append=True)):
        with pytest.raises(UsageError, match="saved without its graph"):
            call()


@pytest.mark.parametrize("kind", ["model.json", "weights-*", "graph-*", "trees-*"])
@pytest.mark.parametrize("where", [0, 0.1, 0.5, 0.99])
def test_one_changed_byte_is_refused(model, kind, where):
    path = sorted(model.glob(kind))[0]
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged or was changed|in format"):
        memohop.load_model(model)


@pytest.mark.parametrize("kind", ["model.json", "weights-*", "trees-*"])
def test_a_file_that_ends_early_or_is_gone_is_refused(model, kind):
    path = sorted(model.glob(kind))[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        memohop.load_model(model)
    path.unlink()
    with pytest.raises((DataError, UsageError), match=r"missing|no saved model"):
        memohop.load_model(model)


def test_a_newer_format_is_refused_with_the_remedy(model):
    text = (model / "model.json").read_text()
    text = text.replace('"format": 4', '"format": 5').replace('"memohop": "', '"memohop": "9.')
    (model / "model.json").write_text(text)
    with pytest.raises(DataError, match=r"made by memohop 9\..* in format 5.*update memohop"):
        memohop.load_model(model)


def test_a_model_in_format_3_has_no_shifts(model, classifier):
    described = json.loads((model / "model.json").read_text())
    del described["shifts"], described["report"]["shifts"]
    described["format"] = 3
    write_json(model, described)
    found = memohop.load_model(model)
    temperature = classifier.model_.calibration.temperature
    assert found.model_.calibration == Calibration(temperature)
    assert np.isfinite(found.predict_proba()).all()


def test_what_is_no_model_cannot_be_loaded(tmp_path):
    with pytest.raises(UsageError, match="there is no saved model in"):
        memohop.load_model(tmp_path)


def test_a_process_that_is_killed_leaves_the_older_model_or_the_newer(
    classifier, original, tmp_path, monkeypatch
):
    class Killed(BaseException):
        pass

    newer = copy.copy(classifier)
    first, second = (
        Component(one.setting, 0.5, one.models) for one in classifier.model_.components[:2]
    )
    newer.model_ = Ensemble((first, second))
    monkeypatch.setattr(keep, "record_card", lambda _: "# A node classifier\n")
    seen, move = set(), Path.replace
    for step in range(20):
        model = shutil.copytree(original, tmp_path / f"{step}")
        left = [step]

        def dying(path, target, left=left):
            if not left[0]:
                raise Killed
            left[0] -= 1
            return move(path, target)

        monkeypatch.setattr(Path, "replace", dying)
        try:
            newer.save(model)
        except Killed:
            pass
        else:
            break
        finally:
            monkeypatch.setattr(Path, "replace", move)
        seen.add(len(memohop.load_model(model).model_.components))
    assert seen == {len(PARTS)}  # model.json is written last
    assert len(memohop.load_model(model).model_.components) == 2
    assert len(list(model.glob("trees-*"))) == 2
    assert len(os.listdir(model)) == 6


def test_numbers_that_json_lacks_come_back(classifier, tmp_path, monkeypatch):
    fields = classifier.report_.to_json() | {"test": float("nan")}
    report = FitRecord(**fields)
    monkeypatch.setattr(classifier, "report_", report)
    monkeypatch.setattr(keep, "record_card", lambda _: "# A node classifier\n")
    classifier.save(tmp_path / "model")
    assert np.isnan(memohop.load_model(tmp_path / "model").report_.test)


def write_json(path, described):
    """With its right digest."""
    described["sha256"]["model.json"] = "0" * 64
    text = json.dumps(described)
    digest = files.sha256(text.encode())
    (path / "model.json").write_text(text.replace("0" * 64, digest, 1))


def changed(model, *keys, value):
    described = json.loads((model / "model.json").read_text())
    at = described
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    write_json(model, described)


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("components", 0, "family"), "oracle", "family must be one of"),
        (("components", 0, "models", 0, "kind"), "oracle", "Invalid enum value"),
        (("components", 0, "models", 0, "view"), 9, "view=9"),
        (("components", 0, "models", 0, "view"), None, "view=None"),
        (("components", 0, "weight"), 0.9, "do not sum to 1"),
        (("components", 1, "models", 0, "file"), "../secret.txt", "file must be one of"),
        (("components", 4, "models", 0, "about", "model"), "gat", "model must be one of"),
        (("components", 4, "models", 0, "about", "options"), {"wings": 2}, "options must be one"),
        (("components", 4, "models", 0, "about", "options"), {"hidden_channels": 10**9}, "large"),
        (("components", 4, "models", 0, "about", "scale"), 0.0, "scale=0.0"),
        (("components", 5, "models", 0, "about", "options", "num_layers"), 3, "are not those"),
        (("views", 0, "sees"), "stars", "sees must be one of"),
        (("features",), 4, "a part has"),
        (("features",), 10**12, "a part has"),
        (("directed",), True, "which its view does not make"),
        (("classes",), ["ham"], "names of one kind"),
        (("overall",), [0.5], "overall"),
        (("report", "metric"), "r2", "metric must be one of"),
        (("parameters", "wings"), 2, "parameters: "),
        (("temperature",), 0, "Expected `float` > 0"),
        (("shifts",), [0.1], "a number for each class"),
    ],
)
def test_wrong_content_is_refused(model, keys, value, words):
    changed(model, *keys, value=value)
    with pytest.raises(DataError, match=words):
        memohop.load_model(model)


@pytest.mark.parametrize(
    "change",
    [
        {"arcs": torch.tensor([[0], [60]])},
        {"y": torch.full((60,), 2)},
        {"y": torch.full((60,), -1)},
        {"x": torch.full((60, 3), torch.nan)},
        {"x": torch.zeros(59, 3)},
        {"more": torch.zeros(1)},
    ],
)
def test_a_wrong_graph_is_refused(model, change):
    (path,) = model.glob("graph-*")
    tensors = load_file(path)
    save_file(tensors | change, path)
    changed(model, "sha256", path.name, value=files.sha256(path.read_bytes()))
    with pytest.raises(DataError, match="does not describe a model"):
        memohop.load_model(model)


@pytest.mark.parametrize("name", SPACES)
def test_every_option_that_a_search_may_choose_can_be_read_again(name):
    for axis in SPACES[name].axes.values():
        for options in axis.values():
            again = json.loads(json.dumps(options))
            assert checked_options(name, again).items() >= options.items()


def test_views_that_share_their_combinations_are_saved(tmp_path, monkeypatch):
    """With many columns, kinds that see neighbours, rows and positions share what they combine."""
    monkeypatch.setattr(views, "_WIDE", 2)
    names = np.array(["ham", "spam"])[tiny_problem().y]
    model = GraphClassifier(models=["linear+neighbours", "linear+rows"], **FAST)
    model.fit(tiny_problem().x, names, ring(60))
    problem = tiny_problem()
    parts = []
    for family in ("linear+neighbours", "linear+rows"):
        kind = LinearFamily(family, "rows" if family.endswith("rows") else "neighbours")
        (fits,) = kind.fit(problem, [Setting(family, {}, {"freedom": 1.0})], [0], keep=True)
        parts.append(Component(Setting(family, {}, {"freedom": 1.0}), 0.5, (fits[0].part,)))
    shared = [one.models[0].view.components for one in parts]
    assert shared[0] is shared[1]
    model.model_ = Ensemble(tuple(parts))
    model.save(tmp_path / "model")
    again = memohop.load_model(tmp_path / "model")
    assert np.allclose(again.predict_proba(), model.predict_proba(), atol=1e-6)
