"""`memohop fit`, `predict` and `explain`: your own graph, from two tables to a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from memohop.cli.app import Json, app, print_json, remark, warnings_as_remarks
from memohop.cli.parsing import byte_count
from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole
from memohop.training.metrics import metrics_for

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph
    from memohop.own.estimator import MMPClassifier

    MetricId: TypeAlias = str
else:
    MetricId = Literal[tuple(metrics_for(regression=False))]

_FIT_EXAMPLES = """Examples:
  memohop fit --nodes nodes.csv --edges edges.csv --label kind -o model
  memohop fit --nodes nodes.csv --edges edges.csv --label fraud --directed \\
      --metric roc_auc --class-weight balanced --time 120 -o model"""
_PREDICT_EXAMPLES = """Examples:
  memohop predict model -o predictions.csv
  memohop predict model --nodes new-nodes.csv --edges new-edges.csv -o new.csv"""
_EXPLAIN_EXAMPLES = """Examples:
  memohop explain model -o page.html
  memohop explain model --node n17 -o n17.html"""

_Output = Parameter(name=["--output", "-o"])


@app.command(help_epilogue=_FIT_EXAMPLES)
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
    trials: int = 16,
    time: float = 600,
    splits: int = 5,
    epochs: int = 200,
    metric: MetricId = "accuracy",
    class_weight: Literal["balanced"] | None = None,
    seed: int = 0,
    device: Literal["cpu", "cuda"] = "cpu",
    memory: str | None = None,
    output: Annotated[Path, _Output] = Path("model"),
    verbose: bool = False,
    json: Json = False,
) -> None:
    """Fit a model to your own graph, and say whether the graph helps.

    Takes a table of nodes and a table of edges (CSV, TSV or Parquet, with column
    names). Nodes whose label is empty are what is to be predicted. The labelled ones
    are split several times; settings of gcn+mmp, and as many of mlp and gcn, are
    chosen on validation alone. Ctrl-C ends the search and keeps the best so far.

    Args:
        nodes: The table of nodes: an id, a label, and columns that become features.
        edges: The table of edges: the ids of both ends.
        label: The column of the node table with the classes, empty where unknown.
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge begins; by default source, src or from, or the first.
        target: The column where it ends; by default target, dst or to, or the second.
        directed: Keep the direction of the edges.
        drop_unknown: Leave out edges that name a node that is not in the node table.
        trials: How many settings of each model to try.
        time: Seconds for the search, after everything is compiled. It costs settings, never epochs
            without a word.
        splits: How many splits of the labelled nodes.
        epochs: The most epochs of a trial.
        metric: What is to be high; roc_auc and average_precision need two classes, of which the
            second is positive.
        class_weight: balanced for classes that count alike in training, whatever their size.
        seed: Decides splits, settings, weights and dropout.
        device: Where to train.
        memory: The most memory that the process may hold, such as 4GB; what the device can spare
            by default.
        output: The folder for the model.
        verbose: Tell how the tables were read and what became of each column, which is in the
            model's README.md anyway.
        json: Print a list of objects, one for each model, instead of the table.
    """
    whole_number("--seed", seed, least=0, most=LARGEST_SEED)
    limit = None if memory is None else byte_count(memory)

    from memohop.data.tables import read_graph
    from memohop.own.estimator import MMPClassifier
    from memohop.own.folder import check_target
    from memohop.report.fit import fit_remark, fit_table
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
    classifier = MMPClassifier(
        trials=trials,
        time=time,
        splits=splits,
        epochs=epochs,
        metric=metric,
        class_weight=class_weight,
        random_state=seed,
        device=device,
        memory=limit,
    )
    with warnings_as_remarks(), progress_bar(f"fitting {label}") as progress:
        classifier.fit(graph, progress=progress)
    classifier.reading_ = reading
    classifier.save(output)
    report = classifier.report_
    if json:
        print_json(report.rows())
    else:
        console = output_console()
        console.print(fit_table(report))
        console.print(f"\n{report.verdict()}\n\n{report.legend()}", markup=False)
    remark(f"{fit_remark(report)}; wrote {output}, whose README.md says what it is")
    if report.stopped == "interrupted":
        raise KeyboardInterrupt


@app.command(help_epilogue=_PREDICT_EXAMPLES)
def predict(
    model: Path,
    *,
    nodes: Path | None = None,
    edges: Path | None = None,
    drop_unknown: bool = False,
    raw: bool = False,
    output: Annotated[Path, _Output] = Path("predictions.csv"),
) -> None:
    """Predict the label of every node, with the probability of each class.

    Without tables, the nodes of the graph that the model was fitted on, unlabelled ones
    among them; with tables, those of another graph with the same columns.

    Args:
        model: The folder that memohop fit wrote.
        nodes: A table of nodes with the columns that the model was fitted on.
        edges: A table of edges.
        drop_unknown: Leave out edges that name a node that is not in the node table.
        raw: Write ids and labels into a CSV file as they are. Otherwise a ' goes before those
            that a spreadsheet would take for a formula, such as =1+1.
        output: The CSV file to write, or Parquet if the name ends in .parquet: the id, the
            predicted label and the probability of each class.
    """
    if (nodes is None) != (edges is None):
        raise UsageError("give both --nodes and --edges, or neither for the graph of the model")
    check_output(output, inputs=(nodes, edges, *_files_of(model)))

    from memohop.own.estimator import MMPClassifier
    from memohop.own.predictions import write_predictions

    classifier = MMPClassifier.load(model)
    if nodes is None or edges is None:
        classifier.own_graph()
        ids, found = classifier.ids_, classifier.predict_proba()
    else:
        graph = _read_again(classifier, nodes, edges, drop_unknown=drop_unknown)
        ids, found = graph.ids, classifier.predict_proba(graph)
    changed = write_predictions(output, ids, found, classifier.classes_, raw=raw)
    remark(f"wrote {output}: {len(ids)} nodes")
    if changed:
        remark(
            f"{changed} ids and labels that a spreadsheet would take for formulas have a ' before "
            "them; --raw writes them as they are, which joining by id needs"
        )


@app.command(help_epilogue=_EXPLAIN_EXAMPLES)
def explain(
    model: Path,
    *,
    node: str | None = None,
    output: Annotated[Path, _Output] = Path("explanation.html"),
) -> None:
    """Write a page on which nodes listen to their neighbours, and to which of them.

    How much each node kept of itself, took from its neighbours and passed on, against
    its degree, its neighbours' labels and whether it was right; and for one node, the
    share of each neighbour in the decision.

    Args:
        model: The folder that memohop fit wrote.
        node: The id of a node to take apart; by default the one that listened most.
        output: The page to write.
    """
    check_output(output, ".html", inputs=_files_of(model))

    from memohop.explain import explain_node, read_gates
    from memohop.own.estimator import MMPClassifier
    from memohop.report.explain_page import explain_page

    classifier = MMPClassifier.load(model)
    classifier.own_graph()
    gates = read_gates(classifier)
    if node is None:
        order = gates.listeners()
        node = gates.ids[order[0] if len(order) else 0]
    found = explain_node(classifier, node)
    page = explain_page(classifier.report_, gates, found)
    write_whole(output, page)
    remark(f"wrote {output}; open it in a browser")


def _files_of(model: Path) -> list[Path]:
    """What a model is read from, which no output may replace."""
    return [file for name in ("*.json", "*.safetensors", "*.md") for file in model.glob(name)]


def _read_again(
    classifier: MMPClassifier, nodes: Path, edges: Path, *, drop_unknown: bool
) -> OwnGraph:
    """Tables read in the way of those that the model was fitted on."""
    from memohop.data.tables import read_graph

    if classifier.encoder_ is None or classifier.reading_ is None:
        raise UsageError("this model was fitted on arrays, not on tables; use it from Python")
    graph = read_graph(
        nodes,
        edges,
        drop_unknown=drop_unknown,
        encoder=classifier.encoder_,
        classes=classifier.classes_.tolist(),
        **classifier.reading_,
    )
    for note in graph.notes:
        remark(note)
    return graph
