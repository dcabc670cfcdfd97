"""A fitted estimator as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             the description of the model, and name and SHA-256 of the other files
``weights-*.safetensors``  its tensors, among them the text of each model of boosted trees
``graph-*.safetensors``    the graph of ``fit``: features, arcs, targets and ids
``README.md``              the model card, for people
=========================  ===================================================================

The star stands for the beginning of the file's own SHA-256. How a model replaces another one, and
what in its folder may be replaced or removed, is in :mod:`memohop.folders`; the card contains its
digest, too. Files that Memohop did not write stay.

``model.json`` lists the parts of the ensemble with their weights, and the views that trees and
linear models share; names of tensors begin with the number of the view, or with those of the
component and of its model. A file with a changed byte is refused, and what is read is checked: the
description and the graph by :mod:`memohop.fit._described`, each part by its own class. To share a
model without its data, delete the file of the graph: the rest predicts on other graphs.

There is one format, the fifth. A model in an earlier one is to be fitted again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import UNSET
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

import memohop.folders as folders
from memohop.errors import DataError, MemohopError, UsageError
from memohop.fit._card import record_card
from memohop.fit._described import (
    Description,
    checked_graph,
    graph_tensors,
    put_together,
    take_apart,
)
from memohop.folders import NO_DIGEST, sha256, sha256_of
from memohop.interrupts import interrupts_wait
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

FORMAT = 5
"""It is raised whenever an older version could not read a folder."""

_JSON, _CARD = "model.json", "README.md"
_FILE = re.compile(r"(weights|graph|trees)-(?P<digest>[0-9a-f]{16})\.(?:safetensors|txt)")
_CARD_END = "\n<!-- SHA-256 of what is above: {} -->\n"


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model; a ``UsageError`` if it cannot be written or holds other files."""
    folder = Path(path).expanduser()
    return folders.check_folder(folder, "saved model", _is_ours, _JSON, _CARD)


@interrupts_wait()
def save(estimator: GraphEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, which may hold an older model."""
    folder = check_target(path)
    parts, weights = take_apart(estimator.model_)
    graph = graph_tensors(estimator.own_graph(), estimator.ids_)
    files = {}
    for kind, tensors in {"weights": weights, "graph": graph}.items():
        content = save_tensors(tensors)
        files[folders.named(kind, sha256(content), ".safetensors")] = content
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params().items()
    }
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    attributes = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name in Description.__struct_fields__
        if name.endswith("_") and (value := getattr(estimator, name, UNSET)) is not UNSET
    }
    name: Any = type(estimator).__name__
    description = Description(estimator=name, parameters=parameters, **attributes, **parts)
    _write(folder, files, description, record_card(estimator))


def _write(folder: Path, files: Mapping[str, bytes], model: Description, card: str) -> None:
    """Write a model; the digest of ``model.json`` is of the text with zeros in its place."""
    digests = {_JSON: NO_DIGEST} | {name: sha256(content) for name, content in files.items()}
    header = {"format": FORMAT, "sha256": digests, "memohop": __version__}
    try:
        text = json.dumps(header | model.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"this model cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    older = [path for path in folder.iterdir() if _is_ours(path)] if folder.exists() else []
    signed = card + _CARD_END.format(sha256(card.encode()))
    written = {**files, _CARD: signed.encode(), _JSON: folders.sealed(text)}
    with folders.disk_errors(folder, "model", _JSON), folders.working_folder(folder) as work:
        for name, content in written.items():
            (work / name).write_bytes(content)
        folders.publish(work, folder, [name for name in written if name != _JSON], _JSON)
        for path in older:
            if path.name not in written and path.is_file():
                path.unlink()


def _is_ours(path: Path) -> bool:
    """Whether a file or folder inside the folder of a model is proven to be Memohop's."""
    content = path.read_bytes() if path.name in (_JSON, _CARD) and path.is_file() else b""
    if path.name == _JSON:
        return _header(content) is not None
    if path.name == _CARD:
        card = content[: -len(_CARD_END.format(NO_DIGEST))]
        return content == card + _CARD_END.format(sha256(card)).encode()
    return folders.is_working_folder(path) or folders.is_named_so(path, _FILE)


class _Header(msgspec.Struct):
    """The part of ``model.json`` that every version has."""

    format: int
    memohop: str
    sha256: dict[str, str]


def _header(content: bytes) -> _Header | None:
    """The header of a ``model.json``; None if it is not one, or its digest is another one."""
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return header if folders.is_sealed(content, header.sha256.get(_JSON, "")) else None


class SavedModel:
    """The files of a saved model; a damaged one, or one in another format, is refused.

    Args:
        path: The folder.

    Attributes:
        folder: The folder.
        json: The path of ``model.json``.
        content: Its bytes.
        weights: The path of its tensors.
        graph: The path of the graph of ``fit``, which may have been deleted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = Path(path).expanduser()
        self.json = self.folder / _JSON
        if not self.json.is_file():
            raise UsageError(f"there is no saved model in {self.folder}; memohop fit makes one")
        self.content = self.json.read_bytes()
        header = _header(self.content)
        if header is None:
            raise _damaged(self.json)
        if header.format != FORMAT:
            update = "update memohop, or " if header.format > FORMAT else ""
            raise DataError(
                f"{self.folder} was made by memohop {header.memohop} in format {header.format}, "
                f"and memohop {__version__} reads format {FORMAT} alone; {update}fit the model "
                f"again: memohop fit --nodes NODES --edges EDGES --label LABEL -o {self.folder}"
            )
        self._sha256 = header.sha256
        names = {match[1]: name for name in header.sha256 if (match := _FILE.fullmatch(name))}
        with refused(self.json):
            if names.keys() != {"weights", "graph"}:
                raise UsageError(f"its files are {', '.join(header.sha256)}")
        self.weights, self.graph = self.folder / names["weights"], self.folder / names["graph"]

    def is_replaced(self) -> bool:
        """Whether the folder holds another model by now."""
        return not self.json.is_file() or self.json.read_bytes() != self.content

    def tensors(self, path: Path) -> dict[str, Tensor]:
        """The content of one of its files of tensors."""
        if not path.is_file() or sha256_of(path) != self._sha256[path.name]:
            raise _damaged(path)
        try:
            return load_file(path)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise _damaged(path) from error


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """Turn errors inside the block into a ``DataError`` that names the file."""
    try:
        yield
    except (MemohopError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"{path} has the right digest but does not describe a model: {error}; "
            "fit the model again, or copy it again from where it was fitted"
        ) from error


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was saved: its SHA-256 is not the one "
        "that was recorded; copy the model again, or fit it again"
    )


def load(path: str | os.PathLike[str], kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    """Read a saved estimator, which is of one of these kinds.

    A damaged or forged model, or one of another kind, is refused. If the model is replaced
    meanwhile, the newer one is read.
    """
    while True:
        saved = SavedModel(path)
        try:
            estimator = _load(saved, kinds)
        except (DataError, FileNotFoundError):
            if not saved.is_replaced():
                raise
        else:
            if hasattr(estimator, "graph_") or not saved.is_replaced():
                return estimator


def _load(saved: SavedModel, kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    weights = saved.tensors(saved.weights)
    with refused(saved.json):
        description = Description.from_json(saved.content)
    make = {kind.__name__: kind for kind in kinds}.get(description.estimator)
    if make is None:
        raise UsageError(
            f"{saved.folder} holds a {description.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    with refused(saved.json):
        estimator = _make(make, description)
        ensemble = put_together(description, weights)
    if saved.graph.exists():
        graph = saved.tensors(saved.graph)
        with refused(saved.graph):
            estimator.graph_, estimator.ids_ = checked_graph(graph, description.sizes)
    estimator.model_ = ensemble
    return estimator


def _make(make: type[GraphEstimator], description: Description) -> GraphEstimator:
    """The estimator without its model; a ``UsageError`` if its parameters cannot be right."""
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description.parameters.items()
    }
    try:
        estimator = make(**parameters)
    except TypeError as error:
        raise UsageError(f"parameters: {error}") from error
    estimator._check_arguments()
    for name in Description.__struct_fields__:
        value = getattr(description, name)
        if name.endswith("_") and value is not UNSET:
            kind = object if name == "feature_names_in_" else None
            value = np.array(value, dtype=kind) if isinstance(value, list) else value
            setattr(estimator, name, value)
    return estimator
