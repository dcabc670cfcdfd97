"""`memohop data`, `audit` and `prepare`: published graphs, and your own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from memohop.cli._app import (
    OUTPUT,
    AuditOptions,
    Dataset,
    EdgesTable,
    Folder,
    Json,
    NodesTable,
    TableOptions,
    app,
    byte_count,
    remark,
    show,
)
from memohop.data.datasets.registry import datasets, describe
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole

if TYPE_CHECKING:
    from memohop.data.tables import OwnGraph
    from memohop.pyg import Data

_DATA_EXAMPLES = """Examples:
  memohop data list
  memohop data fetch texas
  memohop data show texas"""
_LIST_EXAMPLES = """Examples:
  memohop data list
  memohop data list --json"""
_FETCH_EXAMPLES = """Examples:
  memohop data fetch texas cora
  memohop data fetch all
  memohop data fetch all --data my/folder"""
_SHOW_EXAMPLES = """Examples:
  memohop data show squirrel
  memohop data show texas --data my/folder --json"""

_AUDIT_EXAMPLES = """Examples:
  memohop audit squirrel
  memohop audit csbm --json
  memohop audit prepared
  memohop audit --nodes nodes.csv --edges edges.csv --label kind -o audit.html"""
_PREPARE_EXAMPLES = """Examples:
  memohop prepare nodes/ edges/ --label kind -o graph
  memohop prepare 'nodes-*.csv.gz' 'edges-*.parquet' --label kind --directed -o graph
  memohop prepare new-nodes.parquet new-edges.parquet --model model -o new-graph"""

_FilledFolder = Annotated[
    Folder,
    Parameter(help="A folder that has the files: they are checked, and nothing is downloaded."),
]

_Tables = Annotated[
    str,
    Parameter(help="A CSV, TSV or Parquet file, a folder of such files, or a pattern in quotes."),
]
_AS_IT_LOOKS, _TO_LEARN = AuditOptions(), TableOptions()

data_app = App(
    name="data", help="List, download and inspect datasets.", help_epilogue=_DATA_EXAMPLES
)
app.command(data_app)


@data_app.command(name="list", help_epilogue=_LIST_EXAMPLES)
def data_list(*, json: Json = False) -> None:
    """List the datasets."""
    from memohop.report.datasets import dataset_info, listing

    infos = [describe(name) for name in datasets()]
    show([dataset_info(info) for info in infos], listing(infos), as_json=json)


@data_app.command(name="fetch", help_epilogue=_FETCH_EXAMPLES)
def data_fetch(*names: str, data: _FilledFolder = None) -> None:
    """Download datasets, or check those that are there; each file must have its SHA-256.

    Args:
        names: Ids of datasets; or all.
    """
    from memohop.data.datasets.fetch import locate

    if not names:
        raise UsageError("name the datasets to fetch, or all; see memohop data list")
    wanted = datasets() if "all" in names else list(dict.fromkeys(names))
    for info in [describe(name) for name in wanted]:
        if not info.files:
            print(f"{info.id}: made on the spot, nothing to fetch")
            continue
        folder = locate(info.files, root=data, progress=sys.stderr.isatty())
        print(f"{info.id}: {len(info.files)} file(s) in {folder}, as published")


@data_app.command(name="show", help_epilogue=_SHOW_EXAMPLES)
def data_show(name: Dataset, *, data: Folder = None, json: Json = False) -> None:
    """Show what a dataset holds: counts, classes, splits, and what to beware of."""
    info = describe(name)  # before the imports, which take seconds

    import memohop
    from memohop.report.datasets import dataset_row, dataset_sheet

    row = dataset_row(memohop.load(name, root=data, progress=sys.stderr.isatty()), info)
    show([row], dataset_sheet(row), as_json=json)


@app.command(help_epilogue=_AUDIT_EXAMPLES)
def audit(
    dataset: Dataset | None = None,
    *,
    nodes: NodesTable = None,
    edges: EdgesTable = None,
    reading: AuditOptions = _AS_IT_LOOKS,
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
    elif reading.label is None and not is_folder:
        raise UsageError("--nodes needs --label, the column with the classes")
    if output is not None:
        check_output(output, ".html")

    import memohop
    from memohop.report.audit import audit_page, audit_row, audit_sheet

    graph: Data | OwnGraph
    if nodes is not None and edges is not None:
        name, graph = str(nodes), reading.read(nodes, edges)
    elif is_folder:
        from memohop.data.prepared import sample

        name = str(dataset)
        graph, said = sample(memohop.open_prepared(name))
        if said is not None:
            remark(said)
    else:
        name = str(dataset)
        graph = memohop.load(name, root=data, progress=sys.stderr.isatty())
    result = memohop.audit(graph, split)
    if output is not None:
        write_whole(output, audit_page(result, name))
    show([audit_row(result, name)], audit_sheet(result, name), as_json=json)
    if output is not None:
        remark(f"wrote {output}; open it in a browser")


@app.command(help_epilogue=_PREPARE_EXAMPLES)
def prepare(
    nodes: _Tables,
    edges: _Tables,
    *,
    reading: TableOptions = _TO_LEARN,
    model: Path | None = None,
    memory: str | None = None,
    output: Annotated[Path, OUTPUT] = Path("prepared"),
) -> None:
    """Read tables that need not fit in RAM, once, into a folder that others can use.

    Ids are numbered, edges sorted and columns turned into features, as memohop fit
    does, but out of core. Other commands take the folder instead of the tables. If the
    files are those that the folder was made from, nothing is done.

    Args:
        model: The folder of a model, to make the features that it knows and read the columns that
            it read; other options for columns are then ignored.
        memory: About how much RAM to use; 4GB by default.
        output: The folder to write.
    """
    limit = byte_count(memory)

    import memohop

    options = reading.options()
    if model is not None:
        from memohop.fit import how_to_read, load_model

        given = {} if reading.encoding is None else {"encoding": reading.encoding}
        options |= how_to_read(load_model(model)) | given
    if limit is not None:
        options["memory"] = limit
    graph = memohop.prepare(nodes, edges, output, progress=remark, **options)
    reading.tell(graph)
    remark(f"{output}: {graph.nodes} nodes, {graph.arcs} arcs, {graph.features} features")
