"""``memohop fit`` against what else one might do with two tables, at equal seconds, in one run.

    python benchmarks/tables.py ../shared/tables --seconds 300 -o outputs

Each folder of tables has ``nodes.csv.gz``, ``edges.csv.gz``, with the label column empty for some
nodes, and ``truth.csv`` with the labels of those. Everyone gets the same files and seconds, chooses
on labelled nodes alone, and is scored once on the hidden labels:

lightgbm   gradient-boosted trees on the columns, the means of the neighbours' columns over one and
           two hops, the degree, and the shares of each class among the labelled neighbours
linear     logistic (or ridge) regression on the same and on the rows of the adjacency matrix
sage       GraphSAGE of stock PyG layers, a small grid

A rival tries settings at random, each on a quarter of the labelled nodes, until half of its seconds
are over, and fits the best to all labels.

With ``--draws 1,2,3``, a fifth of the known labels, drawn by each number, is hidden instead: the
labels of ``truth.csv`` stay unseen, and several draws say more than one; 0 is ``truth.csv``.
``--graphs counties,books~4,books~5`` has these draws of one graph, and those of ``--draws`` of the
other. How leads are judged on each graph and over all of them is told in ``lead.py``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv

from lead import Lead, average, is_judged, lead
from rivals import RIVALS
from table_case import Case, hide_others, read


def run_fit(case: Case, folder: Path, seconds: float) -> tuple[np.ndarray, list[str]]:
    """``memohop fit`` and ``memohop predict`` as one types them.

    Returns:
        Outputs for all nodes, and the kinds of model that the report shows to be significantly
        better than what was kept, which should be none.
    """
    with tempfile.TemporaryDirectory() as home:
        model, said = Path(home) / "model", Path(home) / "said.csv"
        nodes, edges = folder / "nodes.csv.gz", folder / "edges.csv.gz"
        fit = ["fit", "--nodes", nodes, "--edges", edges, "--label", case.label]
        fit += ["--time", f"{seconds}", "--metric", case.metric, "-o", model, "--json"]
        report = json.loads(_memohop(fit))
        _memohop(["predict", model, "-o", said])
        table = pyarrow.csv.read_csv(said)
    better = [row["model"] for row in report if row.get("high") is not None and row["high"] < 0]
    order = {str(name): row for row, name in enumerate(table["id"].to_pylist())}
    rows = [order[name] for name in case.ids]
    if not case.classes:
        return table["predicted"].to_numpy()[rows], better
    shares = [table[f"probability of {name}"].to_numpy()[rows] for name in case.classes]
    return np.stack(shares, axis=1), better


def _memohop(words: list[Any]) -> str:
    """What a command prints; its messages go to standard error."""
    command = [sys.executable, "-m", "memohop", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Run everyone on every graph, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with a folder for each graph")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--graphs", help="some of them, or draws such as books~4, with commas")
    parser.add_argument("--only", help="fit, lightgbm, linear or sage; all of them by default")
    parser.add_argument("--draws", default="0", help="numbers of draws, 0 for truth.csv")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder; what is there is not run again"
    )
    arguments = parser.parse_args()
    graphs = sorted(path.parent.name for path in arguments.folder.glob("*/truth.csv"))
    draws = wanted(arguments.graphs.split(",") if arguments.graphs else graphs, arguments.draws)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        drawn = {
            name: [hide_others(arguments.folder / name, number, Path(home)) for number in numbers]
            for name, numbers in draws.items()
        }
        compare(drawn, arguments.only, arguments.seconds, arguments.output)


def wanted(graphs: list[str], draws: str) -> dict[str, list[int]]:
    """The draws of each graph; ``draws`` are those of graphs that are named without any."""
    numbers: dict[str, list[int]] = {}
    for graph in graphs:
        name, _, number = graph.partition("~")
        numbers.setdefault(name, []).extend(int(draw) for draw in (number or draws).split(","))
    return numbers


def compare(drawn: dict[str, list[Path]], only: str | None, seconds: float, output: Path) -> None:
    """Run what has not been run yet, and print a line for each contender, and the means."""
    print(f"{'graph':16} {'metric':9} {'model':9} {'score':>7} {'fit ahead by':>30} {'s':>5} tried")
    leads = {
        name: [ahead(folder, only, seconds, output) for folder in of] for name, of in drawn.items()
    }
    judged = {name: [draw for draw in of if draw] for name, of in leads.items() if any(of)}
    best = {
        name: [min(draw.values(), key=attrgetter("percent")) for draw in of]
        for name, of in judged.items()
    }
    of_rivals = {
        rival.name: {name: [draw[rival.name] for draw in of] for name, of in judged.items()}
        for rival in RIVALS
    }
    for rival, rival_leads in ({"the best": best} | of_rivals).items():
        for line in average(rival_leads, rival):
            print(line)


def ahead(folder: Path, only: str | None, seconds: float, output: Path) -> dict[str, Lead]:
    """Everyone on one graph; how far ``fit`` is ahead of each rival, nothing if not judged."""
    case, fitted = read(folder), None
    leads: dict[str, Lead] = {}
    for name in ("fit", *(rival.name for rival in RIVALS)):
        if only not in (None, name):
            continue
        path = output / f"{case.name}.{name}.npz"
        if not path.exists():
            run(case, folder, name, seconds, path)
        with np.load(path) as stored:
            outputs, took, tried = stored["outputs"], stored["seconds"], stored["tried"]
            better = stored["better"]
        if name == "fit":
            fitted = outputs
        elif fitted is not None:
            leads[name] = lead(case.score, case.truth, fitted, outputs)
        gap = leads[name].text(is_judged(case.truth)) if name in leads else ""
        score = 100 * case.score(outputs, case.truth)
        line = f"{case.name:16} {case.metric:9} {name:9} {score:7.2f} {gap:>30} {took:5.0f}"
        print(line, tried or "", flush=True)
        if len(better):
            print(f"  {', '.join(better)} significantly better than what fit kept", flush=True)
    return leads if len(leads) == len(RIVALS) and is_judged(case.truth) else {}


def run(case: Case, folder: Path, name: str, seconds: float, path: Path) -> None:
    """One contender on one graph; its outputs for the hidden nodes go to a file."""
    begin, tried, better = time.monotonic(), 0, []
    if name == "fit":
        outputs, better = run_fit(case, folder, seconds)
    else:
        rival = next(rival for rival in RIVALS if rival.name == name)
        outputs, tried = rival.run(case, seconds)
    took = time.monotonic() - begin
    np.savez(path, outputs=outputs[case.hidden], seconds=took, tried=tried, better=better)


if __name__ == "__main__":
    main()
