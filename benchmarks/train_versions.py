r"""``memohop.train`` of two versions, alternating in one run.

    python benchmarks/train_versions.py BEFORE/src AFTER/src --data ../shared/data \
        --cases cora:gcn+mmp,cora:gat,chameleon:gcn+mmp --epochs 100

BEFORE and AFTER are folders with a package ``memohop`` each; both are imported by the Python that
runs this. A case is a dataset and a model, trained on all splits at once. Each round starts a
process for each version, which keeps freed RAM as the command line does and trains every case
twice: the first training compiles and captures what is compiled and captured, the second one does
not. A ratio is the median time of the first version divided by that of the second: above 1, the
second is faster.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

_TRAIN = """
import ctypes, sys, time
import memohop
mallopt = ctypes.CDLL(None).mallopt
mallopt(-4, 0), mallopt(-1, -1), mallopt(-2, 1 << 26)
root, device, epochs, *cases = sys.argv[1:]
for case in cases:
    name, model = case.split(":")
    data = memohop.load(name, root=root or None)
    members = memohop.grid(split=range(data.train_mask.shape[1]))
    for _ in range(2):
        start = time.perf_counter()
        results = memohop.train(data, model, members, epochs=int(epochs), device=device)
        print(time.perf_counter() - start, sum(result.test for result in results) / len(results))
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
    cases = arguments.cases.split(",")
    words = [arguments.data, arguments.device, arguments.epochs, *cases]
    rounds = [
        [train(folder, words) for folder in arguments.folders] for _ in range(arguments.rounds)
    ]
    print(f"{'case':24} {'first training, s':>24} {'second training, s':>24}  mean test scores")
    for i, case in enumerate(cases):
        texts = []
        for time in (2 * i, 2 * i + 1):
            before, after = (median(both[v][time][0] for both in rounds) for v in (0, 1))
            texts.append(f"{before:8.3f} {after:8.3f} {before / after:6.2f}")
        scores = " ".join(f"{100 * version[2 * i + 1][1]:.4f}" for version in rounds[0])
        print(f"{case:24} {texts[0]} {texts[1]}  {scores}")


def train(folder: str, words: list[str]) -> list[list[float]]:
    """Seconds and mean test score of each training of one version."""
    environment = os.environ | {"PYTHONPATH": folder}
    command = [sys.executable, "-W", "ignore", "-c", _TRAIN, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr}")
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
