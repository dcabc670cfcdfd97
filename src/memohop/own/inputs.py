"""What a user may hand to the classifier, as one form: features, arcs and labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor

from memohop.data.tables.labels import why_no_classes
from memohop.data.tables.own_graph import OwnGraph
from memohop.errors import UsageError
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder


class Labels(NamedTuple):
    """Which nodes have a label, `[nodes]`, and the labels of those."""

    known: NDArray[np.bool_]
    names: NDArray[Any]


class Given(NamedTuple):
    """A graph as it was handed in.

    Attributes:
        x: Features, anything with a row for each node.
        labels: Or None where there are none.
        edge_index: Arcs, or None where none were given.
        ids: What the nodes are called, or None.
        encoder: How the columns of tables became features, or None.
        notes: How tables were read, in plain words.
    """

    x: Any
    labels: Labels | None
    edge_index: Tensor | None
    ids: NDArray[Any] | None = None
    encoder: ColumnEncoder | None = None
    notes: tuple[str, ...] = ()


def as_given(x: Any, y: Any, edges: Any) -> Given:
    """Take apart an `OwnGraph` or a `Data`; put together separate arrays."""
    labels = None if y is None else _labels(y)
    if not isinstance(x, OwnGraph | Data):
        return Given(x, labels, None if edges is None else _arcs(edges))
    if edges is not None:
        raise UsageError(f"edges is given although X is a {type(x).__name__}, which has its own")
    if isinstance(x, OwnGraph):
        data = x.data
        if labels is None and x.task == "numbers":
            labels = _labels(data.y.numpy())
        labels = _from_codes(data.y, x.classes) if labels is None else labels
        return Given(x.x, labels, data.edge_index, x.ids, x.encoder, x.notes)
    if not isinstance(x.x, Tensor) or not isinstance(x.edge_index, Tensor):
        raise UsageError("X is a Data without x or without edge_index; give it both")
    if labels is None and isinstance(x.y, Tensor) and x.y.numel():
        if x.y.is_floating_point() or x.y.dim() != 1:
            raise UsageError(
                f"X is a Data whose y has shape {list(x.y.shape)} and type {x.y.dtype}; give one "
                "whole number for each node, its class, negative where it is not known"
            )
        labels = _from_codes(x.y, range(int(x.y.max()) + 1))
    return Given(x.x, labels, x.edge_index)


def number_classes(labels: Labels) -> tuple[Tensor, NDArray[Any]]:
    """Class numbers `[nodes]`, -1 where there is no label, and the classes in sorted order."""
    if not labels.known.any():
        raise UsageError("y has no label at all; give some nodes their label")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many classes, which are looked at below
            check_classification_targets(labels.names)
        classes, places, sizes = np.unique(labels.names, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise UsageError(
            f"y has labels of kinds that cannot be sorted ({error}); make them all strings"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"y holds numbers and no classes ({error}); group them into classes"
        ) from error
    if len(classes) < 2:
        raise UsageError(
            f"y has one class, {classes.tolist()[0]!r}; there is nothing to tell apart: give "
            "labels of at least two classes"
        )
    if reason := why_no_classes(classes, sizes):
        raise UsageError(f"y {reason}")
    codes = np.full(len(labels.known), -1, dtype=np.int64)
    codes[labels.known] = places
    return torch.from_numpy(codes), classes


def _labels(y: Any) -> Labels:
    y = column_or_1d(y, warn=True)
    known = np.ones(len(y), dtype=bool)
    if y.dtype.kind == "f":
        known = ~np.isnan(y)
    elif y.dtype.kind == "O":
        known = np.array([not _is_missing(value) for value in y], dtype=bool)
    return Labels(known, y[known])


def _is_missing(value: Any) -> bool:
    """None, NaN, or pandas' NA, which is not equal to anything, nor a truth value."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _from_codes(codes: Tensor, classes: Sequence[Any]) -> Labels:
    numbers = codes.cpu().numpy()
    known = numbers >= 0
    return Labels(known, np.array(list(classes))[numbers[known]])


def _arcs(edges: Any) -> Tensor:
    """Arcs `[2, arcs]` from an array of that shape or from a sparse adjacency matrix."""
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
