"""How long would the paper's Table 1 take on this machine? Extrapolated from a few epochs.

    python -m benchmarks.table_time [--data FOLDER] [--protocol paper] [--datasets texas,cora]
                                    [--device cpu] [--json FILE]

Trains ten networks of each population for 2 and for 12 epochs; the difference is the time of ten
epochs. The time of the population is the time per epoch, multiplied by the epochs that its networks
took in the packaged results, plus one set-up for every ten networks.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memohop.jobs.named import execute, populations
from memohop.ram import keep_freed_ram
from memohop.training import Job
from study.runs.experiment import Experiment
from study.runs.results import Results

_TEN, _FEW, _MORE = 10, 2, 12


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
    taken: Counter[tuple[str, str, str]] = Counter()
    for row in Results.load("table1").rows:
        if row.protocol == arguments.protocol:
            taken[row.dataset, row.model, repr(row.setting)] += row.epochs
    warnings.simplefilter("ignore")
    keep_freed_ram()  # as `python -m study run` does
    times = []
    for cell in experiment.cells([arguments.protocol]):
        if cell.dataset not in datasets:
            continue
        seconds, epochs = 0.0, 0
        for population in populations(cell.runs):
            ten = population[:: max(1, len(population) // _TEN)][:_TEN]
            _seconds(ten, 1, arguments)  # reads the data, once for all cells
            few, more = (_seconds(ten, epochs, arguments) for epochs in (_FEW, _MORE))
            each = max(more - few, 0.0) / (_MORE - _FEW) / len(ten)
            set_up = max(few - _FEW * len(ten) * each, 0.0) * (len(population) / len(ten))
            settings = {repr(run.setting) for run in population}
            steps = sum(taken[cell.dataset, cell.model, setting] for setting in settings)
            seconds += set_up + each * steps
            epochs += steps
        times.append({"dataset": cell.dataset, "model": cell.model, "seconds": seconds})
        each = 1000 * seconds / epochs
        print(
            f"{cell.dataset:15} {cell.model:9} {each:9.2f} ms x {epochs:7} epochs "
            f"= {seconds / 60:6.1f} minutes",
            flush=True,
        )
        if arguments.json:
            arguments.json.write_text(json.dumps(times, indent=1), encoding="utf-8")
    print(f"{sum(cell['seconds'] for cell in times) / 3600:.1f} hours")


def _seconds(networks: Sequence[Job], epochs: int, arguments: argparse.Namespace) -> float:
    """The time of so many epochs, set-up included."""
    jobs = [replace(job, epochs=epochs, patience=None, device=arguments.device) for job in networks]
    start = time.perf_counter()
    execute(jobs, root=arguments.data)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
