"""A fitted estimator as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             the description of the model, and name and SHA-256 of the other files
``weights-*.safetensors``  its arrays, among them the text of each model of boosted trees
``graph-*.safetensors``    the graph of ``fit``: features, arcs, targets and ids
``README.md``              the model card, for people
=========================  ===================================================================

The star stands for the beginning of the file's own SHA-256. How a model replaces another one, and
what in its folder may be replaced or removed, is in :mod:`memohop.folders`; the card contains its
digest, too. Files that Memohop did not write stay.

``model.json`` lists the parts of the ensemble with their weights, and the views that trees and
linear models share; names of arrays begin with the number of the view, or with those of the
component and of its model.

A file with a changed byte is refused, but a correct digest does not make a model valid. Types and
ranges of ``model.json`` are those of :class:`Description`. Its parts must agree with each other and
with the graph, and those of the ensemble are checked by their own classes; no number in the file
decides how many bytes are allocated. To share a model without its data, delete the file of the
graph: the rest predicts on other graphs. A model in a format before the fifth must be fitted again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypeAlias, TypedDict

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as save_arrays

import memohop.folders as folders
from memohop.data.arcs import ArcAttribute
from memohop.data.tables import ColumnEncoder
from memohop.errors import DataError, UsageError, check_choice
from memohop.fit._candidate import Setting
from memohop.fit._card import record_card
from memohop.fit._ensemble import Component, Ensemble
from memohop.fit._graph import Inputs
from memohop.fit._record import FitRecord
from memohop.fit._saved import Saved, Sizes, as_array
from memohop.fit._values import ValueLabels
from memohop.fit._views import View
from memohop.fit.candidates._extra_trees import ExtraTrees
from memohop.fit.candidates._fitted_network import Network
from memohop.fit.candidates._linear import Linear
from memohop.fit.candidates._nearest import Nearest
from memohop.fit.candidates._on_curve import OnCurve, plain_model
from memohop.fit.candidates._trees import Trees
from memohop.interrupts import interrupts_wait
from memohop.training.metrics import METRICS
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

_Arrays: TypeAlias = dict[str, NDArray[Any]]
_Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Plain: TypeAlias = bool | _Whole | float | str | None
_Digest: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_AboveZero: TypeAlias = Annotated[float, Meta(gt=0)]

_NOT_IN_JSON = (bytes, date, datetime, timedelta)  # labels that would come back as strings
_KINDS: dict[str, Any] = {  # others are networks
    "linear": Linear,
    "lightgbm": Trees,
    "extra-trees": ExtraTrees,
    "nearest": Nearest,
}

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


class _Reading(TypedDict, total=False):
    """Arguments of :func:`memohop.read_graph` that read other tables alike."""

    label: Required[str | None]
    id: str | None
    source: str | None
    target: str | None
    weight: str | None
    directed: bool
    task: str
    encoding: str | None


class DescribedComponent(msgspec.Struct, frozen=True):
    """A component of the ensemble, in ``model.json``."""

    family: str
    options: Mapping[str, _Plain]
    numbers: Mapping[str, float]
    weight: _AboveZero
    view: int | None  # the index of what its models see; None for networks
    models: Annotated[tuple[Mapping[str, _Plain | dict[str, _Plain]], ...], Meta(min_length=1)]


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``model.json``, except for its own digest and the version that wrote it.

    A name that ends in an underscore is that of an attribute of the estimator.
    """

    estimator: Literal["GraphClassifier", "GraphRegressor", "MMPClassifier"]
    weights: _Digest  # of the file of arrays
    graph: _Digest  # of the file of the graph of fit
    parameters: Mapping[str, _Plain | list[str]]
    n_features_in_: Annotated[int, Meta(ge=1)]
    feature_names_in_: list[str] | UnsetType = UNSET  # if they came in a data frame
    classes_: list[bool | _Whole | float | str] | UnsetType = UNSET  # unless it predicts numbers
    overall_: list[float]
    directed_: bool
    has_arcs_: bool
    mean_weight_: _AboveZero | None
    arc_attributes_: list[ArcAttribute]
    encoder_: ColumnEncoder | None
    reading_: _Reading | None
    report_: FitRecord
    views: list[Mapping[str, _Plain | dict[str, tuple[_Whole, _Whole]]]]
    components: Annotated[tuple[DescribedComponent, ...], Meta(min_length=1)]

    @property
    def sizes(self) -> Sizes:
        """The sizes that all of its parts share."""
        classes = 0 if self.classes_ is UNSET else len(self.classes_)
        encoder = self.encoder_ or ColumnEncoder(())
        return Sizes(
            self.n_features_in_,
            classes,
            self.report_.nodes,
            self.directed_,
            encoder.of_edges,
            tuple(self.arc_attributes_),
            encoder.time is not None,
        )

    def check(self) -> None:
        """Raise a ``UsageError`` if two parts of the file contradict each other."""
        report, names, sizes = self.report_, self.feature_names_in_, self.sizes
        classes: list[Any] = [] if self.classes_ is UNSET else self.classes_
        numbers = self.estimator == "GraphRegressor"
        if numbers != (not classes):
            raise UsageError(f"classes={classes[:9]} of a {self.estimator}")
        kinds = {str if isinstance(name, str) else float for name in classes}
        if len(kinds) > 1 or len(classes) == 1 or len({*classes}) != len(classes):
            raise UsageError(f"classes={classes[:9]} are not different names of one kind")
        if len(self.overall_) != sizes.outputs:
            raise UsageError(f"overall={self.overall_[:9]} is not a share of each class, or a mean")
        temperature, shifts = report.calibration.temperature, report.calibration.shifts
        if not 0 < temperature < np.inf:
            raise UsageError(f"temperature={temperature} is not above 0, or not finite")
        if shifts and not (len(shifts) == len(classes) and np.isfinite(shifts).all()):
            raise UsageError(f"shifts={shifts[:9]} are not a number for each class")
        if names is not UNSET and len(names) != sizes.features:
            raise UsageError(f"{sizes.features} features have {len(names)} names")
        if sizes.of_edges > sizes.features:
            raise UsageError(f"{sizes.of_edges} of {sizes.features} features are made of edges")
        check_choice("metric", report.metric, METRICS)
        residual = report.residual
        sound = not numbers if residual is None else numbers and residual.is_sound
        if METRICS[report.metric].is_regression != numbers or not sound:
            said = f"metric={report.metric!r} and residual={residual}"
            raise UsageError(f"a {self.estimator} has {said}")
        if list(report.class_sizes) != [str(name) for name in classes]:
            raise UsageError("the report has other classes")
        check_choice("positive", report.positive, (0, 1))
        counts = (report.arcs, report.labelled, *report.class_sizes.values())
        if min(counts) < 0 or min(report.nodes, report.splits) < 1:
            raise UsageError("the report has counts that are too small")


_ATTRIBUTES = tuple(name for name in Description.__struct_fields__ if name.endswith("_"))


@interrupts_wait()
def save(estimator: GraphEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator into a folder, which may hold an older model."""
    folder = MODEL_FOLDER.check_target(path)
    parts, weights = _take_apart(estimator.model_)
    if estimator.value_labels_ is not None and any(view["values"] for view in parts["views"]):
        told = estimator.value_labels_.saved().arrays
        weights |= {f"values.{name}": array for name, array in told.items()}
    graph = {**estimator.own_graph().saved().arrays, "ids": _ids_as_array(estimator.ids_)}
    files = {
        kind: save_arrays({name: np.asarray(array, order="C") for name, array in of_file.items()})
        for kind, of_file in {"weights": weights, "graph": graph}.items()
    }
    digests: dict[str, Any] = {kind: folders.sha256(content) for kind, content in files.items()}
    parameters = estimator.get_params()
    if not isinstance(parameters["random_state"], int | np.integer):
        parameters["random_state"] = None
    attributes: dict[str, Any] = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name in _ATTRIBUTES
        if (value := getattr(estimator, name, UNSET)) is not UNSET
    }
    attributes["estimator"] = type(estimator).__name__
    description = Description(parameters=parameters, **digests, **attributes, **parts)
    head = {"format": MODEL_FOLDER.format, "sha256": folders.NO_DIGEST, "memohop": __version__}
    try:
        plain = msgspec.to_builtins(
            description, builtin_types=_NOT_IN_JSON, enc_hook=np.generic.item
        )
        plain["report_"] = json.loads(  # the numbers that JSON lacks as words
            json.dumps(plain["report_"]), parse_constant=lambda word: str(float(word))
        )
        text = json.dumps(head | plain, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"this model cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    card = folders.signed(record_card(estimator).encode())
    with MODEL_FOLDER.replaced(folder) as work:
        for kind, content in files.items():
            (work / _named(kind, digests[kind])).write_bytes(content)
        (work / MODEL_FOLDER.card).write_bytes(card)
        (work / MODEL_FOLDER.described).write_bytes(folders.sealed(text))


def load(path: str | os.PathLike[str], kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    """Read a saved estimator, which is of one of these kinds.

    A damaged or forged model, or one of another kind, is refused. If the model is replaced
    meanwhile, the newer one is read.
    """
    folder = Path(path).expanduser()
    described = folder / MODEL_FOLDER.described
    while True:
        content = MODEL_FOLDER.read(folder)
        try:
            estimator = _load(described, content, kinds)
        except (DataError, FileNotFoundError):
            if described.is_file() and described.read_bytes() == content:
                raise
        else:
            if described.is_file() and described.read_bytes() == content:
                return estimator


def _load(described: Path, content: bytes, kinds: Sequence[type[GraphEstimator]]) -> GraphEstimator:
    """The estimator that a description, and the files beside it, are of."""
    with MODEL_FOLDER.refused(described):
        plain = msgspec.json.decode(content)
        report = msgspec.convert(plain.get("report_"), FitRecord, strict=False)  # words as numbers
        description = msgspec.convert(plain | {"report_": report}, Description)
        description.check()
    weights = _arrays(
        described.with_name(_named("weights", description.weights)), description.weights
    )
    make = {kind.__name__: kind for kind in kinds}.get(description.estimator)
    if make is None:
        raise UsageError(
            f"{described.parent} holds a {description.estimator}; load it with that class, or with "
            "memohop.load_model"
        )
    with MODEL_FOLDER.refused(described):
        estimator = _make(make, description)
        estimator.model_ = _put_together(description, weights)
        told = Saved.of_part("values", {}, weights)
        estimator.value_labels_ = ValueLabels.from_saved(told, description.sizes)
    graph = described.with_name(_named("graph", description.graph))
    if graph.exists():  # it may have been deleted
        saved = Saved({}, _arrays(graph, description.graph))
        with MODEL_FOLDER.refused(graph):
            estimator.graph_ = Inputs.from_saved(saved, description.sizes)
            estimator.ids_ = _checked_ids(saved, description.sizes.nodes)
    return estimator


def _named(kind: str, digest: str) -> str:
    """The name of a file of arrays."""
    return folders.named(kind, digest, ".safetensors")


def _arrays(path: Path, digest: str) -> _Arrays:
    """The content of such a file."""
    if not path.is_file() or folders.sha256_of(path) != digest:
        raise MODEL_FOLDER.damaged(path)
    try:
        return load_file(path)
    except (SafetensorError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise MODEL_FOLDER.damaged(path) from error  # perhaps a type that NumPy does not have


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
    for name in _ATTRIBUTES:
        if (value := getattr(description, name)) is not UNSET:
            kind = object if name == "feature_names_in_" else None
            if isinstance(value, list) and name != "arc_attributes_":
                value = np.array(value, dtype=kind)
            setattr(estimator, name, value)
    return estimator


def _take_apart(ensemble: Ensemble) -> tuple[dict[str, Any], _Arrays]:
    """The ``views`` and ``components`` of a :class:`Description`, and all arrays."""
    views: list[View] = []
    arrays: _Arrays = {}

    def add(name: str, saved: Saved) -> Mapping[str, Any]:
        arrays.update({f"{name}.{own}": array for own, array in saved.arrays.items()})
        return saved.about

    components = []
    for number, component in enumerate(ensemble.components):
        view = getattr(plain_model(component.models[0]), "view", None)
        if view is not None and view not in views:
            views.append(view)
        components.append(
            DescribedComponent(
                **vars(component.setting),
                weight=component.weight,
                view=None if view is None else views.index(view),
                models=tuple(
                    add(f"{number}.{index}", model.saved())
                    for index, model in enumerate(component.models)
                ),
            )
        )
    about = [add(f"view {number}", view.saved()) for number, view in enumerate(views)]
    return {"views": about, "components": tuple(components)}, arrays


def _put_together(description: Description, arrays: _Arrays) -> Ensemble:
    """The ensemble; a ``UsageError`` if its parts cannot be what they are said to be."""
    sizes = description.sizes
    views = [
        View.from_saved(Saved.of_part(f"view {number}", about, arrays), sizes)
        for number, about in enumerate(description.views)
    ]
    components = []
    for number, of in enumerate(description.components):
        kind = _KINDS.get(of.family.partition("+")[0], Network)
        by_view: dict[Any, Any] = {None: None} if kind is Network else dict(enumerate(views))
        check_choice("view", of.view, by_view)
        setting = Setting(of.family, of.options, of.numbers)
        read: Any = partial(kind.from_saved, view=by_view[of.view], sizes=sizes)
        if (target := setting.target) is not None:
            read = partial(OnCurve.from_saved, target=target, sizes=sizes, read=read)
        models = tuple(
            read(Saved.of_part(f"{number}.{index}", about, arrays))
            for index, about in enumerate(of.models)
        )
        plain = map(plain_model, models)
        if any(isinstance(model, Network) and model.model != of.family for model in plain):
            raise UsageError(f"a component has family={of.family!r} and models of another one")
        components.append(Component(setting, of.weight, models))
    if not abs(sum(component.weight for component in components) - 1) < 1e-6:
        raise UsageError("the weights of the components do not sum to 1")
    return Ensemble(tuple(components), description.report_.calibration)


def _ids_as_array(ids: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers, or else the bytes of a list of words in JSON."""
    if ids.dtype == np.int64:
        return ids
    plain = [node if isinstance(node, int | str) else str(node) for node in ids.tolist()]
    return as_array(json.dumps(plain, ensure_ascii=False))


def _checked_ids(saved: Saved, nodes: int) -> NDArray[Any]:
    """The ids of the nodes of ``fit``, numbers or words; a ``UsageError`` if they are neither."""
    stored = saved.arrays.get("ids")
    if stored is None or stored.dtype != np.uint8:
        return saved.array("ids", (nodes,), np.int64)
    names = msgspec.json.decode(saved.text("ids"), type=list[_Whole | str])
    if len(names) != nodes:
        raise UsageError(f"there are {len(names)} ids of {nodes} nodes")
    return np.array(names, dtype=object)
