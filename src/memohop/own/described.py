"""The content of ``model.json``, and its checks: a correct digest does not make it valid.

Types and ranges are those of :class:`Described`. Parts that must agree with each other (options and
weights, encoder and number of features, graph and all of them) are checked here before any network
is built, so no number in the file decides how many bytes are allocated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from memohop.data.check import as_columns, check_graph
from memohop.data.tables.column_kinds import Number
from memohop.data.tables.columns import ColumnEncoder
from memohop.errors import UsageError, check_choice
from memohop.networks import build
from memohop.own.model import OwnModel
from memohop.own.report import FitReport
from memohop.own.saved import check_state, checked_options
from memohop.own.space import MODEL
from memohop.pyg import Data
from memohop.training.metrics import METRICS

Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Scalar: TypeAlias = bool | Whole | float | str | None
Ids: TypeAlias = list[Whole | str]

GRAPH = ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")
"""The tensors of a graph that are saved."""

_READING = ("label", "id", "source", "target", "weight", "directed", "task")  # for later tables


class Described(msgspec.Struct, frozen=True):
    """The content of ``model.json``."""

    format: int  # of the folder
    sha256: dict[str, str]  # of each file, by name
    memohop: str  # the version that wrote it
    parameters: dict[str, Scalar]  # of the MMPClassifier
    features: Annotated[int, Meta(ge=1)]  # their number
    feature_names: list[str] | None  # if they came in a data frame
    classes: Annotated[list[bool | Whole | float | str], Meta(min_length=2)]  # sorted
    has_arcs: bool  # whether fit was given arcs
    options: dict[str, Scalar]  # of gcn+mmp
    encoder: ColumnEncoder | None
    reading: dict[str, bool | str | None] | None  # how the tables were read
    report: FitReport


def check_described(found: Described) -> None:
    """Raise a ``UsageError`` if two parts of the file contradict each other."""
    check_classes(found.classes)
    check_columns(found.features, found.feature_names, found.encoder)
    if found.reading is not None:
        check_reading(found.reading)
    _check_report(found)


def check_classes(classes: list[Any]) -> None:
    """Raise a ``UsageError`` unless they are the names of at least two classes."""
    kinds = {str if isinstance(name, str) else float for name in classes}
    if len(kinds) != 1 or len(classes) < 2 or len(np.unique(np.array(classes))) != len(classes):
        raise UsageError(f"classes={classes[:9]} are not different names of one kind")


def check_columns(features: int, names: list[str] | None, encoder: ColumnEncoder | None) -> None:
    """Raise a ``UsageError`` unless names and columns match the number of features."""
    if names is not None and len(names) != features:
        raise UsageError(f"there are {features} features and {len(names)} feature names")
    if encoder is not None:
        if len(encoder.feature_names) != features:
            raise UsageError(f"the columns do not make {features} features")
        for column in encoder.columns:
            if isinstance(column, Number) and not column.std > 0:
                raise UsageError(f"column {column.name!r} has std={column.std}")


def check_reading(reading: Mapping[str, Any]) -> None:
    """Refuse names that are no arguments of ``read_graph`` for later tables, and other types."""
    for name, value in reading.items():
        check_choice("reading", name, _READING)
        if isinstance(value, bool) != (name == "directed"):
            raise UsageError(f"reading has {name}={value!r}")
    if "label" not in reading:
        raise UsageError("reading has no label")


def _check_report(found: Described) -> None:
    report = found.report
    check_choice("metric", report.metric, METRICS)
    models = [score.model for score in report.scores]
    if models[:1] != [MODEL] or len(set(models)) != len(models):
        raise UsageError(f"the report has scores of {models}")
    if not report.differences.keys() <= set(models):
        raise UsageError(f"the report compares with {list(report.differences)}")
    if list(report.class_sizes) != [str(name) for name in found.classes]:
        raise UsageError("the report has other classes")
    counts = (report.nodes, report.arcs, report.labelled, *report.class_sizes.values())
    if min(counts) < 0 or min(report.splits, report.trials, report.epochs) < 1:
        raise UsageError("the report has counts that are too small")


def checked_model(found: Described, weights: Mapping[str, Tensor]) -> OwnModel:
    """The networks; a ``UsageError`` if options and weights do not match."""
    states = _states(weights)
    options = checked_options(MODEL, found.options)
    check_choice("readout", options["readout"], ("last",))  # the only one that predicting supports
    for state in states:
        first = state.get("input.weight", torch.empty(0))
        rounds = {name.split(".")[1] for name in state if name.startswith("rounds.")}
        if list(first.shape) != [found.features, options["hidden_channels"]]:
            raise UsageError(
                f"hidden_channels={options['hidden_channels']} and features={found.features} do "
                f"not fit the weights, in which the first matrix has shape {list(first.shape)}"
            )
        if len(rounds) != options["num_layers"]:
            raise UsageError(
                f"num_layers={options['num_layers']}, and there are weights of {len(rounds)}"
            )
    if found.report.splits != len(states):
        raise UsageError(f"there are {found.report.splits} splits and {len(states)} networks")
    with torch.device("meta"):  # shapes alone: nothing is allocated
        network = build(MODEL, found.features, len(found.classes), **options)
    for state in states:
        check_state(network, state)
    return OwnModel(found.features, len(found.classes), found.options, states)


def _states(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], ...]:
    """The weights of each network; in the file their names begin with the network's number."""
    states: dict[int, dict[str, Tensor]] = {}
    for full_name, value in weights.items():
        if not re.fullmatch(r"\d{1,9}\..+", full_name):
            raise UsageError(f"there are weights named {full_name!r}")
        number, _, name = full_name.partition(".")
        states.setdefault(int(number), {})[name] = value
    if not states or sorted(states) != list(range(len(states))):
        raise UsageError(f"there are weights of the networks {sorted(states)}")
    return tuple(states[number] for number in sorted(states))


def checked_graph(found: Described, tensors: dict[str, Tensor]) -> tuple[Data, Ids]:
    """The graph of ``fit`` and its ids; a ``UsageError`` if it does not match the model."""
    if tensors.keys() != {*GRAPH, "ids"}:
        raise UsageError(f"it holds {', '.join(sorted(tensors))}")
    ids = msgspec.json.decode(tensors.pop("ids").numpy().tobytes(), type=Ids)
    graph = Data(**tensors, metric=found.report.metric)
    check_graph(graph)
    masks, report = as_columns(graph), found.report
    if graph.x.dtype != torch.float32 or graph.x.shape[1] != found.features:
        raise UsageError(f"x is {list(graph.x.shape)} and {graph.x.dtype}")
    if masks[0].shape[1] != report.splits or graph.train_mask.dim() != 2:
        raise UsageError(f"the masks are not those of {report.splits} splits")
    if not -1 <= int(graph.y.min()) <= int(graph.y.max()) < len(found.classes):
        raise UsageError(f"y goes from {int(graph.y.min())} to {int(graph.y.max())}")
    if (len(graph.x), graph.num_edges) != (report.nodes, report.arcs) or len(ids) != report.nodes:
        raise UsageError(
            f"there are {len(graph.x)} nodes, {len(ids)} ids and {graph.num_edges} arcs, and the "
            f"report has {report.nodes} nodes and {report.arcs} arcs"
        )
    return graph, ids
