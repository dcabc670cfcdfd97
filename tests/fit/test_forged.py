"""A saved model with right digests and wrong content: refused, or it works."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import memohop
from memohop import DataError, GraphClassifier, MemohopError
from memohop.explain import explain_fit
from memohop.folders import named, sha256, sha256_of
from saved_models import changed, tables, write_json


def use(folder):
    """Ask a loaded model for everything."""
    loaded = GraphClassifier.load(folder)
    shape = (60, len(loaded.classes_))
    assert loaded.predict_proba().shape == shape
    report = loaded.report_
    assert report.verdict()
    assert report.legend()
    assert report.rows()
    if loaded.encoder_ is not None and loaded.reading_ is not None:
        assert loaded.predict_proba(*tables(), as_another_graph=True).shape == shape


LINKX, MMP = (("components", number, "models", 0) for number in (4, 5))
OPTIONS = (*MMP, "options")
FORGERIES = [
    (("components", 0, "family"), "oracle", "view must be one of"),
    (("components", 1, "family"), "linear", "weight that is absent"),
    (("components", 4, "family"), "gcn+mmp", "models of another one"),
    (("components", 0, "weight"), 0.9, "do not sum to 1"),
    (("components", 0, "models"), [], "length >= 1"),
    (("components", 0, "view"), 9, "view must be one of"),
    (("components", 0, "view"), None, "view must be one of"),
    (("components",), [], "length >= 1"),
    ((*LINKX, "model"), "gat", "options must be one"),
    ((*LINKX, "model"), "oracle", "no model named 'oracle'"),
    ((*LINKX, "options"), {"wings": 2}, "options must be one"),
    ((*LINKX, "options"), {"hidden_channels": 10**9}, "large"),
    ((*LINKX, "scale"), 0.0, "scale=0.0"),
    ((*OPTIONS, "num_layers"), 3, "are not those"),
    ((*OPTIONS, "num_layers"), 1_000_000, "too large"),
    ((*OPTIONS, "num_layers"), 2.0, "num_layers"),
    ((*OPTIONS, "num_layers"), True, "num_layers"),
    ((*OPTIONS, "hidden_channels"), -1, "hidden_channels"),
    ((*OPTIONS, "direction"), "sideways", "direction must be one of"),
    ((*OPTIONS, "self_loops"), "", "self_loops must be one of"),
    ((*OPTIONS, "norm"), "rows", "norm must be one of"),
    ((*OPTIONS, "gate"), "xor", "gate must be"),
    ((*OPTIONS, "readout"), "none", "are not those|readout"),
    ((*OPTIONS, "dropout"), 1.5, "dropout rate"),
    (("views", 0, "sees"), "stars", "sees must be one of"),
    (("n_features_in_",), 4, "a part has"),
    (("n_features_in_",), 10**12, "a part has"),
    (("n_features_in_",), "3", "Expected `int`"),
    (("directed_",), False, "which the graph does not have"),
    (("classes_",), ["ham"], "different names"),
    (("classes_",), ["ham", "ham"], "different names"),
    (("classes_",), ["ham", 1], "different names"),
    (("classes_",), ["ham", "spam", "egg"], "overall"),
    (("classes_",), [1, 2**70], "classes"),
    (("overall_",), [0.5], "overall"),
    (("mean_weight_",), -1.0, "Expected `float` > 0"),
    (("encoder_", "columns", 0, "kind"), "picture", "Invalid value"),
    (("encoder_", "columns", 0, "std"), 0.0, "Expected `float` > 0"),
    (("reading_", "label"), False, "Expected `str | null`"),
    (("reading_",), {}, "missing required field `label`"),
    (("parameters", "metric"), "luck", "metric"),
    (("parameters", "wings"), 2, "parameters: .*unexpected keyword"),
    (("parameters", "trials"), 0, "trials"),
    (("report_", "metric"), "r2", "a GraphClassifier has metric='r2'"),
    (("report_", "calibration", "temperature"), 0, "temperature=0.0"),
    (("report_", "calibration", "shifts"), [0.1], "a number for each class"),
    (("report_", "residual"), {"distance": 1.0}, "residual"),
    (("report_", "class_sizes"), {"a": 1, "b": 2}, "other classes"),
    (("report_", "nodes"), -1, "too small"),
    (("report_", "nodes"), 13, "13 nodes|shape"),
    (("report_", "stopped"), "bored", "Invalid enum value"),
    (("report_", "interval"), {"mean": "much"}, "Expected `float`"),
    (("weights",), "../secret", "matching regex"),
    (("graph",), None, "Expected `str`"),
]


@pytest.mark.parametrize(("keys", "value", "words"), FORGERIES)
def test_wrong_content_is_refused(model, keys, value, words):
    changed(model, *keys, value=value)
    with pytest.raises(DataError, match=words):
        memohop.load_model(model)


def test_columns_that_make_other_features_are_refused_where_they_are_used(model):
    changed(model, "encoder_", "columns", 0, "missing", value=True)
    loaded = memohop.load_model(model)
    for use_them in (lambda: loaded.predict(*tables()), lambda: explain_fit(loaded)):
        with pytest.raises(DataError, match=r"this model make 4 feature\(s\), and it has"):
            use_them()


def put(name, value):
    return lambda tensors: tensors.update({name: value})


def filled(name, value):
    return lambda tensors: tensors[name].fill_(value)


CHANGES = {
    "no weights": ("weights", dict.clear),
    "one too many": ("weights", put("5.0.more", torch.zeros(1))),
    "another shape": ("weights", put("5.0.classifier.bias", torch.zeros(7))),
    "another type": ("weights", put("5.0.classifier.bias", torch.zeros(2, dtype=torch.int64))),
    "a type that NumPy lacks": ("weights", put("0.0.bias", torch.zeros(2, dtype=torch.bfloat16))),
    "not a number": ("weights", filled("5.0.classifier.bias", torch.nan)),
    "an arc to nowhere": ("graph", filled("arcs", 60)),
    "a label too high": ("graph", filled("y", 2)),
    "a label too low": ("graph", filled("y", -2)),
    "no label": ("graph", filled("y", -1)),
    "features that are no numbers": ("graph", filled("x", torch.nan)),
    "doubles": ("graph", put("x", torch.zeros(60, 3, dtype=torch.float64))),
    "fewer nodes": ("graph", put("x", torch.zeros(59, 3))),
    "one more": ("graph", put("more", torch.zeros(1))),
    "no ids": ("graph", filled("ids", 0)),
    "fewer ids": ("graph", put("ids", torch.tensor([*b"[1,2]"], dtype=torch.uint8))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_wrong_tensors_are_refused(model, change):
    kind, make = CHANGES[change]
    (path,) = model.glob(f"{kind}-*")
    tensors = load_file(path)
    make(tensors)
    save_file(tensors, path)
    path = path.rename(model / named(kind, sha256_of(path), ".safetensors"))
    changed(model, kind, value=sha256_of(path))
    with pytest.raises(DataError, match=r"is not as memohop fit writes it|damaged"):
        memohop.load_model(model)


@pytest.fixture(scope="module")
def forged(original, tmp_path_factory):
    return shutil.copytree(original, tmp_path_factory.mktemp("forged") / "model")


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
def test_any_value_of_model_json_may_be_forged(original, forged, data):
    described = json.loads((original / "model.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(list(paths(described))))
        inner = described
        for step in path:
            inner = inner[step]
        if data.draw(st.booleans()) and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = data.draw(VALUES)
    write_json(forged, described)
    with suppress(MemohopError):
        use(forged)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", ["model.json", "weights", "graph"])
@given(data=st.data())
def test_any_byte_may_be_forged(original, forged, kind, data):
    described = json.loads((original / "model.json").read_text())
    (path,) = original.glob(f"{kind}*")
    content = bytearray(path.read_bytes())
    if kind == "model.json":
        content = content.replace(described["sha256"].encode(), b"0" * 64)
        for _ in range(data.draw(st.integers(1, 3))):
            index = data.draw(st.integers(0, len(content) - 1))
            content[index] = data.draw(st.sampled_from(b'09.-e"\\,:{}[]a\x80\xc3\xed'))
        digest = sha256(bytes(content)).encode()
        (forged / "model.json").write_bytes(content.replace(b"0" * 64, digest, 1))
    else:
        header = 8 + int.from_bytes(content[:8], "little")
        ends = st.sampled_from([8, header, len(content)])
        for _ in range(data.draw(st.integers(1, 4))):
            index = data.draw(st.integers(0, data.draw(ends) - 1))
            content[index] = data.draw(st.integers(0, 255))
        described[kind] = sha256(bytes(content))
        (forged / named(kind, described[kind], ".safetensors")).write_bytes(content)
        write_json(forged, described)
    with suppress(MemohopError):
        use(forged)
