"""Which column is for what, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from memohop.data.tables.column_kinds import listed
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import Class, Task
from memohop.data.tables.roles import (
    check_options,
    column_readings,
    end_columns,
    id_column,
    label_column,
    node_roles,
    weight_column,
)
from memohop.data.tables.sources import UnreadTable
from memohop.errors import UsageError


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of :func:`memohop.prepare` that decide what is written."""

    label: str | None
    id: str | None
    source: str | None
    target: str | None
    weight: str | None
    directed: bool | None
    drop_unknown: bool
    task: Literal["auto"] | Task
    split: str | None
    time_column: str | None
    group: str | None
    categorical: Sequence[str]
    numeric: Sequence[str]
    text: Sequence[str]
    drop: Sequence[str]
    encoding: str | None
    encoder: ColumnEncoder | None
    classes: Sequence[Class] | None

    def __post_init__(self) -> None:
        check_options(
            directed=self.directed,
            drop_unknown=self.drop_unknown,
            encoder=self.encoder,
            classes=self.classes,
            task=self.task,
        )

    def plain(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return dict(msgspec.json.decode(msgspec.json.encode(self)))


class Roles(NamedTuple):
    """The tables, and which column is for what.

    Attributes:
        nodes: The node table.
        edges: The edge table.
        id: The column of the ids.
        label: The column of the labels, or None.
        ends: The two columns of an edge.
        weight: The column of its weight, or None.
        sets: The columns for ``split``, ``time_column`` and ``group``.
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


def find_roles(nodes: UnreadTable, edges: UnreadTable, options: Options) -> Roles:
    """The columns that the options name, or that are named as usual."""
    id, encoder = id_column(nodes, options.id), options.encoder
    optional = options.label is None or encoder is not None
    label = label_column(nodes, options.label, id, optional=optional)
    sets: dict[str, str] = {}
    readings = {}
    if encoder is None:
        by_role = {name: getattr(options, name) for name in ("split", "time_column", "group")}
        sets = node_roles(nodes, [id, label], **by_role)
        names = ("categorical", "numeric", "text", "drop")
        lists = {name: getattr(options, name) for name in names}
        readings = column_readings(nodes, [id, label, *sets.values()], **lists)
    dropped = [name for name, how in readings.items() if how == "drop"]
    taken = {id, label, *sets.values(), *dropped}
    columns = [name for name in nodes.columns if name not in taken]
    if encoder is not None:
        lacking = [one.name for one in encoder.columns if one.name not in columns]
        if lacking:
            raise UsageError(
                f"{nodes.name} lacks the {listed(lacking)}, from which features were made; give a "
                "table with the same columns, empty where unknown"
            )
    ends = end_columns(edges, options.source, options.target)
    weight = weight_column(edges, options.weight, ends)
    return Roles(nodes, edges, id, label, ends, weight, sets, columns, readings)
