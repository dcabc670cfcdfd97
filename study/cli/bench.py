"""`python -m study bench`: measure speed, and read the gates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App

from memohop.cli.app import OUTPUT, Device, Folder, Json, print_json, remark
from memohop.errors import UsageError, check_distinct
from memohop.outputs import check_output, write_whole
from study import ROOT
from study.cli.app import app
from study.cli.options import NINE, Datasets, ResultsFile, dataset_ids

_SPEED_EXAMPLES = """Examples:
  python -m study bench speed --datasets cora,squirrel
  python -m study bench speed --device cuda --models gcn+mmp,gat+mmp --figure growth.svg
  python -m study bench speed --members 1 --json"""

_FIRST_EXAMPLES = """Examples:
  python -m study bench first-settings
  python -m study bench first-settings --count 2 --output first-settings.json"""

_FIRST_SETTINGS = ROOT / "src" / "memohop" / "own" / "candidates" / "first_settings.json"

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
    figure: Path | None = None,
    json: Json = False,
) -> None:
    """Compare the speed of a population with that of stock PyG, one model at a time.

    Shows milliseconds per model-epoch (a training step and an evaluation), their
    ratio, the population's peak RAM, and the floor: the share of its step that the
    graph products alone take.

    Args:
        models: Ids of models, separated by commas: gcn, gat, gcn+mmp, gat+mmp, h2gcn.
        members: Networks in the population; by default 70 on a GPU and 10 on a CPU.
        figure: Also draw how a step grows with members, arcs and width, into this SVG file.
    """
    import memohop
    from memohop.report.terminal import output_console, progress_bar
    from memohop.training.device import find_device
    from study.pages.speed import growth_chart, speed_table
    from study.speed.measure import growth, measure
    from study.speed.stock import twin_options

    names, ids = dataset_ids(datasets), models.split(",")
    check_distinct("--models", ids)
    for model in ids:
        twin_options(model)
    if figure is not None:
        check_output(figure, ".svg", flag="--figure")
    if members is not None and members < 1:
        raise UsageError(f"--members {members}: give at least 1")
    found = find_device(device)
    count = members or (70 if device == "cuda" else 10)
    rows = []
    with progress_bar("measuring") as progress:
        for model in ids:
            for name in names:
                graph = memohop.load(name, root=data, features="row")
                rows.append(measure(graph, model, members=count, device=found))
                progress(len(rows), len(ids) * len(names))
    if json:
        print_json([asdict(row) for row in rows])
    else:
        output_console().print(speed_table(rows))
        output_console().print(f"\n{count} member(s) on {device}; ms per model-epoch, medians.")
    if figure is not None:
        write_whole(figure, growth_chart(list(growth(device=found))))
        remark(f"wrote {figure}")


@bench_app.command(name="first-settings", help_epilogue=_FIRST_EXAMPLES)
def bench_first_settings(
    *,
    results: ResultsFile = None,
    count: int = 4,
    output: Annotated[Path, OUTPUT] = _FIRST_SETTINGS,
) -> None:
    """Learn from the fair table which settings memohop fit should try first.

    Writes those that all datasets teach, and for each dataset those that the others
    teach, for a judgement of fit on that dataset.

    Args:
        count: How many settings of each model.
        output: The JSON file to write.
    """
    if count < 1:
        raise UsageError(f"--count {count}: give at least 1")

    import msgspec

    from memohop.fit.candidates.spaces import SPACES
    from study.runs.tuned import Tuned
    from study.statistics.first_settings import first_settings

    check_output(output, ".json", inputs=[results])
    found = first_settings(Tuned.load(results or "fair"), SPACES, count=count)
    write_whole(output, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    remark(f"wrote {output}: {', '.join(found.every)}")
