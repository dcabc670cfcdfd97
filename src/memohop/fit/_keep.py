"""A fitted estimator as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             the description of the model, and name and SHA-256 of the other files
``weights-*.safetensors``  its tensors
``trees-*.txt``            its boosted trees, as LightGBM writes them, a file for each model
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

There is one format, the fourth. A model in an earlier one is to be fitted again.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

import memohop.folders as folders
from memohop.errors import DataError, MemohopError, UsageError, check_choice
from memohop.fit._candidate import FittedModel, Setting
from memohop.fit._described import (
    DescribedComponent,
    DescribedModel,
    DescribedPart,
    check_described,
    checked_graph,
    graph_tensors,
    read_described,
    record_card,
)
from memohop.fit._ensemble import Component, Ensemble
from memohop.fit._saved import Saved
from memohop.fit._views import View
from memohop.fit.candidates._linear import Linear
from memohop.fit.candidates._network import Network
from memohop.fit.candidates._trees import Trees
from memohop.fit.candidates.catalogue import NAMES
from memohop.folders import NO_DIGEST, sha256, sha256_of
from memohop.interrupts import interrupts_wait
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

FORMAT = 4
"""It is raised whenever an older version could not read a folder."""

_JSON, _CARD = "model.json", "README.md"
_FILE = re.compile(r"(weights|graph|trees)-(?P<digest>[0-9a-f]{16})\.(?:safetensors|txt)")
_CARD_END = "\n<!-- SHA-256 of what is above: {} -->\n"
_PARTS: dict[str, Any] = {"linear": Linear, "trees": Trees, "network": Network}
_SAME = ("overall", "directed", "has_arcs", "mean_weight", "encoder", "reading", "report")
"""Attributes of an estimator, without the underscore, that are described as they are."""


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model; a ``UsageError`` if it cannot be written or holds other files."""
    folder = Path(path).expanduser()
    return folders.check_folder(folder, "saved model", _is_ours, _JSON, _CARD)


@interrupts_wait()
def save(estimator: GraphEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, which may hold an older model."""
    folder = check_target(path)
    files: dict[str, bytes] = {}
    weights: dict[str, Tensor] = {}
    views: list[View] = []

    def add(kind: str, content: bytes, ending: str) -> str:
        name = folders.named(kind, sha256(content), ending)
        files[name] = content
        return name

    def described(model: FittedModel, name: str) -> DescribedPart:
        kind: Any = next(kind for kind, cls in _PARTS.items() if type(model) is cls)
        saved, view, file = model.saved(), getattr(model, "view", None), None
        if view is not None and view not in views:
            views.append(view)
        if saved.text is not None:
            file = add("trees", saved.text.encode(), ".txt")
        weights.update({f"{name}.{own}": tensor for own, tensor in saved.tensors.items()})
        index = None if view is None else views.index(view)
        return DescribedPart(kind, dict(saved.about), index, file)

    components = tuple(
        DescribedComponent(
            family=component.setting.family,
            options=dict(component.setting.options),
            numbers=dict(component.setting.numbers),
            weight=component.weight,
            models=tuple(
                described(model, f"{number}.{index}")
                for index, model in enumerate(component.models)
            ),
        )
        for number, component in enumerate(estimator.model_.components)
    )
    saved_views = [view.saved() for view in views]
    for number, saved in enumerate(saved_views):
        weights |= {f"view {number}.{own}": tensor for own, tensor in saved.tensors.items()}
    add("weights", save_tensors(weights), ".safetensors")
    graph = graph_tensors(estimator.own_graph(), estimator.ids_)
    add("graph", save_tensors(graph), ".safetensors")
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params().items()
    }
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    names = getattr(estimator, "feature_names_in_", None)
    same: dict[str, Any] = {name: getattr(estimator, f"{name}_") for name in _SAME}
    kind: Any = type(estimator).__name__
    classes: Any = getattr(estimator, "classes_", np.empty(0)).tolist()
    model = DescribedModel(
        estimator=kind,
        parameters=parameters,
        features=estimator.n_features_in_,
        feature_names=None if names is None else names.tolist(),
        classes=classes,
        views=[dict(saved.about) for saved in saved_views],
        components=components,
        **same | {"overall": estimator.overall_.tolist()},
    )
    _write(folder, files, model, record_card(estimator))


def _write(folder: Path, files: Mapping[str, bytes], model: DescribedModel, card: str) -> None:
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
        return (header := _header(content)) is not None and header.is_seal_of(content)
    if path.name == _CARD:
        card = content[: -len(_CARD_END.format(NO_DIGEST))]
        return content == card + _CARD_END.format(sha256(card)).encode()
    return folders.is_working_folder(path) or folders.is_named_so(path, _FILE)


class _Header(msgspec.Struct):
    """The part of ``model.json`` that every version has."""

    format: int
    memohop: str
    sha256: dict[str, str]

    def is_seal_of(self, content: bytes) -> bool:
        """Whether a ``model.json`` has the digest that it claims."""
        return folders.is_sealed(content, self.sha256[_JSON])


def _header(content: bytes) -> _Header | None:
    """The header of a ``model.json``; None if it is not one of any version."""
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return header if _JSON in header.sha256 else None


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
        trees: The names of the files of its trees.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = Path(path).expanduser()
        self.json = self.folder / _JSON
        if not self.json.is_file():
            raise UsageError(f"there is no saved model in {self.folder}; memohop fit makes one")
        self.content = self.json.read_bytes()
        header = _header(self.content)
        if header is not None and header.format != FORMAT:
            update = "update memohop, or " if header.format > FORMAT else ""
            raise DataError(
                f"{self.folder} was made by memohop {header.memohop} in format {header.format}, "
                f"and memohop {__version__} reads format {FORMAT} alone; {update}fit the model "
                f"again: memohop fit --nodes NODES --edges EDGES --label LABEL -o {self.folder}"
            )
        if header is None or not header.is_seal_of(self.content):
            raise _damaged(self.json)
        self._sha256, names = header.sha256, defaultdict[str, list[str]](list)
        for name in self._sha256:
            if match := _FILE.fullmatch(name):
                names[match[1]].append(name)
        if [len(names[kind]) for kind in ("weights", "graph")] != [1, 1]:
            with refused(self.json):
                raise UsageError(f"its files are {', '.join(self._sha256)}")
        self.weights, self.graph = (self.folder / names[kind][0] for kind in ("weights", "graph"))
        self.trees = names["trees"]

    def is_replaced(self) -> bool:
        """Whether the folder holds another model by now."""
        return not self.json.is_file() or self.json.read_bytes() != self.content

    def tensors(self, path: Path) -> dict[str, Tensor]:
        """The content of one of its files of tensors."""
        self._check(path)
        try:
            return load_file(path)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise _damaged(path) from error

    def text(self, path: Path) -> str:
        """The content of one of its files of text."""
        self._check(path)
        with refused(path):
            return path.read_bytes().decode()

    def _check(self, path: Path) -> None:
        if not path.is_file() or sha256_of(path) != self._sha256[path.name]:
            raise _damaged(path)


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
        model = read_described(saved.content)
    by_name = {kind.__name__: kind for kind in kinds}
    if model.estimator not in by_name:
        raise UsageError(
            f"{saved.folder} holds a {model.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    with refused(saved.json):
        estimator = _make(model, by_name[model.estimator])
        ensemble = _read_ensemble(saved, model, weights)
    if saved.graph.exists():
        graph = saved.tensors(saved.graph)
        with refused(saved.graph):
            estimator.graph_, estimator.ids_ = checked_graph(graph, model.sizes)
    estimator.model_ = ensemble
    return estimator


def _make(model: DescribedModel, make: type[GraphEstimator]) -> GraphEstimator:
    """The estimator without its model; a ``UsageError`` if the file contradicts itself."""
    check_described(model, numbers=make._predicts_numbers)
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in model.parameters.items()
    }
    try:
        estimator = make(**parameters)
    except TypeError as error:
        raise UsageError(f"parameters: {error}") from error
    estimator._check_arguments()
    if model.classes:
        estimator.classes_ = np.array(model.classes)
    estimator.n_features_in_ = model.features
    if model.feature_names is not None:
        estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
    for name in _SAME:
        setattr(estimator, f"{name}_", getattr(model, name))
    estimator.overall_ = np.array(model.overall)
    return estimator


def _read_ensemble(
    saved: SavedModel, model: DescribedModel, weights: Mapping[str, Tensor]
) -> Ensemble:
    sizes = model.sizes

    def named(prefix: str) -> dict[str, Tensor]:
        """The tensors with this prefix and a dot, without them."""
        start = f"{prefix}."
        return {name[len(start) :]: weights[name] for name in weights if name.startswith(start)}

    def read(part: DescribedPart, tensors: Mapping[str, Tensor]) -> FittedModel:
        kind, view, text = part.kind, None, None
        if (part.view is None) != (kind == "network") or (part.view or 0) >= max(len(views), 1):
            raise UsageError(f"a {kind} model has view={part.view}")
        if (part.file is None) != (kind != "trees"):
            raise UsageError(f"a {kind} model has file={part.file!r}")
        if part.file is not None:
            check_choice("file", part.file, saved.trees)
            text = saved.text(saved.folder / part.file)
        if part.view is not None:
            view = views[part.view]
        made: FittedModel = _PARTS[kind].from_saved(Saved(part.about, tensors, text), view, sizes)
        return made

    views = [
        View.from_saved(Saved(about, named(f"view {number}")), sizes)
        for number, about in enumerate(model.views)
    ]
    components = []
    for number, component in enumerate(model.components):
        check_choice("family", component.family, NAMES)
        models = tuple(
            read(part, named(f"{number}.{index}")) for index, part in enumerate(component.models)
        )
        setting = Setting(component.family, component.options, component.numbers)
        components.append(Component(setting, component.weight, models))
    if not abs(sum(component.weight for component in components) - 1) < 1e-6:
        raise UsageError("the weights of the components do not sum to 1")
    return Ensemble(tuple(components), model.report.calibration)
