"""`memohop audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memohop.cli.app import app, print_json, remark
from memohop.cli.options import BY_DEFAULT, OUTPUT, Dataset, Folder, Json, Reading
from memohop.data.datasets.registry import describe
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph
    from memohop.pyg import Data

_EXAMPLES = """Examples:
  memohop audit squirrel
  memohop audit csbm --json
  memohop audit prepared
  memohop audit --nodes nodes.csv --edges edges.csv --label kind -o audit.html"""


@app.command(help_epilogue=_EXAMPLES)
def audit(
    dataset: Dataset | None = None,
    *,
    nodes: Path | None = None,
    edges: list[Path] | None = None,
    label: str | None = None,
    reading: Reading = BY_DEFAULT,
    split: int = 0,
    data: Folder = None,
    output: Annotated[Path | None, OUTPUT] = None,
    json: Json = False,
) -> None:
    """Examine a graph: what predicts its labels, which model to use, what not to trust.

    Takes the id of a dataset, a folder of memohop prepare (of a large graph, a sample is
    examined), or a table of nodes and a table of edges (CSV, TSV or Parquet, with
    column names). How well features or neighbours predict the labels is
    a balanced accuracy, rescaled: 0 is chance and 1 is always right.

    Args:
        nodes: The table of nodes: an id, a label, and columns that become features.
        edges: The table of edges: the ids of both ends; give it several times for several tables.
        label: The column of the node table with the classes, empty where unknown.
        split: The split whose test nodes are examined.
        output: Also write a page, which needs no network; its name ends in .html.
    """
    if (dataset is None) == (nodes is None) or (nodes is None) != (edges is None):
        raise UsageError(
            "give the id of a dataset or a prepared folder, or else both --nodes and --edges"
        )
    is_folder = dataset is not None and Path(dataset).is_dir()
    if dataset is not None and not is_folder:
        describe(dataset)  # before the imports, which take seconds
    elif label is None and not is_folder:
        raise UsageError("--nodes needs --label, the column with the classes")
    if output is not None:
        check_output(output, ".html")

    import memohop
    from memohop.report.audit import audit_row, audit_sheet
    from memohop.report.audit_page import audit_page
    from memohop.report.terminal import output_console

    graph: Data | OwnGraph
    if nodes is not None and edges is not None and label is not None:
        name, graph = str(nodes), reading.read(nodes, edges, label)
    elif is_folder:
        from memohop.data.prepared.sample import sample

        name = str(dataset)
        graph, said = sample(memohop.open_prepared(name))
        if said is not None:
            remark(said)
    else:
        name = str(dataset)
        graph = memohop.load(name, root=data, progress=sys.stderr.isatty())
    found = memohop.audit(graph, split)
    if output is not None:
        write_whole(output, audit_page(found, name))
    if json:
        print_json([audit_row(found, name)])
    else:
        output_console().print(audit_sheet(found, name))
    if output is not None:
        remark(f"wrote {output}; open it in a browser")
