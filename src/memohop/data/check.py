"""Checks of a graph before training, above all of a user's own graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch

from memohop.data.arcs import check_arcs, check_attributes, check_relations, check_weights
from memohop.data.sparse_features import as_csr, is_sparse, stored_values
from memohop.errors import MemohopWarning, UsageError

if TYPE_CHECKING:
    from memohop.pyg import Data

MASKS = ("train_mask", "val_mask", "test_mask")


class MissingClassWarning(MemohopWarning):
    """A class has no training node in some split: no model can learn it there."""


def check(data: Data) -> None:
    """Raise a :class:`UsageError` for a graph that cannot be trained on.

    Warns with one :class:`MissingClassWarning` if a class has nodes, but no training node in some
    split.

    Args:
        data: A graph with ``x``, ``y``, ``edge_index`` and the three masks; it may lack
            ``test_mask``, and test scores are then NaN. ``x`` may be sparse, a tensor or a matrix
            of SciPy; ``y`` holds class numbers or, if it is of a floating-point type, numbers to
            predict.
    """
    check_graph(data, numbers=True)
    train, val, test = as_columns(data)
    masks = dict(zip(MASKS, (train, val, test), strict=True))
    check_masks({name: mask for name, mask in masks.items() if name in data})
    used = (train | val | test).any(dim=1)
    _check_targets(data.y, used)
    if not data.y.is_floating_point():
        _warn_of_missing_classes(data.y, train)


def check_graph(data: Data, *, numbers: bool = False) -> None:
    """Raise a :class:`UsageError` unless ``x``, ``edge_index`` and ``y`` are sound and consistent.

    Args:
        data: A graph. A negative class, or NaN, stands for a node without a label.
        numbers: Whether ``y`` may also hold numbers to predict instead of classes.
    """
    _check_features(data)
    nodes = data.x.shape[0]
    check_arcs(_tensor(data, "edge_index"), nodes)
    if "edge_weight" in data:
        check_weights(_tensor(data, "edge_weight"), data.edge_index.shape[1])
    if "edge_attr" in data:
        check_attributes(_tensor(data, "edge_attr"), data.edge_index.shape[1])
    if "edge_type" in data:
        check_relations(_tensor(data, "edge_type"), data.edge_index.shape[1])
    y = _tensor(data, "y")
    sound = y.dtype == torch.int64 or (numbers and y.is_floating_point())
    if not sound or y.shape != (nodes,):
        kinds = "one int64 class" + numbers * " or one floating-point number"
        raise UsageError(
            f"data.y has shape {list(y.shape)} and type {y.dtype}; give {kinds} for each "
            f"of the {nodes} nodes"
        )


def check_one_kind(graph: object, name: str) -> None:
    """Refuse a graph of PyTorch Geometric with several kinds of nodes or edges."""
    from memohop.pyg import BaseData, Data

    if isinstance(graph, BaseData) and not isinstance(graph, Data):
        raise UsageError(
            f"{name} is a {type(graph).__name__}; give a Data, which has one kind of node and one "
            f"kind of edge ({name}.to_homogeneous() makes one of a HeteroData)"
        )


def as_columns(data: Data, names: Sequence[str] = MASKS) -> tuple[torch.Tensor, ...]:
    """The masks of these names with one column for each split, `[N, S]`; a flat one has one.

    A graph without ``test_mask`` has no test nodes.
    """
    nodes = _features(data).shape[0]
    columns: list[torch.Tensor] = []
    for name in names:
        if name == "test_mask" and name not in data:
            columns.append(torch.zeros_like(columns[0]))
            continue
        mask = _tensor(data, name)
        if mask.dtype != torch.bool:
            raise UsageError(f"{name} has type {mask.dtype}; give a boolean mask")
        if mask.dim() not in (1, 2) or len(mask) != nodes:
            raise UsageError(
                f"{name} has shape {list(mask.shape)}; give one of shape [{nodes}] or "
                f"[{nodes}, splits], with a row for each node"
            )
        columns.append(mask.unsqueeze(1) if mask.dim() == 1 else mask)
    counts = [mask.shape[1] for mask in columns]
    if len(set(counts)) > 1 or counts[0] == 0:
        listed = ", ".join(f"{count} in {name}" for count, name in zip(counts, names, strict=True))
        raise UsageError(f"the masks differ in their number of splits, or have none: {listed}")
    return tuple(columns)


def _tensor(data: Data, name: str) -> torch.Tensor:
    value = getattr(data, name, None)
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"data.{name} is {value!r}; give a tensor")
    return value


def _features(data: Data) -> Any:
    """The features: a tensor, or a sparse matrix of SciPy."""
    return data.x if is_sparse(getattr(data, "x", None)) else _tensor(data, "x")


def _check_features(data: Data) -> None:
    x = _features(data)
    values = stored_values(x) if is_sparse(x) else x
    if len(x.shape) != 2 or not values.is_floating_point() or 0 in x.shape:
        raise UsageError(
            f"data.x has shape {list(x.shape)} and type {x.dtype}; give floating-point features "
            "of shape [nodes, features]"
        )
    if values.sum().isfinite():  # the quick way, without another matrix of this size
        return
    stored = (as_csr(x, values.dtype) if is_sparse(x) else x).to_sparse_coo()
    bad = (~stored.values().isfinite()).nonzero().flatten()
    if len(bad):
        node, column = stored.indices()[:, bad[0]].tolist()
        raise UsageError(
            f"data.x holds {stored.values()[bad[0]].item()} at node {node}, column {column} "
            f"({len(bad)} such value(s) in all); replace what is not finite"
        )


def check_masks(masks: Mapping[str, torch.Tensor]) -> None:
    """Refuse masks ``[N, S]`` with an empty column, or two that share a node in a column."""
    for name, mask in masks.items():
        empty = (~mask.any(dim=0)).nonzero().flatten().tolist()
        if empty:
            raise UsageError(
                f"{name} is empty in {len(empty)} split(s), the first of them split {empty[0]}; "
                "leave those splits out or give them nodes"
            )
    for name, other in combinations(masks, 2):
        shared = (masks[name] & masks[other]).sum(dim=0)
        if shared.any():
            first = int(shared.nonzero()[0])
            raise UsageError(
                f"{name} and {other} share {int(shared[first])} node(s) in split {first}; "
                "a node belongs in one set of a split"
            )


def _check_targets(y: torch.Tensor, used: torch.Tensor) -> None:
    """Refuse a node in a mask whose number is not finite, or whose class cannot be."""
    if y.is_floating_point():
        dtype = torch.get_default_dtype()
        wrong, wanted = ~y.to(dtype).isfinite(), f"a number that is finite in {dtype}"
    else:
        wrong, wanted = y < 0, "a class from 0 on"
    nodes = (wrong & used).nonzero()
    if len(nodes):
        node = int(nodes[0])
        raise UsageError(
            f"data.y is {y[node].item()} at node {node}, which is in a mask ({len(nodes)} such "
            f"node(s) in all); give it {wanted}, or take it out of the masks"
        )


def _warn_of_missing_classes(y: torch.Tensor, train: torch.Tensor) -> None:
    lacking = []
    for label in y[y >= 0].unique().tolist():
        splits = int((~train[y == label].any(dim=0)).sum())
        if splits:
            lacking.append(f"class {label} in {splits}")
    if lacking:
        warnings.warn(
            f"no training node of {', '.join(lacking)} of the {train.shape[1]} split(s); "
            "no model can learn such a class there",
            MissingClassWarning,
            stacklevel=3,
        )
