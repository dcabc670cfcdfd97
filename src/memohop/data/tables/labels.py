"""What is to be predicted, and where: labels, and the splits and groups that the user names.

A column of labels becomes class numbers, or the numbers that are to be predicted. A column of words
or of times says which nodes are for training, for validation and for testing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.types import is_floating

from memohop.data.read_options import Class, Task
from memohop.data.splits import Mask, OwnSplit
from memohop.data.tables.cells import (
    Cells,
    are_obvious,
    are_placeholders,
    as_text,
    kind_of,
    spelled_whole,
    whole_as_text,
)
from memohop.data.tables.times import read_times
from memohop.errors import DataError
from memohop.outputs import count, first_few

_FEW_CLASSES = 20  # up to this many whole numbers are taken for classes, however small
_NODES_OF_A_CLASS = 10  # with a fifth of the nodes for testing, two of them
_FEWEST_NUMBERS = 5  # different ones that are predicted as numbers without being asked
_EMPTY = "the label column {name!r} is empty in every row; give some nodes their label"
_OVERRULE = (
    "to predict numbers, say task=numbers (or use GraphRegressor); if each is a class of its own, "
    "say task=classes or spell it as a word, such as class {}; or group them into classes such as "
    "low and high"
)
_WORDS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
    "unused": ("none", "unused", "other"),
}
_LATEST = 0.2  # share of the labelled nodes that is for testing, and that before it for validation


class Labels(NamedTuple):
    """The labels of the nodes, how they were read, and likely mistakes."""

    y: NDArray[Any]  # class numbers, -1 without a label; or numbers, NaN without one
    classes: list[Class]  # empty if numbers are to be predicted
    task: Task = "classes"
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def known(self) -> Mask:
        """The nodes with a label."""
        return np.isfinite(self.y) if self.task == "numbers" else self.y >= 0


def no_labels(
    nodes: int, classes: Sequence[Class] | None, task: Literal["auto"] | Task = "auto"
) -> Labels:
    """Labels of nodes that have none."""
    note = ["no node has a label"]
    if task == "numbers":
        return Labels(np.full(nodes, np.nan), [], "numbers", note)
    return Labels(np.full(nodes, -1), list(classes or []), "classes", note)


def read_labels(
    column: pa.ChunkedArray,
    name: str,
    task: Literal["auto"] | Task = "auto",
    classes: Sequence[Class] | None = None,
) -> Labels:
    """Labels as classes or as numbers; missing ones are to be predicted.

    By itself, a column of numbers that are not all whole, with at least five different ones, and
    more than 20 or half as many as there are labelled nodes, is one of numbers to be predicted.
    The classes of an earlier table are empty if numbers were.
    """
    kind_of(column.type, f"the label column {name!r}")
    are_numbers = False
    if not classes and task != "classes":
        cells, told = _without_placeholders(column, name, (), numbers=True)
        are_numbers = task == "numbers" or _are_real(cells)
    if not are_numbers:
        cells, told = _without_placeholders(column, name, classes or (), numbers=False)
    try:
        if are_numbers:
            labels = _number_labels(cells, checked=classes is None)
        else:
            labels = _class_labels(cells, classes, checked=task == "auto")
    except DataError as error:
        raise DataError("; ".join([str(error), *told])) from error
    return labels._replace(warnings=[*told, *labels.warnings])


def _without_placeholders(
    column: pa.ChunkedArray, name: str, classes: Sequence[Class], *, numbers: bool
) -> tuple[Cells, list[str]]:
    """The labels with null for those that stand for nothing, and a line on these.

    The classes of an earlier table are classes whatever their names are. Where numbers are to be
    predicted, unknown is no label either, nor are spaces part of one.
    """
    if (cells := Cells(name, column)).stored != "text":
        return cells, []
    text = column.cast(pa.string())
    trimmed = pc.utf8_trim_whitespace(text)
    kept = {str(label).strip() for label in classes}
    if not pc.index_in(pa.array(["+", "-"]), value_set=trimmed.unique()).null_count:
        kept |= {"+", "-"}  # then - is a class too
    stands_for_nothing = are_placeholders(trimmed) if numbers else are_obvious(trimmed)
    kept_cells = pc.is_in(trimmed, value_set=pa.array(sorted(kept), pa.string()))
    absent = pc.fill_null(pc.and_not(stands_for_nothing, kept_cells), False).combine_chunks()
    labels = pc.replace_with_mask(trimmed if numbers else text, absent, pa.scalar(None, text.type))
    told = []
    if number := absent.true_count:
        different = trimmed.filter(absent).unique().to_pylist()
        shown = first_few([repr(value) for value in different])
        spell = f" (if one is a class, spell it as a word, such as {f'class {different[0]}'!r})"
        cell = count(number, "cell")
        told = [f"label {name!r}: {cell} with {shown} taken for empty" + spell * (not numbers)]
    return Cells(name, labels), told


def _are_real(cells: Cells) -> bool:
    """Whether a column holds many different numbers that are not all whole, or have a unit."""
    if cells.stored not in ("text", "number") or cells.are_times:
        return False
    values = cells.spelled.cast(pa.float64(), safe=False).drop_null().to_numpy()
    values = values[np.isfinite(values)]
    different = np.unique(values).size
    return bool(
        not cells.words.size
        and ((values != np.floor(values)).any() or cells.unit or cells.has_currencies)
        and different >= _FEWEST_NUMBERS
        and different > min(_FEW_CLASSES, values.size / 2)
    )


def _number_labels(cells: Cells, *, checked: bool) -> Labels:
    """The labels as numbers to be predicted; anything else is a :class:`DataError`."""
    name = cells.name
    if cells.words.size:
        row = int(cells.words[0])
        raise DataError(
            f"the label column {name!r} holds {cells.column[row].as_py()!r} in row {row + 1}, "
            f"which is not a number ({cells.words.size} such row(s) in all); correct it, leave it "
            "empty, or predict classes (task=classes)"
        )
    if cells.has_currencies:
        raise DataError(
            f"the label column {name!r} holds {cells.guesses[-1]}; convert the amounts into one "
            "currency, or predict classes (task=classes)"
        )
    y = cells.numbers.copy()  # PyTorch takes no read-only arrays
    known = y[~np.isnan(y)]
    if checked and not known.size:
        raise DataError(_EMPTY.format(name=name))
    if checked and known.min() == known.max():
        raise DataError(
            f"the label column {name!r} holds {known[0]:g} in every row; there is nothing to "
            "predict: give labels that differ"
        )
    ends = f", from {known.min():g} to {known.max():g}" if known.size else ""
    note = (
        f"label {name!r}: a number to predict{ends}, {known.size} nodes with a label and "
        f"{y.size - known.size} without (task=classes predicts classes instead)"
    )
    return Labels(y, [], "numbers", [note], cells.told(f"label {name!r}"))


def _class_labels(cells: Cells, classes: Sequence[Class] | None, *, checked: bool) -> Labels:
    """Number the classes: whole numbers by size, other labels in alphabetical order.

    Spaces around a label are not part of it. Labels that differ only in case or in the spaces
    between words are different classes, and a warning names them. With the classes of an earlier
    table any other label counts as missing; without them there must be two, and if ``checked``,
    labels may not look like measurements or ids.
    """
    name, column = cells.name, cells.column
    if checked or not is_floating(column.type):
        column = whole_as_text(
            column,
            f"the label column {name!r} holds few numbers, not all of them whole",
            _OVERRULE.format(7),
        )
    spelled = column.cast(pa.string())
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
        names, sizes = pc.value_counts(known).flatten()
        classes = sorted((names.cast(pa.int64()) if spelled_whole(names) else names).to_pylist())
        if not classes:
            raise DataError(_EMPTY.format(name=name))
        if len(classes) == 1:
            raise DataError(
                f"the label column {name!r} has one class, {classes[0]!r}; there is nothing to "
                "tell apart: give labels of at least two classes"
            )
        if checked and (
            reason := why_no_classes(names.to_numpy(zero_copy_only=False), sizes.to_numpy())
        ):
            raise DataError(f"the label column {name!r} {reason}")
        warnings += _spelled_alike(classes, name) + _perhaps_unknown(known, classes, name)
    values = pc.utf8_trim_whitespace(pa.array([str(label) for label in classes], pa.string()))
    y = pc.fill_null(pc.index_in(text, value_set=values), -1).to_numpy().astype(np.int64)
    of_classes = np.bincount(y[y >= 0], minlength=len(classes)).tolist()
    labelled = sum(of_classes)
    if unknown := len(known) - labelled:
        warnings.append(f"{unknown} label(s) of an unknown class count as missing")
    sized = zip(classes, of_classes, strict=True)
    if small := [f"{label!r} ({size})" for label, size in sized if size < 3]:
        warnings.append(
            "too few labelled nodes to be in training, validation and test at once: class "
            + first_few(small)
        )
    note = (
        f"label {name!r}: {len(classes)} classes, {labelled} nodes with a label and "
        f"{len(y) - labelled} without"
    )
    return Labels(y, list(classes), "classes", [note], warnings)


def why_no_classes(values: NDArray[Any], sizes: NDArray[np.int64]) -> str | None:
    """Why labels look like measurements or ids and not like classes, and the remedy; or None.

    Numbers look like measurements if one of them is not whole, or if there are more than 20
    different ones with fewer than 10 nodes each on average, of which not even two would be test
    nodes. Labels look like ids if all are different, or if there are more than 20 with fewer than
    two nodes each on average.
    """
    labelled = int(sizes.sum())
    try:
        measured = values.astype(np.float64)
    except (TypeError, ValueError):  # words
        measured = np.array([np.nan])
    are_whole = bool((measured == np.floor(measured)).all())
    are_many = len(values) > max(_FEW_CLASSES, labelled / _NODES_OF_A_CLASS)
    if np.isfinite(measured).all() and (are_many or not are_whole):
        return (
            f"holds {len(values)} different numbers on {labelled} nodes, such as {values[0]}: are "
            f"they measurements or codes? {_OVERRULE.format(values[0])}"
        )
    if len(values) == labelled or len(values) > max(_FEW_CLASSES, labelled / 2):
        return (
            f"has {len(values)} different labels on {labelled} nodes, as an id would (is it one?); "
            "name the column with the classes, or merge labels"
        )
    return None


def _perhaps_unknown(known: pa.ChunkedArray, classes: Sequence[Class], name: str) -> list[str]:
    """A warning for each class whose name may mean that the label is not known."""
    names = pa.array([str(label) for label in classes], pa.string())
    doubtful = names.filter(pc.and_not(are_placeholders(names), are_obvious(names))).to_pylist()
    if names.to_pylist() == [str(number) for number in range(-1, len(names) - 1)]:
        doubtful += ["-1"] * (len(names) > 3)
    return [
        f"label {name!r}: {label!r} ({count(pc.sum(pc.equal(known, label)).as_py(), 'node')}) is "
        "taken for a class; leave these cells empty if it means that the label is not known"
        for label in doubtful
    ]


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


def read_sets(
    table: pa.Table, roles: Mapping[str, str], labels: Labels
) -> tuple[OwnSplit | None, NDArray[np.int64] | None, list[str], list[str]]:
    """The split and groups that columns of the node table say, how many nodes are where, and how
    times were read, if that was a guess.
    """
    split = groups = None
    notes: list[str] = []
    warnings: list[str] = []
    for role, read in (("split", sets_by_word), ("time_column", sets_by_time)):
        if role in roles:
            cells = Cells(roles[role], table[roles[role]])
            split = read(cells, labels.known)
            if role == "time_column":
                warnings = cells.told(name := f"column {roles[role]!r}")
                if cells.words.size:  # or they would be refused
                    warnings = [f"{name} is read as the first year of each season"]
            train, val, test = (int(mask.sum()) for mask in split)
            left = int(labels.known.sum()) - train - val - test
            notes.append(
                f"column {roles[role]!r}: {train} training, {val} validation and {test} test nodes"
                + f"; {left} labelled node(s) are in none of them" * (left > 0)
            )
    if "group" in roles:
        groups = _group_codes(Cells(roles["group"], table[roles["group"]]))
        notes.append(f"column {roles['group']!r}: {groups.max() + 1} groups of nodes")
    return split, groups, notes, warnings


def sets_by_word(cells: Cells, labelled: Mask) -> OwnSplit:
    """The sets that a column names, in any case; empty cells are nodes that are in none."""
    name, words = cells.name, pc.utf8_lower(pc.utf8_trim_whitespace(cells.text))
    of_set = {word: kind for kind, alike in _WORDS.items() for word in alike}
    unknown = pc.and_(words.is_valid(), pc.invert(pc.is_in(words, value_set=pa.array(of_set))))
    rows = np.flatnonzero(pc.fill_null(unknown, False).to_numpy())
    if rows.size:
        different = [repr(word) for word in cells.text.filter(unknown).unique().to_pylist()]
        raise DataError(
            f"split column {name!r}: row {rows[0] + 1} says {first_few(different)}; write train, "
            "val or test, or leave it empty for nodes that are not used for scoring"
        )
    sets = {
        kind: labelled & pc.is_in(words, value_set=pa.array(alike)).to_numpy()
        for kind, alike in _WORDS.items()
    }
    for kind in ("train", "test"):
        if not sets[kind].any():
            raise DataError(
                f"split column {name!r} names no labelled node for {kind}; write {kind} for some"
            )
    return OwnSplit(sets["train"], sets["val"], sets["test"])


def sets_by_time(cells: Cells, labelled: Mask) -> OwnSplit:
    """The latest fifth of the labelled nodes for test, and the fifth before it for validation.

    Nodes of one time stay together, so the sets are as near to a fifth as times allow. A node
    without a time is in none.
    """
    times = read_times(cells, "time column")
    known = labelled & ~np.isnan(times)
    moments, sizes = np.unique(times[known], return_counts=True)
    if len(moments) < 3:
        raise DataError(
            f"time column {cells.name!r} has {len(moments)} different time(s) on labelled nodes; "
            "training, validation and test need at least one each"
        )
    earlier = np.concatenate(([0], np.cumsum(sizes)[:-1])) / sizes.sum()
    test = 2 + int(np.abs(earlier[2:] - (1 - _LATEST)).argmin())
    val = 1 + int(np.abs(earlier[1:test] - (1 - 2 * _LATEST)).argmin())
    is_test, is_train = times >= moments[test], times < moments[val]
    return OwnSplit(known & is_train, known & ~is_train & ~is_test, known & is_test)


def _group_codes(cells: Cells) -> NDArray[np.int64]:
    """The number of each node's group; a node without one is a group of its own."""
    position = pc.index_in(cells.text, value_set=cells.text.drop_null().unique())
    codes: NDArray[np.int64] = pc.fill_null(position, -1).to_numpy().astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max() + 1 + np.arange(alone.sum())
    if codes.max() == 0:
        raise DataError(
            f"group column {cells.name!r} has one group, {cells.text[0].as_py()!r}; name one with "
            "several"
        )
    return codes
