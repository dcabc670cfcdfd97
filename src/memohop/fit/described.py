"""The content of ``model.json``, and its checks: a correct digest does not make it valid.

Types and ranges are those of :class:`DescribedModel`. Its parts must agree with each other, and
those of the ensemble are checked by their own classes; no number in the file decides how many bytes
are allocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from memohop.data.tables.column_kinds import Number
from memohop.data.tables.columns import ColumnEncoder
from memohop.errors import UsageError, check_choice
from memohop.fit.record import FitRecord
from memohop.fit.saved import Sizes
from memohop.training.metrics import metrics_for

Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Scalar: TypeAlias = bool | Whole | float | str | None
Ids: TypeAlias = list[Whole | str]

_READING = (  # for later tables
    *("label", "id", "source", "target", "weight", "directed", "task", "encoding"),
)
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


class DescribedModel(msgspec.Struct, frozen=True):
    """The content of ``model.json``."""

    estimator: Literal["GraphClassifier", "GraphRegressor", "MMPClassifier"]
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
    shifts: list[float] = []  # of the logits of the classes; none in format 3
    mean_weight: Positive | None = 1.0  # of arcs; 1 in older models, which count in any unit

    @property
    def sizes(self) -> Sizes:
        """The sizes that all of its parts share."""
        return Sizes(self.features, len(self.classes), self.report.nodes, self.directed)


def read_described(content: bytes) -> DescribedModel:
    """The description of a model in format 3 or 4."""
    found = msgspec.json.decode(content)
    found["report"] = _with_nan(found.get("report"))
    return msgspec.convert(found, DescribedModel)


def check_described(found: DescribedModel, *, numbers: bool) -> None:
    """Raise a ``UsageError`` if two parts of the file contradict each other.

    Args:
        found: The description.
        numbers: Whether its estimator predicts numbers.
    """
    if numbers:
        check_choice("classes", len(found.classes), (0,))
    else:
        _check_classes(found.classes)
    if found.mean_weight is not None and not np.isfinite(found.mean_weight):
        raise UsageError(f"mean_weight={found.mean_weight} is not finite")
    if len(found.overall) != found.sizes.outputs or not np.isfinite(found.overall).all():
        raise UsageError(f"overall={found.overall[:9]} is not a share of each class, or a mean")
    is_whole = len(found.shifts) == len(found.classes) and np.isfinite(found.shifts).all()
    if found.shifts and not is_whole:
        raise UsageError(f"shifts={found.shifts[:9]} are not a number for each class")
    _check_columns(found.features, found.feature_names, found.encoder)
    if found.reading is not None:
        _check_reading(found.reading)
    report = found.report
    check_choice("metric", report.metric, metrics_for(regression=numbers))
    if list(report.class_sizes) != [str(name) for name in found.classes]:
        raise UsageError("the report has other classes")
    check_choice("positive", report.positive, (0, 1))
    counts = (report.arcs, report.labelled, *report.class_sizes.values())
    if min(counts) < 0 or min(report.nodes, report.splits) < 1:
        raise UsageError("the report has counts that are too small")


def _check_classes(classes: list[Any]) -> None:
    """Raise a ``UsageError`` unless they are the names of at least two classes."""
    kinds = {str if isinstance(name, str) else float for name in classes}
    if len(kinds) != 1 or len(classes) < 2 or len(np.unique(np.array(classes))) != len(classes):
        raise UsageError(f"classes={classes[:9]} are not different names of one kind")


def _check_columns(features: int, names: list[str] | None, encoder: ColumnEncoder | None) -> None:
    """Raise a ``UsageError`` unless names and columns match the number of features."""
    if names is not None and len(names) != features:
        raise UsageError(f"there are {features} features and {len(names)} feature names")
    if encoder is not None:
        if len(encoder.feature_names) != features:
            raise UsageError(f"the columns do not make {features} features")
        for column in encoder.columns:
            if isinstance(column, Number) and not column.std > 0:
                raise UsageError(f"column {column.name!r} has std={column.std}")


def _check_reading(reading: Mapping[str, Any]) -> None:
    """Refuse names that are no arguments of ``read_graph`` for later tables, and other types."""
    for name, value in reading.items():
        check_choice("reading", name, _READING)
        if isinstance(value, bool) != (name == "directed"):
            raise UsageError(f"reading has {name}={value!r}")
    if "label" not in reading:
        raise UsageError("reading has no label")


def without_nan(value: Any) -> Any:
    """Write numbers that JSON lacks as words."""
    if isinstance(value, Mapping):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _with_nan(value: Any) -> Any:
    """Read numbers that JSON lacks from words."""
    if isinstance(value, dict):
        return {name: _with_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_nan(one) for one in value]
    return float(value) if value in _NOT_FINITE else value
