"""A graph of your own, from tables, NetworkX or arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from memohop.data.check import check_graph
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import Class, Labels, encode_labels
from memohop.pyg import Data


@dataclass(frozen=True)
class OwnGraph:
    """A graph of your own, ready to be split and trained on.

    Attributes:
        data: ``x`` (``float32``), ``y`` (``int64``, -1 for a node without a label) and
            ``edge_index``.
        ids: The id of each node, in the order of the rows: ``int64``, or objects if not all are
            whole numbers.
        classes: What each class number stands for.
        encoder: How columns became features; None if the features came as numbers.
        notes: What was done to the tables, in plain words.
        warnings: The notes on likely mistakes and on anything left out.
    """

    data: Data
    ids: NDArray[Any]
    classes: list[Class]
    encoder: ColumnEncoder | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class Described(NamedTuple):
    """Features and labels of the nodes, and how they were found."""

    x: NDArray[np.float32]
    labels: Labels
    encoder: ColumnEncoder | None = None
    notes: Sequence[str] = ()


def describe_nodes(
    table: pa.Table,
    label: str | None,
    encoder: ColumnEncoder | None,
    classes: Sequence[Class] | None,
) -> Described:
    """Features and labels from a table without ids.

    Args:
        table: One row for each node.
        label: The column with the classes, or None if there is none.
        encoder: The encoder of an earlier table; without it, one is fitted.
        classes: The classes of an earlier table.
    """
    labels = no_labels(table.num_rows, classes)
    if label is not None:
        labels = encode_labels(table[label], label, classes)
        table = table.drop_columns([label])
    fitted = ColumnEncoder.fit(table) if encoder is None else encoder
    x, notes = fitted.transform(table)
    if encoder is None:
        return Described(x, labels, fitted, [*fitted.describe(), *notes])
    used = {column.name for column in encoder.columns}
    more = [f"column {name!r} is not used" for name in table.column_names if name not in used]
    return Described(x, labels, fitted, [*notes, *more])


def no_labels(nodes: int, classes: Sequence[Class] | None) -> Labels:
    """Labels of nodes that have none."""
    return Labels(np.full(nodes, -1), list(classes or []), ["no node has a label"], [])


def own_graph(
    found: Described,
    arcs: NDArray[np.int64],
    ids: NDArray[Any],
    *,
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> OwnGraph:
    """Nodes and arcs, checked, with the notes and warnings on each."""
    x, labels, encoder, on_columns = found
    data = Data(
        x=torch.from_numpy(x), y=torch.from_numpy(labels.y), edge_index=torch.from_numpy(arcs)
    )
    check_graph(data)
    warnings = (*warnings, *labels.warnings)
    notes = (*notes, *labels.notes, *on_columns, *warnings)
    return OwnGraph(data, ids, labels.classes, encoder, notes, warnings)
