"""`python -m study bench gates`: the gates of a memory network against local homophily."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memohop.cli.app import OUTPUT, Device, Folder, remark, warnings_as_remarks
from memohop.errors import DataError, UsageError
from memohop.outputs import check_output
from study.cli.bench import bench_app
from study.cli.options import NINE, Datasets, ResultsFile, dataset_ids

if TYPE_CHECKING:
    from memohop.jobs.run import Recipe

_EXAMPLES = """Examples:
  python -m study bench gates
  python -m study bench gates --datasets texas,cora --model gat+mmp --protocol paper"""


@bench_app.command(name="gates", help_epilogue=_EXAMPLES)
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
    names = dataset_ids(datasets)
    if not model.endswith("+mmp"):
        raise UsageError(f"--model {model} has no gates; give gcn+mmp or gat+mmp")
    check_output(output, inputs=[results])

    from memohop.report.terminal import progress_bar
    from study.paper.gates import Gates, measure_gates
    from study.runs.provenance import source

    recipes = [_chosen(results, protocol, model, name) for name in names]
    command = ["python", "-m", "study", "bench", "gates", "--datasets", datasets, "--model", model]
    command += ["--protocol", protocol, "--output", output.name]
    if results is not None:
        command += ["--results", results.name]
    gates = Gates(shlex.join(command), source(device), ())
    if output.exists():
        try:
            gates = gates.continuing(Gates.load(output))
        except DataError as error:
            raise UsageError(
                f"--output {output} exists and holds something other than gates; give another name"
            ) from error
    measured = {curve.dataset for curve in gates.curves}
    with warnings_as_remarks(), progress_bar("reading gates") as progress:
        for done, recipe in enumerate(recipes, start=1):
            if recipe.dataset not in measured:
                curve = measure_gates(recipe, protocol=protocol, root=data, device=device)
                gates = gates.having(curve)
                gates.save(output)
            progress(done, len(recipes))
    remark(f"wrote {output}")


def _chosen(results: Path | None, protocol: str, model: str, dataset: str) -> Recipe:
    """How Table 1 trains the model, with the setting that validation chose."""
    from memohop.jobs.run import Recipe
    from study.runs.experiment import Experiment
    from study.runs.results import Results, choose

    settings, _ = Experiment("table1").row(protocol, model, dataset)
    cell = (protocol, dataset, model)
    rows = Results.load(results or "table1").cells().get(cell)
    if rows is None:
        raise UsageError(
            f"the results have no {model} on {dataset} under {protocol}; run python -m study run "
            f"table1 --protocol {protocol} --only dataset={dataset},model={model} and export them"
        )
    return Recipe(dataset, model, settings.having(choose(rows)[0].setting))
