"""Options that several commands share, with their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

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
        verbose: Show how the tables were read and what became of each column.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    directed: Annotated[bool | None, Parameter(negative="--undirected")] = None
    drop_unknown: bool = False
    verbose: bool = False

    def columns(self, label: str, graph: OwnGraph) -> dict[str, Any]:
        """How the graph was read, which a model remembers for other tables."""
        names = {"label": label, "id": self.id, "source": self.source, "target": self.target}
        return {**names, "weight": self.weight, "directed": graph.directed, "task": graph.task}

    def read(self, nodes: Path, edges: Sequence[Path], label: str, **more: Any) -> OwnGraph:
        """The graph; its warnings, or all notes on it, go to standard error."""
        from memohop.data.tables import read_graph

        graph = read_graph(
            nodes,
            edges,
            label=label,
            id=self.id,
            source=self.source,
            target=self.target,
            weight=self.weight,
            directed=self.directed,
            drop_unknown=self.drop_unknown,
            **more,
        )
        for note in graph.notes if self.verbose else graph.warnings:
            remark(note)
        return graph


BY_DEFAULT = Reading()


def read_prepared(folder: Path) -> tuple[OwnGraph, dict[str, Any]]:
    """A prepared graph in RAM, and how its tables were read, which a model remembers."""
    from memohop.data.prepared import open_prepared

    found = open_prepared(folder)
    found.check_labelled()
    options, label = found.manifest.options, found.manifest.label
    names = {name: options[name] for name in ("id", "source", "target")}
    graph = found.in_ram()
    how = {"weight": options.get("weight"), "directed": graph.directed, "task": graph.task}
    return graph, {"label": label, **names, **how}
