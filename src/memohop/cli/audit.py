"""`memohop audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memohop.cli.app import Folder, Json, app, print_json, remark
from memohop.data.datasets.registry import describe
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph
    from memohop.pyg import Data

_EXAMPLES = """Examples:
  memohop audit squirrel
  memohop audit csbm --json
  memohop audit --nodes nodes.csv --edges edges.csv --label kind -o audit.html"""


@app.command(help_epilogue=_EXAMPLES)
def audit(
    dataset: str | None = None,
    *,
    nodes: Path | None = None,
    edges: Path | None = None,
    label: str | None = None,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    drop_unknown: bool = False,
    split: int = 0,
    data: Folder = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    verbose: bool = False,
    json: Json = False,
) -> None:
    """Examine a graph: what predicts the labels, which model to use, what not to trust.

    Takes the id of a dataset, or a table of nodes and a table of edges (CSV, TSV or
    Parquet, with column names). What the features or neighbours say is a balanced
    accuracy on the scale from 0, chance, to 1, always right.

    Args:
        dataset: The id of a dataset; see memohop data list.
        nodes: The table of nodes: an id, a label, and columns that become features.
        edges: The table of edges: the ids of both ends.
        label: The column of the node table with the classes, empty where unknown.
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge begins; by default source, src or from, or the first.
        target: The column where it ends; by default target, dst or to, or the second.
        directed: Keep the direction of the edges.
        drop_unknown: Leave out edges that name a node that is not in the node table.
        split: Which split the test nodes are of.
        data: A local folder with the dataset's files, instead of a download.
        output: A page to write besides, which needs no network; its name ends in .html.
        verbose: Tell how the tables were read and what became of each column.
        json: Print a list with one object instead of the sheet.
    """
    if (dataset is None) == (nodes is None) or (nodes is None) != (edges is None):
        raise UsageError("give the id of a dataset, or else both --nodes and --edges")
    if dataset is not None:
        describe(dataset)  # before the imports, which take seconds
    elif label is None:
        raise UsageError("--nodes goes with --label, the column with the classes")
    if output is not None:
        check_output(output, ".html")

    import memohop
    from memohop.report.audit import audit_row, audit_sheet
    from memohop.report.audit_page import audit_page
    from memohop.report.terminal import output_console

    graph: Data | OwnGraph
    if dataset is not None:
        graph = memohop.load(dataset, root=data, progress=sys.stderr.isatty())
    else:
        from memohop.data.tables import read_graph

        graph = read_graph(
            nodes,
            edges,
            label=label,
            id=id,
            source=source,
            target=target,
            directed=directed,
            drop_unknown=drop_unknown,
        )
        for note in graph.notes if verbose else graph.warnings:
            remark(note)
    name = dataset or str(nodes)
    found = memohop.audit(graph, split)
    if output is not None:
        page = audit_page(found, name)
        write_whole(output, page)
    if json:
        print_json([audit_row(found, name)])
    else:
        output_console().print(audit_sheet(found, name))
    if output is not None:
        remark(f"wrote {output}; open it in a browser")
