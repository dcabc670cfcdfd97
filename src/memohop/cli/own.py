"""`memohop predict` and `explain`: what a model says of your own graph, and why."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from memohop.cli.app import app, remark
from memohop.cli.options import OUTPUT, Encoding, ModelFolder, PreparedFolder
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole

_PREDICT_EXAMPLES = """Examples:
  memohop predict model -o predictions.csv
  memohop predict model --nodes new-nodes.csv --edges new-edges.csv -o new.csv
  memohop predict model --append --nodes new-nodes.csv --edges new-edges.csv -o new.csv
  memohop predict model prepared -o predictions.parquet"""
_EXPLAIN_EXAMPLES = """Examples:
  memohop explain model -o page.html
  memohop explain model --node n17 -o n17.html"""


@app.command(help_epilogue=_PREDICT_EXAMPLES)
def predict(
    model: ModelFolder,
    graph: PreparedFolder | None = None,
    *,
    nodes: Path | None = None,
    edges: list[Path] | None = None,
    append: bool = False,
    drop_unknown: bool = False,
    encoding: Encoding = None,
    raw: bool = False,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """Predict the label of every node, with the probability of each class or an interval.

    Without tables, or with its own, it predicts all nodes of the graph that the model was
    fitted on; with other tables, those of another graph with the same columns, ignoring
    its labels; with --append, nodes that are new in the graph of the model. A graph that
    memohop prepare wrote is read from the disk block by block, and its predictions are
    written as it goes.

    Args:
        nodes: A table of nodes with the columns that the model was fitted on.
        edges: A table of edges; give it several times for several tables.
        append: Attach the nodes to the graph of the model; edges name new nodes and its own.
        drop_unknown: Leave out edges that name a node missing from the node table.
        raw: Write ids and labels into a CSV file as they are. By default, those that a
            spreadsheet would take for a formula, such as =1+1, get a ' before them.
        output: The CSV file to write, or Parquet if the name ends in .parquet: the id, the
            predicted label and the probability of each class; or the id, the predicted number and
            the ends of its 90 % interval. By default predictions.csv, or predictions.parquet for a
            prepared graph.
    """
    if graph is not None:
        if nodes is not None or edges is not None or append or drop_unknown or encoding or raw:
            raise UsageError(f"{graph} is a prepared graph; leave out the options of tables")
        _predict_prepared(model, graph, output or Path("predictions.parquet"))
        return
    output = output or Path("predictions.csv")
    if (nodes is None) != (edges is None):
        raise UsageError("give both --nodes and --edges, or neither for the model's own graph")
    if append and nodes is None:
        raise UsageError("--append goes with --nodes and --edges, the tables of the new nodes")
    check_output(output, inputs=(nodes, *(edges or ()), *_files_of(model)))

    from memohop.fit.classifier import GraphClassifier
    from memohop.fit.load import load_model
    from memohop.fit.predictions import write_numbers, write_predictions
    from memohop.fit.reading import read_again, read_new_nodes
    from memohop.fit.regressor import GraphRegressor

    found = load_model(model)
    given: dict[str, Any] = {}
    if nodes is None or edges is None:
        found.own_graph()
        ids = found.ids_
    else:
        reader = read_new_nodes if append else read_again
        changes: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
        read = reader(found, nodes, edges, drop_unknown=drop_unknown, **changes)
        given["append"] = append
        for note in read.notes:
            remark(note)
        ids, given["X"] = read.ids, read
    if isinstance(found, GraphRegressor):
        numbers, ends = found.predict(**given), found.predict_interval(**given)
        changed = write_numbers(output, ids, numbers, ends, raw=raw)
    else:
        assert isinstance(found, GraphClassifier)
        shares = found.predict_proba(**given)
        changed = write_predictions(output, ids, shares, found.classes_, raw=raw)
    if nodes is not None and found.report_.later is not None:
        remark(found.report_.later_text())
    remark(f"wrote {output}: {len(ids)} nodes")
    if changed:
        remark(
            f"{changed} ids and labels that a spreadsheet would take for formulas have a ' before "
            "them; to join tables by id, use --raw, which writes them as they are"
        )


def _predict_prepared(model: Path, graph: Path, output: Path) -> None:
    """Predict a graph that stays on the disk."""
    inside = list(graph.iterdir()) if graph.is_dir() else []
    check_output(output, ".parquet", ".pq", inputs=(*_files_of(model), *inside))

    from memohop.data.prepared import open_prepared
    from memohop.fit.by_blocks import tables_by_block
    from memohop.fit.load import load_model
    from memohop.fit.predictions import write_tables

    prepared = open_prepared(graph)
    found = load_model(model)
    with TemporaryDirectory(dir=output.resolve().parent, prefix=".memohop-") as scratch:
        tables = tables_by_block(found, prepared, Path(scratch), remark)
        rows = write_tables(output, tables)
    remark(f"wrote {output}: {rows} nodes")


@app.command(help_epilogue=_EXPLAIN_EXAMPLES)
def explain(
    model: ModelFolder,
    *,
    node: str | None = None,
    output: Annotated[Path, OUTPUT] = Path("explanation.html"),
) -> None:
    """Write a page on what was kept, how good it is, and what decides in it.

    It shows which columns count, how far probabilities can be trusted, and how much nodes
    keep of themselves and absorb from their neighbours in networks with memory; and for
    one node, what speaks for its label.

    Args:
        node: The id of a node to explain.
        output: The page to write.
    """
    check_output(output, ".html", inputs=_files_of(model))

    from memohop.explain import explain_fit
    from memohop.fit.load import load_model
    from memohop.report.fit_page import fit_page
    from memohop.report.terminal import progress_bar

    found = load_model(model)
    found.own_graph()
    with progress_bar(f"explaining {model}") as update:
        explained = explain_fit(found, node, progress=lambda share: update(share, 1.0))
    write_whole(output, fit_page(explained))
    remark(f"wrote {output}; open it in a browser")


def _files_of(model: Path) -> list[Path]:
    """The files of a model, which no output may replace."""
    names = ("*.json", "*.safetensors", "*.txt", "*.md")
    return [file for name in names for file in model.glob(name)]
