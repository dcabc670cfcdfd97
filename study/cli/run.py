"""`python -m study run` and `train`: the missing cells of an experiment, or one outside of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from memohop.cli import Device, Folder, Json, print_json, remark, show
from memohop.cli import app as memohop_app
from memohop.data.datasets.registry import describe
from memohop.errors import MemohopError, UsageError, check_distinct, unknown_name
from study.cli.app import app, check_counts, processes_of
from study.runs.results import as_texts, grouped

if TYPE_CHECKING:
    from memohop.jobs.executor import Executor
    from study.runs.cell import Cell
    from study.runs.experiment import Experiment
    from study.runs.runner import Tally, Watcher

STORE = Path("memohop-runs.sqlite")

_EXAMPLES = """Examples:
  python -m study run table1 --device cuda
  python -m study run table1 --device cuda --jobs 8
  python -m study run table1 --protocol paper --only dataset=texas,wisconsin,model=gcn+mmp
  python -m study run fair --only dataset=texas,homophily=0.05 --dry-run
  python -m study run my/experiment.toml --store my-runs.sqlite --limit 10
  python -m study run noise --engine ray --ray auto"""

_TRAIN_EXAMPLES = """Examples:
  python -m study train texas --model gcn+mmp --protocol official
  python -m study train texas --model gcn+mmp --protocol official --lam 1 --splits 0-4"""


@app.command(help_epilogue=_EXAMPLES)
def run(
    experiment: str,
    *,
    protocol: list[str] | None = None,
    only: list[str] | None = None,
    store: Path = STORE,
    data: Folder = None,
    device: Device = "cpu",
    jobs: int = 1,
    engine: Literal["local", "ray"] = "local",
    ray: str | None = None,
    retry: bool = False,
    limit: int | None = None,
    dry_run: bool = False,
    json: Json = False,
) -> None:
    """Run the cells of an experiment that are not in the store yet.

    A cell is one model on one dataset, with all its splits and settings, or one rung
    of its search. The command may be stopped at any moment; given again, it continues.
    Several may work on one store at the same time.

    Args:
        experiment: table1, noise, lambda or fair, or a file of your own that ends in .toml.
        protocol: One of the experiment's protocols; all of them by default. May be repeated.
        only: Cells to run, such as dataset=texas,cora,model=gcn or noise=100; may be repeated.
        store: The SQLite file with the runs; it is created if it does not exist.
        jobs: Processes that train at the same time; several make better use of a GPU, above all
            with NVIDIA's MPS (nvidia-cuda-mps-control -d).
        engine: This machine, or the workers of a Ray cluster.
        ray: Address of the cluster, or auto; by default one is started on this machine.
        retry: Try failed cells again.
        limit: The most cells to run.
        dry_run: Train nothing, and count the networks and epochs that each cell takes.
    """
    check_counts(limit=limit, jobs=jobs)
    if jobs > 1 and engine == "ray":
        raise UsageError(
            f"--jobs {jobs} goes with --engine local: a Ray cluster has as many "
            "processes as it has cores or GPUs; leave out one of the two"
        )
    if ray is not None and engine != "ray":
        raise UsageError(f"--ray {ray} goes with --engine ray; add it or leave it out")

    from memohop.data.datasets.fetch import locate
    from memohop.training.device import find_device
    from study.pages.tables import on_terminal, table_of
    from study.runs.experiment import Experiment
    from study.runs.runner import run_cells
    from study.runs.store import Store

    chosen = Experiment(experiment)
    cells = _wanted(chosen, protocol, _conditions(only))
    if dry_run:
        rows = plan_of(cells)
        groups = grouped(rows, itemgetter("protocol", "dataset")) | {("all", ""): rows}
        lines = []
        for name, group in groups.items():
            networks, epochs = (sum(row[of] for row in group) for of in ("networks", "epochs"))
            lines.append([*name, len(group), networks, networks / len(group), epochs])
        names = ("protocol", "dataset", "cells", "networks", "networks a cell", "epochs at most")
        table = table_of(dict.fromkeys(names, "{:,.0f}"), lines)
        show(rows, on_terminal(table), as_json=json)
        return
    if engine == "local":
        find_device(device)
    executor: Executor = processes_of(jobs)
    if engine == "ray":
        from memohop.jobs.ray_workers import RayWorkers

        again = "give the command again: what is done is in the store"
        executor = RayWorkers(ray, device, again)
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        if files := describe(dataset).files:
            locate(files, root=data, progress=sys.stderr.isatty())
    with closing(Store(store)) as opened, _watching(chosen.id) as watcher:
        tally = run_cells(
            cells,
            opened,
            root=data and data.absolute(),
            device=device,
            executor=executor,
            retry=retry,
            limit=limit,
            costly_first=jobs > 1 or engine == "ray",
            watcher=watcher,
        )
    if json:
        print_json([asdict(tally) | {"failed": len(tally.failed), "lost": len(tally.lost)}])
    else:
        print(_sentence(tally))
    for name, why in tally.lost.items():
        remark(f"{name} was lost: {why}")
    if tally.lost:
        raise MemohopError(
            f"{len(tally.lost)} cell(s) were lost with the process that trained them; give the "
            "command again"
        )
    if failed := len(tally.failed) + tally.given_up:
        raise MemohopError(
            f"{failed} cell(s) have failed; python -m study store show {store} shows why, and "
            "--retry tries them again"
        )


def plan_of(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """What an experiment takes: for each cell its name, its networks, and their epochs at most.

    Of a ladder, all rungs count, and a network that two rungs share counts once.
    """
    rows = []
    for cell in cells:
        networks, epochs = cell.size
        name = {"protocol": cell.protocol, "dataset": cell.dataset, "model": cell.model}
        rows.append(name | cell.variant | {"networks": networks, "epochs": epochs})
    return rows


def _conditions(given: list[str] | None) -> dict[str, list[str]]:
    """The values for each name, given as ``dataset=texas,cora,model=gcn``."""
    by_name: dict[str, list[str]] = {}
    for text in given or ():
        name = ""
        for part in text.split(","):
            before, equals, value = part.rpartition("=")
            name = before if equals else name
            if not name or not value:
                raise UsageError(f"--only {text}: give it as dataset=texas,cora,model=gcn")
            by_name.setdefault(name, []).append(value)
    return by_name


def _wanted(
    chosen: Experiment, protocols: list[str] | None, only: dict[str, list[str]]
) -> list[Cell]:
    """The cells that meet all conditions; a condition that no cell meets is refused."""
    check_distinct("--protocol", protocols or ())
    for name in protocols or ():
        if name not in chosen.protocols:
            raise unknown_name(f"protocol of {chosen.id}", name, chosen.protocols)
    parts = [
        (cell, as_texts({"dataset": cell.dataset, "model": cell.model} | cell.axes))
        for cell in chosen.cells(protocols)
    ]
    for name, values in only.items():
        check_distinct(f"--only {name}", values)
        if name not in (names := dict.fromkeys(chain(*(part for _, part in parts)))):
            raise unknown_name(f"part of a cell of {chosen.id}", name, names)
        known = dict.fromkeys(part.get(name, "") for _, part in parts)
        for value in values:
            if value not in known:
                raise unknown_name(f"{name} left in {chosen.id}", value, known)
        parts = [(cell, part) for cell, part in parts if part.get(name, "") in values]
    return [cell for cell, _ in parts]


@contextmanager
def _watching(name: str) -> Iterator[Watcher]:
    """Shows the progress: a bar on a terminal, or else a line for each cell."""
    from memohop.report.terminal import clock, progress_bar

    start, shown = time.monotonic(), 0
    with progress_bar(name) as update:

        def watcher(tally: Tally, cell: Cell, share: float) -> None:
            nonlocal shown
            state = f"{tally.there + tally.done} of {tally.cells} cells"
            update(share, 1.0, f"{name}: {state}, {cell.name}")
            finished = tally.done + len(tally.failed)
            if finished > shown and not sys.stderr.isatty():
                spent = time.monotonic() - start
                left = clock(spent / share - spent) if share else "?"
                remark(f"{state}, {clock(spent)} spent, about {left} left, {cell.name}")
            shown = finished

        yield watcher


def _sentence(tally: Tally) -> str:
    parts = {
        "already there": tally.there,
        "done": tally.done,
        "failed": len(tally.failed),
        "lost": len(tally.lost),
        "had failed before": tally.given_up,
        "left to another process": tally.elsewhere,
    }
    counts = (f"{count} {words}" for words, count in parts.items() if count)
    sentence = f"{tally.cells} cells: {', '.join(counts) or 'none run'}"
    if tally.diverged:
        sentence += f"; {tally.diverged} run(s) diverged, and their settings are not chosen"
    return sentence


@app.command(help_epilogue=_TRAIN_EXAMPLES)
def train(
    dataset: str,
    *options: Annotated[str, Parameter(allow_leading_hyphen=True)],
    model: str,
    protocol: str,
) -> None:
    """Train a model as a protocol of Table 1 does, outside of any store.

    Args:
        dataset: The id of a dataset.
        options: Those of memohop train, which override the protocol.
        model: The id of a model of Table 1.
        protocol: One of the protocols of table1, paper or official.
    """
    from study.runs.experiment import Experiment

    table = Experiment("table1")
    if model not in table.models:
        raise unknown_name("model of table1", model, table.models)
    settings, search, _ = table.row(protocol, model, dataset)
    command, bound, _ = memohop_app.parse_args(
        ["train", dataset, "--model", model, *options], exit_on_error=False, print_error=False
    )
    command(*bound.args, **bound.kwargs, base=(protocol, settings, search))
