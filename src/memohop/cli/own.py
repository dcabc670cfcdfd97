"""`memohop fit`, `predict` and `explain`: for a graph of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from memohop.cli.app import app, print_json, remark, warnings_as_remarks
from memohop.cli.options import BY_DEFAULT, OUTPUT, Device, Json, Memory, ModelFolder, Reading
from memohop.cli.parsing import byte_count
from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph
    from memohop.own.estimator import MMPClassifier

    MetricId: TypeAlias = str
else:
    MetricId = Literal[tuple(METRICS)]

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


@app.command(help_epilogue=_FIT_EXAMPLES)
def fit(
    *,
    nodes: Path,
    edges: Path,
    label: str,
    reading: Reading = BY_DEFAULT,
    trials: int = 16,
    time: float = 600,
    splits: int = 5,
    epochs: int = 200,
    metric: MetricId = "accuracy",
    class_weight: Literal["balanced"] | None = None,
    seed: int = 0,
    device: Device = "cpu",
    memory: Memory = None,
    output: Annotated[Path, OUTPUT] = Path("model"),
    json: Json = False,
) -> None:
    """Fit a model to your own graph, and find out whether the graph helps.

    Takes a table of nodes and a table of edges (CSV, TSV or Parquet, with column
    names). Nodes with an empty label are to be predicted. The labelled ones are split
    several times, and validation alone chooses among settings of gcn+mmp and as many
    of mlp and gcn. Ctrl-C ends the search and keeps the best so far.

    Args:
        nodes: The table of nodes: an id, a label, and columns that become features.
        edges: The table of edges: the ids of both ends.
        label: The column of the node table with the classes, empty where unknown.
        trials: How many settings of each model to try.
        time: Seconds for the search, compilation not included. If they are short, fewer settings
            are tried; if epochs are cut, a line says so.
        splits: How many splits of the labelled nodes.
        epochs: The most epochs of a trial.
        metric: The score to maximise; roc_auc and average_precision need two classes, and the
            second one is the positive class.
        class_weight: balanced gives each class the same weight in training, whatever its size.
        seed: Determines splits, settings, weights and dropout.
        output: The folder for the model; its README.md also says how the tables were read.
    """
    whole_number("--seed", seed, least=0, most=LARGEST_SEED)
    limit = byte_count(memory)

    from memohop.own.estimator import MMPClassifier
    from memohop.own.keep import check_target
    from memohop.report.fit import fit_remark, fit_table
    from memohop.report.terminal import output_console, progress_bar

    check_target(output)
    graph = reading.read(nodes, edges, label)
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
    classifier.reading_ = reading.columns(label)
    classifier.save(output)
    report = classifier.report_
    if json:
        print_json(report.rows())
    else:
        console = output_console()
        console.print(fit_table(report))
        console.print(f"\n{report.verdict()}\n\n{report.legend()}", markup=False)
    remark(f"{fit_remark(report)}; wrote {output}, described in its README.md")
    if report.stopped == "interrupted":
        raise KeyboardInterrupt


@app.command(help_epilogue=_PREDICT_EXAMPLES)
def predict(
    model: ModelFolder,
    *,
    nodes: Path | None = None,
    edges: Path | None = None,
    drop_unknown: bool = False,
    raw: bool = False,
    output: Annotated[Path, OUTPUT] = Path("predictions.csv"),
) -> None:
    """Predict the label of every node, with the probability of each class.

    Without tables, it predicts all nodes of the graph that the model was fitted on; with
    tables, those of another graph with the same columns.

    Args:
        nodes: A table of nodes with the columns that the model was fitted on.
        edges: A table of edges.
        drop_unknown: Leave out edges that name a node missing from the node table.
        raw: Write ids and labels into a CSV file as they are. By default, those that a
            spreadsheet would take for a formula, such as =1+1, get a ' before them.
        output: The CSV file to write, or Parquet if the name ends in .parquet: the id, the
            predicted label and the probability of each class.
    """
    if (nodes is None) != (edges is None):
        raise UsageError("give both --nodes and --edges, or neither for the model's own graph")
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
            "them; to join tables by id, use --raw, which writes them as they are"
        )


@app.command(help_epilogue=_EXPLAIN_EXAMPLES)
def explain(
    model: ModelFolder,
    *,
    node: str | None = None,
    output: Annotated[Path, OUTPUT] = Path("explanation.html"),
) -> None:
    """Write a page on which nodes listen to their neighbours, and to which of them.

    It shows how much each node kept of its own state, absorbed from its neighbours and
    passed on, by its degree, its neighbours' labels and whether it was predicted right;
    and for one node, the share of each neighbour in the decision.

    Args:
        node: The id of the node to explain; by default the one that listened most.
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
    write_whole(output, explain_page(classifier.report_, gates, found))
    remark(f"wrote {output}; open it in a browser")


def _files_of(model: Path) -> list[Path]:
    """The files of a model, which no output may replace."""
    return [file for name in ("*.json", "*.safetensors", "*.md") for file in model.glob(name)]


def _read_again(
    classifier: MMPClassifier, nodes: Path, edges: Path, *, drop_unknown: bool
) -> OwnGraph:
    """A graph from tables, read in the same way as those that the model was fitted on."""
    from memohop.data.tables import read_graph

    if classifier.encoder_ is None or classifier.reading_ is None:
        raise UsageError(
            "this model was fitted on arrays, not on tables; predict from Python instead"
        )
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
