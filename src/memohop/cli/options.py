"""Options that several commands share, with their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from memohop.cli.app import remark

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph

Dataset = Annotated[str, Parameter(help="The id of a dataset; see memohop data list.")]
Device = Annotated[Literal["cpu", "cuda"], Parameter(help="The device to train on.")]
Folder = Annotated[
    Path | None,
    Parameter(name="--data", help="A local folder with the data files, instead of a download."),
]
Json = Annotated[
    bool, Parameter(show_default=False, help="Print a list of JSON objects instead of the table.")
]
Memory = Annotated[
    str | None,
    Parameter(
        help="The most RAM that the process may hold, such as 4GB; by default what the device can "
        "spare."
    ),
]
ModelFolder = Annotated[Path, Parameter(help="The folder that memohop fit wrote.")]
PreparedFolder = Annotated[Path, Parameter(help="A folder that memohop prepare wrote.")]
OUTPUT = Parameter(name=["--output", "-o"])


def split_names(kind: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, or given one by one."""
    return tuple(name for token in tokens for name in token.value.split(","))


Names = Annotated[tuple[str, ...], Parameter(converter=split_names, n_tokens=1)]
Encoding = Annotated[
    str | None,
    Parameter(
        help="How the letters of text files are stored, such as utf-8, cp1252 or utf-16; by "
        "default as they look."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How a table of nodes and a table of edges are read.

    Attributes:
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge starts; by default source, src or from, or else the first.
        target: The column where it ends; by default target, dst or to, or else the second.
        weight: The column of the edge table with weights; by default all edges count alike.
        directed: Whether edges have a direction; by default as they look.
        drop_unknown: Leave out edges that name a node missing from the node table.
        categorical: Columns to read as categories, with commas.
        numeric: Columns to read as numbers.
        text: Columns to read as texts.
        drop: Columns to leave out.
        verbose: Show how the tables were read and what became of each column.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: Annotated[bool | None, Parameter(negative="--undirected")] = None
    drop_unknown: bool = False
    categorical: Names = ()
    numeric: Names = ()
    text: Names = ()
    drop: Names = ()
    encoding: Encoding = None
    verbose: bool = False

    def options(self) -> dict[str, Any]:
        """The same as arguments of ``read_graph`` and ``prepare``."""
        found = asdict(self)
        del found["verbose"]
        return found

    def read(self, nodes: Path, edges: Sequence[Path], label: str, **more: Any) -> OwnGraph:
        """The graph; its warnings, or all notes on it, go to standard error."""
        from memohop.data.tables import read_graph

        graph = read_graph(nodes, edges, label=label, **self.options(), **more)
        for note in graph.notes if self.verbose else graph.warnings:
            remark(note)
        return graph


BY_DEFAULT = Reading()


def read_prepared(folder: Path) -> OwnGraph:
    """A prepared graph in RAM."""
    from memohop.data.prepared import open_prepared

    found = open_prepared(folder)
    found.check_labelled()
    return found.in_ram()
