"""Which column of a table is for what."""

from __future__ import annotations

from typing import Any, NamedTuple

from memohop.data.read_options import READINGS, SETS, ReadOptions
from memohop.data.tables.sources import UnreadTable
from memohop.errors import DataError, UsageError, unknown_name

_USUAL = {
    "id": ("id", "node", "node_id"),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
}


class Roles(NamedTuple):
    """The tables, and which column is for what.

    Attributes:
        nodes: The node table.
        edges: The edge table.
        id: The column of the ids.
        label: The column of the labels, or None.
        ends: The two columns of an edge.
        weight: The column of its weight, or None.
        sets: The columns for ``split``, ``time_column`` and ``group``, by these names.
        columns: The columns that become features.
        readings: How columns are to be read, or ``drop``, where the user says so.
    """

    nodes: UnreadTable
    edges: UnreadTable
    id: str
    label: str | None
    ends: list[str]
    weight: str | None
    sets: dict[str, str]
    columns: list[str]
    readings: dict[str, Any]

    @property
    def dropped(self) -> list[str]:
        """The columns that the user leaves out."""
        return [name for name, reading in self.readings.items() if reading == "drop"]

    @property
    def spelled(self) -> list[str]:
        """The columns of a text file that are read as they are spelled."""
        words = [name for role, name in self.sets.items() if role != "time_column"]
        words += [name for name, how in self.readings.items() if how in ("categorical", "text")]
        return [self.id, *([] if self.label is None else [self.label]), *words]


def find_roles(nodes: UnreadTable, edges: UnreadTable, options: ReadOptions) -> Roles:
    """The columns that the options name, or that are named as usual; each is for one thing.

    A label that is None, or with an encoder not there, is none.
    """
    encoder, label = options.encoder, options.label
    taken = {find_column(nodes, "id", options.id): "id"}
    if label is not None and encoder is not None and label not in nodes.columns:
        label = None
    if label is not None:
        _take(taken, nodes, "label", label)
    sets: dict[str, str] = {}
    readings: dict[str, str] = {}
    if encoder is None:
        sets = {role: name for role in SETS if (name := getattr(options, role)) is not None}
        if {"split", "time_column"} <= sets.keys():
            raise UsageError(
                f"split={sets['split']!r} and time_column={sets['time_column']!r} each say which "
                "nodes are for testing; give one of them"
            )
        for role, name in sets.items():
            _take(taken, nodes, role, name)
        for reading in READINGS:
            for name in getattr(options, reading):
                _take(taken, nodes, reading, name)
                readings[name] = reading
    columns = [name for name in nodes.columns if taken.get(name) in (None, *READINGS[:-1])]
    if encoder is not None:
        encoder.check_columns(columns, nodes.name)
    if len(edges.columns) == 1:
        raise DataError(
            f"{edges.name} has one column, {edges.columns[0]!r}; an edge takes two, separated by "
            "comma, tab, semicolon or bar"
        )
    of_edges = {find_column(edges, "source", options.source): "source"}
    _take(of_edges, edges, "target", find_column(edges, "target", options.target, default=1))
    ends = list(of_edges)
    if options.weight is not None:
        _take(of_edges, edges, "weight", options.weight)
    return Roles(
        nodes, edges, next(iter(taken)), label, ends, options.weight, sets, columns, readings
    )


def _take(taken: dict[str, str], table: UnreadTable, role: str, name: str) -> None:
    """Note what a column is for; it must be there, and for nothing else."""
    find_column(table, role, name)
    if taken.setdefault(name, role) != role:
        raise UsageError(
            f"column {name!r} of {table.name} cannot be both {taken[name]} and {role}; name "
            "another one, or leave it out of one of them"
        )


def find_column(table: UnreadTable, argument: str, name: str | None, default: int = 0) -> str:
    """The column that is named, or else has a usual name, or else has the default number."""
    if name is None:
        by_name = {column.lower(): column for column in table.columns}
        usual = _USUAL.get(argument, ())
        return next((by_name[key] for key in usual if key in by_name), table.columns[default])
    if name not in table.columns:
        raise unknown_name(f"column of {table.name} for {argument}", name, table.columns)
    return name
