"""Training, validation and test nodes that the user names, by a column of words or of times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.splits import Mask, OwnSplit
from memohop.data.tables.cells import Cells
from memohop.data.tables.labels import Labels
from memohop.errors import DataError
from memohop.outputs import first_few

_WORDS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
    "unused": ("none", "unused", "other"),
}
_LATEST = 0.2  # share of the labelled nodes that is for testing, and that before it for validation


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
                warnings = cells.told(f"column {roles[role]!r}")
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
    name = cells.name
    if cells.stored == "flag":
        raise DataError(f"time column {name!r} holds true and false; name one with times")
    if cells.words.size:
        row = int(cells.words[0])
        raise DataError(
            f"time column {name!r} holds {cells.column[row].as_py()!r} in row {row + 1}, which is "
            "neither a time such as 2024-05-31 18:30 nor a number; correct it or leave it empty"
        )
    times = cells.numbers
    known = labelled & ~np.isnan(times)
    moments, sizes = np.unique(times[known], return_counts=True)
    if len(moments) < 3:
        raise DataError(
            f"time column {name!r} has {len(moments)} different time(s) on labelled nodes; "
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
