"""A graph of your own, from tables, NetworkX or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from memohop.data.check import MASKS, check_graph
from memohop.data.sparse_features import as_matrix, is_sparse, sharing
from memohop.data.tables.column import Matrix, Reading
from memohop.data.tables.columns import ColumnEncoder, fit_columns
from memohop.data.tables.labels import Class, Labels, Task, read_labels
from memohop.data.tables.node_sets import (
    NodeSets,
    describe_sets,
    group_codes,
    sets_by_time,
    sets_by_word,
)
from memohop.outputs import listed
from memohop.pyg import Data


@dataclass(frozen=True)
class OwnGraph:
    """A graph of your own, ready to be split and trained on.

    Attributes:
        data: ``x`` (``float32``, a sparse CSR tensor if it is mostly zeros), ``edge_index`` and
            ``y``: class numbers (``int64``, -1 for a node without a label), or numbers to predict
            (``float64``, NaN for a node without one). ``edge_weight`` (``float32``) if there are
            weights, and ``train_mask``, ``val_mask`` and ``test_mask`` if there are ``masks``.
        ids: The id of each node, in the order of the rows: ``int64``, or objects if not all are
            whole numbers.
        classes: What each class number stands for; empty if numbers are to be predicted.
        encoder: How columns became features; None if the features came as numbers.
        notes: What was done to the tables, in plain words.
        warnings: The notes on likely mistakes and on anything left out.
        task: Whether classes or numbers are to be predicted.
        directed: Whether an edge is one arc, or one each way.
        masks: The user's own training, validation and test nodes, or None.
        groups: The number of each node's group, ``int64``, or None. A split must not tear a group.
        reading: The arguments of :func:`~memohop.read_graph` that read other tables alike; None for
            arrays.
    """

    data: Data
    ids: NDArray[Any]
    classes: list[Class]
    encoder: ColumnEncoder | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    task: Task = "classes"
    directed: bool = False
    masks: NodeSets | None = None
    groups: NDArray[np.int64] | None = None
    reading: Mapping[str, Any] | None = None

    @property
    def x(self) -> Matrix:
        """The features for models outside PyTorch: a NumPy array or a SciPy ``csr_array``.

        It shares the values of ``data.x``.
        """
        x = self.data.x
        return as_matrix(x, torch.float32) if is_sparse(x) else x.numpy()


class Described(NamedTuple):
    """Features and labels of the nodes, and how they were found."""

    x: Matrix
    labels: Labels
    encoder: ColumnEncoder | None = None
    notes: Sequence[str] = ()
    masks: NodeSets | None = None
    groups: NDArray[np.int64] | None = None
    warnings: Sequence[str] = ()


def describe_nodes(
    table: pa.Table,
    label: str | None,
    encoder: ColumnEncoder | None,
    classes: Sequence[Class] | None,
    *,
    task: Literal["auto"] | Task = "auto",
    readings: Mapping[str, Reading] | None = None,
    roles: Mapping[str, str] | None = None,
) -> Described:
    """Features, labels and sets from a table without ids.

    Args:
        table: One row for each node.
        label: The column with the labels, or None if there is none.
        encoder: The encoder of an earlier table; without it, one is fitted.
        classes: The classes of an earlier table.
        task: What the labels are, if the guess is wrong.
        readings: How to read columns, if the guess is wrong.
        roles: The columns for ``split``, ``time_column`` and ``group``; they are no features.
    """
    labels = no_labels(table.num_rows, classes, task)
    if label is not None:
        labels = read_labels(table[label], label, task, classes)
        table = table.drop_columns([label])
    masks, groups, told = read_sets(table, roles or {}, labels)
    table = table.drop_columns(list((roles or {}).values()))
    surprises: list[str] = []
    fitted = encoder
    if fitted is None:
        named = zip(table.column_names, table.columns, strict=True)
        fitted, surprises = fit_columns(named, readings)
        told += fitted.describe()
    x, notes = fitted.transform(table)
    told += notes
    if encoder is not None:
        used = {column.name for column in encoder.columns}
        more = [name for name in table.column_names if name not in used]
        told += [f"not used: {listed(more)}"] if more else []
    return Described(x, labels, fitted, told, masks, groups, surprises)


def read_sets(
    table: pa.Table, roles: Mapping[str, str], labels: Labels
) -> tuple[NodeSets | None, NDArray[np.int64] | None, list[str]]:
    """The user's own split and groups, and how many nodes are where.

    Args:
        table: The node table, or its columns for these.
        roles: The columns for ``split``, ``time_column`` and ``group``.
        labels: The labels of the nodes.
    """
    labelled = np.isfinite(labels.y) if labels.task == "numbers" else labels.y >= 0
    masks = groups = None
    notes = []
    for role, read in (("split", sets_by_word), ("time_column", sets_by_time)):
        if role in roles:
            masks = read(table[roles[role]], roles[role], labelled)
            notes.append(describe_sets(masks, roles[role], labelled))
    if "group" in roles:
        name = roles["group"]
        groups = group_codes(table[name], name)
        notes.append(f"column {name!r}: {groups.max() + 1} groups of nodes")
    return masks, groups, notes


def no_labels(
    nodes: int, classes: Sequence[Class] | None, task: Literal["auto"] | Task = "auto"
) -> Labels:
    """Labels of nodes that have none."""
    note = ["no node has a label"]
    if task == "numbers":
        return Labels(np.full(nodes, np.nan), [], note, [], "numbers")
    return Labels(np.full(nodes, -1), list(classes or []), note, [])


def own_graph(
    found: Described,
    arcs: NDArray[np.int64],
    ids: NDArray[Any],
    *,
    directed: bool,
    weight: NDArray[np.float32] | None = None,
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
    reading: Mapping[str, Any] | None = None,
) -> OwnGraph:
    """Nodes and arcs, checked, with the notes and warnings on each, and how they were read."""
    x, labels = found.x, found.labels
    data = Data(
        x=sharing(x) if is_sparse(x) else torch.from_numpy(x),
        y=torch.from_numpy(labels.y),
        edge_index=torch.from_numpy(arcs),
    )
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    if found.masks is not None:
        for name, mask in zip(MASKS, found.masks, strict=True):
            data[name] = torch.from_numpy(mask)
    check_graph(data, numbers=True)
    warnings = (*warnings, *labels.warnings, *found.warnings)
    return OwnGraph(
        data,
        ids,
        labels.classes,
        found.encoder,
        notes=(*notes, *labels.notes, *found.notes, *warnings),
        warnings=warnings,
        task=labels.task,
        directed=directed,
        masks=found.masks,
        groups=found.groups,
        reading=reading and {**reading, "directed": directed, "task": labels.task},
    )
