"""`python -m study bench`: measure speed, read the gates, or learn first settings."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from memohop.cli import (
    OUTPUT,
    Device,
    Folder,
    Json,
    remark,
    show,
    warnings_as_remarks,
)
from memohop.data.datasets.registry import describe
from memohop.errors import DataError, UsageError, check_distinct
from memohop.outputs import check_output, write_whole
from study import RESULTS, ROOT
from study.cli.app import ResultsFile, app, check_counts
from study.runs.results import grouped

if TYPE_CHECKING:
    from memohop.training import Job

_SPEED_EXAMPLES = """Examples:
  python -m study bench speed --datasets cora,squirrel
  python -m study bench speed --device cuda --models gcn+mmp,gat+mmp
  python -m study bench speed --members 1 --json"""

_FIRST_EXAMPLES = """Examples:
  python -m study bench first-settings
  python -m study bench first-settings --count 2 --output first-settings.json"""

_GATES_EXAMPLES = """Examples:
  python -m study bench gates
  python -m study bench gates --datasets texas,cora --model gat+mmp --protocol paper"""

NINE = "texas,wisconsin,cornell-legacy,actor,chameleon,squirrel,cora,citeseer,pubmed"
"""The datasets of Table 1."""

Datasets = Annotated[str, Parameter(help="Ids of datasets, separated by commas.")]

_OF_FIT = ROOT / "src" / "memohop" / "fit" / "candidates" / "first_settings.json"

bench_app = App(
    name="bench",
    help="Measure speed, read the gates, or learn first settings from the fair table.",
    help_epilogue=_SPEED_EXAMPLES,
)
app.command(bench_app)


@bench_app.command(name="speed", help_epilogue=_SPEED_EXAMPLES)
def bench_speed(
    *,
    datasets: Datasets = NINE,
    models: str = "gcn+mmp,gat+mmp,gcn,h2gcn",
    members: int | None = None,
    device: Device = "cpu",
    data: Folder = None,
    json: Json = False,
) -> None:
    """Compare the speed of a population with that of stock PyG, one model at a time.

    Shows milliseconds per model-epoch (a training step and an evaluation), their
    ratio, the population's peak RAM, and the floor: the share of its step that the
    graph products alone take.

    Args:
        models: Ids of models, separated by commas: gcn, gat, gcn+mmp, gat+mmp, h2gcn.
        members: Networks in the population; by default 70 on a GPU and 10 on a CPU.
    """
    import memohop
    from memohop.report.terminal import progress_bar
    from memohop.training.device import find_device
    from study.pages.tables import TableCell, on_terminal, table_of
    from study.speed import measure, twin_options

    names, ids = _dataset_ids(datasets), models.split(",")
    check_distinct("--models", ids)
    for model in ids:
        twin_options(model)
    check_counts(members=members)
    where, count = find_device(device), members or (70 if device == "cuda" else 10)
    speeds = []
    with progress_bar("measuring") as progress:
        for model in ids:
            for name in names:
                graph = memohop.load(name, root=data, features="row")
                speeds.append(measure(graph, model, members=count, device=where))
                progress(len(speeds), len(ids) * len(names))
    legend = f"\n{count} member(s) on {device}; ms per model-epoch, medians."
    rows: list[list[Any]] = []
    for model, group in grouped(speeds, lambda speed: speed.model).items():
        for speed in group:
            floor = "" if speed.floor_share is None else speed.floor_share
            numbers = (speed.stock_ms, speed.ms, speed.ratio, speed.peak_mb, floor)
            rows.append([speed.dataset, model, *numbers])
        mean = geometric_mean(speed.ratio for speed in group)
        rows.append([TableCell("geometric mean", strong=True), model, "", "", mean, "", ""])
    forms = {"stock ms": "{:.2f}", "ms": "{:.3f}", "ratio": "{:.1f}x"}
    forms |= {"peak MB": "{:.0f}", "floor": "{:.0%}"}
    table = on_terminal(table_of({"dataset": "", "model": ""} | forms, rows))
    show([asdict(speed) for speed in speeds], table, legend, as_json=json)


@bench_app.command(name="first-settings", help_epilogue=_FIRST_EXAMPLES)
def bench_first_settings(
    *,
    results: ResultsFile = None,
    count: int = 4,
    output: Annotated[Path, OUTPUT] = RESULTS / "first-settings.json",
    of_fit: Path = _OF_FIT,
) -> None:
    """Learn from the fair table which settings memohop fit should try first.

    Writes those that all datasets teach, and for each dataset those that the others
    teach, for a judgement of fit on that dataset.

    Args:
        count: How many settings of each model.
        output: The JSON file to write.
        of_fit: The JSON file with those of all datasets alone, which fit reads.
    """
    check_counts(count=count)

    import msgspec

    from memohop.fit.candidates.spaces import listed
    from study.runs.tuned import Tuned
    from study.statistics.first_settings import first_settings

    for path in (output, of_fit):
        check_output(path, ".json", inputs=[results])
    learned = first_settings(Tuned.load(results or "fair"), listed().networks, count=count)
    for path, content in ((output, learned), (of_fit, learned.every)):
        write_whole(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
        remark(f"wrote {path}")


@bench_app.command(name="gates", help_epilogue=_GATES_EXAMPLES)
def bench_gates(
    *,
    datasets: Datasets = NINE,
    model: str = "gcn+mmp",
    protocol: str = "official",
    device: Device = "cpu",
    data: Folder = None,
    results: ResultsFile = None,
    output: Annotated[Path, OUTPUT] = Path("gates.json"),
) -> None:
    """Train a model as Table 1 does, and measure its gates against local homophily.

    Local homophily is the share of the neighbours a node listens to that are of its own
    class. The settings are those that validation chose in the results of table1. The file,
    made for report, is written after each dataset; after an interruption, the same
    command continues with the next one.

    Args:
        model: gcn+mmp or gat+mmp.
        protocol: One of the protocols of table1.
        output: The file to write.
    """
    names = _dataset_ids(datasets)
    if not model.endswith("+mmp"):
        raise UsageError(f"--model {model} has no gates; give gcn+mmp or gat+mmp")
    check_output(output, inputs=[results])

    from memohop.report.terminal import progress_bar
    from study.paper.gates import GateCurve, Gates, measure_gates
    from study.runs.runner import source

    jobs = [_chosen(results, protocol, model, name) for name in names]
    words = ["python", "-m", "study", "bench", "gates", "--datasets", datasets, "--model", model]
    words += ["--protocol", protocol, "--output", output.name]
    words += [] if results is None else ["--results", results.name]
    name, curves = (shlex.join(words), source(device)), list[GateCurve]()
    if output.exists():
        try:
            before = Gates.load(output)
        except DataError as error:
            raise UsageError(
                f"--output {output} exists and holds something other than gates; give another name"
            ) from error
        if (before.command, before.source) == name:  # it was interrupted
            curves += before.curves
    measured = {curve.dataset for curve in curves}
    with warnings_as_remarks(), progress_bar("reading gates") as progress:
        for done, job in enumerate(jobs, start=1):
            if job.data.name not in measured:
                curves.append(measure_gates(job, protocol=protocol, root=data, device=device))
                Gates(*name, tuple(curves)).save(output)
            progress(done, len(jobs))
    remark(f"wrote {output}")


def _chosen(results: Path | None, protocol: str, model: str, dataset: str) -> Job:
    """How Table 1 trains the model, with the setting that validation chose."""
    from study.runs.experiment import Experiment
    from study.runs.results import Results, choose

    settings, *_ = Experiment("table1").row(protocol, model, dataset)
    rows = Results.load(results or "table1").cells().get((protocol, dataset, model))
    if rows is None:
        raise UsageError(
            f"the results have no {model} on {dataset} under {protocol}; run python -m study run "
            f"table1 --protocol {protocol} --only dataset={dataset},model={model} and export them"
        )
    return settings.having(choose(rows)[0].setting).job(dataset, model)


def _dataset_ids(text: str) -> list[str]:
    """The ids of a list with commas, each known and given once."""
    names = text.split(",")
    check_distinct("--datasets", names)
    for name in names:
        describe(name)
    return names
