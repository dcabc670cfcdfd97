"""From a column of labels to class numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables.column_kinds import first_few
from memohop.data.tables.column_types import as_text, column_kind, no_kind
from memohop.errors import DataError

Class: TypeAlias = str | int
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # spelled as Python would
_FEW_CLASSES = 20  # whole numbers up to so many are taken for classes, however small they are
_NODES_OF_A_CLASS = 10  # of which two are test nodes, where a fifth is


class Labels(NamedTuple):
    """Class numbers, -1 where there is no label, and what they stand for.

    Attributes:
        y: The number of the class of each node.
        classes: What each class number stands for.
        notes: What was found, in plain words.
        warnings: What was found that may be a mistake; not among the notes.
    """

    y: NDArray[np.int64]
    classes: list[Class]
    notes: list[str]
    warnings: list[str]


def encode_labels(
    column: pa.ChunkedArray, name: str, classes: Sequence[Class] | None = None
) -> Labels:
    """Numbers the classes: whole numbers by size, other labels in the order of the alphabet.

    Spaces round a label are not part of it. Labels that differ in case or in the spaces between
    words are different classes, and a warning names them.

    Args:
        column: The labels; missing ones are what is to be predicted.
        name: The name of the column, for errors and notes.
        classes: The classes of an earlier table. Without them there must be two classes, one of
            them with two nodes; with them, a label that is not among them counts as missing.
    """
    if column_kind(column.type) is None:
        raise no_kind(name, column.type, "the label ")
    spelled = _whole_if_possible(column, name).cast(pa.string())
    trimmed = pc.utf8_trim_whitespace(spelled)
    warnings = _of_spaces(spelled, trimmed, name)
    text = as_text(trimmed)
    known = text.drop_null()
    if classes is None:
        classes = _sorted(known)
        _check_classes(known, classes, name)
        warnings += _spelled_alike(classes, name)
    values = pc.utf8_trim_whitespace(pa.array([str(label) for label in classes], pa.string()))
    y = pc.fill_null(pc.index_in(text, value_set=values), -1).to_numpy().astype(np.int64)
    strange = len(known) - int((y >= 0).sum())
    if strange:
        warnings.append(f"{strange} label(s) of a class that is not known count as missing")
    sizes = np.bincount(y[y >= 0], minlength=len(classes))
    note = (
        f"label {name!r}: {len(classes)} classes, {int(sizes.sum())} nodes with a label and "
        f"{int((y < 0).sum())} without"
    )
    return Labels(y, list(classes), [note], warnings + _small(classes, sizes))


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


def _of_spaces(spelled: pa.ChunkedArray, trimmed: pa.ChunkedArray, name: str) -> list[str]:
    padded = spelled.filter(pc.not_equal(spelled, trimmed))
    if not len(padded):
        return []
    return [
        f"label {name!r}: the spaces round {len(padded)} label(s), such as {padded[0].as_py()!r}, "
        "are not taken for a part of the class"
    ]


def _spelled_alike(classes: Sequence[Class], name: str) -> list[str]:
    """A warning for each set of classes that differ in case, or in spaces between words, alone."""
    alike: dict[str, list[str]] = {}
    for label in classes:
        alike.setdefault(" ".join(str(label).casefold().split()), []).append(repr(label))
    return [
        f"label {name!r}: {' and '.join(labels)} differ in case or spaces alone, and are "
        f"{len(labels)} classes; spell them alike if they mean the same"
        for labels in alike.values()
        if len(labels) > 1
    ]


def _small(classes: Sequence[Class], sizes: NDArray[np.int64]) -> list[str]:
    small = [f"{label!r} ({size})" for label, size in zip(classes, sizes, strict=True) if size < 3]
    if not small:
        return []
    named = first_few(small)
    return [f"too few labelled nodes to be in training, validation and test at once: class {named}"]
