"""A ``GraphClassifier`` or ``GraphRegressor`` as a folder: format 3.

See :mod:`memohop.own.folder` for the files. ``model.json`` lists the parts of the ensemble with
their weights, and the views that trees and linear models share; names of tensors begin with the
number of the view, or with those of the component and of its model. Everything that is read is
checked: types and ranges by :class:`DescribedGraphModel`, and each part by its own class.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import torch
from msgspec import Meta
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_arcs
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.links import id_array
from memohop.errors import UsageError, check_choice
from memohop.own.candidates.catalogue import NAMES
from memohop.own.candidates.family import Part, Setting
from memohop.own.candidates.linear import Linear
from memohop.own.candidates.networks import Network
from memohop.own.candidates.trees import Trees
from memohop.own.card import record_card
from memohop.own.described import Ids, Scalar, Whole, check_classes, check_columns, check_reading
from memohop.own.ensemble import Component, Ensemble
from memohop.own.folder import (
    SavedModel,
    check_target,
    file_of_tensors,
    file_of_text,
    ids_as_tensor,
    refused,
    write_folder,
)
from memohop.own.problem import Inputs
from memohop.own.record import FitRecord
from memohop.own.saved import Saved, Sizes
from memohop.own.views import View
from memohop.training.metrics import metrics_for

if TYPE_CHECKING:
    from memohop.own.graph_estimator import GraphEstimator

FORMAT = 3
_PARTS: dict[str, Any] = {"linear": Linear, "trees": Trees, "network": Network}
_NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no such numbers

Positive = Annotated[float, Meta(gt=0)]


class DescribedPart(msgspec.Struct, frozen=True):
    """A fitted model of a component, in ``model.json``."""

    kind: Literal["linear", "trees", "network"]
    about: dict[str, Scalar | dict[str, Scalar]]
    view: Annotated[int, Meta(ge=0)] | None = None  # its index
    file: str | None = None  # its text file


class DescribedComponent(msgspec.Struct, frozen=True):
    """A component of the ensemble, in ``model.json``."""

    family: str
    options: dict[str, Scalar]
    numbers: dict[str, float]
    weight: Positive
    models: Annotated[tuple[DescribedPart, ...], Meta(min_length=1)]


class DescribedGraphModel(msgspec.Struct, frozen=True):
    """The content of ``model.json``."""

    estimator: Literal["GraphClassifier", "GraphRegressor"]
    parameters: dict[str, Scalar | list[str]]
    features: Annotated[int, Meta(ge=1)]  # their number
    feature_names: list[str] | None  # if they came in a data frame
    classes: list[bool | Whole | float | str]  # sorted; none if numbers are predicted
    overall: list[float]  # share of each class, or the mean
    directed: bool  # whether directions count
    has_arcs: bool  # whether fit was given arcs
    encoder: ColumnEncoder | None
    reading: dict[str, bool | str | None] | None  # how the tables were read
    views: list[dict[str, Scalar]]
    components: Annotated[tuple[DescribedComponent, ...], Meta(min_length=1)]
    temperature: Positive
    report: FitRecord


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
    tensors = {"weights": weights, "graph": _graph_tensors(estimator)}
    files |= dict(file_of_tensors(kind, found) for kind, found in tensors.items())
    parts = {"views": [dict(view.saved().about) for view in views], "components": components}
    write_folder(folder, files, _describe(estimator) | parts, record_card(estimator))


def _describe(estimator: GraphEstimator) -> dict[str, Any]:
    """The content of ``model.json`` without the parts of the ensemble."""
    parameters = estimator.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    if parameters["models"] is not None:
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
        "encoder": None if estimator.encoder_ is None else estimator.encoder_.to_json(),
        "reading": estimator.reading_,
        "temperature": estimator.model_.temperature,
        "report": _without_nan(estimator.report_.to_json()),
    }


def load(saved: SavedModel, kinds: Mapping[str, Callable[..., GraphEstimator]]) -> GraphEstimator:
    """Read a saved estimator, which one of ``kinds`` creates from its parameters.

    A damaged or forged model, or one of another kind, is refused.
    """
    if saved.format != FORMAT:
        raise UsageError(
            f"{saved.folder} holds an MMPClassifier; load it with memohop.load_model, or fit again"
        )
    with refused(saved.json):
        content = msgspec.json.decode(saved.content)
        content["report"] = _with_nan(content.get("report"))
        found = msgspec.convert(content, DescribedGraphModel)
    if found.estimator not in kinds:
        raise UsageError(
            f"{saved.folder} holds a {found.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    weights = saved.tensors("weights") or {}
    with refused(saved.json):
        estimator = _make(found, kinds[found.estimator])
        sizes = Sizes(found.features, len(found.classes), found.report.nodes, found.directed)
        model = _read_ensemble(saved, found, weights, sizes)
    graph = saved.tensors("graph", optional=True)
    if graph is not None:
        with refused(saved.folder / saved.names("graph")[0]):
            estimator.graph_, ids = _checked_graph(graph, sizes)
        estimator.ids_ = id_array(ids)
    estimator.model_ = model
    return estimator


def _make(found: DescribedGraphModel, make: Callable[..., GraphEstimator]) -> GraphEstimator:
    """The estimator without its model; a ``UsageError`` if the file contradicts itself."""
    numbers = found.estimator == "GraphRegressor"
    if numbers:
        check_choice("classes", len(found.classes), (0,))
    else:
        check_classes(found.classes)
    if len(found.overall) != max(len(found.classes), 1) or not np.isfinite(found.overall).all():
        raise UsageError(f"overall={found.overall[:9]} is not a share of each class, or a mean")
    check_columns(found.features, found.feature_names, found.encoder)
    if found.reading is not None:
        check_reading(found.reading)
    report = found.report
    check_choice("metric", report.metric, metrics_for(regression=numbers))
    if list(report.class_sizes) != [str(name) for name in found.classes]:
        raise UsageError("the report has other classes")
    counts = (report.arcs, report.labelled, *report.class_sizes.values())
    if min(counts) < 0 or min(report.nodes, report.splits) < 1:
        raise UsageError("the report has counts that are too small")
    parameters: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in found.parameters.items()
    }
    try:
        estimator = make(**parameters)
    except TypeError as error:
        raise UsageError(f"parameters: {error}") from error
    estimator._check_arguments()
    if not numbers:
        estimator.classes_ = np.array(found.classes)
    estimator.n_features_in_ = found.features
    if found.feature_names is not None:
        estimator.feature_names_in_ = np.array(found.feature_names, dtype=object)
    estimator.encoder_, estimator.reading_ = found.encoder, found.reading
    estimator.has_arcs_, estimator.report_ = found.has_arcs, report
    estimator.overall_, estimator.directed_ = np.array(found.overall), found.directed
    return estimator


def _read_ensemble(
    saved: SavedModel, found: DescribedGraphModel, weights: Mapping[str, Tensor], sizes: Sizes
) -> Ensemble:
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
    return Ensemble(tuple(components), found.temperature)


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


def _graph_tensors(estimator: GraphEstimator) -> dict[str, Tensor]:
    graph = estimator.own_graph()
    x = graph.x
    if sparse.issparse(x):
        parts = {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr}
    else:
        parts = {"x": x}
    parts |= {"arcs": graph.arcs, "y": graph.y}
    if graph.weights is not None:
        parts["weights"] = graph.weights
    tensors = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in parts.items()}
    return tensors | {"ids": ids_as_tensor(estimator.ids_)}


def _checked_graph(tensors: dict[str, Tensor], sizes: Sizes) -> tuple[Inputs, Ids]:
    """The graph of ``fit`` and its ids; a ``UsageError`` if it does not match the model."""
    columns = {"x"} if "x" in tensors else {"x.data", "x.indices", "x.indptr"}
    if tensors.keys() - {"weights"} != {*columns, "arcs", "y", "ids"}:
        raise UsageError(f"it holds {', '.join(sorted(tensors))}")
    ids = msgspec.json.decode(tensors["ids"].numpy().tobytes(), type=Ids)
    x = Saved({}, tensors).array("x", (sizes.nodes, sizes.features)) if "x" in tensors else None
    if x is None:
        parts = tuple(tensors[name].numpy() for name in ("x.data", "x.indices", "x.indptr"))
        try:
            x = sparse.csr_array(parts, shape=(sizes.nodes, sizes.features))
            x.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise UsageError(f"x is not a sparse matrix ({error})") from error
        if x.dtype != np.float32 or not np.isfinite(x.data).all():
            raise UsageError(f"x is of type {x.dtype}, or not finite")
    check_arcs(tensors["arcs"], sizes.nodes)
    weights = None
    if "weights" in tensors:
        weights = Saved({}, tensors).array("weights", (tensors["arcs"].shape[1],))
        if (weights < 0).any():
            raise UsageError("there are arcs with a negative weight")
    y = tensors["y"]
    if list(y.shape) != [sizes.nodes] or y.dtype != (
        torch.int64 if sizes.classes else torch.float64
    ):
        raise UsageError(f"y has shape {list(y.shape)} and type {y.dtype}")
    if sizes.classes and not -1 <= int(y.min()) <= int(y.max()) < sizes.classes:
        raise UsageError(f"y goes from {int(y.min())} to {int(y.max())}")
    known = y >= 0 if sizes.classes else ~y.isnan()
    if not known.any() or y.isinf().any():
        raise UsageError("y has no label, or one that is infinite")
    if len(ids) != sizes.nodes:
        raise UsageError(f"there are {sizes.nodes} nodes and {len(ids)} ids")
    graph = Inputs(
        x,
        tensors["arcs"].numpy(),
        y.numpy(),
        of_fit=sizes.nodes,
        directed=sizes.directed,
        weights=weights,
    )
    return graph, ids


def _without_nan(value: Any) -> Any:
    """Write numbers that JSON lacks as words."""
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _with_nan(value: Any) -> Any:
    """Read numbers that JSON lacks from words."""
    if isinstance(value, dict):
        return {name: _with_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_nan(one) for one in value]
    return float(value) if value in _NOT_FINITE else value
