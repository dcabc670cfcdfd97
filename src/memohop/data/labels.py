"""From a column of labels to class numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.text_columns import as_text
from memohop.errors import DataError

Class: TypeAlias = str | int
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # spelled as Python would
_FEW_CLASSES = 20  # whole numbers up to so many are taken for classes, however small they are
_NODES_OF_A_CLASS = 10  # of which two are test nodes, where a fifth is


class Labels(NamedTuple):
    """Class numbers, -1 where there is no label, and what they stand for."""

    y: NDArray[np.int64]
    classes: list[Class]
    notes: list[str]


def encode_labels(
    column: pa.ChunkedArray, name: str, classes: Sequence[Class] | None = None
) -> Labels:
    """Numbers the classes: whole numbers by size, other labels in the order of the alphabet.

    Args:
        column: The labels; missing ones are what is to be predicted.
        name: The name of the column, for errors and notes.
        classes: The classes of an earlier table. Without them there must be two classes, one of
            them with two nodes; with them, a label that is not among them counts as missing.
    """
    text = as_text(_whole_if_possible(column, name))
    known = text.drop_null()
    if classes is None:
        classes = _sorted(known)
        _check_classes(known, classes, name)
    spelled = pa.array([str(label) for label in classes], pa.string())
    y = pc.fill_null(pc.index_in(text, value_set=spelled), -1).to_numpy().astype(np.int64)
    notes = []
    strange = len(known) - int((y >= 0).sum())
    if strange:
        notes.append(f"{strange} label(s) of a class that is not known count as missing")
    return Labels(y, list(classes), notes + _sizes(y, classes, name))


def spelled_whole(text: pa.ChunkedArray | pa.Array) -> bool:
    """Whether all strings are whole numbers, each spelled in the one usual way."""
    return bool(pc.all(pc.match_substring_regex(text, _WHOLE)).as_py())


def _whole_if_possible(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Numbers such as 2.0 are whole: that is how tables with gaps store 2."""
    if not pa.types.is_floating(column.type):
        return column
    column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowException as error:
        raise DataError(
            f"the label column {name!r} holds numbers that are not whole ({error}); a class is a "
            "string or a whole number: group the values into classes first"
        ) from error


def _sorted(known: pa.ChunkedArray) -> list[Class]:
    values = known.unique()
    if spelled_whole(values):
        return sorted(int(value) for value in values.to_pylist())
    return sorted(values.to_pylist())


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
    counts = pc.value_counts(known)
    values, sizes = (
        counts.field(part).to_numpy(zero_copy_only=False) for part in ("values", "counts")
    )
    if reason := why_no_classes(values, sizes):
        raise DataError(f"the label column {name!r} {reason}")


def why_no_classes(values: NDArray[Any], sizes: NDArray[np.int64]) -> str | None:
    """Why labels are more likely measurements or ids than classes, and what to do; None if not.

    Numbers are taken for measurements if one of them is not whole; or if there are more than 20
    different ones with fewer than 10 nodes each on average, of which not even two would be test
    nodes. Anything is taken for an id if all labels are different; or if there are more than 20
    with fewer than two nodes each on average.

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


def _sizes(y: NDArray[np.int64], classes: Sequence[Class], name: str) -> list[str]:
    sizes = np.bincount(y[y >= 0], minlength=len(classes))
    small = [f"{label!r} ({size})" for label, size in zip(classes, sizes, strict=True) if size < 3]
    notes = [
        f"label {name!r}: {len(classes)} classes, {int(sizes.sum())} nodes with a label and "
        f"{int((y < 0).sum())} without"
    ]
    if small:
        notes.append(
            "too few labelled nodes to be in training, validation and test at once: class "
            + ", ".join(small)
        )
    return notes
