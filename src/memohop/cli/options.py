"""Options that several commands share, with their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from memohop.cli.app import remark
from memohop.data.datasets.registry import describe
from memohop.errors import check_distinct

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph

NINE = "texas,wisconsin,cornell-legacy,actor,chameleon,squirrel,cora,citeseer,pubmed"
"""The datasets of Table 1."""

Dataset = Annotated[str, Parameter(help="The id of a dataset; see memohop data list.")]
Datasets = Annotated[str, Parameter(help="Ids of datasets, separated by commas.")]
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
ResultsFile = Annotated[
    Path | None,
    Parameter(help="A file that memohop store export wrote; by default the package's own results."),
]
OUTPUT = Parameter(name=["--output", "-o"])


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """How a table of nodes and a table of edges are read.

    Attributes:
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge starts; by default source, src or from, or else the first.
        target: The column where it ends; by default target, dst or to, or else the second.
        directed: Keep the direction of the edges.
        drop_unknown: Leave out edges that name a node missing from the node table.
        verbose: Show how the tables were read and what became of each column.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    directed: bool = False
    drop_unknown: bool = False
    verbose: bool = False

    def columns(self, label: str) -> dict[str, Any]:
        """The columns and the direction, which a model remembers."""
        names = {"label": label, "id": self.id, "source": self.source, "target": self.target}
        return {**names, "directed": self.directed}

    def read(self, nodes: Path, edges: Path, label: str) -> OwnGraph:
        """The graph; its warnings, or all notes on it, go to standard error."""
        from memohop.data.tables import read_graph

        graph = read_graph(nodes, edges, drop_unknown=self.drop_unknown, **self.columns(label))
        for note in graph.notes if self.verbose else graph.warnings:
            remark(note)
        return graph


BY_DEFAULT = Reading()


def dataset_ids(text: str) -> list[str]:
    """The ids of a list with commas, each known and given once."""
    names = text.split(",")
    check_distinct("--datasets", names)
    for name in names:
        describe(name)
    return names
