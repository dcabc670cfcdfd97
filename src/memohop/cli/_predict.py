"""`memohop predict` and `explain`: what a model says of your own graph, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from memohop.cli._app import (
    OUTPUT,
    ModelFolder,
    PreparedFolder,
    app,
    check_workers,
    remark,
)
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
    encoding: str | None = None,
    raw: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """Predict the label of every node, with the probability of each class or an interval.

    Without tables, or with its own, it predicts all nodes of the graph that the model was
    fitted on; with other tables, those of another graph with the same columns, ignoring
    its labels; with --append, nodes that are new in the graph of the model. A graph that
    memohop prepare wrote is brought into RAM, or with --workers shared by several
    processes, each of which holds a block of it.

    Args:
        nodes: A table of nodes with the columns that the model was fitted on.
        edges: A table of edges; give it several times for several tables.
        append: Attach the nodes to the graph of the model; edges name new nodes and its own.
        drop_unknown: Leave out edges that name a node missing from the node table.
        encoding: How the letters of text files are stored, such as utf-8, cp1252 or utf-16; by
            default as in the tables of the model, or else as they look.
        raw: Write ids and labels into a CSV file as they are. By default, those that a
            spreadsheet would take for a formula, such as =1+1, get a ' before them.
        workers: How many workers of a Ray cluster share a prepared graph; by default this process
            has all of it.
        ray: Address of the cluster, or auto; by default one is started on this machine.
        output: The CSV file to write, or Parquet if the name ends in .parquet: the id, the
            predicted label and the probability of each class; or the id, the predicted number and
            the ends of its 90 % interval. By default predictions.csv, or predictions.parquet for a
            prepared graph.
    """
    if graph is not None and (nodes or edges or append or drop_unknown or encoding or raw):
        raise UsageError(f"{graph} is a prepared graph; leave out the options of tables")
    if graph is None and workers is not None:
        raise UsageError(f"--workers {workers} goes with a prepared graph; leave it out")
    check_workers(workers, ray)
    if (nodes is None) != (edges is None):
        raise UsageError("give both --nodes and --edges, or neither for the model's own graph")
    if append and nodes is None:
        raise UsageError("--append goes with --nodes and --edges, the tables of the new nodes")
    output = output or Path("predictions.csv" if graph is None else "predictions.parquet")
    inside = graph.iterdir() if graph is not None and graph.is_dir() else ()
    inputs = (nodes, *(edges or ()), *inside, *_files_of(model))
    check_output(output, *(() if graph is None else (".parquet", ".pq")), inputs=inputs)

    from memohop.data.prepared import open_prepared
    from memohop.fit import load_model, outputs_of_prepared, read_alike, table_of, write_predictions

    prepared = None if graph is None else open_prepared(graph)
    estimator = load_model(model)
    if prepared is not None:
        pool = None
        if workers is not None:
            from memohop.jobs.ray_workers import RayWorkers

            pool = RayWorkers(ray, "cpu", "predict again", count=workers)
        ids, outputs = prepared.ids, outputs_of_prepared(estimator, prepared, workers, pool)
    elif nodes is None:
        outputs, ids = estimator.outputs(), estimator.ids_
    else:
        changes: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
        changes |= {"append": append, "drop_unknown": drop_unknown}
        read = read_alike(estimator, nodes, edges, **changes)
        for note in read.notes:
            remark(note)
        ids, outputs = read.ids, estimator.outputs(read, append=append)
    changed = write_predictions(output, table_of(estimator, ids, outputs), raw=raw)
    if nodes is not None and estimator.report_.later is not None:
        remark(estimator.report_.later_text())
    remark(f"wrote {output}: {len(outputs)} nodes")
    if changed:
        remark(
            f"{changed} ids and labels that a spreadsheet would take for formulas have a ' before "
            "them; to join tables by id, use --raw, which writes them as they are"
        )


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
    from memohop.fit import load_model
    from memohop.report.fit_page import fit_page
    from memohop.report.terminal import progress_bar

    estimator = load_model(model)
    estimator.own_graph()
    with progress_bar(f"explaining {model}") as update:
        explained = explain_fit(estimator, node, progress=lambda share: update(share, 1.0))
    write_whole(output, fit_page(explained))
    remark(f"wrote {output}; open it in a browser")


def _files_of(model: Path) -> list[Path]:
    """The files of a model, which no output may replace."""
    names = ("*.json", "*.safetensors", "*.txt", "*.md")
    return [file for name in names for file in model.glob(name)]
