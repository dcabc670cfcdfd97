"""`python -m study store`: inspect, merge and export stores of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from memohop.cli import Device, Folder, Json, print_json, remark, show
from memohop.errors import MemohopError, UsageError
from memohop.outputs import check_output
from study import RESULTS
from study.cli.app import app, check_counts, processes_of

if TYPE_CHECKING:
    from study.runs.verify import Record

_SHOW_EXAMPLES = """Examples:
  python -m study store show memohop-runs.sqlite
  python -m study store show memohop-runs.sqlite --failures
  python -m study store show memohop-runs.sqlite --json"""
_MERGE_EXAMPLES = """Examples:
  python -m study store merge memohop-runs.sqlite from-another-machine.sqlite"""
_EXPORT_EXAMPLES = """Examples:
  python -m study store export memohop-runs.sqlite table1
  python -m study store export memohop-runs.sqlite table1 --output my-table1.json"""
_VERIFY_EXAMPLES = """Examples:
  python -m study store verify memohop-runs.sqlite --sample 200
  python -m study store verify memohop-runs.sqlite --sample 200 --device cuda --jobs 12
  python -m study store verify fair --sample 20 --device cuda"""

store_app = App(
    name="store",
    help="Inspect, merge and export stores of runs.",
    help_epilogue=_SHOW_EXAMPLES + _MERGE_EXAMPLES.removeprefix("Examples:"),
)
app.command(store_app)


@store_app.command(name="show", help_epilogue=_SHOW_EXAMPLES)
def store_show(path: Path, *, failures: bool = False, json: Json = False) -> None:
    """Show what a store holds: cells and runs of each experiment and protocol.

    Args:
        path: The store.
        failures: Show the tracebacks of failed cells.
    """
    from study.pages.tables import on_terminal, table_of
    from study.runs.store import Store

    rows: dict[tuple[str, str], dict[str, Any]] = {}
    failed = []
    with closing(Store(path, read_only=True)) as store:
        cells = store.cells()
    for cell in cells.values():
        name = {"experiment": cell.experiment, "protocol": cell.protocol}
        new = name | {"cells": 0, "failed": 0, "runs": 0, "finished": ""}
        row = rows.setdefault((cell.experiment, cell.protocol), new)
        row["cells" if cell.failure is None else "failed"] += 1
        row["runs"] += cell.runs
        row["finished"] = max(row["finished"], cell.finished)
        if cell.failure is not None:
            lines = cell.failure.strip().splitlines()
            shown = "\n".join(lines if failures else lines[-1:])
            failed.append(f"\n{cell.experiment} {cell.name} failed:\n{shown}")
    names = ("experiment", "protocol", "cells", "failed", "runs", "last finished")
    table = table_of(dict.fromkeys(names, "{}"), (row.values() for row in rows.values()))
    show([*rows.values()], on_terminal(table), *failed, as_json=json)


@store_app.command(name="merge", help_epilogue=_MERGE_EXAMPLES)
def store_merge(into: Path, *others: Path) -> None:
    """Merge stores: copy into the first one what it lacks and the others have.

    Args:
        into: The store to copy into.
        others: The stores to copy from; they stay as they are.
    """
    from study.runs.store import Store

    if not others:
        raise UsageError("name two stores at least: one to copy into, and one to copy from")
    for other in others:  # a file that is no store is refused before one is made
        Store(other, read_only=True).close()
    with closing(Store(into)) as store:
        for other in others:
            runs, cells = store.merge(other)
            print(f"{into}: {runs} new run(s) and {cells} new cell(s) from {other}")


@store_app.command(name="export", help_epilogue=_EXPORT_EXAMPLES)
def store_export(
    path: Path,
    experiment: str,
    *,
    output: Path | None = None,
    whole: bool = False,
    add: bool = False,
) -> None:
    """Write all members of an experiment into one file, for tables and figures.

    Args:
        path: The store.
        experiment: table1, noise, lambda or fair, or a file of your own that ends in .toml.
        output: The JSON file to write; study/results/EXPERIMENT.json by default.
        whole: Of a search such as fair, only datasets on which every model is done.
        add: Of a search, keep what the JSON file has and the store lacks.
    """
    from functools import partial

    from study.runs.experiment import Experiment
    from study.runs.export import export, export_tuned
    from study.runs.store import Store
    from study.runs.tuned import Tuned

    chosen = Experiment(experiment)
    output = output or RESULTS / f"{chosen.id}.json"
    if (whole or add) and not chosen.is_search:
        raise UsageError(
            f"--{'whole' if whole else 'add'} is for searches such as fair, not for {chosen.id}; "
            "leave it out"
        )
    earlier = Tuned.load(output) if add else None
    check_output(output, ".json", inputs=[path])
    with closing(Store(path, read_only=True)) as store:
        search = partial(export_tuned, whole=whole, earlier=earlier)
        results, missing = (search if chosen.is_search else export)(store, chosen)
    if not results.datasets:
        raise UsageError(
            f"{path} has no cell of {chosen.id}; python -m study run {experiment} makes them"
        )
    results.save(output)
    print(f"wrote {output}: {results.summary}")
    if missing:
        remark(f"{len(missing)} cell(s) are missing, the first of them {missing[0].name}")


@store_app.command(name="verify", help_epilogue=_VERIFY_EXAMPLES)
def store_verify(
    path: Path = Path("memohop-runs.sqlite"),
    *,
    sample: int = 200,
    seed: int = 0,
    data: Folder = None,
    device: Device = "cpu",
    jobs: int = 1,
    json: Json = False,
) -> None:
    """Train random runs of a store, or of the fair table, again and compare them bit for bit.

    Scores, epochs and curves must be the same; of the fair table, what it is made of:
    the scores of the chosen settings. Rounding depends on the device, so only runs that
    were made on the same kind of device are taken.

    Args:
        path: The store; or fair for the results that come with the package, or a JSON file
            that python -m study store export wrote of it.
        sample: How many runs.
        seed: Which ones.
        jobs: Processes that train at the same time.
    """
    check_counts(sample=sample, jobs=jobs)

    from memohop.report.terminal import progress_bar
    from memohop.training.device import find_device
    from study.runs.verify import verify

    find_device(device)
    with _record(path) as record, progress_bar("verifying") as progress:
        verdict = verify(
            record,
            sample,
            seed=seed,
            root=data and data.absolute(),
            device=device,
            executor=processes_of(jobs),
            watcher=progress,
        )
    for key, why in (verdict.different | verdict.lost).items():
        remark(f"run {key}: {why}")
    same, different, lost = verdict.same, len(verdict.different), len(verdict.lost)
    if json:
        counts = {"same": same, "different": different, "lost": lost}
        print_json([counts | {"elsewhere": verdict.elsewhere}])
    else:
        print(
            f"{same} of {same + different + lost} runs are the same to the bit; "
            f"{verdict.elsewhere} other run(s) were made on another device"
        )
    if different or lost:
        raise MemohopError(f"{different} run(s) differ and {lost} could not be trained again")


@contextmanager
def _record(path: Path) -> Iterator[Record]:
    """The runs of a store, or those behind the results of the fair table."""
    from study.runs.experiment import Experiment
    from study.runs.store import Store
    from study.runs.tuned import Tuned
    from study.runs.verify import published_runs, stored_runs

    if str(path) == "fair" or path.suffix == ".json":
        tuned = Tuned.load(str(path))
        yield published_runs(tuned, Experiment(tuned.experiment))
        return
    with closing(Store(path, read_only=True)) as store:
        yield stored_runs(store)
