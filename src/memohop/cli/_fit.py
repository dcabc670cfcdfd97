"""`memohop fit`: your own graph, from two tables to a model."""

from __future__ import annotations

import sys
import time as clock
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from memohop.cli._app import (
    BY_COMMA,
    OUTPUT,
    Device,
    EdgesTable,
    Json,
    Memory,
    NodesTable,
    PreparedFolder,
    TableOptions,
    app,
    byte_count,
    check_workers,
    remark,
    show,
    warnings_as_remarks,
)
from memohop.errors import LARGEST_SEED, DataError, UsageError, whole_number
from memohop.interrupts import interrupted, interrupts_wait
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    MetricId: TypeAlias = str
else:
    MetricId = Literal[tuple(METRICS)]

_BY_DEFAULT = TableOptions()
_SAVING = 0.2  # time to write the graph beside the model, relative to that of reading it

_EXAMPLES = """Examples:
  memohop fit --nodes nodes.csv --edges edges.csv --label kind -o model
  memohop fit --nodes nodes.csv --edges edges.csv --label fraud --directed \\
      --positive yes --class-weight balanced --time 120 -o model
  memohop fit --nodes nodes.csv --edges edges.csv --label kind \\
      --models lightgbm+neighbours,gcn+mmp -o model
  memohop fit prepared -o model"""


@app.command(help_epilogue=_EXAMPLES)
def fit(
    graph: PreparedFolder | None = None,
    *,
    nodes: NodesTable = None,
    edges: EdgesTable = None,
    reading: TableOptions = _BY_DEFAULT,
    models: Annotated[tuple[str, ...] | None, BY_COMMA] = None,
    time: float = 300,
    trials: int | None = None,
    splits: int = 5,
    metric: MetricId | None = None,
    class_weight: Literal["balanced"] | None = None,
    positive: str | None = None,
    ensemble: Annotated[bool, Parameter(negative="--no-ensemble")] = True,
    seed: int = 0,
    device: Device = "cpu",
    memory: Memory = None,
    workers: int | None = None,
    ray: str | None = None,
    output: Annotated[Path, OUTPUT] = Path("model"),
    json: Json = False,
) -> None:
    """Find the best model for your own graph, and say what the graph adds.

    Takes a table of nodes and a table of edges (CSV, TSV or Parquet, with column
    names), or a folder of memohop prepare whose graph fits in RAM. Nodes whose label is
    empty are what is to be predicted. Linear models, trees, nearest neighbours and
    networks, with memory and without, are tried on splits of the labelled nodes; the best on
    validation is kept, or an ensemble of a few, and fitted to every label. Ctrl-C keeps
    the best so far and exits with 130; a second one ends at once, and keeps nothing.

    Args:
        models: The kinds of model to choose from, with commas; all by default.
        time: Seconds for everything, reading and saving included.
        trials: The most settings of each kind of model; as many as time allows by default.
        splits: How many splits of the labelled nodes; fewer where time is short and nodes are many.
        metric: What is to be high, or for errors low; by default accuracy, average_precision where
            the positive one of two classes is rare or can hardly be told, and r2 for numbers.
            roc_auc and average_precision need two classes.
        positive: The class to find, of two: the positive one of average_precision and of the
            report on the top of the ranking. By default the second one, or the first if it is rare.
        class_weight: balanced for classes that count alike in training, whatever their size.
        ensemble: Keep several models together where that is better, or only the best one.
        seed: Decides splits, settings, weights and dropout.
        workers: How many workers of a Ray cluster fit, by default this process alone: each other
            candidates if the graph fits it, or else all together on blocks of the graph.
        ray: Address of the cluster, or auto; by default one is started on this machine.
        output: The folder for the model; its README.md also says how the tables were read.
    """
    begin = clock.monotonic()
    tables = {"--nodes": nodes, "--edges": edges, "--label": reading.label}
    if graph is None and (lacking := [name for name, given in tables.items() if given is None]):
        raise UsageError(
            f"{lacking[0]} is missing: give --nodes, --edges and --label, or else a prepared folder"
        )
    if graph is not None and (nodes or edges or reading != _BY_DEFAULT):
        raise UsageError(f"{graph} was read when it was prepared; leave out the options of tables")
    whole_number("--seed", seed, least=0, most=LARGEST_SEED)
    check_workers(workers, ray)
    limit = byte_count(memory)

    from memohop.data.prepared import open_prepared
    from memohop.fit import (
        MODEL_FOLDER,
        GraphClassifier,
        GraphEstimator,
        GraphRegressor,
        ray_workers,
    )
    from memohop.report.fit import fit_remark, fit_table, rare_text
    from memohop.report.terminal import progress_bar

    MODEL_FOLDER.check_target(output)
    if nodes is not None and edges is not None:
        read = reading.read(nodes, edges)
    else:
        assert graph is not None
        prepared = open_prepared(graph)
        prepared.check_labelled()
        read = prepared.in_ram()
    assert read.reading is not None
    label = read.reading["label"]
    options: dict[str, Any] = {
        "models": models,
        "time": _before_saving(time, clock.monotonic() - begin),
        "trials": trials,
        "splits": splits,
        "metric": metric,
        "ensemble": ensemble,
        "random_state": seed,
        "device": device,
        "memory": limit,
    }
    estimator: GraphEstimator
    if read.task == "classes":
        estimator = GraphClassifier(class_weight=class_weight, positive=positive, **options)
    else:
        remark(f"column {label!r} holds numbers to predict; --task classes if they are classes")
        for name, value in {"class-weight": class_weight, "positive": positive}.items():
            if value is not None:
                raise UsageError(f"--{name} {value} is for classes; leave it out")
        estimator = GraphRegressor(**options)
    cluster = nullcontext() if workers is None else ray_workers(workers, ray, device, remark)
    bar = progress_bar(f"fitting {label}")
    with interrupts_wait(), warnings_as_remarks(), bar as update, cluster as crew:
        estimator.fit(
            read,
            progress=lambda share, doing: update(share, 1.0, doing),
            workers=crew,
            began=begin,
        )
        estimator.set_params(time=time)
        estimator.save(output)
        ended_early = interrupted()
    record = replace(estimator.report_, seconds=clock.monotonic() - begin)
    try:
        told = (record.verdict(), rare_text(record), record.later_text(), record.legend())
        texts = [f"\n{text}" for text in told if text]
        show(record.rows(), fit_table(record), *texts, as_json=json)
        sys.stdout.flush()
    except BrokenPipeError:  # closed early, as by head
        raise
    except OSError as error:
        raise DataError(
            f"the scores cannot be printed ({error.strerror}); read them in {output}/README.md"
        ) from error
    finally:  # the model is there even if standard output takes nothing
        remark(f"{fit_remark(record)}; wrote {output}, described in its README.md")
    if ended_early:
        raise KeyboardInterrupt


def _before_saving(time: float, reading: float) -> float:
    """The seconds for everything before saving; an error if reading took all of them."""
    before = time - _SAVING * reading
    if before - reading <= 0 < time:
        raise UsageError(f"--time {time:g}, but reading took {reading:.0f} seconds; give more")
    return before if time > 0 else time
