"""Which column is for what, from the arguments of a reader."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from memohop.data.tables.column_kinds import listed
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.sources import UnreadTable
from memohop.errors import DataError, UsageError, check_choice, unknown_name

_ID_NAMES = ("id", "node", "node_id")
_SOURCE_NAMES = ("source", "src", "from")
_TARGET_NAMES = ("target", "dst", "to")


def check_options(
    *, directed: object, drop_unknown: object, encoder: object, classes: object, task: object
) -> None:
    """Refuse arguments of a reader that cannot be right."""
    if directed is not None and not isinstance(directed, bool):
        raise UsageError(
            f"directed={directed!r} is neither True nor False; give one of these, or None to have "
            "the edges decide"
        )
    if not isinstance(drop_unknown, bool):
        raise UsageError(f"drop_unknown={drop_unknown!r} is neither True nor False; give one")
    check_choice("task", task, ("auto", "classes", "numbers"))
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


def node_roles(
    nodes: UnreadTable, taken: Sequence[str | None], **names: str | None
) -> dict[str, str]:
    """The columns for ``split``, ``time_column`` and ``group``, by argument."""
    found = {
        argument: _column(nodes, argument, name, (), 0)
        for argument, name in names.items()
        if name is not None
    }
    if {"split", "time_column"} <= found.keys():
        raise UsageError(
            f"split={found['split']!r} and time_column={found['time_column']!r} each say which "
            "nodes are for testing; give one of them"
        )
    for argument, name in found.items():
        if name in taken or list(found.values()).count(name) > 1:
            raise UsageError(
                f"{argument}={name!r}: this column of {nodes.name} is already the id, the label or "
                "another part of the split; name another one"
            )
    return found


def column_readings(
    nodes: UnreadTable, taken: Sequence[str | None], **lists: Sequence[str]
) -> dict[str, str]:
    """By column, the list that names it: ``categorical``, ``numeric``, ``text`` or ``drop``."""
    found: dict[str, str] = {}
    for argument, names in lists.items():
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise UsageError(f"{argument}={names!r} is no list of columns; give a list of names")
        for name in names:
            _column(nodes, argument, name, (), 0)
            if name in taken:
                raise UsageError(
                    f"{argument}={name!r}: this column of {nodes.name} is the id, the label or "
                    "part of the split, and no feature; leave it out of the list"
                )
            if found.setdefault(name, argument) != argument:
                raise UsageError(
                    f"column {name!r} of {nodes.name} is in {found[name]} and in {argument}; name "
                    "it in one of them"
                )
    return found


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


def weight_column(edges: UnreadTable, weight: str | None, ends: Sequence[str]) -> str | None:
    """The column of the weights, or None."""
    if weight is None:
        return None
    weight = _column(edges, "weight", weight, (), 0)
    if weight in ends:
        raise UsageError(
            f"column {weight!r} of {edges.name} cannot be both weight and end of an edge; name "
            "another one as weight"
        )
    return weight


def unused(names: list[str], noun: str, prefix: str = "", *, weighted: bool = False) -> list[str]:
    """A warning if edges have more columns or attributes than are read."""
    alike = "" if weighted else "every edge counts alike; "
    return [f"{prefix}{alike}not used: {listed(names, noun)}"] if names else []


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
