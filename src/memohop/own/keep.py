"""An :class:`~memohop.own.estimator.MMPClassifier` as a folder: formats 1 and 2.

See :mod:`memohop.own.folder` for the files. A ``model.json`` with impossible content is refused
(:mod:`memohop.own.described`). With the graph, a loaded classifier can predict its unlabelled nodes
and be explained.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from torch import Tensor

from memohop.data.tables.links import id_array
from memohop.errors import UsageError
from memohop.own.card import model_card
from memohop.own.described import GRAPH, Described, check_described, checked_graph, checked_model
from memohop.own.folder import (
    SavedModel,
    check_target,
    file_of_tensors,
    ids_as_tensor,
    refused,
    write_folder,
)

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier

FORMAT = 2


def save(classifier: MMPClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier into a folder, which may hold an older model."""
    folder = check_target(path)
    files = dict(file_of_tensors(kind, found) for kind, found in _tensors(classifier).items())
    write_folder(folder, files, _describe(classifier), model_card(classifier))


def load(saved: SavedModel, make: Callable[..., MMPClassifier]) -> MMPClassifier:
    """Read a saved classifier, which ``make`` creates from its parameters.

    A damaged or forged model, or one of another kind, is refused.
    """
    if saved.format > FORMAT:
        raise UsageError(
            f"{saved.folder} holds a model of another kind; load it with memohop.load_model"
        )
    with refused(saved.json):
        found = msgspec.json.decode(saved.content, type=Described)
        check_described(found)
        parameters: dict[str, Any] = found.parameters
        try:
            classifier = make(**parameters)
        except TypeError as error:
            raise UsageError(f"parameters: {error}") from error
        classifier._check_arguments()
    classifier.classes_ = np.array(found.classes)
    classifier.n_features_in_ = found.features
    if found.feature_names is not None:
        classifier.feature_names_in_ = np.array(found.feature_names, dtype=object)
    classifier.encoder_, classifier.reading_ = found.encoder, found.reading
    classifier.has_arcs_, classifier.report_ = found.has_arcs, found.report
    weights = saved.tensors("weights")
    graph = saved.tensors("graph", optional=True)
    with refused(saved.folder / saved.names("weights")[0]):
        classifier.model_ = checked_model(found, weights or {})
    if graph is not None:
        with refused(saved.folder / saved.names("graph")[0]):
            classifier.graph_, ids = checked_graph(found, graph)
        classifier.ids_ = id_array(ids)
    return classifier


def _describe(classifier: MMPClassifier) -> dict[str, Any]:
    """The content of ``model.json``."""
    parameters = classifier.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    names = getattr(classifier, "feature_names_in_", None)
    return {
        "format": FORMAT,
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


def _tensors(classifier: MMPClassifier) -> dict[str, dict[str, Tensor]]:
    """The tensors of each file."""
    weights = {  # copies: layers that share a gate have one each
        f"{number}.{name}": value.clone().contiguous()
        for number, state in enumerate(classifier.model_.states)
        for name, value in state.items()
    }
    graph = {name: classifier.graph_[name].contiguous() for name in GRAPH}
    return {"weights": weights, "graph": graph | {"ids": ids_as_tensor(classifier.ids_)}}
