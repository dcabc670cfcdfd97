"""A classifier as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             options, classes, encoder, report, and name and SHA-256 of the files
``weights-*.safetensors``  the parameters of the networks
``graph-*.safetensors``    features, arcs, labels, masks and ids of the graph of ``fit``
``README.md``              the model card, for people
=========================  ===================================================================

The star stands for the beginning of the file's own SHA-256. To replace a model, files with other
names are written beside the older ones, and then a new ``model.json`` is renamed over the older
one: a process that is killed at any point leaves the older model or the newer one, whole. A file is
replaced or removed only if a digest proves that Memohop wrote it and nobody changed it: the digest
in its name, or the one inside (``model.json`` and ``README.md``). Other files in the folder stay.

A file in which one byte was changed is refused, and so is a ``model.json`` with impossible content
(:mod:`memohop.own.described`). With the graph, a loaded classifier can predict its unlabelled nodes
and explain itself. To share a model without its data, delete that file: the rest predicts on other
graphs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

from memohop.data.tables.links import id_array
from memohop.errors import DataError, UsageError
from memohop.outputs import check_writable, write_whole
from memohop.own.card import model_card
from memohop.own.described import (
    GRAPH,
    Described,
    check_described,
    checked_graph,
    checked_model,
    refused,
)
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier

FORMAT = 2
"""Raised whenever an older version could not read a folder. In format 1 names had no digests."""

_JSON, _CARD = "model.json", "README.md"
_TENSORS = re.compile(r"(weights|graph)(?:-([0-9a-f]{16}))?\.safetensors")
_PART = re.compile(rf"\.({_TENSORS.pattern}|{_JSON}|{_CARD})\.\d+\.part")  # of a killed save
_CARD_TITLE = "# A node classifier for "  # of a card of format 1, which has no digest
_CARD_END = "\n<!-- SHA-256 of what is above: {} -->\n"
_NO_DIGEST = "0" * 64


def save(classifier: MMPClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier into a folder, which may hold an older model."""
    folder = check_target(path)
    contents = {kind: save_tensors(found) for kind, found in _tensors(classifier).items()}
    files = {f"{kind}-{_sha256(c)[:16]}.safetensors": c for kind, c in contents.items()}
    described = _describe(classifier, {name: _sha256(c) for name, c in files.items()})
    card = model_card(classifier)
    older = _written(folder) - {_JSON, _CARD} - files.keys()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    write_whole(folder / _CARD, card + _CARD_END.format(_sha256(card.encode())))
    write_whole(folder / _JSON, described)  # from here on it is the newer model
    for name in older:
        (folder / name).unlink(missing_ok=True)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model; a ``UsageError`` if it cannot be written or holds other files."""
    folder = Path(path).expanduser()
    if folder.is_symlink() and not folder.exists():
        raise UsageError(
            f"{folder} is a link to {folder.readlink()}, which does not exist; remove the link or "
            "give another name"
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give the name of a folder")
    there = _names(folder)
    foreign = sorted(there - _written(folder))
    if foreign and _JSON not in there:
        raise UsageError(
            f"{folder} exists and is no saved model (it holds {foreign[0]}); give another name"
        )
    if changed := [name for name in foreign if name in (_JSON, _CARD)]:
        raise UsageError(
            f"{folder / changed[0]} would be replaced, and is not as memohop wrote it; move it "
            "away, or give the model another name"
        )
    nearest = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    check_writable(nearest, f"{folder}")
    return folder


def load(path: str | os.PathLike[str], make: Callable[..., MMPClassifier]) -> MMPClassifier:
    """Read a saved classifier, which ``make`` makes from its parameters.

    A model that is damaged, forged or too new is refused.
    """
    folder = Path(path).expanduser()
    found = _read_json(folder / _JSON)
    with refused(folder / _JSON):
        check_described(found)
        parameters: dict[str, Any] = found.parameters
        try:
            classifier = make(**parameters)
        except TypeError as error:
            raise UsageError(f"parameters: {error}") from error
        classifier._check_arguments()
        names = {match[1]: match[0] for match in map(_TENSORS.fullmatch, found.sha256) if match}
        if names.keys() != {"weights", "graph"}:
            raise UsageError(f"its files are {', '.join(found.sha256)}")
    classifier.classes_ = np.array(found.classes)
    classifier.n_features_in_ = found.features
    if found.feature_names is not None:
        classifier.feature_names_in_ = np.array(found.feature_names, dtype=object)
    classifier.encoder_, classifier.reading_ = found.encoder, found.reading
    classifier.has_arcs_, classifier.report_ = found.has_arcs, found.report
    weights = _read_tensors(folder / names["weights"], found)
    with refused(folder / names["weights"]):
        classifier.model_ = checked_model(found, weights)
    graph = folder / names["graph"]
    if graph.exists():
        tensors = _read_tensors(graph, found)
        with refused(graph):
            classifier.graph_, ids = checked_graph(found, tensors)
        classifier.ids_ = id_array(ids)
    return classifier


def _describe(classifier: MMPClassifier, digests: dict[str, str]) -> str:
    """The text of ``model.json``; its own digest is that of the text with zeros instead."""
    parameters = classifier.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    names = getattr(classifier, "feature_names_in_", None)
    described = {
        "format": FORMAT,
        "sha256": {_JSON: _NO_DIGEST, **digests},
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
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"this classifier cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    return text.replace(_NO_DIGEST, _sha256(text.encode()), 1)


def _tensors(classifier: MMPClassifier) -> dict[str, dict[str, Tensor]]:
    """The tensors of each file."""
    weights = {  # copies: layers that share a gate have one each
        f"{number}.{name}": value.clone().contiguous()
        for number, state in enumerate(classifier.model_.states)
        for name, value in state.items()
    }
    graph = {name: classifier.graph_[name].contiguous() for name in GRAPH}
    ids = [node if isinstance(node, int | str) else str(node) for node in classifier.ids_.tolist()]
    text = json.dumps(ids, ensure_ascii=False).encode()
    graph["ids"] = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())
    return {"weights": weights, "graph": graph}


class _Head(msgspec.Struct):
    """The part of ``model.json`` that every version has."""

    format: int
    memohop: str
    sha256: dict[str, str]


def _head(content: bytes) -> _Head | None:
    """None if it is no ``model.json`` of any version."""
    try:
        found = msgspec.json.decode(content, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if _JSON in found.sha256 else None


def _is_intact(content: bytes, head: _Head) -> bool:
    """Whether a ``model.json`` has the digest that it says."""
    claimed = head.sha256[_JSON]
    return _sha256(content.replace(claimed.encode(), _NO_DIGEST.encode(), 1)) == claimed


def _read_json(path: Path) -> Described:
    if not path.is_file():
        raise UsageError(f"there is no saved model in {path.parent}; memohop fit makes one")
    content = path.read_bytes()
    head = _head(content)
    if head is not None and head.format not in range(1, FORMAT + 1):
        raise DataError(
            f"{path.parent} was made by memohop {head.memohop} in format {head.format}, and "
            f"memohop {__version__} reads formats up to {FORMAT}; update memohop, or fit the model "
            "again"
        )
    if head is None or not _is_intact(content, head):
        raise _damaged(path)
    with refused(path):
        return msgspec.json.decode(content, type=Described)


def _read_tensors(path: Path, found: Described) -> dict[str, Tensor]:
    if not path.is_file() or _digest(path) != found.sha256[path.name]:
        raise _damaged(path)
    try:
        return load_file(path)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was saved: its SHA-256 is not the one "
        "that was noted; copy the model again, or fit it again"
    )


def _names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} if folder.exists() else set()


def _written(folder: Path) -> set[str]:
    """The names of the files in a folder that Memohop wrote and nobody changed."""
    there = {name for name in _names(folder) if (folder / name).is_file()}
    ours = {name for name in there if _PART.fullmatch(name)}
    noted, is_old = dict[str, str](), False
    if _JSON in there:
        content = (folder / _JSON).read_bytes()
        head = _head(content)
        if head is not None and _is_intact(content, head):
            ours.add(_JSON)
            noted, is_old = head.sha256, head.format == 1
    for name in there:
        if found := _TENSORS.fullmatch(name):
            digest = _digest(folder / name)
            if digest == noted.get(name) or (found[2] and digest.startswith(found[2])):
                ours.add(name)
    if _CARD in there:
        content = (folder / _CARD).read_bytes()
        card = content[: -len(_CARD_END.format(_NO_DIGEST))]
        is_signed = content == card + _CARD_END.format(_sha256(card)).encode()
        if is_signed or (is_old and content.startswith(_CARD_TITLE.encode())):
            ours.add(_CARD)
    return ours


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
