"""One epoch of a single model on the CPU: Memohop beside the same network in stock PyG.

    python -m benchmarks.epoch [--data FOLDER] [--datasets cora,squirrel] [--model gcn+mmp]

Prints the milliseconds per epoch (a training step and an evaluation) of both, and their ratio:
medians of 20 epochs, in which the two alternate. ``study.speed`` defines stock.
"""

from __future__ import annotations

import argparse

import torch

import memohop
from study.speed import measure


def main() -> None:
    """Print one line per dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--datasets", default="cora,squirrel")
    parser.add_argument("--model", default="gcn+mmp")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, ms per epoch")
    print(f"{'dataset':12} {'stock PyG':>10} {'Memohop':>10} {'ratio':>7}")
    for name in arguments.datasets.split(","):
        data = memohop.load(name, root=arguments.data, features="row")
        row = measure(data, arguments.model, members=1, device=torch.device("cpu"), epochs=20)
        print(f"{name:12} {row.stock_ms:10.1f} {row.ms:10.1f} {row.ratio:6.1f}x")


if __name__ == "__main__":
    main()
