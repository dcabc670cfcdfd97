"""``memohop.train`` of two versions, alternating in one run.

    python benchmarks/train_versions.py BEFORE/src AFTER/src --data ../shared/data \\
        --cases cora:gcn+mmp,cora:gat,chameleon:gcn+mmp --epochs 100

BEFORE and AFTER are folders with a package ``memohop`` each; both are imported by the Python that runs
this. A case is a dataset and a model, trained on all splits at once. Each round starts a process for
each version, which trains twice and times the second training: what is compiled or captured once
does not count. The last column is the time of the first version divided by that of the second.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

_TRAIN = """
import sys, time
import torch, memohop
name, model, root, device, epochs = sys.argv[1:]
data = memohop.load(name, root=root or None)
members = memohop.grid(split=range(data.train_mask.shape[1]))
for _ in range(2):
    start = time.perf_counter()
    results = memohop.train(data, model, members, epochs=int(epochs), device=device)
    seconds = time.perf_counter() - start
print(seconds, sum(result.test for result in results) / len(results))
"""


def main() -> None:
    """Time every case, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs=2, metavar="FOLDER")
    parser.add_argument("--cases", required=True, help="dataset:model, with commas")
    parser.add_argument("--data", default="", help="folder with the dataset files")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", default="100")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'case':28} {'before':>8} {'after':>8} {'ratio':>6}  mean test score, before and after")
    for case in arguments.cases.split(","):
        words = [*case.split(":"), arguments.data, arguments.device, arguments.epochs]
        rounds = [
            [train(folder, words) for folder in arguments.folders] for _ in range(arguments.rounds)
        ]
        before, after = (median(times) for times in zip(*[[s for s, _ in r] for r in rounds]))
        scores = " ".join(f"{100 * score:.4f}" for _, score in rounds[0])
        print(f"{case:28} {before:8.3f} {after:8.3f} {before / after:6.2f}  {scores}", flush=True)


def train(folder: str, words: list[str]) -> tuple[float, float]:
    """Seconds and mean test score of one version."""
    environment = os.environ | {"PYTHONPATH": folder}
    command = [sys.executable, "-W", "ignore", "-c", _TRAIN, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr}")
    seconds, score = map(float, done.stdout.split())
    return seconds, score


if __name__ == "__main__":
    main()
