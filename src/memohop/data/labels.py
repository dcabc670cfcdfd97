"""From a column of labels to class numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.column_kinds import first_few
from memohop.data.column_types import as_text, column_kind, no_kind
from memohop.errors import DataError

Class: TypeAlias = str | int
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # spelled as Python would


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
    if len(classes) == len(known):
        raise DataError(
            f"the label column {name!r} has {len(classes)} labels, all different, as an id has; "
            "name the column with the classes"
        )


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
