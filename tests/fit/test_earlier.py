"""A model that version 0.1.0 saved, with right digests and wrong content: refused, or it works."""

import copy
import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import memohop
from memohop import DataError, MemohopError, MMPClassifier
from memohop.data.tables import read_graph
from memohop.fit import folder as folder_files

SAVED = Path(__file__).parent / "version_0_1_0"
TABLES = (SAVED / "new-nodes.csv", SAVED / "new-edges.csv")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return shutil.copytree(SAVED / "model", tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def described(model):
    return json.loads((model / "model.json").read_text())


@pytest.fixture(scope="module")
def forged(model, tmp_path_factory):
    return shutil.copytree(model, tmp_path_factory.mktemp("forged") / "model")


def write_json(folder, described):
    """With its right digest."""
    claimed = described["sha256"]
    if isinstance(claimed, dict) and "model.json" in claimed:
        claimed["model.json"] = "0" * 64
    text = json.dumps(described, ensure_ascii=False)
    digest = folder_files.sha256(text.encode(errors="replace"))
    (folder / "model.json").write_text(text.replace("0" * 64, digest, 1), errors="replace")


def use(folder):
    """Ask a loaded model for everything."""
    found = MMPClassifier.load(folder)
    assert found.predict_proba().shape == (30, len(found.classes_))
    assert len(found.predict()) == 30
    assert found.report_.verdict()
    assert found.report_.legend()
    assert found.report_.rows()
    if found.encoder_ is None or found.reading_ is None:
        return
    again = read_graph(
        *TABLES, encoder=found.encoder_, classes=found.classes_.tolist(), **found.reading_
    )
    assert len(found.predict(again)) == len(again.ids)


def refused(folder, described, match):
    write_json(folder, described)
    with pytest.raises(DataError, match=match):
        MMPClassifier.load(folder)


FORGERIES = [
    (("options", "num_layers"), 1_000_000, "too large"),
    (("options", "num_layers"), 2.0, "num_layers"),
    (("options", "num_layers"), True, "num_layers"),
    (("options", "hidden_channels"), 10**12, "too large"),
    (("options", "hidden_channels"), -1, "hidden_channels"),
    (("options", "direction"), "sideways", "direction must be one of"),
    (("options", "self_loops"), "", "self_loops must be one of"),
    (("options", "norm"), "rows", "norm must be one of"),
    (("options", "gate"), "xor", "gate must be"),
    (("options", "readout"), "jumping", "are not those"),
    (("options", "dropout"), 1.5, "dropout rate"),
    (("options", "colour"), "red", "options must be one of"),
    (("features",), 10**12, "features"),
    (("features",), "5", "Expected `int`"),
    (("classes",), ["a", "a"], "different names"),
    (("classes",), ["a", 1], "different names"),
    (("classes",), ["a"], "length"),
    (("classes",), ["a", "b", "c"], "other classes"),
    (("classes",), [1, 2**70], "classes"),
    (("encoder", "columns"), [], "do not make"),
    (("encoder", "columns", 0, "kind"), "picture", "Invalid value"),
    (("encoder", "columns", 0, "std"), 0.0, "std=0"),
    (("reading", "label"), False, "label=False"),
    (("reading", "colour"), "red", "reading must be one of"),
    (("reading",), {}, "no label"),
    (("parameters", "metric"), "luck", "metric"),
    (("parameters", "colour"), "red", "unexpected keyword"),
    (("parameters", "trials"), 0, "trials"),
    (("report", "metric"), "luck", "metric"),
    (("report", "scores"), [], "length >= 1"),
    (("report", "scores", 0, "model"), "mlp", "scores of"),
    (("report", "splits"), 3, "3 splits and weights of 2"),
    (("report", "splits"), 10**15, "weights of 2 networks"),
    (("report", "nodes"), -1, "too small"),
    (("report", "nodes"), 13, "13 nodes|shape"),
    (("report", "stopped"), "bored", "Invalid enum value"),
    (("report", "differences"), {"mlp": {"mean": "much"}}, "Expected `float`"),
    (("sha256",), {}, "damaged"),
]


@pytest.mark.parametrize(("where", "value", "match"), FORGERIES)
def test_wrong_content_is_refused(forged, described, where, value, match):
    described = copy.deepcopy(described)
    *path, last = where
    inner = described
    for step in path:
        inner = inner[step]
    inner[last] = value
    refused(forged, described, match)


def test_a_path_out_of_the_folder_is_refused(forged, described):
    described = copy.deepcopy(described)
    (name,) = [name for name in described["sha256"] if name.startswith("weights")]
    described["sha256"][f"../model/{name}"] = described["sha256"].pop(name)
    refused(forged, described, "its files are")


CHANGES = {
    "no weights": lambda weights, _: weights.clear(),
    "another network": lambda weights, _: weights.update(
        {name.replace("1.", "7.", 1): weights.pop(name) for name in list(weights) if name[0] == "1"}
    ),
    "no number": lambda weights, _: weights.update({"bias": torch.zeros(1)}),
    "one too many": lambda weights, _: weights.update({"0.more": torch.zeros(1)}),
    "another shape": lambda weights, _: weights.update({"0.classifier.bias": torch.zeros(7)}),
    "another type": lambda weights, _: weights.update(
        {"0.classifier.bias": torch.zeros(3, dtype=torch.float64)}
    ),
    "not a number": lambda weights, _: weights["0.classifier.bias"].fill_(float("nan")),
    "a label too high": lambda _, graph: graph["y"].fill_(3),
    "a label too low": lambda _, graph: graph["y"].fill_(-2),
    "an arc to nowhere": lambda _, graph: graph["edge_index"].fill_(30),
    "whole numbers": lambda _, graph: graph.update(x=graph["x"].long()),
    "doubles": lambda _, graph: graph.update(x=graph["x"].double()),
    "fewer features": lambda _, graph: graph.update(x=graph["x"][:, 1:].contiguous()),
    "no masks": lambda _, graph: graph.pop("test_mask"),
    "no ids": lambda _, graph: graph["ids"].fill_(0),
    "fewer ids": lambda _, graph: graph.update(ids=torch.tensor([*b"[1,2]"], dtype=torch.uint8)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_wrong_tensors_are_refused(model, described, tmp_path, change):
    folder = shutil.copytree(model, tmp_path / "model")
    described = copy.deepcopy(described)
    names = sorted(name for name in described["sha256"] if name != "model.json")
    graph, weights = (load_file(folder / name) for name in names)
    CHANGES[change](weights, graph)
    for name, tensors in zip(names, (graph, weights), strict=True):
        save_file(tensors, folder / name)
        described["sha256"][name] = folder_files.sha256_of(folder / name)
    refused(folder, described, "does not describe a model")


def test_what_is_not_forged_is_used(model, forged, described):
    write_json(forged, copy.deepcopy(described))
    use(forged)
    assert memohop.MMPClassifier.load(model).encoder_ is not None


def paths(value, path=()):
    """The path of every value in the object, the inner ones too."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from paths(value[key], (*path, key))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 80),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(["in", "both", "gru", "channel", "hidden", "layer", "paper", "cuda", "1e999"]),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2),
)


@pytest.mark.fuzz
@given(data=st.data())
def test_any_value_of_model_json_may_be_forged(forged, described, data):
    described = copy.deepcopy(described)
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(list(paths(described))))
        inner = described
        for step in path:
            inner = inner[step]
        if data.draw(st.booleans()) and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = data.draw(VALUES)
    if isinstance(described.get("sha256"), dict):
        write_json(forged, described)
    with suppress(MemohopError):
        use(forged)


@pytest.mark.fuzz
@given(data=st.data())
def test_any_byte_of_model_json_may_be_forged(model, forged, described, data):
    content = (model / "model.json").read_bytes()
    content = bytearray(content.replace(described["sha256"]["model.json"].encode(), b"0" * 64))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(content) - 1))
        content[index] = data.draw(st.sampled_from(b'09.-e"\\,:{}[]a\x80\xc3\xed'))
    digest = folder_files.sha256(bytes(content)).encode()
    (forged / "model.json").write_bytes(content.replace(b"0" * 64, digest, 1))
    for path in model.glob("*.safetensors"):
        shutil.copy(path, forged)
    with suppress(MemohopError):
        use(forged)


@pytest.mark.fuzz
@given(data=st.data())
def test_any_byte_of_the_tensors_may_be_forged(model, forged, described, data):
    described = copy.deepcopy(described)
    names = sorted(name for name in described["sha256"] if name != "model.json")
    for name in names:
        shutil.copy(model / name, forged / name)
    name = data.draw(st.sampled_from(names))
    content = bytearray((model / name).read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    ends = st.sampled_from([8, header, len(content)])
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, data.draw(ends) - 1))
        content[index] = data.draw(st.integers(0, 255))
    (forged / name).write_bytes(content)
    described["sha256"][name] = folder_files.sha256_of(forged / name)
    write_json(forged, described)
    with suppress(MemohopError):
        use(forged)
