"""What the files of a saved model hold, and its checks.

A correct digest does not make a model valid. Types and ranges of ``model.json`` are those of
:class:`Description`. Its parts must agree with each other and with the graph, and those of the
ensemble are checked by their own classes; no number in the file decides how many bytes are
allocated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import torch
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_arcs
from memohop.data.tables import ColumnEncoder
from memohop.errors import UsageError, check_choice
from memohop.fit._candidate import Setting
from memohop.fit._model import Component, Ensemble
from memohop.fit._problem import Inputs
from memohop.fit._record import FitRecord
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._linear import Linear
from memohop.fit.candidates._network import Network
from memohop.fit.candidates._trees import Trees
from memohop.training.metrics import METRICS

_Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Plain: TypeAlias = bool | _Whole | float | str | None
_Digest: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_AboveZero: TypeAlias = Annotated[float, Meta(gt=0)]

_READING = ("label", "id", "source", "target", "weight", "directed", "task", "encoding")
_NOT_IN_JSON = (bytes, date, datetime, timedelta)  # labels that would come back as strings
_KINDS: dict[str, Any] = {"linear": Linear, "lightgbm": Trees}  # others are networks


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
    weights: _Digest  # of the file of tensors
    graph: _Digest  # of the file of the graph of fit
    parameters: Mapping[str, _Plain | list[str]]
    n_features_in_: Annotated[int, Meta(ge=1)]
    feature_names_in_: list[str] | UnsetType = UNSET  # if they came in a data frame
    classes_: list[bool | _Whole | float | str] | UnsetType = UNSET  # unless it predicts numbers
    overall_: list[float]
    directed_: bool
    has_arcs_: bool
    mean_weight_: _AboveZero | None
    encoder_: ColumnEncoder | None
    reading_: Mapping[str, bool | str | None] | None
    report_: FitRecord
    views: list[Mapping[str, _Plain]]
    components: Annotated[tuple[DescribedComponent, ...], Meta(min_length=1)]

    @property
    def classes(self) -> list[Any]:
        """The classes; none if numbers are predicted."""
        return [] if self.classes_ is UNSET else self.classes_

    @property
    def sizes(self) -> Sizes:
        """The sizes that all of its parts share."""
        nodes = self.report_.nodes
        return Sizes(self.n_features_in_, len(self.classes), nodes, self.directed_)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which :meth:`from_json` makes the same description."""
        plain: dict[str, Any] = msgspec.to_builtins(
            self, builtin_types=_NOT_IN_JSON, enc_hook=np.generic.item
        )
        return plain | {"report_": _in_words(plain["report_"])}

    @classmethod
    def from_json(cls, content: bytes) -> Description:
        """The description in a ``model.json``; a ``UsageError`` if it contradicts itself."""
        plain = msgspec.json.decode(content)
        report = msgspec.convert(plain.get("report_"), FitRecord, strict=False)  # words as numbers
        description = msgspec.convert(plain | {"report_": report}, cls)
        description.check()
        return description

    def check(self) -> None:
        """Raise a ``UsageError`` if two parts of the file contradict each other."""
        report, classes, names = self.report_, self.classes, self.feature_names_in_
        if (self.estimator == "GraphRegressor") != (not classes):
            raise UsageError(f"classes={classes[:9]} of a {self.estimator}")
        kinds = {str if isinstance(name, str) else float for name in classes}
        if len(kinds) > 1 or len(classes) == 1 or len({*classes}) != len(classes):
            raise UsageError(f"classes={classes[:9]} are not different names of one kind")
        if self.mean_weight_ is not None and not np.isfinite(self.mean_weight_):
            raise UsageError(f"mean_weight={self.mean_weight_} is not finite")
        if len(self.overall_) != self.sizes.outputs or not np.isfinite(self.overall_).all():
            raise UsageError(f"overall={self.overall_[:9]} is not a share of each class, or a mean")
        temperature, shifts = report.calibration.temperature, report.calibration.shifts
        if not 0 < temperature < np.inf:
            raise UsageError(f"temperature={temperature} is not above 0, or not finite")
        if shifts and not (len(shifts) == len(classes) and np.isfinite(shifts).all()):
            raise UsageError(f"shifts={shifts[:9]} are not a number for each class")
        if names is not UNSET and len(names) != self.n_features_in_:
            raise UsageError(f"{self.n_features_in_} features have {len(names)} names")
        for name, value in (self.reading_ or {}).items():  # arguments of read_graph
            check_choice("reading", name, _READING)
            if isinstance(value, bool) != (name == "directed"):
                raise UsageError(f"reading has {name}={value!r}")
        if self.reading_ is not None and "label" not in self.reading_:
            raise UsageError("reading has no label")
        check_choice("metric", report.metric, METRICS)
        numbers = self.estimator == "GraphRegressor"
        if METRICS[report.metric].is_regression != numbers or (report.residual is None) == numbers:
            said = f"metric={report.metric!r} and residual={report.residual}"
            raise UsageError(f"a {self.estimator} has {said}")
        if list(report.class_sizes) != [str(name) for name in classes]:
            raise UsageError("the report has other classes")
        check_choice("positive", report.positive, (0, 1))
        counts = (report.arcs, report.labelled, *report.class_sizes.values())
        if min(counts) < 0 or min(report.nodes, report.splits) < 1:
            raise UsageError("the report has counts that are too small")


def _in_words(value: Any) -> Any:
    """Plain objects with the numbers that JSON lacks as words, which are read as numbers again."""
    if isinstance(value, dict):
        return {name: _in_words(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_words(item) for item in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def take_apart(ensemble: Ensemble) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The ``views`` and ``components`` of a :class:`Description`, and all tensors."""
    views: list[View] = []
    tensors: dict[str, Tensor] = {}

    def add(name: str, saved: Saved) -> Mapping[str, Any]:
        tensors.update({f"{name}.{own}": tensor for own, tensor in saved.tensors.items()})
        return saved.about

    components = []
    for number, component in enumerate(ensemble.components):
        view = getattr(component.models[0], "view", None)
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
    return {"views": about, "components": tuple(components)}, tensors


def put_together(description: Description, tensors: Mapping[str, Tensor]) -> Ensemble:
    """The ensemble; a ``UsageError`` if its parts cannot be what they are said to be."""
    sizes = description.sizes

    def saved(name: str, about: Mapping[str, Any]) -> Saved:
        """A part, with the tensors that begin with its name and a dot."""
        start = f"{name}."
        own = {
            name.removeprefix(start): tensors[name] for name in tensors if name.startswith(start)
        }
        return Saved(about, own)

    views = [
        View.from_saved(saved(f"view {number}", about), sizes)
        for number, about in enumerate(description.views)
    ]
    components = []
    for number, of in enumerate(description.components):
        kind = _KINDS.get(of.family.partition("+")[0], Network)
        by_view: dict[Any, Any] = {None: None} if kind is Network else dict(enumerate(views))
        check_choice("view", of.view, by_view)
        models = tuple(
            kind.from_saved(saved(f"{number}.{index}", about), by_view[of.view], sizes)
            for index, about in enumerate(of.models)
        )
        if any(isinstance(model, Network) and model.model != of.family for model in models):
            raise UsageError(f"a component has family={of.family!r} and models of another one")
        setting = Setting(of.family, of.options, of.numbers)
        components.append(Component(setting, of.weight, models))
    if not abs(sum(component.weight for component in components) - 1) < 1e-6:
        raise UsageError("the weights of the components do not sum to 1")
    return Ensemble(tuple(components), description.report_.calibration)


def graph_tensors(graph: Inputs, ids: NDArray[Any]) -> dict[str, Tensor]:
    """The graph of ``fit`` and its ids, which may be words, for safetensors."""
    x, arrays = graph.x, {"arcs": graph.arcs, "y": graph.y, "ids": ids.copy()}
    if ids.dtype != np.int64:
        plain = [node if isinstance(node, int | str) else str(node) for node in ids.tolist()]
        text = json.dumps(plain, ensure_ascii=False)
        arrays["ids"] = np.frombuffer(text.encode(), dtype=np.uint8).copy()
    if sparse.issparse(x):
        arrays |= {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr}
    else:
        arrays["x"] = x
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def checked_graph(tensors: Mapping[str, Tensor], sizes: Sizes) -> tuple[Inputs, NDArray[Any]]:
    """The graph of ``fit`` and its ids; a ``UsageError`` if it does not match the model."""
    columns = ("x",) if "x" in tensors else ("x.data", "x.indices", "x.indptr")
    if tensors.keys() - {"weights"} != {*columns, "arcs", "y", "ids"}:
        raise UsageError(f"it holds {', '.join(sorted(tensors))}")
    saved, arcs, y, ids = Saved({}, tensors), tensors["arcs"], tensors["y"], tensors["ids"].numpy()
    if ids.dtype == np.uint8:
        names = msgspec.json.decode(ids.tobytes(), type=list[_Whole | str])
        ids = np.array(names, dtype=object)
    if "x" in tensors:
        x = saved.array("x", (sizes.nodes, sizes.features))
    else:
        parts = tuple(tensors[name].numpy() for name in columns)
        try:
            x = sparse.csr_array(parts, shape=(sizes.nodes, sizes.features))
            x.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise UsageError(f"x is not a sparse matrix ({error})") from error
        if x.dtype != np.float32 or not np.isfinite(x.data).all():
            raise UsageError(f"x is of type {x.dtype}, or not finite")
    check_arcs(arcs, sizes.nodes)
    weights = saved.array("weights", (arcs.shape[1],)) if "weights" in tensors else None
    if weights is not None and (weights < 0).any():
        raise UsageError("there are arcs with a negative weight")
    kind = torch.int64 if sizes.classes else torch.float64
    if list(y.shape) != [sizes.nodes] or y.dtype != kind:
        raise UsageError(f"y has shape {list(y.shape)} and type {y.dtype}")
    if sizes.classes and not -1 <= int(y.min()) <= int(y.max()) < sizes.classes:
        raise UsageError(f"y goes from {int(y.min())} to {int(y.max())}")
    known = y >= 0 if sizes.classes else ~y.isnan()
    if not known.any() or y.isinf().any():
        raise UsageError("y has no label, or one that is infinite")
    if ids.shape != (sizes.nodes,) or ids.dtype not in (np.int64, object):
        raise UsageError(f"ids have shape {list(ids.shape)} and type {ids.dtype}")
    of_fit, directed = sizes.nodes, sizes.directed
    graph = Inputs(x, arcs.numpy(), y.numpy(), of_fit=of_fit, directed=directed, weights=weights)
    return graph, ids
