"""The command line: parse, call, print. PyTorch is imported where a command needs it, not here."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from memohop import __version__
from memohop.data.registry import DatasetInfo, datasets, describe
from memohop.errors import MemohopError, UsageError
from memohop.parsing import (
    byte_count,
    id_list,
    model_options,
    name_value_pairs,
    number_list,
    value_of,
)

_EXAMPLES = """Examples:
  memohop demo
      what it is about, in under two minutes, on graphs made on the spot
  memohop data list
      the datasets
  memohop train texas --model gcn+mmp --lam 0,0.1,0.2
      ten splits; the best of three settings is chosen on validation

memohop COMMAND --help tells more."""
_DEMO_EXAMPLES = """Examples:
  memohop demo
  memohop demo --output curve.svg"""
_DATA_EXAMPLES = """Examples:
  memohop data list
  memohop data fetch texas
  memohop data show texas"""
_LIST_EXAMPLES = """Examples:
  memohop data list
  memohop data list --json"""
_FETCH_EXAMPLES = """Examples:
  memohop data fetch texas cora
  memohop data fetch all
  memohop data fetch all --data my/folder"""
_SHOW_EXAMPLES = """Examples:
  memohop data show squirrel
  memohop data show texas --data my/folder --json"""
_TRAIN_EXAMPLES = """Examples:
  memohop train texas --model gcn+mmp --lam 0,0.1,0.2
  memohop train squirrel --model gcn+mmp --option direction=out --features row
  memohop train cora --model gat --splits 0-4 --seeds 3 --lr 0.005,0.01
  memohop train csbm --data-option homophily=0.1 --model mlp --json"""

_SPEED_EXAMPLES = """Examples:
  memohop bench speed --datasets cora,squirrel
  memohop bench speed --device cuda --models gcn+mmp,gat+mmp --figure growth.svg
  memohop bench speed --members 1 --json"""

_Json = Annotated[bool, Parameter(name="--json", show_default=False)]
_Folder = Annotated[Path | None, Parameter(name="--data")]

app = App(
    name="memohop",
    help="Memory-based message passing: graph networks for graphs whose neighbours disagree.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    version=__version__,
    default_parameter=Parameter(negative=()),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
data_app = App(
    name="data", help="List, download and look at datasets.", help_epilogue=_DATA_EXAMPLES
)
bench_app = App(name="bench", help="Measure speed.", help_epilogue=_SPEED_EXAMPLES)
app.command(data_app)
app.command(bench_app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for a failure, 2 for bad usage, 130 for Ctrl-C."""
    try:
        app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except (CycloptsError, UsageError) as error:
        return _fail(str(error), 2)
    except MemohopError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # `memohop data list | head`: whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(str(error), 1)
    return 0


@app.command(help_epilogue=_DEMO_EXAMPLES)
def demo(*, output: Path = Path("memohop-demo.html"), json: _Json = False) -> None:
    """Show what memory does for message passing, on graphs that are made on the spot.

    Trains mlp, gcn, gcn+mmp and gat+mmp on random graphs whose neighbours agree
    less or more, prints the table and writes a page with the curves. Needs no
    files, and under two minutes on two cores.

    Args:
        output: The page to write, or the curve alone if the name ends in .svg.
        json: Print a list of objects instead of the table.
    """
    from memohop.demo import run_demo
    from memohop.report.demo_page import curve_svg, demo_page
    from memohop.report.terminal import demo_table, output_console, progress_bar

    forms = {".html": demo_page, ".svg": curve_svg}
    if output.suffix not in forms:
        raise UsageError(f"--output {output}: give a name that ends in .html or .svg")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output {output}: there is no folder {output.parent}; make it first")
    with progress_bar("Training on csbm") as progress:
        result = run_demo(progress=progress)
    output.write_text(forms[output.suffix](result), encoding="utf-8")
    if json:
        _print_json(result.rows())
    else:
        console = output_console()
        console.print(demo_table(result))
        console.print(
            f"\nTest accuracy in percent, mean ± sample standard deviation (ddof=1) over "
            f"{result.settings.splits} splits. With {result.classes} classes, neighbours say "
            f"nothing at homophily {1 / result.classes:g}."
        )
    _remark(f"wrote {output} in {result.seconds:.0f} seconds; open it in a browser")


@data_app.command(name="list", help_epilogue=_LIST_EXAMPLES)
def data_list(*, json: _Json = False) -> None:
    """List the datasets.

    Args:
        json: Print a list of objects instead of the table.
    """
    from memohop.report.terminal import listing, output_console

    infos = [describe(name) for name in datasets()]
    if json:
        _print_json([_listed(info) for info in infos])
    else:
        output_console().print(listing(infos))


@data_app.command(name="fetch", help_epilogue=_FETCH_EXAMPLES)
def data_fetch(*names: str, data: _Folder = None) -> None:
    """Download datasets, or check those that are there; every file is checked by its SHA-256.

    Args:
        names: Ids of datasets, or all.
        data: A folder that has the files already: they are checked and nothing is downloaded.
    """
    from memohop.data.fetch import locate

    if not names:
        raise UsageError("name the datasets to fetch, or all; see memohop data list")
    wanted = datasets() if "all" in names else list(dict.fromkeys(names))
    for info in [describe(name) for name in wanted]:
        if not info.files:
            print(f"{info.id}: made on the spot, nothing to fetch")
            continue
        folder = locate(info.files, root=data, progress=sys.stderr.isatty())
        print(f"{info.id}: {len(info.files)} file(s) in {folder}, as published")


@data_app.command(name="show", help_epilogue=_SHOW_EXAMPLES)
def data_show(name: str, *, data: _Folder = None, json: _Json = False) -> None:
    """Show what a dataset holds: counts, classes, splits, and what to beware of.

    Args:
        name: The id of a dataset.
        data: A local folder with the files, instead of a download.
        json: Print a list with one object instead of the sheet.
    """
    info = describe(name)  # before the imports, which take seconds: a wrong name fails at once
    import memohop
    from memohop.report.dataset import dataset_facts
    from memohop.report.terminal import facts_sheet, output_console

    graph = memohop.load(name, root=data, progress=sys.stderr.isatty())
    facts = dataset_facts(graph, info)
    if json:
        _print_json([facts.row()])
    else:
        output_console().print(facts_sheet(facts))


@app.command(help_epilogue=_TRAIN_EXAMPLES)
def train(
    dataset: str,
    *,
    model: str,
    lam: str = "0",
    splits: str = "all",
    seeds: str = "1",
    lr: str = "0.01",
    weight_decay: str = "5e-4",
    dropout: str | None = None,
    input_dropout: str | None = None,
    epochs: int = 500,
    patience: int | None = None,
    option: list[str] | None = None,
    features: Literal["raw", "row"] = "raw",
    data: _Folder = None,
    data_option: list[str] | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    memory: str | None = None,
    json: _Json = False,
) -> None:
    """Train a model on a dataset, on all splits at once.

    Where numbers are given as lists with commas, each combination is a setting.
    The setting with the best mean validation score is chosen, and its test score
    alone is shown: test scores play no part in the choice.

    Args:
        dataset: The id of a dataset; see memohop data list.
        model: The id of a model, for example gcn+mmp, gat+mmp, gcn, gat or mlp.
        lam: Weights of the decoupling loss (lambda), for the +mmp models.
        splits: all, or some of them, such as 0-4 or 0,3.
        seeds: How many seeds, counted from 0, or which ones, such as 3,7 or 5-5.
        lr: Learning rates.
        weight_decay: L2 penalties.
        dropout: Dropout rates of the hidden layers; the model's own by default.
        input_dropout: Dropout rates of the features; the model's own by default.
        epochs: The most epochs; the one with the best validation score counts.
        patience: Stop after so many epochs without a better validation score; never by default.
        option: An option of the model as name=value, such as direction=out; may be repeated.
        features: As published (raw), or with each row divided by its sum (row).
        data: A local folder with the files, instead of a download.
        data_option: An option of the dataset as name=value, such as homophily=0.1; may be repeated.
        device: Where to train.
        memory: The most memory to use, such as 4GB; what the device can spare by default.
        json: Print a list with one object instead of the table.
    """
    info = describe(dataset)  # before the imports, which take seconds: a wrong name fails at once
    axes: dict[str, Any] = {
        "lr": number_list("lr", lr),
        "weight_decay": number_list("weight-decay", weight_decay),
        "lam": number_list("lam", lam),
        "dropout": number_list("dropout", dropout) if dropout else None,
        "input_dropout": number_list("input-dropout", input_dropout) if input_dropout else None,
    }
    seed_ids = id_list("seeds", seeds, count_alone=True)
    split_ids = None if splits == "all" else id_list("splits", splits)
    limit = None if memory is None else byte_count(memory)
    of_data = {
        name: value_of(name, text) for name, text in name_value_pairs("data-option", data_option)
    }

    import memohop
    from memohop.networks.registry import entry
    from memohop.report.terminal import output_console, progress_bar, settings_table
    from memohop.report.training import TrainingReport, by_setting

    options = model_options(model, entry(model).options(), option, axes)
    graph = memohop.load(
        dataset, root=data, features=features, progress=sys.stderr.isatty(), **of_data
    )
    columns = range(graph.train_mask.shape[1]) if split_ids is None else split_ids
    members = memohop.grid(**axes, seed=seed_ids, split=columns)
    start = time.perf_counter()
    with _warnings_as_remarks(), progress_bar(f"{model} on {dataset}") as progress:
        results = memohop.train(
            graph,
            model,
            members,
            options=options,
            epochs=epochs,
            patience=patience,
            device=device,
            memory=limit,
            progress=progress,
        )
    settings, chosen = by_setting(results)
    report = TrainingReport(
        dataset=dataset,
        model=model,
        metric=info.metric,
        settings=settings,
        chosen=chosen,
        options=entry(model).options() | options,
        protocol={
            "epochs": epochs,
            "patience": patience,
            "features": features,
            "device": device,
            **{f"data_{name}": value for name, value in of_data.items()},
        },
        seconds=time.perf_counter() - start,
    )
    if json:
        _print_json([report.row()])
        return
    console = output_console()
    console.print(f"{model} on {dataset}", style="bold")
    console.print(settings_table(report))
    console.print(report.legend())
    console.print(report.in_force())


@bench_app.command(name="speed", help_epilogue=_SPEED_EXAMPLES)
def bench_speed(
    *,
    datasets: str = "texas,wisconsin,cornell-legacy,actor,chameleon,squirrel,cora,citeseer,pubmed",
    models: str = "gcn+mmp,gat+mmp,gcn",
    members: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    data: _Folder = None,
    figure: Path | None = None,
    json: _Json = False,
) -> None:
    """Time a population against stock PyG, one model at a time, in one run.

    Milliseconds per model-epoch (a training step and an evaluation), their ratio,
    the population's peak memory, and the floor: the share of its step that the
    graph products alone take.

    Args:
        datasets: Ids of datasets, with commas.
        models: Ids of models, with commas: gcn, gat, gcn+mmp, gat+mmp.
        members: Networks in the population; by default 70 on a GPU and 10 on a CPU.
        device: Where to run.
        data: A local folder with the files, instead of a download.
        figure: Also draw how a step grows with members, arcs and width, into this SVG file.
        json: Print a list of objects instead of the table.
    """
    import memohop
    from memohop.bench.speed import growth, measure
    from memohop.bench.stock import twin_options
    from memohop.report.speed import growth_chart, speed_table
    from memohop.report.terminal import output_console, progress_bar
    from memohop.training.trainer import find_device

    names, ids = datasets.split(","), models.split(",")
    for name in names:
        describe(name)
    for model in ids:
        twin_options(model)
    if members is not None and members < 1:
        raise UsageError(f"--members {members}: give at least 1")
    place = find_device(device)
    count = members or (70 if device == "cuda" else 10)
    rows = []
    with progress_bar("measuring") as progress:
        for model in ids:
            for name in names:
                graph = memohop.load(name, root=data, features="row")
                rows.append(measure(graph, model, members=count, device=place))
                progress(len(rows), len(ids) * len(names))
    if json:
        _print_json([asdict(row) for row in rows])
    else:
        output_console().print(speed_table(rows))
        output_console().print(f"\n{count} member(s) on {device}; ms per model-epoch, medians.")
    if figure is not None:
        figure.write_text(growth_chart(list(growth(device=place))), encoding="utf-8")
        _remark(f"wrote {figure}")


@contextmanager
def _warnings_as_remarks() -> Iterator[None]:
    from memohop.data.check import MissingClassWarning
    from memohop.training.trainer import AloneWarning

    with warnings.catch_warnings():
        for category in (MissingClassWarning, AloneWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = lambda message, *_, **__: _remark(str(message))
        yield


def _listed(info: DatasetInfo) -> dict[str, Any]:
    row = asdict(info)
    files = row.pop("files")
    return {"dataset": row.pop("id"), **row, "files": len(files)}


def _print_json(rows: list[dict[str, Any]]) -> None:
    print(json.dumps(rows, indent=2, ensure_ascii=False))


def _remark(text: str) -> None:
    print(f"memohop: {text}", file=sys.stderr)


def _fail(text: str, code: int) -> int:
    _remark(text)
    return code
