"""`memohop fit`: your own graph, from two tables to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from memohop.cli.app import Json, app, print_json, remark, warnings_as_remarks
from memohop.cli.parsing import byte_count
from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    MetricId: TypeAlias = str
else:
    MetricId = Literal[tuple(METRICS)]

_EXAMPLES = """Examples:
  memohop fit --nodes nodes.csv --edges edges.csv --label kind -o model
  memohop fit --nodes nodes.csv --edges edges.csv --label fraud --directed \\
      --metric roc_auc --class-weight balanced --time 120 -o model
  memohop fit --nodes nodes.csv --edges edges.csv --label kind \\
      --models lightgbm+neighbours,gcn+mmp -o model"""


@app.command(help_epilogue=_EXAMPLES)
def fit(
    *,
    nodes: Path,
    edges: Path,
    label: str,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    drop_unknown: bool = False,
    models: str | None = None,
    time: float = 300,
    trials: int | None = None,
    splits: int = 5,
    metric: MetricId | None = None,
    class_weight: Literal["balanced"] | None = None,
    ensemble: Annotated[bool, Parameter(negative="--no-ensemble")] = True,
    seed: int = 0,
    device: Literal["cpu", "cuda"] = "cpu",
    memory: str | None = None,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("model"),
    verbose: bool = False,
    json: Json = False,
) -> None:
    """Find the best model for your own graph, and say what the graph adds.

    Takes a table of nodes and a table of edges (CSV, TSV or Parquet, with column
    names). Nodes whose label is empty are what is to be predicted. Linear models,
    boosted trees and networks, with memory and without, are tried on splits of the
    labelled nodes; the best on validation is kept, or an ensemble of a few, and fitted
    to every label. Ctrl-C ends the search and keeps the best so far.

    Args:
        nodes: The table of nodes: an id, a label, and columns that become features.
        edges: The table of edges: the ids of both ends.
        label: The column of the node table with the labels, empty where unknown.
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge begins; by default source, src or from, or the first.
        target: The column where it ends; by default target, dst or to, or the second.
        directed: Keep the direction of the edges.
        drop_unknown: Leave out edges that name a node that is not in the node table.
        models: The kinds of model to choose from, with commas; all by default.
        time: Seconds for everything.
        trials: The most settings of each kind of model; as many as time allows by default.
        splits: How many splits of the labelled nodes.
        metric: What is to be high, or for errors low; by default accuracy, average_precision where
            the second of two classes is rare, and r2 for numbers. roc_auc and average_precision
            need two classes, of which the second is positive.
        class_weight: balanced for classes that count alike in training, whatever their size.
        ensemble: Keep several models together where that is better, or only the best one.
        seed: Decides splits, settings, weights and dropout.
        device: Where to train networks.
        memory: The most memory that the process may hold, such as 4GB; what the device can spare
            by default.
        output: The folder for the model.
        verbose: Tell how the tables were read and what became of each column, which is in the
            model's README.md anyway.
        json: Print a list of objects, one for each kind of model, instead of the table.
    """
    whole_number("--seed", seed, least=0, most=LARGEST_SEED)
    limit = None if memory is None else byte_count(memory)

    from memohop.data.tables import read_graph
    from memohop.own.folder import check_target
    from memohop.own.graph_estimator import GraphClassifier
    from memohop.report.fit import fit_remark, fit_table, rare_text
    from memohop.report.terminal import output_console, progress_bar

    check_target(output)
    reading: dict[str, Any] = {
        "label": label,
        "id": id,
        "source": source,
        "target": target,
        "directed": directed,
    }
    graph = read_graph(nodes, edges, drop_unknown=drop_unknown, **reading)
    for note in graph.notes if verbose else graph.warnings:
        remark(note)
    options: dict[str, Any] = {
        "models": None if models is None else tuple(models.split(",")),
        "time": time,
        "trials": trials,
        "splits": splits,
        "metric": metric,
        "ensemble": ensemble,
        "random_state": seed,
        "device": device,
        "memory": limit,
    }
    estimator = GraphClassifier(class_weight=class_weight, **options)
    with warnings_as_remarks(), progress_bar(f"fitting {label}") as update:
        estimator.fit(graph, progress=lambda share, doing: update(share, 1.0, doing))
    estimator.reading_ = reading
    estimator.save(output)
    record = estimator.report_
    if json:
        print_json(record.rows())
    else:
        console = output_console()
        console.print(fit_table(record))
        for text in (record.verdict(), rare_text(record), record.legend()):
            if text:
                console.print(f"\n{text}", markup=False)
    remark(f"{fit_remark(record)}; wrote {output}, whose README.md says what it is")
    if record.stopped == "interrupted":
        raise KeyboardInterrupt
