"""``memohop fit`` against what else one might do with two tables, at equal seconds, in one run.

    python benchmarks/tables.py ../shared/tables --seconds 300 -o outputs

Each folder of tables has ``nodes.csv.gz``, ``edges.csv.gz``, with the label column empty for some
nodes, and ``truth.csv`` with the labels of those. Everyone gets the same files and seconds, chooses
on labelled nodes alone, and is scored once on the hidden labels:

lightgbm      gradient-boosted trees on the columns and words, the means of the neighbours' over one
              and two hops, the degree, and the shares of each class among the labelled neighbours
linear        logistic (or ridge) regression on the same and on the rows of the adjacency matrix
sage          GraphSAGE of stock PyG layers, a small grid
ten-lightgbm  LightGBM with careful defaults, as one would write it in ten lines, on the columns and
              what the edges of each kind and direction say: counts, means, the neighbours' labels
ten-trees     extra trees of scikit-learn on the same
ten-nearest   nearest neighbours in the space of the numbers
autogluon     its best preset on the same and on the categories and texts as they are

How columns and edges are read, the same for all of them, is told in ``analyst.py``. A rival tries
settings at random, each on a quarter of the labelled nodes, until half of its seconds are over, and
fits the best to all labels. AutoGluon wants versions of its own: it takes part with ``--autogluon
PYTHON``, of an environment with ``autogluon.tabular[lightgbm,xgboost]`` and ``torch``.

With ``--draws 1,2,3``, a fifth of the known labels, drawn by each number, is hidden instead: the
labels of ``truth.csv`` stay unseen, and several draws say more than one; 0 is ``truth.csv``.
``--graphs counties,books~4,books~5`` has these draws of one graph, and those of ``--draws`` of the
other. How leads are judged on each graph and over all of them is told in ``lead.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np
import torch

from contenders import run_autogluon, run_fit
from lead import Lead, average, is_judged, lead
from rivals import RIVALS
from table_case import Case, hide_others, read


def main() -> None:
    """Run everyone on every graph, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with a folder for each graph")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--graphs", help="some of them, or draws such as books~4, with commas")
    parser.add_argument("--only", help="some contenders, with commas; all of them by default")
    parser.add_argument("--ranked", default="", help="graphs scored by ROC-AUC, with commas")
    parser.add_argument("--autogluon", metavar="PYTHON", help="with AutoGluon installed")
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
        names = ["fit", *(rival.name for rival in RIVALS)]
        names += ["autogluon"] if arguments.autogluon else []
        names = arguments.only.split(",") if arguments.only else names
        ranked = arguments.ranked.split(",")
        runs = Runs(arguments.output, arguments.seconds, ranked, arguments.autogluon)
        compare(drawn, names, runs)


def wanted(graphs: list[str], draws: str) -> dict[str, list[int]]:
    """The draws of each graph; ``draws`` are those of graphs that are named without any."""
    numbers: dict[str, list[int]] = {}
    for graph in graphs:
        name, _, number = graph.partition("~")
        numbers.setdefault(name, []).extend(int(draw) for draw in (number or draws).split(","))
    return numbers


@dataclass(frozen=True)
class Runs:
    """What contenders said of hidden nodes, in a folder."""

    output: Path
    seconds: float
    ranked: list[str]
    autogluon: str | None

    def outputs(self, name: str, case: Case, folder: Path) -> tuple[np.ndarray, float, int]:
        """Those of one contender on one graph, the seconds it took, and settings tried."""
        path = self.output / f"{case.name}.{name}.npz"
        if not path.exists():
            begin = time.monotonic()
            outputs, tried = self._run(name, case, folder)
            took, single = time.monotonic() - begin, outputs.astype(np.float32)
            np.savez_compressed(path, outputs=single, seconds=took, tried=tried)
        with np.load(path) as stored:
            return stored["outputs"], float(stored["seconds"]), int(stored["tried"])

    def _run(self, name: str, case: Case, folder: Path) -> tuple[np.ndarray, int]:
        threads = torch.get_num_threads()
        if name == "fit":
            return run_fit(sys.executable, case, folder, self.seconds, threads), 0
        if name == "autogluon":
            if self.autogluon is None:
                raise SystemExit("autogluon takes part with --autogluon PYTHON")
            return run_autogluon(self.autogluon, case, self.seconds, threads), 0
        rival = next(rival for rival in RIVALS if rival.name == name)
        outputs, tried = rival.run(case, self.seconds)
        return outputs[case.hidden], tried


def compare(drawn: dict[str, list[Path]], names: list[str], runs: Runs) -> None:
    """Run what has not been run yet, and print a line for each contender, and the means."""
    print(
        f"{'graph':18} {'metric':8} {'model':12} {'score':>7} {'fit ahead by':>30} {'s':>5} tried"
    )
    leads = {name: [ahead(folder, names, runs) for folder in of] for name, of in drawn.items()}
    judged = {name: [draw for draw in of if draw] for name, of in leads.items() if any(of)}
    best = {
        name: [min(draw.values(), key=attrgetter("percent")) for draw in of]
        for name, of in judged.items()
    }
    of_rivals = {
        rival: {name: [draw[rival] for draw in of] for name, of in judged.items()}
        for rival in names
        if rival != "fit"
    }
    for rival, rival_leads in ({"the best": best} | of_rivals).items():
        for line in average(rival_leads, rival):
            print(line)


def ahead(folder: Path, names: list[str], runs: Runs) -> dict[str, Lead]:
    """Everyone on one graph; how far ``fit`` is ahead of each rival, nothing if not judged."""
    case = read(folder, ranked=folder.name.partition("~")[0] in runs.ranked)
    fitted = None
    judged = is_judged(case.truth)
    leads: dict[str, Lead] = {}
    for name in names:
        outputs, took, tried = runs.outputs(name, case, folder)
        if name == "fit":
            fitted = outputs
        elif fitted is not None:
            leads[name] = lead(case.score, case.truth, fitted, outputs)
        gap = leads[name].text(judged) if name in leads else ""
        score = 100 * case.score(outputs, case.truth)
        line = f"{case.name:18} {case.metric:8} {name:12} {score:7.2f} {gap:>30} {took:5.0f}"
        print(line, tried or "", flush=True)
    return leads if judged else {}


if __name__ == "__main__":
    main()
