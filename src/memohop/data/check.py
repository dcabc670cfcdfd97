"""Checks of a graph before training, above all of a user's own graph."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import torch

from memohop.data.arcs import check_arcs
from memohop.errors import UsageError
from memohop.pyg import Data

MASKS = ("train_mask", "val_mask", "test_mask")


class MissingClassWarning(UserWarning):
    """A class has no training node in some split: no model can learn it there."""


def check(data: Data, *, classes: int | None = None) -> None:
    """Raise a :class:`UsageError` for a graph that cannot be trained on.

    Warns with one :class:`MissingClassWarning` if a class has nodes, but no training node in some
    split. If the number of classes is given, the labels must be below it.
    """
    check_graph(data)
    train, val, test = as_columns(data)
    check_masks(dict(zip(MASKS, (train, val, test), strict=True)))
    _check_labels(data, train | val | test, classes)
    _warn_of_missing_classes(data.y, train)


def check_graph(data: Data) -> None:
    """Raise a :class:`UsageError` unless ``x``, ``edge_index`` and ``y`` are sound and consistent.

    A node with a negative label has none.
    """
    _check_features(_tensor(data, "x"))
    check_arcs(_tensor(data, "edge_index"), len(data.x))
    y = _tensor(data, "y")
    if y.dtype != torch.int64 or y.shape != (len(data.x),):
        raise UsageError(
            f"data.y has shape {list(y.shape)} and type {y.dtype}; give one int64 class for each "
            f"of the {len(data.x)} nodes"
        )


def as_columns(data: Data, names: Sequence[str] = MASKS) -> tuple[torch.Tensor, ...]:
    """The masks with one column for each split, ``[N, S]``; a flat mask becomes one column."""
    nodes = len(_tensor(data, "x"))
    columns = []
    for name in names:
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


def _check_features(x: torch.Tensor) -> None:
    if x.dim() != 2 or not x.is_floating_point() or 0 in x.shape:
        raise UsageError(
            f"data.x has shape {list(x.shape)} and type {x.dtype}; give floating-point features "
            "of shape [nodes, features]"
        )
    if x.sum().isfinite():  # quick, and without another matrix of this size
        return
    bad = (~x.isfinite()).nonzero()
    if len(bad):
        node, column = bad[0].tolist()
        raise UsageError(
            f"data.x holds {x[node, column].item()} at node {node}, column {column} "
            f"({len(bad)} such value(s) in all); replace values that are not finite"
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
    for one, other in combinations(masks, 2):
        shared = (masks[one] & masks[other]).sum(dim=0)
        if shared.any():
            first = int(shared.nonzero()[0])
            raise UsageError(
                f"{one} and {other} share {int(shared[first])} node(s) in split {first}; "
                "a node belongs in one set of a split"
            )


def _check_labels(data: Data, used: torch.Tensor, classes: int | None) -> None:
    y = data.y
    wrong = y < 0 if classes is None else (y < 0) | (y >= classes)
    wrong = (wrong & used.any(dim=1)).nonzero()
    if len(wrong):
        node = int(wrong[0])
        below = "" if classes is None else f" and below {classes}"
        raise UsageError(
            f"data.y is {int(y[node])} at node {node}, which is in a mask ({len(wrong)} such "
            f"node(s) in all); give it a class from 0 on{below}, or take it out of the masks"
        )


def _warn_of_missing_classes(y: torch.Tensor, train: torch.Tensor) -> None:
    found = []
    for label in y[y >= 0].unique().tolist():
        splits = int((~train[y == label].any(dim=0)).sum())
        if splits:
            found.append(f"class {label} in {splits}")
    if found:
        warnings.warn(
            f"no training node of {', '.join(found)} of the {train.shape[1]} split(s); "
            "no model can learn such a class there",
            MissingClassWarning,
            stacklevel=3,
        )
