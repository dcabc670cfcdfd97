"""A classifier as a folder of plain files, without pickle.

=======================  ==========================================================
``model.json``           options, classes, encoder, report, and SHA-256 of the rest
``weights.safetensors``  the parameters of the networks
``graph.safetensors``    features, arcs, labels, masks and ids of the graph of `fit`
``README.md``            the model card, for people
=======================  ==========================================================

A file that was changed by one byte is refused. The graph is there so that a loaded classifier can
predict its unlabelled nodes and explain itself. Whoever wants to share a model without its data
deletes ``graph.safetensors``: what remains predicts on other graphs.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

from memohop import __version__
from memohop.data.columns import ColumnEncoder
from memohop.errors import DataError, UsageError
from memohop.own.card import model_card
from memohop.own.model import OwnModel
from memohop.own.report import FitReport
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.estimator import MMPClassifier

FORMAT = 1
"""Raised whenever an older version could not read a folder."""

_JSON, _WEIGHTS, _GRAPH, _CARD = (
    "model.json",
    "weights.safetensors",
    "graph.safetensors",
    "README.md",
)
_NO_DIGEST = "0" * 64


def save(classifier: MMPClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier into a folder, in place of a model that may be there."""
    folder = check_target(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # First beside it, so that a failure leaves an older model whole.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        fresh = Path(temporary) / folder.name
        fresh.mkdir()
        (fresh / _WEIGHTS).write_bytes(save_tensors(_weights(classifier.model_)))
        (fresh / _GRAPH).write_bytes(save_tensors(_graph(classifier)))
        (fresh / _CARD).write_text(model_card(classifier), encoding="utf-8")
        (fresh / _JSON).write_text(_described(classifier, fresh), encoding="utf-8")
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        fresh.rename(folder)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model, unless something else is there that must not be lost."""
    folder = Path(path).expanduser()
    if folder.exists() and not (folder / _JSON).is_file():
        raise UsageError(f"{folder} is there and is no saved model; give another name")
    return folder


def load(path: str | os.PathLike[str]) -> MMPClassifier:
    """Read a classifier, and refuse what is damaged or too new."""
    from memohop.estimator import MMPClassifier

    folder = Path(path).expanduser()
    found = _read_json(folder)
    classifier = MMPClassifier(**found["parameters"])
    classifier.classes_ = np.array(found["classes"])
    classifier.n_features_in_ = found["features"]
    if found["feature_names"] is not None:
        classifier.feature_names_in_ = np.array(found["feature_names"], dtype=object)
    encoder = found["encoder"]
    classifier.encoder_ = None if encoder is None else ColumnEncoder.from_json(encoder)
    classifier.reading_ = found["reading"]
    classifier.has_arcs_ = found["has_arcs"]
    classifier.report_ = FitReport.from_json(found["report"])
    weights = _read_tensors(folder / _WEIGHTS, found["sha256"][_WEIGHTS])
    classifier.model_ = OwnModel(
        found["features"], len(classifier.classes_), found["options"], _states(weights)
    )
    if (folder / _GRAPH).exists():
        tensors = _read_tensors(folder / _GRAPH, found["sha256"][_GRAPH])
        classifier.ids_ = np.array(json.loads(tensors.pop("ids").numpy().tobytes()))
        classifier.graph_ = Data(**tensors, metric=classifier.metric)
    return classifier


def _described(classifier: MMPClassifier, folder: Path) -> str:
    """The text of `model.json`, with the digest of itself where there were zeros."""
    parameters = classifier.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    names = getattr(classifier, "feature_names_in_", None)
    described = {
        "format": FORMAT,
        "sha256": {
            _JSON: _NO_DIGEST,
            _WEIGHTS: _digest(folder / _WEIGHTS),
            _GRAPH: _digest(folder / _GRAPH),
        },
        "memohop": __version__,
        "parameters": parameters,
        "features": classifier.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "classes": classifier.classes_.tolist(),
        "has_arcs": classifier.has_arcs_,
        "options": dict(classifier.model_.options),
        "encoder": None if classifier.encoder_ is None else classifier.encoder_.to_json(),
        "reading": classifier.reading_,
        "report": classifier.report_.to_json(),
    }
    try:
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
    except TypeError as error:
        raise UsageError(
            f"this classifier cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    return text.replace(_NO_DIGEST, _sha256(text.encode()), 1)


def _read_json(folder: Path) -> dict[str, Any]:
    path = folder / _JSON
    if not path.is_file():
        raise UsageError(f"there is no saved model in {folder}; memohop fit makes one")
    content = path.read_bytes()
    try:
        found = json.loads(content)
        made_by, version = found["memohop"], found["format"]
        claimed = found["sha256"][_JSON]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error
    if version != FORMAT:
        raise DataError(
            f"{folder} was made by memohop {made_by} in format {version}, and memohop "
            f"{__version__} reads format {FORMAT}; update memohop, or fit the model anew"
        )
    if _sha256(content.replace(str(claimed).encode(), _NO_DIGEST.encode(), 1)) != claimed:
        raise _damaged(path)
    return dict(found)


def _read_tensors(path: Path, digest: str) -> dict[str, Tensor]:
    if not path.is_file() or _digest(path) != digest:
        raise _damaged(path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was saved: its SHA-256 is not the one "
        "that was noted; copy the model anew, or fit it again"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _weights(model: OwnModel) -> dict[str, Tensor]:
    """All networks side by side; a gate that layers share is there once for each, as a copy."""
    return {
        f"{place}.{name}": value.clone().contiguous()
        for place, state in enumerate(model.states)
        for name, value in state.items()
    }


def _states(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], ...]:
    states: dict[int, dict[str, Tensor]] = {}
    for full_name, value in weights.items():
        place, _, name = full_name.partition(".")
        states.setdefault(int(place), {})[name] = value
    return tuple(states[place] for place in sorted(states))


def _graph(classifier: MMPClassifier) -> dict[str, Tensor]:
    graph = classifier.graph_
    names = ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")
    ids = [node if isinstance(node, int | str) else str(node) for node in classifier.ids_.tolist()]
    text = json.dumps(ids, ensure_ascii=False).encode()
    return {
        **{name: graph[name].contiguous() for name in names},
        "ids": torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy()),
    }
