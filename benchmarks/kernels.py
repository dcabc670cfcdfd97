"""What does each kernel buy? Steps of what people run, with a group of kernels on and off.

    python -m benchmarks.kernels [--device cpu] [--data FOLDER] [--cells cora,h2gcn] [--quick]

A cell is a population that one of the commands trains: ``train`` a model as it comes, ``fit`` a
trial of the search, ``run`` the networks of the paper's Table 1. Its step is timed with all kernels
and without each group that serves it, taking turns; the ratio is the median over the turns of the
time without over the time with. With `OMP_NUM_THREADS=1` it holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import truediv
from typing import Any, NamedTuple
from unittest import mock

import torch

import memohop
from memohop.fit.candidates.spaces import SPACES
from memohop.jobs.execute import load_data, populations
from memohop.nn._kernels import table
from memohop.ram import keep_freed_ram
from memohop.training.device import CapturedStep
from memohop.training.member import Member
from memohop.training.population import Population
from memohop.training.rules import DEFAULT_RULES, Rules
from memohop.training.trainer import make_builder, make_task
from study.runs.experiment import Experiment

WORTH = 1.1  # a group below this ratio in every cell does not earn its keep
CELLS = (
    ("train", "texas", "gcn+mmp"),
    ("train", "cora", "gcn+mmp"),
    ("train", "chameleon", "gcn+mmp"),
    ("train", "pubmed", "gcn+mmp"),
    ("fit", "cora", "gcn+mmp"),
    ("fit", "tolokers", "gcn+mmp"),
    ("fit", "cora", "mlp"),
    ("run", "texas", "gcn+mmp"),
    ("run", "actor", "gcn+mmp"),
    ("run", "squirrel", "gcn+mmp"),
    ("train", "texas", "gat+mmp"),
    ("train", "cora", "gat+mmp"),
    ("run", "chameleon", "gat+mmp"),
    ("train", "cora", "gat"),
    ("run", "chameleon", "gat+de"),
    ("train", "cora", "gatv2"),
    ("train", "tolokers", "gatv2"),
    ("run", "texas", "h2gcn"),
    ("run", "chameleon", "h2gcn"),
    ("run", "squirrel", "h2gcn"),
    ("run", "pubmed", "h2gcn"),
    ("run", "actor", "h2gcn"),
    ("run", "texas", "geom-gcn"),
    ("run", "cora", "geom-gcn"),
    ("run", "cora", "fagcn"),
    ("run", "cora", "mixhop"),
    ("run", "cora", "gcn+de"),
    ("run", "pubmed", "mlp"),
    ("train", "chameleon", "linkx"),
)
QUICK = ("texas", "cora")
_TWO_STEPS = "two_steps"  # of `networks/two_steps.py`: decided when the graph is prepared


class Settings(NamedTuple):
    """What the population of a cell is built from."""

    data: Any
    members: list[Member]
    options: dict[str, Any]
    rules: Rules


def main() -> None:
    """Print a line for each group of each cell, and then one for each group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--cells", default="", help="words of the cells wanted, with commas")
    parser.add_argument("--quick", action="store_true", help="few cells and turns")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    keep_freed_ram()  # as the commands do
    words = {word for word in arguments.cells.split(",") if word}
    ratios: dict[str, dict[str, float]] = {}
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.device}")
    for cell in CELLS:
        if not words.issubset(cell) or (arguments.quick and cell[1] not in QUICK):
            continue
        turns = 5 if arguments.quick else 15
        for group, (step, ratio) in measure(cell, arguments, turns).items():
            ratios.setdefault(group, {})[" ".join(cell)] = ratio
            print(f"{' '.join(cell):26} {step:9.2f} ms  {group:16} {ratio:6.2f}x", flush=True)
    print(f"\n{'group':16} {'best':>6} {'mean':>6}  best cell")
    for group, found in sorted(ratios.items()):
        best = max(found, key=found.__getitem__)
        mean = math.exp(statistics.fmean(map(math.log, found.values())))
        verdict = "" if found[best] >= WORTH else "  does not earn its keep"
        print(f"{group:16} {found[best]:5.2f}x {mean:5.2f}x  {best}{verdict}")


def measure(
    cell: tuple[str, str, str], arguments: argparse.Namespace, turns: int
) -> dict[str, tuple[float, float]]:
    """For each group that serves a step, its milliseconds with all kernels, and the ratio."""
    settings, device = _settings(cell, arguments), torch.device(arguments.device)
    population = _population(cell[2], settings, device)
    with _used() as groups:
        population.step()
    steps = {group: _step(population, device, group) for group in sorted(groups)}
    if cell[2] == "h2gcn":
        with mock.patch("memohop.networks.two_steps._PER_ROW", math.inf):
            steps[_TWO_STEPS] = _step(_population(cell[2], settings, device), device)
    if len(groups) > 1:
        steps["all"] = _step(population, device, *groups)
    steps[""] = _step(population, device)
    taken: dict[str, list[float]] = {group: [] for group in steps}
    for turn in range(4 + turns):  # the first ones compile and capture
        for group, step in steps.items():
            seconds = _seconds(step, device)
            if turn >= 4:
                taken[group].append(seconds)
    on = taken.pop("")
    return {
        group: (
            1e3 * statistics.median(on),
            statistics.median(map(truediv, off, on)),
        )
        for group, off in taken.items()
    }


def _settings(cell: tuple[str, str, str], arguments: argparse.Namespace) -> Settings:
    command, dataset, model = cell
    count = 10 if arguments.device == "cpu" else 40
    if command == "run":
        chosen = [
            found
            for found in Experiment("table1").cells(["paper"])
            if (found.dataset, found.model) == (dataset, model)
        ]
        runs = max(populations(chosen[0].runs), key=len)
        runs = runs[:: max(1, len(runs) // count)][:count]
        settings = runs[0].recipe.settings
        data = load_data(dataset, settings, arguments.data)
        return Settings(data, [run.member for run in runs], settings.options, settings.rules)
    data, options, numbers = memohop.load(dataset, root=arguments.data), {}, {}
    if command == "fit":
        options, numbers = SPACES[model].first(directed=True)[0]
    splits = data.train_mask.shape[1]
    members = [Member(split=i % splits, seed=i // splits, **numbers) for i in range(count)]
    return Settings(data, members, options, DEFAULT_RULES)


def _population(model: str, settings: Settings, device: torch.device) -> Population:
    build = make_builder(model, settings.data, settings.options)
    task = make_task(settings.data, build(), device, features="auto")
    return Population(task, build, settings.members, epochs=2000, rules=settings.rules)


@contextmanager
def _used() -> Iterator[set[str]]:
    """The groups whose kernels are asked for inside the block."""
    groups: set[str] = set()
    by_name = {kernel.function: kernel.group for line in table.TABLE.values() for kernel in line}
    load = table.load

    def noted(function: str) -> Callable[..., Any] | None:
        if (kernel := load(function)) is not None:
            groups.add(by_name[function])
        return kernel

    with mock.patch.object(table, "load", noted):
        yield groups


def _step(population: Population, device: torch.device, *off: str) -> Callable[[], None]:
    def step() -> None:
        with table.without(*off):
            population.step()

    return CapturedStep(step) if device.type == "cuda" else step


def _seconds(step: Callable[[], None], device: torch.device) -> float:
    """Of this process on a CPU, which others may share; of the clock on a GPU."""
    if device.type == "cpu":
        begin = time.process_time()
        step()
        return time.process_time() - begin
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
