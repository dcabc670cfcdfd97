"""How a user wants tables to be read, and which of their columns is for what.

Nothing heavy is imported here, so that a command line can have these options as its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from memohop.errors import DataError, UsageError, check_choice, unknown_name

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder
    from memohop.data.tables.sources import UnreadTable
else:
    ColumnEncoder = Any  # a command line resolves the annotations below

Class: TypeAlias = str | int
Task: TypeAlias = Literal["classes", "numbers"]

_SETS = ("split", "time_column", "group")
_READINGS = ("categorical", "numeric", "text", "drop")
_ALIKE = ("label", "id", "source", "target", "weight")  # with these, a later table is read alike
_USUAL = {
    "id": ("id", "node", "node_id"),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How the tables of a graph are read.

    Attributes:
        label: The column of the node table with the labels, empty where they are to be predicted.
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge begins; by default source, src or from, or else the first.
        target: The column where it ends; by default target, dst or to, or else the second.
        weight: The column of the edge table with weights; by default all edges count alike.
        directed: Keep the direction of the edges, or else have an arc each way. By default they
            have one if some edges, but not nearly all, are listed the other way round too; if they
            are listed once, they have none, but ``fit`` tries both.
        drop_unknown: Leave out edges that name a node missing from the node table.
        task: Whether the labels are classes or numbers to predict. By default a column of many
            different numbers that are not all whole is one of numbers.
        split: The column that says train, val or test; nodes for which it is empty are not scored.
        time_column: The column of the node table with times: a node learns only from nodes that
            are earlier, or have no time; one without a time, only from others without. The latest
            fifth of the labelled nodes is for testing, and the fifth before it for validation.
        edge_time: The column of the edge table with times, where nodes have times too: a node
            learns only from edges that are not later than itself, or have no time.
        group: The column with groups of nodes that a split must not tear apart, and that count as
            one each in intervals.
        categorical: Columns to read as categories. These and the next three may also name columns
            of the edge table; a name that both tables have means both.
        numeric: Columns to read as numbers: strings that are none are missing, and times are
            their seconds alone.
        text: Columns to read as bags of words.
        drop: Columns to leave out.
        encoding: How text files store letters, such as utf-8, cp1252 or utf-16. By default their
            first bytes or else all of them decide: a file that is not in UTF-8 is taken for
            Windows-1252, which includes Latin-1.
        encoder: The encoder of an earlier graph, for a table with the same columns. It decides how
            columns are read, and which are times; ``split``, ``time_column``, ``edge_time``,
            ``group`` and the four lists are ignored.
            The label may be None or a column that is not there: no node has a label then.
        classes: The classes of that earlier graph, to keep their numbers.

    Example:
        >>> from memohop.data.tables import ReadOptions
        >>> ReadOptions(label="kind", task="numbers", drop=["name"]).drop
        ['name']
    """

    label: str | None = None
    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: bool | None = None
    drop_unknown: bool = False
    task: Literal["auto"] | Task = "auto"
    split: str | None = None
    time_column: str | None = None
    edge_time: str | None = None
    group: str | None = None
    categorical: Sequence[str] = ()
    numeric: Sequence[str] = ()
    text: Sequence[str] = ()
    drop: Sequence[str] = ()
    encoding: str | None = None
    encoder: ColumnEncoder | None = None
    classes: Sequence[Class] | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be right, whatever the tables are."""
        for argument, kind in {"directed": bool | None, "drop_unknown": bool}.items():
            if not isinstance(value := getattr(self, argument), kind):
                raise UsageError(
                    f"{argument}={value!r} is neither True nor False; give one, or leave it out"
                )
        check_choice("task", self.task, ("auto", "classes", "numbers"))
        if self.encoder is not None and not hasattr(self.encoder, "transform"):
            raise UsageError(
                f"encoder={self.encoder!r} is no ColumnEncoder; give the one of an OwnGraph"
            )
        if self.classes is not None and not (
            isinstance(self.classes, Sequence)
            and all(isinstance(label, str | int) for label in self.classes)
        ):
            raise UsageError(
                f"classes={self.classes!r} is no list of classes; give the one of an OwnGraph"
            )
        if self.edge_time is not None and self.time_column is None and self.encoder is None:
            raise UsageError(
                f"edge_time={self.edge_time!r} says which edges came before a node, and there is "
                "no time_column that says when a node came; name one, or leave edge_time out to "
                "read its column like any other"
            )
        for argument in _READINGS:
            names = getattr(self, argument)
            if isinstance(names, str) or not isinstance(names, Sequence):
                raise UsageError(
                    f"{argument}={names!r} is no list of columns; give a list of names"
                )


def read_alike(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that read other tables in the same way, as a saved model keeps them."""
    encoding = {"encoding": options["encoding"]} if options.get("encoding") else {}
    return {name: options[name] for name in _ALIKE} | encoding


class Roles(NamedTuple):
    """The tables, and which column is for what."""

    nodes: UnreadTable
    edges: UnreadTable
    id: str
    label: str | None
    ends: list[str]
    weight: str | None
    sets: dict[str, str]  # the columns for split, time_column and group, by these names
    columns: list[str]  # those that become features
    readings: dict[str, Any]  # how columns are to be read, or drop, where the user says so
    edge_readings: dict[str, Any]  # the same for columns of the edge table
    edge_columns: list[str]  # those of the edge table that may describe its nodes
    time: str | None = None  # the column of the node table with times
    edge_time: str | None = None  # that of the edge table

    @property
    def of_edges(self) -> list[str]:
        """The columns of the edge table that are read."""
        return [*self.ends, *(name for name in (self.weight, self.edge_time) if name is not None)]

    @property
    def dropped(self) -> list[str]:
        """The columns that the user leaves out."""
        asked = self.readings | self.edge_readings
        return [name for name, reading in asked.items() if reading == "drop"]

    @property
    def spelled(self) -> list[str]:
        """The columns of a text file that are read as they are spelled."""
        words = [name for role, name in self.sets.items() if role != "time_column"]
        words += spelled(self.readings)
        return [self.id, *([] if self.label is None else [self.label]), *words]


def spelled(readings: Mapping[str, Any]) -> list[str]:
    """The columns that the user wants to be read as they are spelled."""
    return [name for name, how in readings.items() if how in ("categorical", "text")]


def find_roles(nodes: UnreadTable, edges: UnreadTable, options: ReadOptions) -> Roles:
    """The columns that the options name, or that are named as usual; each is for one thing."""
    encoder, label = options.encoder, options.label
    if encoder is not None and label not in nodes.columns:
        label = None
    uses, time, edge_time = [("label", label)], options.time_column, options.edge_time
    if encoder is not None:
        of_both = (encoder.time, encoder.edges.time)
        time, edge_time = (None if each is None else each.name for each in of_both)
        uses.append(("time_column", time))
    else:
        uses += [(role, getattr(options, role)) for role in _SETS]
        asked = [(reading, name) for reading in _READINGS for name in getattr(options, reading)]
        for reading, name in asked:
            if name not in (either := [*nodes.columns, *edges.columns]):
                raise unknown_name(f"column of either table for {reading}", name, either)
        uses += [(reading, name) for reading, name in asked if name in nodes.columns]
    taken = {find_column(nodes, "id", options.id): "id"}
    for role, name in uses:
        if name is not None:
            _take(taken, nodes, role, name)
    sets = {role: name for name, role in taken.items() if role in _SETS and encoder is None}
    readings = {name: role for name, role in taken.items() if role in _READINGS}
    if {"split", "time_column"} <= sets.keys():
        raise UsageError(
            f"split={sets['split']!r} and time_column={sets['time_column']!r} each say which "
            "nodes are for testing; give one of them"
        )
    columns = [name for name in nodes.columns if taken.get(name) in (None, *_READINGS[:-1])]
    if encoder is not None:
        encoder.check_columns([*columns, *encoder.edges.made], nodes.name)
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
    if edge_time is not None:
        _take(of_edges, edges, "edge_time", edge_time)
    if encoder is None:
        for reading, name in asked:
            if name in edges.columns and not (name in of_edges and name in nodes.columns):
                _take(of_edges, edges, reading, name)
        of_nodes = [name for name in edges.columns if of_edges.get(name) in (None, *_READINGS[:-1])]
    else:
        of_nodes = [column.name for column in encoder.edges.columns]
        check_there(of_nodes, edges.columns, edges.name)
    return Roles(
        nodes,
        edges,
        next(iter(taken)),
        label,
        ends,
        options.weight,
        sets,
        columns,
        readings,
        {name: role for name, role in of_edges.items() if role in _READINGS},
        of_nodes,
        time,
        edge_time,
    )


def check_there(needed: Iterable[str], names: Collection[str], table: str) -> None:
    """Refuse a table, of which errors speak as ``table``, that lacks a column that is needed."""
    there = set(names)
    if absent := [name for name in needed if name not in there]:
        raise UsageError(
            f"{table} lacks the column(s) {', '.join(map(repr, absent))}, from which features "
            "were made; give a table with the same columns, empty where unknown"
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
