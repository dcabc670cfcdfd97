"""What the arguments of a reader name: the column of the ids, the labels, the ends of an edge."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from memohop.data.tables.column_kinds import listed
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.sources import Source
from memohop.errors import DataError, UsageError, unknown_name

_ID_NAMES = ("id", "node", "node_id")
_END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))


def check_options(
    *, directed: object, drop_unknown: object, encoder: object, classes: object
) -> None:
    """Refuse what cannot be right among the arguments of a reader of tables."""
    for name, flag in (("directed", directed), ("drop_unknown", drop_unknown)):
        if not isinstance(flag, bool):
            raise UsageError(f"{name}={flag!r} is neither True nor False; give one of these")
    if encoder is not None and not isinstance(encoder, ColumnEncoder):
        raise UsageError(f"encoder={encoder!r} is no ColumnEncoder; give the one of an OwnGraph")
    if classes is not None and not (
        isinstance(classes, Sequence) and all(isinstance(label, str | int) for label in classes)
    ):
        raise UsageError(f"classes={classes!r} is no list of classes; give the one of an OwnGraph")


def id_column(nodes: Source, id: str | None) -> str:
    """The column of the ids."""
    return _column(nodes, "id", id, _ID_NAMES, 0)


def label_column(nodes: Source, label: str | None, id: str, *, optional: bool) -> str | None:
    """The column of the labels; None where it may be absent and is.

    Args:
        nodes: The table of nodes.
        label: What the user asked for.
        id: The column of the ids.
        optional: Whether the table may do without.
    """
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


def end_columns(edges: Source, source: str | None, target: str | None) -> list[str]:
    """The two columns of an edge table that count."""
    if len(edges.columns) == 1:
        raise DataError(
            f"{edges.name} has one column, {edges.columns[0]!r}; an edge takes two, separated by "
            "comma, tab, semicolon or bar"
        )
    first, second = zip(*_END_NAMES, strict=True)
    ends = [
        _column(edges, "source", source, first, 0),
        _column(edges, "target", target, second, 1),
    ]
    if ends[0] == ends[1]:
        raise UsageError(
            f"column {ends[0]!r} of {edges.name} cannot be both ends of an edge; give source= and "
            "target="
        )
    return ends


def unused(names: list[str], noun: str, place: str = "") -> list[str]:
    """A warning if edges say more than which nodes they join.

    Args:
        names: What else they say: `weight`, `since`.
        noun: What these are: a column or an attribute.
        place: The table they are in.
    """
    return [f"{place}every edge counts alike; not used: {listed(names, noun)}"] if names else []


def check_header(ends: list[str], ids: pa.Array, edges: Source) -> None:
    """Refuse an edge table whose first line is an edge."""
    if pc.all(pc.is_in(pa.array(ends), value_set=ids)).as_py():
        raise DataError(
            f"the first line of {edges.name} is an edge, from {ends[0]!r} to {ends[1]!r}, and not "
            "the names of the columns; add a line such as source,target"
        )


def _column(
    source: Source, argument: str, name: str | None, usual: Sequence[str], place: int
) -> str:
    """The column that is named, or has a usual name, or is at its usual place."""
    _check_name(argument, name)
    if name is not None:
        if name not in source.columns:
            raise unknown_name(f"column of {source.name} for {argument}", name, source.columns)
        return name
    by_name = {column.lower(): column for column in source.columns}
    return next((by_name[column] for column in usual if column in by_name), source.columns[place])


def _check_name(argument: str, name: object) -> None:
    if name is not None and not isinstance(name, str):
        raise UsageError(f"{argument}={name!r} is no name of a column; give it as a string")
