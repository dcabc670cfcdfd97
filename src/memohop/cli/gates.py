"""`memohop bench gates`: what the gates of a memory network do, node by node."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from memohop.cli.app import Folder, remark, warnings_as_remarks
from memohop.cli.bench import bench_app
from memohop.data.datasets.registry import describe
from memohop.errors import DataError, UsageError, check_distinct
from memohop.outputs import check_output

if TYPE_CHECKING:
    from memohop.bench.cell import Recipe

_EXAMPLES = """Examples:
  memohop bench gates
  memohop bench gates --datasets texas,cora --model gat+mmp --protocol paper"""


@bench_app.command(name="gates", help_epilogue=_EXAMPLES)
def bench_gates(
    *,
    datasets: str = "texas,wisconsin,cornell-legacy,actor,chameleon,squirrel,cora,citeseer,pubmed",
    model: str = "gcn+mmp",
    protocol: str = "official",
    device: Literal["cpu", "cuda"] = "cpu",
    data: Folder = None,
    results: Path | None = None,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("gates.json"),
) -> None:
    """Train a model as Table 1 does, and read its gates against local homophily.

    Local homophily is the share of the neighbours that a node listens to which are of its own
    class. The file is for memohop report. It is written after each dataset; the same command
    goes on where an interrupted one was.

    Args:
        datasets: Ids of datasets, with commas.
        model: gcn+mmp or gat+mmp.
        protocol: One of the protocols of table1.
        device: Where to train.
        data: A local folder with the data files, instead of a download.
        results: A file of table1 that memohop store export wrote, which says what validation
            chose; the results that come with the package by default.
        output: The file to write.
    """
    names = datasets.split(",")
    check_distinct("--datasets", names)
    for name in names:
        describe(name)
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
                f"--output {output} exists and holds something else than gates; give another name"
            ) from error
    measured = {curve.dataset for curve in gates.curves}
    with warnings_as_remarks(), progress_bar("reading gates") as progress:
        for place, recipe in enumerate(recipes, start=1):
            if recipe.dataset not in measured:
                curve = measure_gates(recipe, protocol=protocol, root=data, device=device)
                gates = gates.having(curve)
                gates.save(output)
            progress(place, len(recipes))
    remark(f"wrote {output}")


def _chosen(results: Path | None, protocol: str, model: str, dataset: str) -> Recipe:
    """How Table 1 trains the model, with what validation chose."""
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
