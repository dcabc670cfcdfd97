"""`memohop bench gates`: the gates of a memory network against local homophily."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memohop.cli.app import remark, warnings_as_remarks
from memohop.cli.bench import bench_app
from memohop.cli.options import NINE, OUTPUT, Datasets, Device, Folder, ResultsFile, dataset_ids
from memohop.errors import DataError, UsageError
from memohop.outputs import check_output

if TYPE_CHECKING:
    from memohop.bench.cell import Recipe

_EXAMPLES = """Examples:
  memohop bench gates
  memohop bench gates --datasets texas,cora --model gat+mmp --protocol paper"""


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
    made for memohop report, is written after each dataset; after an interruption, the same
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

    from memohop.bench.provenance import source
    from memohop.paper.gates import Gates, measure_gates
    from memohop.report.terminal import progress_bar

    recipes = [_chosen(results, protocol, model, name) for name in names]
    command = ["memohop", "bench", "gates", "--datasets", datasets, "--model", model]
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
    from memohop.bench.cell import Recipe
    from memohop.bench.experiment import Experiment
    from memohop.bench.results import Results, choose

    settings, _ = Experiment("table1").row(protocol, model, dataset)
    cell = (protocol, dataset, model)
    rows = Results.load(results or "table1").cells().get(cell)
    if rows is None:
        raise UsageError(
            f"the results have no {model} on {dataset} under {protocol}; run memohop run table1 "
            f"--protocol {protocol} --only dataset={dataset},model={model} and export them"
        )
    return Recipe(dataset, model, settings.having(choose(rows)[0].setting))
