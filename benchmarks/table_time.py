"""How long would the paper's Table 1 take on this machine? Extrapolated from a few epochs.

    python benchmarks/table_time.py [--data FOLDER] [--protocol paper] [--datasets texas,cora]
                                    [--device cpu] [--json FILE]

For each cell ten networks, one on each split, are trained for 2 and for 12 epochs. The difference
is what ten epochs take; times the epochs that all networks of the cell took in the results of
the package, plus the set-up once for each population, it is the time of the cell.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import msgspec

from memohop.bench.cell import Cell, Recipe, Run
from memohop.bench.execute import execute
from memohop.bench.experiment import Experiment
from memohop.bench.results import Results

_FEW, _MORE = 2, 12


def main() -> None:
    """Print one line per cell and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the dataset files")
    parser.add_argument("--protocol", default="paper")
    parser.add_argument("--datasets", help="ids with commas; all of the table by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="file for the seconds of each cell")
    arguments = parser.parse_args()

    experiment = Experiment("table1")
    datasets = arguments.datasets.split(",") if arguments.datasets else experiment.datasets
    taken: dict[tuple[str, str], int] = {}
    for row in Results.load("table1").rows:
        if row.protocol == arguments.protocol:
            key = row.dataset, row.model
            taken[key] = taken.get(key, 0) + row.epochs
    warnings.simplefilter("ignore")
    found = []
    for cell in experiment.cells([arguments.protocol]):
        if cell.dataset not in datasets:
            continue
        _seconds(cell, 1, arguments)  # reads the data, which is done once for all cells
        few, more = (_seconds(cell, epochs, arguments) for epochs in (_FEW, _MORE))
        networks = len(_ten(cell))
        each = max(more - few, 0.0) / (_MORE - _FEW) / networks
        set_up = max(few - _FEW * networks * each, 0.0) * (len(cell.runs) / networks)
        epochs = taken[cell.dataset, cell.model]
        seconds = set_up + each * epochs
        found.append({"dataset": cell.dataset, "model": cell.model, "seconds": seconds})
        print(
            f"{cell.dataset:15} {cell.model:9} {1000 * each:9.2f} ms x {epochs:7} epochs "
            f"+ {set_up:5.1f} s = {seconds / 60:6.1f} minutes",
            flush=True,
        )
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{sum(cell['seconds'] for cell in found) / 3600:.1f} hours")


def _ten(cell: Cell) -> list[Run]:
    """The networks of the first setting, one on each split."""
    return [run for run in cell.runs if run.setting == cell.runs[0].setting]


def _seconds(cell: Cell, epochs: int, arguments: argparse.Namespace) -> float:
    """What so many epochs of ten networks take, set-up included."""
    runs = []
    for run in _ten(cell):
        settings = msgspec.structs.replace(run.recipe.settings, epochs=epochs, patience=None)
        recipe = Recipe(run.recipe.dataset, run.recipe.model, settings)
        runs.append(Run(recipe, run.setting, run.split, run.seed))
    start = time.perf_counter()
    execute(runs, root=arguments.data, device=arguments.device)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
