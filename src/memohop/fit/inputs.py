"""The forms of a user's graph, converted to one: features, arcs and labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from memohop.data.arcs import check_arcs, check_weights
from memohop.data.check import check_one_kind
from memohop.data.tables.labels import why_no_classes
from memohop.data.tables.own_graph import OwnGraph
from memohop.errors import UsageError
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder

_LARGEST = 1e37  # number to predict: a model's output may be some times larger


class GivenLabels(NamedTuple):
    """Which nodes have a label, ``[nodes]``, and their labels."""

    known: NDArray[np.bool_]
    names: NDArray[Any]
    kind: Literal["classes", "numbers"] | None = None  # if a reader or a type decided


class Given(NamedTuple):
    """A graph as the user gave it; None for each part that was not given."""

    x: Any  # features, anything with a row for each node
    labels: GivenLabels | None
    edge_index: Tensor | None
    ids: NDArray[Any] | None = None
    encoder: ColumnEncoder | None = None  # how the columns of tables became features
    notes: tuple[str, ...] = ()  # how tables were read, in plain words
    weights: NDArray[np.floating[Any]] | None = None  # of the arcs, in any unit
    groups: NDArray[np.int64] | None = None  # of nodes that no split divides
    reading: Mapping[str, Any] | None = None  # to read other tables alike

    def arcs(self, nodes: int) -> Tensor:
        """The arcs, none if none were given; a ``UsageError`` if one points to no node."""
        if self.edge_index is None:
            return torch.empty(2, 0, dtype=torch.int64)
        check_arcs(self.edge_index, nodes)
        return self.edge_index.cpu()


def as_given(x: Any, y: Any, edges: Any) -> Given:
    """Take an ``OwnGraph`` or a ``Data`` apart; put separate arrays together."""
    labels = None if y is None else _labels(y)
    check_one_kind(x, "X")
    if not isinstance(x, OwnGraph | Data):
        return Given(x, labels, None if edges is None else _arcs(edges))
    if edges is not None:
        raise UsageError(
            f"edges is given although X is a {type(x).__name__}, which has its own; leave it out"
        )
    if isinstance(x, OwnGraph):
        data = x.data
        if labels is None:
            labels = labels_of(data.y, x.classes)._replace(kind=x.task)
        weights = data.edge_weight.numpy() if "edge_weight" in data else None
        rest = (x.ids, x.encoder, x.notes, weights, x.groups, x.reading)
        return Given(x.x, labels, data.edge_index, *rest)
    if not isinstance(x.x, Tensor) or not isinstance(x.edge_index, Tensor):
        raise UsageError("X is a Data without x or without edge_index; give it both")
    if labels is None and isinstance(x.y, Tensor) and x.y.numel():
        if x.y.dim() != 1:
            raise UsageError(
                f"X is a Data; its y has shape {list(x.y.shape)} and type {x.y.dtype}; give one "
                "whole number for each node, its class, negative where it is not known; or one "
                "number to predict, NaN where it is not known"
            )
        labels = labels_of(x.y, range(int(x.y.nan_to_num().max()) + 1))
    weights = None
    if "edge_weight" in x:
        check_weights(x.edge_weight, x.edge_index.shape[1])
        weights = x.edge_weight.to("cpu", torch.float64).numpy()
    return Given(x.x, labels, x.edge_index, weights=weights)


def number_classes(labels: GivenLabels) -> tuple[Tensor, NDArray[Any]]:
    """Class numbers ``[nodes]``, -1 for nodes without a label, and the sorted classes."""
    if not labels.known.any():
        raise UsageError("y has no label at all; give some nodes their label")
    if labels.kind == "numbers":
        raise UsageError(
            "y holds numbers to predict, not classes; give whole numbers or words, or use "
            "GraphRegressor"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about many classes, which are checked below
            check_classification_targets(labels.names)
        classes, numbers, sizes = np.unique(labels.names, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise UsageError(
            f"y has labels of kinds that cannot be sorted ({error}); make them all strings"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"y holds numbers, not classes ({error}); group them into classes"
        ) from error
    if len(classes) < 2:
        raise UsageError(
            f"y has one class, {classes.tolist()[0]!r}, so there is nothing to tell apart; "
            "give labels of at least two classes"
        )
    if labels.kind is None and (reason := why_no_classes(classes, sizes)):
        raise UsageError(f"y {reason}")
    codes = np.full(len(labels.known), -1, dtype=np.int64)
    codes[labels.known] = numbers
    return torch.from_numpy(codes), classes


def number_groups(groups: Any) -> NDArray[np.int64]:
    """A number for each group; a node without one, None or NaN, is a group of its own."""
    known, names, _ = _labels(groups)
    numbers = len(known) + np.arange(len(known))
    try:
        numbers[known] = np.unique(names, return_inverse=True)[1]
    except TypeError as error:
        raise UsageError(
            f"groups has names of kinds that cannot be sorted ({error}); make them all strings"
        ) from error
    return numbers


def as_numbers(labels: GivenLabels) -> NDArray[np.float64]:
    """Numbers to predict, ``[nodes]``, NaN where they are not known."""
    try:
        values = np.asarray(labels.names).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"y has values that are no numbers ({error}); give numbers, NaN where they are not "
            "known, or use GraphClassifier for classes"
        ) from error
    if not np.isfinite(values).all():
        raise UsageError("y has values that are infinite; correct them, or make them NaN")
    if not len(values) or values.min() == values.max():
        raise UsageError(
            "y has no number at all, or one number everywhere; give nodes different numbers"
        )
    if np.abs(values).max() > _LARGEST or np.ptp(values.astype(np.float32)) == 0:
        raise UsageError(
            f"y has numbers from {values.min():g} to {values.max():g}, which single precision "
            "cannot hold, or tell apart; subtract their mean and divide them by their spread"
        )
    found = np.full(len(labels.known), np.nan)
    found[labels.known] = values
    return found


def _labels(y: Any) -> GivenLabels:
    y = column_or_1d(y, warn=True)
    known = np.ones(len(y), dtype=bool)
    if y.dtype.kind == "f":
        known = ~np.isnan(y)
    elif y.dtype.kind == "O":
        known = np.array([not _is_missing(value) for value in y], dtype=bool)
    names = y[known]
    if y.dtype.kind == "O" and all(isinstance(name, Number | np.bool_) for name in names):
        names = np.array(names.tolist())  # whole numbers or truth values, as without gaps
    return GivenLabels(known, names)


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or pandas' NA, which has no truth value when compared."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def labels_of(y: Tensor, classes: Sequence[Any]) -> GivenLabels:
    """Labels from class numbers, negative for unknown; or from numbers, NaN for unknown."""
    numbers = y.cpu().numpy()
    if y.is_floating_point():
        return _labels(numbers)._replace(kind="numbers")
    known = numbers >= 0
    return GivenLabels(known, np.array(list(classes))[numbers[known]])


def _arcs(edges: Any) -> Tensor:
    """Arcs ``[2, arcs]`` from an array of that shape or from a sparse adjacency matrix."""
    if sparse.issparse(edges):
        source, target = sparse.coo_array(edges).coords
        return torch.from_numpy(np.stack([source, target]).astype(np.int64))
    array = edges.cpu().numpy() if isinstance(edges, Tensor) else np.asarray(edges)
    if array.size == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    if array.ndim != 2 or array.shape[0] != 2 or array.dtype.kind not in "iu":
        raise UsageError(
            f"edges has shape {list(array.shape)} and type {array.dtype}; give whole numbers of "
            "shape [2, arcs], row 0 the sources and row 1 the targets, or a SciPy sparse matrix"
        )
    return torch.from_numpy(array.astype(np.int64))
