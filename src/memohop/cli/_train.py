"""`memohop train` and `demo`."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from memohop.cli._app import (
    Device,
    Folder,
    Json,
    Memory,
    app,
    byte_count,
    remark,
    show,
    warnings_as_remarks,
)
from memohop.data.datasets.registry import describe, is_folder
from memohop.errors import UsageError, unknown_name, whole_number
from memohop.outputs import check_output, write_whole
from memohop.training import NUMBERS, RATES

_MOST = 10**9  # epochs, for one
_DIGITS = 18  # of a whole number: more can only be a mistake
_MOST_NUMBERS = 100_000  # of a list
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_Dataset = Annotated[
    str,
    Parameter(
        help="The id of a dataset, see memohop data list; or a folder that memohop prepare wrote."
    ),
]

_Base = tuple[str, Any, dict[str, list[Any]]]
"""The name of a protocol, its :class:`~memohop.jobs.named.Settings`, and its search."""

_EXAMPLES = """Examples:
  memohop train texas --model gcn+mmp --lam 0,0.1,0.2
  memohop train squirrel --model gcn+mmp --option direction=out --features row
  memohop train minesweeper --model gcn+mmp --option labels=memory
  memohop train cora --model gat --splits 0-4 --seeds 3 --lr 0.005,0.01
  memohop train csbm --data-option homophily=0.1 --model mlp --json
  memohop train pubmed --model gcn+mmp --splits 0 --workers 4 --cut metis
  memohop train prepared --model gcn+mmp --data-option splits=3 --workers 4"""

_DEMO_EXAMPLES = """Examples:
  memohop demo
  memohop demo --output curve.svg"""


@app.command(help_epilogue=_EXAMPLES)
def train(
    dataset: _Dataset,
    *,
    model: str,
    lam: str | None = None,
    splits: str = "all",
    seeds: str = "1",
    lr: str | None = None,
    weight_decay: str | None = None,
    dropout: str | None = None,
    input_dropout: str | None = None,
    epochs: int | None = None,
    patience: int | None = None,
    option: list[str] | None = None,
    features: Literal["raw", "row", "scaled"] | None = None,
    data: Folder = None,
    data_option: list[str] | None = None,
    device: Device = "cpu",
    memory: Memory = None,
    states: Literal["bfloat16"] | None = None,
    recompute: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    cut: Literal["contiguous", "metis"] = "contiguous",
    checkpoints: Path | None = None,
    json: Json = False,
    base: Annotated[_Base | None, Parameter(parse=False)] = None,
) -> None:
    """Train a model on a dataset or on your own graph, on all splits at once.

    Options that take numbers also take lists with commas; each combination is a
    setting. The setting with the best mean validation score is chosen, and only its
    test score is shown: test scores play no part in the choice.

    With --workers, several processes train: each gets some of the runs if the graph fits
    it, or else a block of the graph. Results stay the same. Processes that torchrun has
    started are workers too.

    Args:
        model: The id of a model, for example gcn+mmp, gat+mmp, gcn, gat or mlp.
        lam: Weights of the decoupling loss (lambda), for the +mmp models; 0 by default.
        splits: all, or some of them, such as 0-4 or 0,3.
        seeds: How many seeds, counted from 0, or which ones, such as 3,7 or 5-5.
        lr: Learning rates; 0.01 by default.
        weight_decay: L2 penalties; 5e-4 by default.
        dropout: Dropout rates of the hidden layers; the model's own by default.
        input_dropout: Dropout rates of the features; the model's own by default.
        epochs: The most epochs, 500 by default; the one with the best validation score counts.
        patience: Stop after this many epochs without a better validation score; never by default.
        option: An option of the model as name=value, such as direction=out; may be repeated.
        features: As published (raw, the default), each row divided by its sum (row), or all divided
            by the root mean square of those that are not 0 (scaled).
        data_option: An option of the dataset as name=value, such as homophily=0.1; may be repeated.
            A folder has splits, seed and metric.
        states: Give states of nodes 16 bits: up to half of the bytes on a GPU, and results differ
            a little.
        recompute: Compute rounds of a +mmp model again in the backward pass instead of keeping
            them: fewer bytes, more time. Members are trained one at a time.
        workers: How many processes train, as workers of a Ray cluster; by default this one alone.
        ray: Address of the cluster, or auto; by default one is started on this machine.
        cut: Blocks of consecutive nodes, or those of METIS, between which few arcs run.
        checkpoints: A folder in which a graph in blocks keeps its run, to continue if it is killed.
        base: The name of a protocol, its settings and its search, which options override.
    """
    texts: dict[str, Any] = locals()  # of the options, by their names
    own = is_folder(dataset)
    files = () if own else describe(dataset).files  # before the imports, which take seconds
    of_datasets = {"--features": features, "--data": data}
    for flag, value in of_datasets.items():
        if own and value is not None:
            raise UsageError(f"{flag} {value} is for datasets, and {dataset} is a folder of yours")
    for flag, number in (("--epochs", epochs), ("--patience", patience), ("--workers", workers)):
        if number is not None:
            whole_number(flag, number, least=1, most=_MOST)
    given: dict[str, list[Any]] = {
        name: [*_number_list(name.replace("_", "-"), texts[name])]
        for name in NUMBERS
        if texts[name] is not None
    }
    seed_ids = _id_list("seeds", seeds, count_alone=True)
    split_ids = None if splits == "all" else _id_list("splits", splits)
    limit = byte_count(memory)
    of_data = {
        name: _value_of(name, text) for name, text in _name_value_pairs("data-option", data_option)
    }
    if "features" in of_data:
        raise UsageError(
            f"--data-option features={of_data['features']}: give --features raw, row or scaled"
        )

    from memohop.data.datasets.fetch import locate
    from memohop.jobs.named import Settings, combinations, execute
    from memohop.networks.registry import entry
    from memohop.report.terminal import progress_bar
    from memohop.report.training import TrainingReport
    from memohop.training.metrics import METRICS

    known = entry(model).options()
    options = _model_options(model, known, option, given)
    split = of_data.pop("split", None)
    values: dict[str, Any] = {"epochs": epochs, "patience": patience, "features": features}
    values |= {"split": split, "data": of_data or None}
    values = {name: value for name, value in values.items() if value is not None} | options
    protocol, settings, search = base or (None, Settings(), {})
    settings = settings.having(values)
    search = {name: search[name] for name in search if name not in values} | given
    if files:
        locate(files, root=data, progress=sys.stderr.isatty())
    graph = settings.graph(dataset).load(data)
    columns = split_ids or range(graph.train_mask.shape[1])
    machine = {"device": device, "memory": limit, "states": states, "recompute": recompute}
    jobs = [
        job.at(split, seed)
        for setting in combinations(search)
        for job in [settings.having(setting).job(dataset, model, setting, **machine)]
        for seed, split in product(seed_ids, columns)
    ]
    start = time.perf_counter()
    is_first = os.environ.get("RANK", "0") == "0"  # of the processes of torchrun
    with warnings_as_remarks(), progress_bar(f"{model} on {dataset}") as progress:
        results = execute(
            jobs,
            root=data,
            progress=progress if is_first else None,
            workers=workers,
            ray=ray,
            cut=cut,
            checkpoints=checkpoints,
            say=remark if is_first else None,
        )
    if not is_first:
        return
    how = {"device": device, "workers": workers, "states": states}
    report = TrainingReport(
        jobs=jobs,
        results=results,
        metric=METRICS[graph.metric],
        protocol=protocol,
        how={name: value for name, value in how.items() if value is not None},
        seconds=time.perf_counter() - start,
    )
    shown = (report.title(), report.table(), report.legend(), report.in_force())
    show([report.row()], *shown, as_json=json)


def _model_options(
    model: str,
    known: dict[str, Any],
    given: list[str] | None,
    numbers: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """The options of a model; they are checked, and so are numbers that only some models have."""
    for name in RATES:
        if name in numbers and name not in known:
            raise UsageError(f"{model} has no {name}; leave out --{name.replace('_', '-')}")
    if any(numbers.get("lam", ())) and "decoupling" not in known:
        raise UsageError(
            f"--lam weights the decoupling loss, which {model} does not have; leave it out, or "
            "use a model with memory, such as gcn+mmp"
        )
    options = {}
    for name, text in _name_value_pairs("option", given):
        if name in RATES:
            raise UsageError(f"--option {name}={text}: give --{name.replace('_', '-')} {text}")
        if name not in known:
            raise unknown_name(f"option of {model}", name, known)
        options[name] = _value_of(name, text, like=known[name])
    return options


def _name_value_pairs(flag: str, given: list[str] | None) -> list[tuple[str, str]]:
    """The names and values of an option given as ``name=value``, once or several times."""
    for text in given or ():
        if "=" not in text:
            raise UsageError(f"--{flag} {text}: give it as name=value")
    return [(name, text) for name, _, text in (pair.partition("=") for pair in given or ())]


def _value_of(name: str, text: str, *, like: Any = None) -> Any:
    """The value of a text: of the type of ``like``, or else of the type it looks like."""
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        if text.lower() not in _TRUTHS:
            raise UsageError(f"{name}={text}: give true or false")
        return _TRUTHS[text.lower()]
    for kind in (int, float):
        try:
            numbers = [kind(part) for part in text.split(",")]
        except ValueError:
            continue
        if like is not None and (len(numbers) > 1 or (isinstance(like, int) and kind is float)):
            break
        return tuple(numbers) if len(numbers) > 1 else numbers[0]
    if like is not None:
        raise UsageError(f"{name}={text}: give a {'whole ' * isinstance(like, int)}number")
    return _TRUTHS.get(text.lower(), text)


def _number_list(flag: str, text: str) -> list[float]:
    """Numbers separated by commas, without repetitions."""
    try:
        numbers = list(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise UsageError(
            f"--{flag} {text}: give a number, or several separated by commas, such as 0,0.1"
        )
    return numbers


def _id_list(flag: str, text: str, *, count_alone: bool = False) -> list[int]:
    """Whole numbers such as ``0,3`` or ``0-4``; with ``count_alone`` a single 3 means 0, 1, 2."""
    if count_alone and re.fullmatch(rf"[1-9]\d{{,{_DIGITS - 1}}}", text):
        ranges = [range(int(text))]
    else:
        whole = rf"(\d{{1,{_DIGITS}}})"
        matches = [re.fullmatch(f"{whole}(?:-{whole})?", part) for part in text.split(",")]
        ranges = [
            range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
            for match in matches
        ]
        if not all(ranges) or (count_alone and text == "0"):
            raise UsageError(f"--{flag} {text}: give whole numbers such as 0,3 or a range like 0-4")
    for numbers in ranges:
        if len(numbers) > _MOST_NUMBERS:
            raise UsageError(
                f"--{flag} {text}: that is {len(numbers)} numbers; give {_MOST_NUMBERS} at most"
            )
    return list(dict.fromkeys(number for numbers in ranges for number in numbers))


@app.command(help_epilogue=_DEMO_EXAMPLES)
def demo(*, output: Path = Path("memohop-demo.html"), json: Json = False) -> None:
    """Show what memory does for message passing, on random graphs.

    Trains mlp, gcn, gcn+mmp and gat+mmp on random graphs in which neighbours agree
    less or more, prints a table and writes a page with the curves. Needs no files,
    and takes under two minutes on two cores.

    Args:
        output: The page to write, or the curve alone if the name ends in .svg.
    """
    from memohop.demo import run_demo
    from memohop.report.demo import curve_svg, demo_page, demo_table
    from memohop.report.terminal import progress_bar

    forms = {".html": demo_page, ".svg": curve_svg}
    check_output(output, *forms)
    with progress_bar("Training on csbm") as progress:
        result = run_demo(progress=progress)
    write_whole(output, forms[output.suffix](result))
    about = (
        f"\nTest accuracy in percent, mean ± sample standard deviation (ddof=1) over "
        f"{result.settings.splits} splits. With {result.classes} classes, neighbours say "
        f"nothing at homophily {1 / result.classes:g}."
    )
    show(result.rows(), demo_table(result), about, as_json=json)
    remark(f"wrote {output} in {result.seconds:.0f} seconds; open it in a browser")
