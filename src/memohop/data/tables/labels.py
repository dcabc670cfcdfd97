"""From a column of labels to class numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.column_kinds import first_few
from memohop.data.tables.column_types import (
    as_text,
    column_kind,
    no_kind,
    spelled_whole,
    whole_as_text,
)
from memohop.errors import DataError

Class: TypeAlias = str | int
_FEW_CLASSES = 20  # up to this many whole numbers are taken for classes, however small
_NODES_OF_A_CLASS = 10  # with a fifth of the nodes for testing, two of them


class Labels(NamedTuple):
    """Class numbers of the nodes, -1 without a label, the names of the classes, and remarks."""

    y: NDArray[np.int64]
    classes: list[Class]
    notes: list[str]
    warnings: list[str]


def encode_labels(
    column: pa.ChunkedArray, name: str, classes: Sequence[Class] | None = None
) -> Labels:
    """Number the classes: whole numbers by size, other labels in alphabetical order.

    Spaces around a label are not part of it. Labels that differ only in case or in the spaces
    between words are different classes, and a warning names them.

    Args:
        column: The labels; missing ones are to be predicted.
        name: The name of the column, for errors and notes.
        classes: The classes of an earlier table. Without them there must be two classes, one of
            them with two nodes; with them, any other label counts as missing.
    """
    if column_kind(column.type) is None:
        raise no_kind(name, column.type, "the label ")
    spelled = whole_as_text(
        column,
        f"the label column {name!r} holds numbers that are not whole",
        "a class is a string or a whole number: group the values into classes first",
    )
    trimmed = pc.utf8_trim_whitespace(spelled)
    warnings = []
    padded = spelled.filter(pc.not_equal(spelled, trimmed))
    if len(padded):
        warnings.append(
            f"label {name!r}: the spaces around {len(padded)} label(s), such as "
            f"{padded[0].as_py()!r}, are not part of the class"
        )
    text = as_text(trimmed)
    known = text.drop_null()
    if classes is None:
        values = known.unique()
        classes = sorted((values.cast(pa.int64()) if spelled_whole(values) else values).to_pylist())
        _check_classes(known, classes, name)
        warnings += _spelled_alike(classes, name)
    values = pc.utf8_trim_whitespace(pa.array([str(label) for label in classes], pa.string()))
    y = pc.fill_null(pc.index_in(text, value_set=values), -1).to_numpy().astype(np.int64)
    sizes = np.bincount(y[y >= 0], minlength=len(classes))
    labelled = int(sizes.sum())
    if unknown := len(known) - labelled:
        warnings.append(f"{unknown} label(s) of an unknown class count as missing")
    small = [f"{label!r} ({size})" for label, size in zip(classes, sizes, strict=True) if size < 3]
    if small:
        warnings.append(
            "too few labelled nodes to be in training, validation and test at once: class "
            + first_few(small)
        )
    note = (
        f"label {name!r}: {len(classes)} classes, {labelled} nodes with a label and "
        f"{len(y) - labelled} without"
    )
    return Labels(y, list(classes), [note], warnings)


def _check_classes(known: pa.ChunkedArray, classes: Sequence[Class], name: str) -> None:
    if not classes:
        raise DataError(
            f"the label column {name!r} is empty in every row; give some nodes their label"
        )
    if len(classes) == 1:
        raise DataError(
            f"the label column {name!r} has one class, {classes[0]!r}; there is nothing to tell "
            "apart: give labels of at least two classes"
        )
    values, sizes = (
        part.to_numpy(zero_copy_only=False) for part in pc.value_counts(known).flatten()
    )
    if reason := why_no_classes(values, sizes):
        raise DataError(f"the label column {name!r} {reason}")


def why_no_classes(values: NDArray[Any], sizes: NDArray[np.int64]) -> str | None:
    """Why labels look like measurements or ids and not like classes, and the remedy; or None.

    Numbers look like measurements if one of them is not whole, or if there are more than 20
    different ones with fewer than 10 nodes each on average, of which not even two would be test
    nodes. Labels look like ids if all are different, or if there are more than 20 with fewer than
    two nodes each on average.

    Args:
        values: The different labels.
        sizes: How many nodes have each.
    """
    labelled = int(sizes.sum())
    if _are_measured(values, labelled):
        return (
            f"holds {len(values)} different numbers on {labelled} nodes, such as {values[0]}: they "
            "look like measurements, and only classes can be predicted; group them into classes "
            "such as low and high, or, if each number is a class of its own, spell it as a word, "
            f"such as class {values[0]}"
        )
    if len(values) == labelled or len(values) > max(_FEW_CLASSES, labelled / 2):
        return (
            f"has {len(values)} different labels on {labelled} nodes, as an id would; name the "
            "column with the classes, or merge labels"
        )
    return None


def _are_measured(values: NDArray[Any], labelled: int) -> bool:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):  # words
        return False
    if not np.isfinite(numbers).all():
        return False
    if (numbers != np.floor(numbers)).any():
        return True
    return len(values) > max(_FEW_CLASSES, labelled / _NODES_OF_A_CLASS)


def _spelled_alike(classes: Sequence[Class], name: str) -> list[str]:
    """A warning for each set of classes that differ only in case or in spaces between words."""
    alike: dict[str, list[str]] = {}
    for label in classes:
        alike.setdefault(" ".join(str(label).casefold().split()), []).append(repr(label))
    return [
        f"label {name!r}: {' and '.join(labels)} differ only in case or spaces, and are "
        f"{len(labels)} classes; spell them alike if they mean the same"
        for labels in alike.values()
        if len(labels) > 1
    ]
