"""Which columns hold the ids, the labels and the ends of an edge, from a reader's arguments."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from memohop.data.tables.column_kinds import listed
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.sources import UnreadTable
from memohop.errors import DataError, UsageError, unknown_name

_ID_NAMES = ("id", "node", "node_id")
_SOURCE_NAMES = ("source", "src", "from")
_TARGET_NAMES = ("target", "dst", "to")


def check_options(
    *, directed: object, drop_unknown: object, encoder: object, classes: object
) -> None:
    """Refuse arguments of a reader that cannot be right."""
    for name, flag in (("directed", directed), ("drop_unknown", drop_unknown)):
        if not isinstance(flag, bool):
            raise UsageError(f"{name}={flag!r} is neither True nor False; give one of these")
    if encoder is not None and not isinstance(encoder, ColumnEncoder):
        raise UsageError(f"encoder={encoder!r} is no ColumnEncoder; give the one of an OwnGraph")
    if classes is not None and not (
        isinstance(classes, Sequence) and all(isinstance(label, str | int) for label in classes)
    ):
        raise UsageError(f"classes={classes!r} is no list of classes; give the one of an OwnGraph")


def id_column(nodes: UnreadTable, id: str | None) -> str:
    """The column of the ids."""
    return _column(nodes, "id", id, _ID_NAMES, 0)


def label_column(nodes: UnreadTable, label: str | None, id: str, *, optional: bool) -> str | None:
    """The column of the labels; None if it is ``optional`` and the table does not have it."""
    _check_name("label", label)
    if optional and label not in nodes.columns:
        return None
    if label is None:
        raise UsageError("label=None: name the column of the node table with the classes")
    label = _column(nodes, "label", label, (), 0)
    if label == id:
        raise UsageError(
            f"column {label!r} of {nodes.name} cannot be both id and label; name the column with "
            "the classes as label, or another one as id"
        )
    return label


def end_columns(edges: UnreadTable, source: str | None, target: str | None) -> list[str]:
    """The columns where an edge begins and ends."""
    if len(edges.columns) == 1:
        raise DataError(
            f"{edges.name} has one column, {edges.columns[0]!r}; an edge takes two, separated by "
            "comma, tab, semicolon or bar"
        )
    begin = _column(edges, "source", source, _SOURCE_NAMES, 0)
    end = _column(edges, "target", target, _TARGET_NAMES, 1)
    if begin == end:
        raise UsageError(
            f"column {begin!r} of {edges.name} cannot be both ends of an edge; give source= and "
            "target="
        )
    return [begin, end]


def unused(names: list[str], noun: str, prefix: str = "") -> list[str]:
    """A warning if edges have more columns or attributes than the nodes they join."""
    return [f"{prefix}every edge counts alike; not used: {listed(names, noun)}"] if names else []


def check_header(ends: list[str], ids: pa.Array, edges: UnreadTable) -> None:
    """Refuse an edge table with an edge on its first line."""
    if pc.all(pc.is_in(pa.array(ends), value_set=ids)).as_py():
        raise DataError(
            f"the first line of {edges.name} is an edge, from {ends[0]!r} to {ends[1]!r}, and not "
            "the names of the columns; add a line such as source,target"
        )


def _column(
    table: UnreadTable, argument: str, name: str | None, usual: Sequence[str], default: int
) -> str:
    """The column that is named, or else has a usual name, or else has the default number."""
    _check_name(argument, name)
    if name is None:
        by_name = {column.lower(): column for column in table.columns}
        return next((by_name[key] for key in usual if key in by_name), table.columns[default])
    if name not in table.columns:
        raise unknown_name(f"column of {table.name} for {argument}", name, table.columns)
    return name


def _check_name(argument: str, name: object) -> None:
    if name is not None and not isinstance(name, str):
        raise UsageError(f"{argument}={name!r} is no name of a column; give it as a string")
