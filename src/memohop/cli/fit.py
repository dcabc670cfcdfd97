"""`memohop fit`: your own graph, from two tables to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter, Token

from memohop.cli.app import app, print_json, recommend_extras, remark, warnings_as_remarks
from memohop.cli.options import BY_DEFAULT, OUTPUT, Device, Json, Memory, Reading
from memohop.cli.parsing import byte_count
from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.errors import UsageError
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    MetricId: TypeAlias = str
else:
    MetricId = Literal[tuple(METRICS)]


def _names(kind: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, or given one by one."""
    return tuple(name for token in tokens for name in token.value.split(","))


_Columns = Annotated[tuple[str, ...], Parameter(converter=_names, n_tokens=1)]
_Models = Annotated[tuple[str, ...] | None, Parameter(converter=_names, n_tokens=1)]

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
    edges: list[Path],
    label: str,
    task: Literal["auto", "classes", "numbers"] = "auto",
    reading: Reading = BY_DEFAULT,
    split: str | None = None,
    time_column: str | None = None,
    group: str | None = None,
    categorical: _Columns = (),
    numeric: _Columns = (),
    text: _Columns = (),
    drop: _Columns = (),
    models: _Models = None,
    time: float = 300,
    trials: int | None = None,
    splits: int = 5,
    metric: MetricId | None = None,
    class_weight: Literal["balanced"] | None = None,
    ensemble: Annotated[bool, Parameter(negative="--no-ensemble")] = True,
    seed: int = 0,
    device: Device = "cpu",
    memory: Memory = None,
    output: Annotated[Path, OUTPUT] = Path("model"),
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
        edges: The table of edges: the ids of both ends; give it several times for several tables.
        label: The column of the node table with the labels, empty where unknown.
        task: Whether the labels are classes or numbers; by default as the column looks.
        split: The column of the node table that says train, val or test.
        time_column: The column with times, for a split by time: the latest nodes are for testing.
        group: The column with groups of nodes that no split tears apart.
        categorical: Columns to read as categories, with commas.
        numeric: Columns to read as numbers.
        text: Columns to read as texts.
        drop: Columns to leave out.
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
        output: The folder for the model; its README.md also says how the tables were read.
    """
    whole_number("--seed", seed, least=0, most=LARGEST_SEED)
    limit = byte_count(memory)

    from memohop.own.folder import check_target
    from memohop.own.graph_estimator import GraphClassifier, GraphEstimator
    from memohop.own.graph_regressor import GraphRegressor
    from memohop.report.fit import fit_remark, fit_table, rare_text
    from memohop.report.terminal import output_console, progress_bar

    check_target(output)
    graph = reading.read(
        nodes,
        edges,
        label,
        task=task,
        split=split,
        time_column=time_column,
        group=group,
        categorical=categorical,
        numeric=numeric,
        text=text,
        drop=drop,
    )
    options: dict[str, Any] = {
        "models": models,
        "time": time,
        "trials": trials,
        "splits": splits,
        "metric": metric,
        "ensemble": ensemble,
        "random_state": seed,
        "device": device,
        "memory": limit,
    }
    estimator: GraphEstimator
    if graph.task == "classes":
        estimator = GraphClassifier(class_weight=class_weight, **options)
    else:
        remark(f"column {label!r} holds numbers to predict; --task classes if they are classes")
        if class_weight is not None:
            raise UsageError(f"--class-weight {class_weight} is for classes; leave it out")
        estimator = GraphRegressor(**options)
    recommend_extras(device)
    with warnings_as_remarks(), progress_bar(f"fitting {label}") as update:
        estimator.fit(graph, progress=lambda share, doing: update(share, 1.0, doing))
    estimator.reading_ = reading.columns(label, graph)
    estimator.save(output)
    record = estimator.report_
    if json:
        print_json(record.rows())
    else:
        console = output_console()
        console.print(fit_table(record))
        for said in filter(None, (record.verdict(), rare_text(record), record.legend())):
            console.print(f"\n{said}", markup=False)
    remark(f"{fit_remark(record)}; wrote {output}, described in its README.md")
    if record.stopped == "interrupted":
        raise KeyboardInterrupt
