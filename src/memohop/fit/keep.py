"""A fitted estimator as a folder: written in format 4, read in any.

See :mod:`memohop.fit.folder` for the files. ``model.json`` lists the parts of the ensemble with
their weights, and the views that trees and linear models share; names of tensors begin with the
number of the view, or with those of the component and of its model. Everything that is read is
checked: the description by :mod:`memohop.fit.described`, the graph by
:mod:`memohop.fit.saved_graph`, and each part by its own class. Earlier formats are translated first
(:mod:`memohop.fit.earlier`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from memohop.errors import DataError, UsageError, check_choice
from memohop.fit import earlier
from memohop.fit.calibration import Calibration
from memohop.fit.candidates.catalogue import NAMES
from memohop.fit.candidates.family import Part, Setting
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import Network
from memohop.fit.candidates.trees import Trees
from memohop.fit.card import record_card
from memohop.fit.described import (
    DescribedModel,
    DescribedPart,
    check_described,
    read_described,
    without_nan,
)
from memohop.fit.ensemble import Component, Ensemble
from memohop.fit.folder import (
    SavedModel,
    check_target,
    file_of_tensors,
    file_of_text,
    refused,
    write_folder,
)
from memohop.fit.saved import Saved, Sizes
from memohop.fit.saved_graph import checked_graph, graph_tensors
from memohop.fit.views import View
from memohop.interrupts import interrupts_wait

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

FORMAT = 4
_PARTS: dict[str, Any] = {"linear": Linear, "trees": Trees, "network": Network}


@interrupts_wait()
def save(estimator: GraphEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, which may hold an older model."""
    folder = check_target(path)
    files: dict[str, bytes] = {}
    weights: dict[str, Tensor] = {}
    views: list[View] = []
    components = []
    for number, component in enumerate(estimator.model_.components):
        models = []
        for index, model in enumerate(component.models):
            saved = model.saved()
            kind = next(name for name, cls in _PARTS.items() if type(model) is cls)
            described: dict[str, Any] = {"kind": kind, "about": dict(saved.about)}
            view = getattr(model, "view", None)
            if view is not None:
                if view not in views:
                    views.append(view)
                described["view"] = views.index(view)
            if saved.text is not None:
                described["file"], content = file_of_text("trees", saved.text)
                files[described["file"]] = content
            weights |= {f"{number}.{index}.{name}": one for name, one in saved.tensors.items()}
            models.append(described)
        setting = component.setting
        components.append(
            {
                "family": setting.family,
                "options": dict(setting.options),
                "numbers": dict(setting.numbers),
                "weight": component.weight,
                "models": models,
            }
        )
    for number, view in enumerate(views):
        weights |= {f"view {number}.{name}": one for name, one in view.saved().tensors.items()}
    tensors = {"weights": weights, "graph": graph_tensors(estimator.own_graph(), estimator.ids_)}
    files |= dict(file_of_tensors(kind, found) for kind, found in tensors.items())
    parts = {"views": [dict(view.saved().about) for view in views], "components": components}
    write_folder(folder, files, _describe(estimator) | parts, record_card(estimator))


def _describe(estimator: GraphEstimator) -> dict[str, Any]:
    """The content of ``model.json`` without the parts of the ensemble."""
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params().items()
    }
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    if parameters.get("models") is not None:
        parameters["models"] = list(parameters["models"])
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "features": estimator.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "classes": getattr(estimator, "classes_", np.empty(0)).tolist(),
        "overall": estimator.overall_.tolist(),
        "directed": estimator.directed_,
        "has_arcs": estimator.has_arcs_,
        "mean_weight": estimator.mean_weight_,
        "encoder": None if estimator.encoder_ is None else estimator.encoder_.to_json(),
        "reading": estimator.reading_,
        "temperature": estimator.model_.calibration.temperature,
        "shifts": list(estimator.model_.calibration.shifts),
        "report": without_nan(estimator.report_.to_json()),
    }


def load(saved: SavedModel, kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    """Read a saved estimator, which is of one of these kinds.

    A damaged or forged model, or one of another kind, is refused. If the model is replaced
    meanwhile, the newer one is read.
    """
    try:
        found = _load(saved, kinds)
    except (DataError, FileNotFoundError):
        if not saved.is_replaced():
            raise
    else:
        if hasattr(found, "graph_") or not saved.is_replaced():
            return found
    return load(SavedModel(saved.folder), kinds)


def _load(saved: SavedModel, kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    is_earlier, weights = saved.format <= earlier.LAST, saved.tensors("weights") or {}
    with refused(saved.json):
        if is_earlier:
            found, weights = earlier.translate(saved.content, weights)
        else:
            found = read_described(saved.content)
    by_name = {kind.__name__: kind for kind in kinds}
    if found.estimator not in by_name:
        raise UsageError(
            f"{saved.folder} holds a {found.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    with refused(saved.json):
        estimator = _make(found, by_name[found.estimator])
        model = _read_ensemble(saved, found, weights)
    graph = saved.tensors("graph", optional=True)
    if graph is not None:
        with refused(saved.folder / saved.names("graph")[0]):
            graph = earlier.graph_of_today(graph) if is_earlier else graph
            estimator.graph_, estimator.ids_ = checked_graph(graph, found.sizes)
    estimator.model_ = model
    return estimator


def _make(found: DescribedModel, make: type[GraphEstimator]) -> GraphEstimator:
    """The estimator without its model; a ``UsageError`` if the file contradicts itself."""
    check_described(found, numbers=make._predicts_numbers)
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found.parameters.items()
    }
    try:
        estimator = make(**parameters)
    except TypeError as error:
        raise UsageError(f"parameters: {error}") from error
    estimator._check_arguments()
    if found.classes:
        estimator.classes_ = np.array(found.classes)
    estimator.n_features_in_ = found.features
    if found.feature_names is not None:
        estimator.feature_names_in_ = np.array(found.feature_names, dtype=object)
    estimator.encoder_, estimator.reading_ = found.encoder, found.reading
    estimator.has_arcs_, estimator.report_ = found.has_arcs, found.report
    estimator.mean_weight_ = found.mean_weight
    estimator.overall_, estimator.directed_ = np.array(found.overall), found.directed
    return estimator


def _read_ensemble(
    saved: SavedModel, found: DescribedModel, weights: Mapping[str, Tensor]
) -> Ensemble:
    sizes = found.sizes
    views = [
        View.from_saved(Saved(about, _of(f"view {number}", weights)), sizes)
        for number, about in enumerate(found.views)
    ]
    components = []
    for number, one in enumerate(found.components):
        check_choice("family", one.family, NAMES)
        models = tuple(
            _read_part(saved, part, _of(f"{number}.{index}", weights), views, sizes)
            for index, part in enumerate(one.models)
        )
        setting = Setting(one.family, one.options, one.numbers)
        components.append(Component(setting, one.weight, models))
    if not abs(sum(one.weight for one in components) - 1) < 1e-6:
        raise UsageError("the weights of the components do not sum to 1")
    return Ensemble(tuple(components), Calibration(found.temperature, tuple(found.shifts)))


def _read_part(
    saved: SavedModel,
    part: DescribedPart,
    tensors: Mapping[str, Tensor],
    views: list[View],
    sizes: Sizes,
) -> Part:
    if (part.view is None) != (part.kind == "network") or (part.view or 0) >= max(len(views), 1):
        raise UsageError(f"a {part.kind} model has view={part.view}")
    if (part.file is None) != (part.kind != "trees"):
        raise UsageError(f"a {part.kind} model has file={part.file!r}")
    if part.file is not None:
        check_choice("file", part.file, saved.names("trees"))
    text = None if part.file is None else saved.text(part.file)
    view = None if part.view is None else views[part.view]
    read: Part = _PARTS[part.kind].from_saved(Saved(part.about, tensors, text), view, sizes)
    return read


def _of(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with a given prefix and a dot in their names, without the prefix."""
    start = f"{prefix}."
    return {name[len(start) :]: one for name, one in weights.items() if name.startswith(start)}
