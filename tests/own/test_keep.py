"""A saved classifier: the same when it comes back, and refused when it is not the same."""

import json
import re
import shutil

import numpy as np
import pytest
from torch_geometric.data import Data

import memohop
from memohop import DataError, MMPClassifier, UsageError
from memohop.data.tables import read_graph

FAST = {"trials": 1, "splits": 2, "epochs": 4}


def tables(count=60):
    """A graph of two kinds of shops that buy from the other kind."""
    generator = np.random.default_rng(0)
    kind = np.arange(count) % 2
    nodes = {
        "id": [f"shop {node}" for node in range(count)],
        "size": kind + generator.normal(size=count),
        "town": [("Rome", "Oslo")[town] for town in generator.integers(2, size=count)],
        "kind": [("baker", "smith")[k] if node % 5 else None for node, k in enumerate(kind)],
    }
    source = np.repeat(np.arange(count), 2)
    target = (source + 1 + 2 * generator.integers(count // 2, size=len(source))) % count
    edges = {name: [f"shop {node}" for node in ends] for name, ends in
             (("source", source), ("target", target))}  # fmt: skip
    return nodes, edges


FILES = ["README.md", "graph.safetensors", "model.json", "weights.safetensors"]


def file(model, kind):
    (found,) = model.glob(kind if "." in kind else f"{kind}-*.safetensors")
    return found


@pytest.fixture(scope="module")
def fitted():
    return MMPClassifier(**FAST).fit(read_graph(*tables(), label="kind"))


@pytest.fixture(scope="module")
def original(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    fitted.save(path)
    return path


@pytest.fixture
def model(original, tmp_path):
    return shutil.copytree(original, tmp_path / "model")


class TestRoundTrip:
    def test_everything_comes_back(self, fitted, model):
        found = MMPClassifier.load(model)
        assert (found.predict_proba() == fitted.predict_proba()).all()
        assert found.predict().tolist() == fitted.predict().tolist()
        assert found.get_params() == fitted.get_params()
        assert found.report_ == fitted.report_
        assert found.report_.verdict() == fitted.report_.verdict()
        assert found.ids_.tolist() == fitted.ids_.tolist()
        assert found.encoder_ == fitted.encoder_
        assert found.graph_.y.tolist() == fitted.graph_.y.tolist()

    def test_one_long_id_does_not_make_all_ids_long(self, fitted, tmp_path, monkeypatch):
        ids = np.array([*fitted.ids_[:-1], 100_000 * "x"], dtype=object)
        monkeypatch.setattr(fitted, "ids_", ids)
        fitted.save(tmp_path / "model")
        found = MMPClassifier.load(tmp_path / "model").ids_
        assert found.tolist() == ids.tolist()
        assert found.nbytes < 1000

    def test_another_graph_with_the_same_columns(self, fitted, model):
        nodes, edges = tables(40)
        found = MMPClassifier.load(model)
        new = read_graph(
            nodes | {"kind": [None] * 40}, edges, label=None, encoder=found.encoder_,
            classes=found.classes_.tolist(),
        )  # fmt: skip
        assert (found.predict_proba(new) == fitted.predict_proba(new)).all()
        assert len(found.predict(new)) == 40

    def test_other_columns_are_refused_by_name(self, model):
        nodes, edges = tables()
        found = MMPClassifier.load(model)
        del nodes["town"]
        with pytest.raises(UsageError, match=r"lacks the column.*'town'"):
            read_graph(nodes, edges, label="kind", encoder=found.encoder_)

    def test_another_number_of_features_is_refused(self, fitted):
        with pytest.raises(ValueError, match="expecting 3 features"):
            fitted.predict(np.zeros((4, 5)), edges=[])

    def test_numbers_as_classes_and_no_arcs(self, tmp_path):
        data = memohop.load("csbm", nodes=60, classes=2, channels=4)
        found = MMPClassifier(**FAST).fit(data.x.numpy(), data.y.numpy() + 7)
        found.save(tmp_path / "model")
        again = MMPClassifier.load(tmp_path / "model")
        assert again.classes_.tolist() == [7, 8]
        assert again.predict(data.x.numpy()).tolist() == found.predict().tolist()

    def test_the_files_are_plain_and_the_card_says_what_matters(self, fitted, model):
        names = sorted(file.name for file in model.iterdir())
        assert [re.sub("-[0-9a-f]{16}", "", name) for name in names] == FILES
        card = (model / "README.md").read_text()
        for words in ("baker, smith", "gcn+mmp", "homophily", fitted.report_.verdict(), "torch"):
            assert words in card
        assert json.loads((model / "model.json").read_text())["classes"] == ["baker", "smith"]

    def test_without_its_graph_a_model_still_predicts_others(self, fitted, model):
        file(model, "graph").unlink()
        found = MMPClassifier.load(model)
        other = Data(x=fitted.graph_.x, edge_index=fitted.graph_.edge_index)
        assert (found.predict_proba(other) == fitted.predict_proba()).all()
        with pytest.raises(UsageError, match="saved without its graph"):
            found.predict()


class TestRefusal:
    @pytest.mark.parametrize("kind", ["model.json", "weights", "graph"])
    @pytest.mark.parametrize("where", np.linspace(0, 0.999, 12))
    def test_one_changed_byte_is_refused(self, model, kind, where):
        content = bytearray(file(model, kind).read_bytes())
        content[int(where * len(content))] ^= 1
        file(model, kind).write_bytes(content)
        with pytest.raises(DataError, match=r"damaged or was changed|in format"):
            MMPClassifier.load(model)

    @pytest.mark.parametrize("kind", ["model.json", "weights"])
    def test_a_file_that_ends_early_or_is_gone_is_refused(self, model, kind):
        path = file(model, kind)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match="damaged"):
            MMPClassifier.load(model)
        path.unlink()
        with pytest.raises((DataError, UsageError), match=r"missing|no saved model"):
            MMPClassifier.load(model)

    def test_a_newer_format_is_refused_with_the_remedy(self, model):
        text = (model / "model.json").read_text()
        (model / "model.json").write_text(
            text.replace('"format": 2', '"format": 3').replace('"memohop": "', '"memohop": "9.')
        )
        with pytest.raises(DataError, match=r"made by memohop 9\..* in format 3.*update memohop"):
            MMPClassifier.load(model)

    def test_what_is_no_model_cannot_be_loaded(self, tmp_path):
        with pytest.raises(UsageError, match="there is no saved model in"):
            MMPClassifier.load(tmp_path)
