"""How a user wants tables to be read.

Nothing heavy is imported here, so that a command line can have these options as its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from memohop.errors import UsageError, check_choice

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder
else:
    ColumnEncoder = Any  # a command line resolves the annotations below

Class: TypeAlias = str | int
Task: TypeAlias = Literal["classes", "numbers"]

SETS = ("split", "time_column", "group")
"""The options that name a column for a split."""
READINGS = ("categorical", "numeric", "text", "drop")
"""The options that list columns."""
_ALIKE = ("label", "id", "source", "target", "weight")  # with these, a later table is read alike


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How the tables of a graph are read.

    Attributes:
        label: The column of ``nodes`` with the labels, empty where they are to be predicted. With
            an ``encoder`` it may be None or a column that is not there: no node has a label then.
        id: The column of ``nodes`` with the ids. By default the one named id, node or node_id, or
            else the first.
        source: The column of ``edges`` where an edge begins. By default source, src or from, or
            else the first.
        target: The column where it ends. By default target, dst or to, or else the second.
        weight: The column with the weights, numbers from 0 on; by default all edges count alike.
        directed: Keep the direction of the edges; if False, there is an arc each way. By default
            they have one if some edges, but not nearly all, are listed the other way round too.
        drop_unknown: Leave out edges that name an id that is not in ``nodes``.
        task: Whether the labels are classes or numbers to predict. By default a column of many
            different numbers that are not all whole is one of numbers.
        split: The column of ``nodes`` that says train, val or test; nodes without are not scored.
        time_column: The column with times: the latest fifth of the labelled nodes is for testing,
            and the fifth before it for validation.
        group: The column with groups of nodes that a split must not tear apart.
        categorical: Columns to read as categories.
        numeric: Columns to read as numbers.
        text: Columns to read as bags of words.
        drop: Columns to leave out.
        encoding: How text files store letters, such as ``"utf-8"``, ``"cp1252"`` or ``"utf-16"``.
            By default their first bytes or else all of them decide: a file that is not in UTF-8 is
            taken for Windows-1252, which includes Latin-1.
        encoder: The encoder of an earlier graph, for a table with the same columns. It decides how
            columns are read; ``split``, ``time_column``, ``group`` and the four lists are ignored.
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
        for argument in READINGS:
            names = getattr(self, argument)
            if isinstance(names, str) or not isinstance(names, Sequence):
                raise UsageError(
                    f"{argument}={names!r} is no list of columns; give a list of names"
                )


def read_alike(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that read other tables in the same way, as a saved model keeps them."""
    encoding = {"encoding": options["encoding"]} if options.get("encoding") else {}
    return {name: options[name] for name in _ALIKE} | encoding
