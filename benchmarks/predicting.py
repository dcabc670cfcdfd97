"""How much time and RAM it takes to predict a million nodes.

    python benchmarks/predicting.py [--nodes 1000000] [--arcs 10000000] [--features 32]

Fits a model (five networks with memory, 64 wide) for one epoch on a small graph, saves it, makes
a large random graph with as many features, and predicts it in a new process. It prints the
seconds it took and its peak resident size, PyTorch included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import memohop


def main() -> None:
    """Print seconds and gigabytes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--arcs", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder is not None:
        _predict(arguments.folder)
        return
    print(f"{arguments.nodes} nodes, {arguments.arcs} arcs, {arguments.features} features")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = memohop.load("csbm", nodes=200, channels=arguments.features)
        classifier = memohop.MMPClassifier(trials=1, epochs=1)
        classifier.fit(small.x, small.y, edges=small.edge_index).save(folder / "model")
        generator = np.random.default_rng(0)
        shape = (arguments.nodes, arguments.features)
        np.save(folder / "x.npy", generator.standard_normal(shape, dtype=np.float32))
        np.save(folder / "arcs.npy", generator.integers(arguments.nodes, size=(2, arguments.arcs)))
        subprocess.run([sys.executable, *sys.argv, "--folder", name], check=True)


def _predict(folder: Path) -> None:
    classifier = memohop.MMPClassifier.load(folder / "model")
    print(f"before the graph:       {_peak():.2f} GB")
    x, arcs = np.load(folder / "x.npy"), np.load(folder / "arcs.npy")
    print(f"with features and arcs: {_peak():.2f} GB")
    start = time.perf_counter()
    probabilities = classifier.predict_proba(x, arcs)
    seconds = time.perf_counter() - start
    assert probabilities.shape == (len(x), len(classifier.classes_))
    print(f"at most:                {_peak():.2f} GB")
    print(f"predicted in {seconds:.1f} s with {torch.get_num_threads()} thread(s)")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
