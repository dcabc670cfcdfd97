"""Is the model of ``memohop fit`` ever worse than the better of ``mlp`` and ``gcn``?

    python benchmarks/own_graphs.py [--data FOLDER] [--datasets texas,cora] [--trials 16]
        [--epochs 300] [--device cuda] [--features raw] [--json FILE]

Runs the search of :class:`MMPClassifier` on the splits of each dataset, with as many trials of
``gcn+mmp`` as of ``mlp`` and of ``gcn``, each chosen by mean validation score. Prints the mean test
scores and the difference to the better of the two, with the corrected resampled t-interval (Nadeau
and Bengio, 2003); "worse" means that the whole interval is below 0. The better of the two is
the one with the higher mean *test* score, which favours it over ``gcn+mmp``.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

import memohop
from memohop.intervals import Interval
from memohop.own.report import FitReport, make_report
from memohop.own.search import search


def main() -> None:
    """Print one line per dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--datasets", default=",".join(memohop.datasets()))
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--patience", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", choices=("raw", "row"), default="raw")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="file for the results")
    arguments = parser.parse_args()

    print(f"torch {torch.__version__}, {arguments.trials} trials of each model, percent")
    print(f"{'dataset':20} {'gcn+mmp':>14} {'mlp':>14} {'gcn':>14}  minus the better of the two")
    found = {}
    for name in arguments.datasets.split(","):
        data = memohop.load(name, root=arguments.data, features=arguments.features)
        result = search(
            data,
            trials=arguments.trials,
            epochs=arguments.epochs,
            patience=arguments.patience,
            seed=arguments.seed,
            device=arguments.device,
        )
        report = make_report(result, data, torch.arange(int(data.y.max()) + 1).numpy())
        print(_line(name, report), flush=True)
        found[name] = report.to_json()
        if arguments.json:  # after each dataset, so that an interrupt loses little
            names = ("trials", "epochs", "patience", "seed", "features", "device")
            settings = {name: getattr(arguments, name) for name in names}
            content = {"settings": settings, "torch": torch.__version__, "datasets": found}
            arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def _line(name: str, report: FitReport) -> str:
    scores = {score.model: score for score in report.scores}
    shown = (
        f"{100 * scores[model].mean:.2f} ± {100 * scores[model].std:.2f}"
        for model in ("gcn+mmp", "mlp", "gcn")
    )
    better = max(("mlp", "gcn"), key=lambda model: scores[model].mean)
    gap = report.differences[better]
    return (
        f"{name:20} " + " ".join(f"{text:>14}" for text in shown) + f"  {_interval(gap)} ({better})"
        f"{', WORSE' if gap.below_zero else ''}, {report.seconds:.0f} s"
    )


def _interval(gap: Interval) -> str:
    percent = {name: 100 * value for name, value in asdict(gap).items()}
    return f"{percent['mean']:+.2f} [{percent['low']:+.2f}, {percent['high']:+.2f}]"


if __name__ == "__main__":
    main()
