"""What a saved model holds, for programs and for people, and its checks.

A correct digest does not make a model valid. Types and ranges of ``model.json`` are those of
:class:`DescribedModel`. Its parts must agree with each other and with the graph, and those of the
ensemble are checked by their own classes; no number in the file decides how many bytes are
allocated.

The model card has the model, its data, and how far to trust it. Its text is in ``card.md``.
"""

from __future__ import annotations

import html
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import torch
from jinja2 import Environment, StrictUndefined
from msgspec import Meta
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_arcs
from memohop.data.audit import audit, distrust
from memohop.data.tables import ColumnEncoder, OwnGraph, id_array
from memohop.errors import UsageError, check_choice
from memohop.fit._problem import Inputs
from memohop.fit._record import FitRecord, KeptPart
from memohop.fit._saved import Saved, Sizes
from memohop.outputs import printable
from memohop.pyg import Data
from memohop.training.metrics import METRICS, metrics_for
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

_Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Plain: TypeAlias = bool | _Whole | float | str | None
_AboveZero: TypeAlias = Annotated[float, Meta(gt=0)]

_READING = (  # for later tables
    *("label", "id", "source", "target", "weight", "directed", "task", "encoding"),
)
_NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no such numbers

_TEMPLATE = Path(__file__).with_name("card.md")
_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn", "lightgbm")
_CLASSES = 6  # named in the title, at most
_ARCS = 2_000_000  # of the largest graph that is audited for the card


@dataclass(frozen=True)
class DescribedPart:
    """A fitted model of a component, in ``model.json``."""

    kind: Literal["linear", "trees", "network"]
    about: Mapping[str, _Plain | dict[str, _Plain]]
    view: Annotated[int, Meta(ge=0)] | None = None  # its index
    file: str | None = None  # its text file


@dataclass(frozen=True)
class DescribedComponent:
    """A component of the ensemble, in ``model.json``."""

    family: str
    options: Mapping[str, _Plain]
    numbers: Mapping[str, float]
    weight: _AboveZero
    models: Annotated[tuple[DescribedPart, ...], Meta(min_length=1)]


@dataclass(frozen=True)
class DescribedModel:
    """The content of ``model.json``, except for digests and the version that wrote it."""

    estimator: Literal["GraphClassifier", "GraphRegressor", "MMPClassifier"]
    parameters: Mapping[str, _Plain | list[str]]
    features: Annotated[int, Meta(ge=1)]  # their number
    feature_names: list[str] | None  # if they came in a data frame
    classes: list[bool | _Whole | float | str]  # sorted; none if numbers are predicted
    overall: list[float]  # share of each class, or the mean
    directed: bool  # whether directions count
    has_arcs: bool  # whether fit was given arcs
    mean_weight: _AboveZero | None  # of arcs
    encoder: ColumnEncoder | None
    reading: Mapping[str, bool | str | None] | None  # how the tables were read
    views: list[Mapping[str, _Plain]]
    components: Annotated[tuple[DescribedComponent, ...], Meta(min_length=1)]
    report: FitRecord

    @property
    def sizes(self) -> Sizes:
        """The sizes that all of its parts share."""
        return Sizes(self.features, len(self.classes), self.report.nodes, self.directed)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, from which :func:`read_described` makes the same description."""
        encoder = None if self.encoder is None else self.encoder.to_json()
        return asdict(self) | {"encoder": encoder, "report": _without_nan(asdict(self.report))}


def read_described(content: bytes) -> DescribedModel:
    """The description of a model."""
    plain = msgspec.json.decode(content)
    plain["report"] = _with_nan(plain.get("report"))
    return msgspec.convert(plain, DescribedModel)


def check_described(model: DescribedModel, *, numbers: bool) -> None:
    """Raise a ``UsageError`` if two parts of the file contradict each other.

    Args:
        model: The description.
        numbers: Whether its estimator predicts numbers.
    """
    report, classes = model.report, model.classes
    if numbers:
        check_choice("classes", len(classes), (0,))
    else:
        kinds = {str if isinstance(name, str) else float for name in classes}
        if len(kinds) != 1 or len(classes) < 2 or len(np.unique(np.array(classes))) != len(classes):
            raise UsageError(f"classes={classes[:9]} are not different names of one kind")
    if model.mean_weight is not None and not np.isfinite(model.mean_weight):
        raise UsageError(f"mean_weight={model.mean_weight} is not finite")
    if len(model.overall) != model.sizes.outputs or not np.isfinite(model.overall).all():
        raise UsageError(f"overall={model.overall[:9]} is not a share of each class, or a mean")
    temperature, shifts = report.calibration.temperature, report.calibration.shifts
    if not 0 < temperature < np.inf:
        raise UsageError(f"temperature={temperature} is not above 0, or not finite")
    if shifts and not (len(shifts) == len(classes) and np.isfinite(shifts).all()):
        raise UsageError(f"shifts={shifts[:9]} are not a number for each class")
    _check_columns(model.features, model.feature_names, model.encoder)
    if model.reading is not None:
        _check_reading(model.reading)
    check_choice("metric", report.metric, metrics_for(regression=numbers))
    if list(report.class_sizes) != [str(name) for name in classes]:
        raise UsageError("the report has other classes")
    if (report.residual is None) == numbers:
        raise UsageError(f"the report has residual={report.residual}")
    check_choice("positive", report.positive, (0, 1))
    counts = (report.arcs, report.labelled, *report.class_sizes.values())
    if min(counts) < 0 or min(report.nodes, report.splits) < 1:
        raise UsageError("the report has counts that are too small")


def _check_columns(features: int, names: list[str] | None, encoder: ColumnEncoder | None) -> None:
    """Raise a ``UsageError`` unless names and columns match the number of features."""
    if names is not None and len(names) != features:
        raise UsageError(f"there are {features} features and {len(names)} feature names")
    if encoder is not None and len(encoder.feature_names) != features:
        raise UsageError(f"the columns do not make {features} features")


def _check_reading(reading: Mapping[str, Any]) -> None:
    """Refuse names that are no arguments of ``read_graph`` for later tables, and other types."""
    for name, value in reading.items():
        check_choice("reading", name, _READING)
        if isinstance(value, bool) != (name == "directed"):
            raise UsageError(f"reading has {name}={value!r}")
    if "label" not in reading:
        raise UsageError("reading has no label")


def _without_nan(value: Any) -> Any:
    """Write numbers that JSON lacks as words."""
    if isinstance(value, Mapping):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _with_nan(value: Any) -> Any:
    """Read numbers that JSON lacks from words."""
    if isinstance(value, dict):
        return {name: _with_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_nan(item) for item in value]
    return float(value) if value in _NOT_FINITE else value


def graph_tensors(graph: Inputs, ids: NDArray[Any]) -> dict[str, Tensor]:
    """The graph of ``fit`` and its ids, which may be words, for safetensors."""
    x = graph.x
    plain = [node if isinstance(node, int | str) else str(node) for node in ids.tolist()]
    text = json.dumps(plain, ensure_ascii=False).encode()
    arrays = {"arcs": graph.arcs, "y": graph.y, "ids": np.frombuffer(text, dtype=np.uint8).copy()}
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
    ids = msgspec.json.decode(tensors["ids"].numpy().tobytes(), type=list[_Whole | str])
    saved, arcs, y = Saved({}, tensors), tensors["arcs"], tensors["y"]
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
    if len(ids) != sizes.nodes:
        raise UsageError(f"there are {sizes.nodes} nodes and {len(ids)} ids")
    of_fit, directed = sizes.nodes, sizes.directed
    graph = Inputs(x, arcs.numpy(), y.numpy(), of_fit=of_fit, directed=directed, weights=weights)
    return graph, id_array(ids)


def record_card(estimator: GraphEstimator) -> str:
    """The card of a model of the portfolio, as Markdown."""
    record = estimator.report_
    names, legend = list(record.class_sizes), record.legend()
    more = f" and {len(names) - _CLASSES} more" if len(names) > _CLASSES else ""
    target = str((estimator.reading_ or {}).get("label") or "numbers")
    counts = sorted({len(component.models) for component in estimator.model_.components})
    span = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    environment = Environment(  # it is Markdown, and `plain` escapes
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["plain"] = _plain
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        record=record,
        metric=METRICS[record.metric],
        estimator=type(estimator).__name__,
        about=f"{', '.join(map(_plain, names[:_CLASSES]))}{more}" if names else _plain(target),
        times="once" if counts == [1] else f"{span} times",
        setting=_setting,
        sizes=", ".join(f"{_plain(name)}: {size}" for name, size in record.class_sizes.items()),
        legend=legend[:1].upper() + legend[1:],
        audited=_audit(estimator) if names else None,
        versions={
            "memohop": __version__,
            **{name: version(name) for name in _PACKAGES},
            "Python": platform.python_version(),
        },
    )


def _setting(part: KeptPart) -> str:
    pairs = {**part.options, **part.numbers}.items()
    return ", ".join(f"{name} {_shown(value)}" for name, value in pairs)


def _audit(estimator: GraphEstimator) -> list[str]:
    graph = estimator.own_graph()
    if graph.arcs.shape[1] > _ARCS:
        return ["The graph is too large for a quick audit; `memohop audit` makes one."]
    data = Data(
        x=graph.x if sparse.issparse(graph.x) else torch.from_numpy(graph.x),
        y=torch.from_numpy(graph.y),
        edge_index=torch.from_numpy(graph.arcs),
    )
    graph_of_fit = OwnGraph(data, estimator.ids_, estimator.classes_.tolist(), None, ())
    audited = audit(graph_of_fit, probes=False)  # what columns and graph say, the scores tell
    names = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    figures = {name.replace("_", " "): getattr(audited, name) for name in names}
    known = [f"- {name}: {_shown(value)}" for name, value in figures.items() if value is not None]
    return known + [f"- Beware: {_plain(reason)}" for reason in distrust(audited)]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    """Text from users, escaped so that it cannot become a tag, link or style."""
    return re.sub(r"[\\`*_\[\]|~]", r"\\\g<0>", html.escape(printable(text), quote=False))
