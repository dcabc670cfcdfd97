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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import UNSET
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

import memohop.folders as folders
from memohop.errors import DataError, UsageError
from memohop.fit._card import record_card
from memohop.fit._described import (
    Description,
    checked_graph,
    graph_tensors,
    put_together,
    take_apart,
)
from memohop.folders import sha256, sha256_of
from memohop.interrupts import interrupts_wait
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

Kind = Literal["weights", "graph"]
"""The kinds of files of tensors."""

MODEL_FOLDER = folders.Layout(
    what="saved model",
    command="fit",
    described="model.json",
    format=5,  # raised whenever an older version could not read a folder
    names=re.compile(r"(weights|graph|trees)-(?P<digest>[0-9a-f]{16})\.(?:safetensors|txt)"),
    again="copy the model again, or fit it again",
    anew="fit the model again: memohop fit --nodes NODES --edges EDGES --label LABEL -o {}",
    card="README.md",
)


@interrupts_wait()
def save(estimator: GraphEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, which may hold an older model."""
    folder = MODEL_FOLDER.check_target(path)
    parts, weights = take_apart(estimator.model_)
    graph = graph_tensors(estimator.own_graph(), estimator.ids_)
    files = {"weights": save_tensors(weights), "graph": save_tensors(graph)}
    digests: dict[str, Any] = {kind: sha256(content) for kind, content in files.items()}
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params().items()
    }
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    attributes: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name in Description.__struct_fields__
        if name.endswith("_") and (value := getattr(estimator, name, UNSET)) is not UNSET
    }
    name: Any = type(estimator).__name__
    description = Description(
        estimator=name, parameters=parameters, **digests, **attributes, **parts
    )
    head = {"format": MODEL_FOLDER.format, "sha256": folders.NO_DIGEST, "memohop": __version__}
    try:
        described = head | description.to_json()
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"this model cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    written = {_named(kind, digests[kind]): content for kind, content in files.items()}
    written[MODEL_FOLDER.card] = folders.signed(record_card(estimator).encode())
    written[MODEL_FOLDER.described] = folders.sealed(text)
    with MODEL_FOLDER.replaced(folder) as work:
        for file, content in written.items():
            (work / file).write_bytes(content)


def _named(kind: str, digest: str) -> str:
    """The name of a file of tensors."""
    return folders.named(kind, digest, ".safetensors")


class SavedModel:
    """The files of a saved model; a damaged one, or one in another format, is refused.

    Args:
        path: The folder.

    Attributes:
        folder: The folder.
        json: The path of ``model.json``.
        content: Its bytes.
        description: What it says.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = Path(path).expanduser()
        self.json = self.folder / MODEL_FOLDER.described
        self.content = MODEL_FOLDER.read(self.folder)
        with MODEL_FOLDER.refused(self.json):
            self.description = Description.from_json(self.content)

    def is_replaced(self) -> bool:
        """Whether the folder holds another model by now."""
        return not self.json.is_file() or self.json.read_bytes() != self.content

    def path(self, kind: Kind) -> Path:
        """One of its files of tensors; that of the graph may have been deleted."""
        return self.folder / _named(kind, getattr(self.description, kind))

    def tensors(self, kind: Kind) -> dict[str, Tensor]:
        """The content of one of these."""
        path = self.path(kind)
        if not path.is_file() or sha256_of(path) != getattr(self.description, kind):
            raise MODEL_FOLDER.damaged(path)
        try:
            return load_file(path)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise MODEL_FOLDER.damaged(path) from error


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
    description, weights = saved.description, saved.tensors("weights")
    make = {kind.__name__: kind for kind in kinds}.get(description.estimator)
    if make is None:
        raise UsageError(
            f"{saved.folder} holds a {description.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    with MODEL_FOLDER.refused(saved.json):
        estimator = _make(make, description)
        ensemble = put_together(description, weights)
    if (graph := saved.path("graph")).exists():
        tensors = saved.tensors("graph")
        with MODEL_FOLDER.refused(graph):
            estimator.graph_, estimator.ids_ = checked_graph(tensors, description.sizes)
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
