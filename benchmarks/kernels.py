"""What do the GPU kernels buy? Trainings with those of one operation on and off, taking turns.

    python -m benchmarks.kernels [--data FOLDER] [--cells cora,gcn+mmp] [--turns 5]

A cell is what ``memohop train`` does with a dataset and a model as they come, for 200 epochs of all
splits, captured by then. The figure is the median over the turns of the wall time without kernels
over the time with them: an operation whose kernels buy less than 1.3 anywhere should do without.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from contextlib import ExitStack
from unittest import mock

import memohop

CELLS = (
    ("texas", "gcn+mmp"),
    ("cora", "gcn+mmp"),
    ("squirrel", "gcn+mmp"),
    ("pubmed", "gcn+mmp"),
    ("pubmed", "mlp"),
    ("cora", "gat+mmp"),
    ("cora", "gat"),
    ("tolokers", "gatv2"),
)
OPERATIONS = {  # the modules that ask for each operation's kernels
    "gated update": ("memohop.nn._ops.update",),
    "graph product": ("memohop.nn._ops.pattern",),
    "weighted product, softmax": ("memohop.nn._ops.products",),
    "scores of arcs": ("memohop.nn._ops.attention",),
    "dropout": ("memohop.nn._dropout",),
    "features": ("memohop.nn._features",),
    "dense product": ("memohop.training.device",),
}


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--cells", default="", help="words of the cells wanted, with commas")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    words = {word for word in arguments.cells.split(",") if word}
    off = {**OPERATIONS, "all": tuple(name for names in OPERATIONS.values() for name in names)}
    for dataset, model in CELLS:
        if not words <= {dataset, model}:
            continue
        data = memohop.load(dataset, root=arguments.data)
        taken: dict[str, list[float]] = {name: [] for name in ("", *off)}
        for turn in range(arguments.turns + 1):
            for name, seconds in taken.items():
                wall = _seconds(data, model, off.get(name, ()))
                if turn:  # the first one compiles
                    seconds.append(wall)
        on = taken.pop("")
        ratios = {
            name: statistics.median(map(float.__truediv__, seconds, on))
            for name, seconds in taken.items()
        }
        told = "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        print(f"{dataset:10} {model:8} {statistics.median(on):6.2f} s  {told}", flush=True)


def _seconds(data: memohop.pyg.Data, model: str, off: tuple[str, ...]) -> float:
    members = memohop.grid(split=range(data.train_mask.shape[1]))
    with ExitStack() as stack:
        for module in off:
            stack.enter_context(mock.patch(f"{module}.kernels_for", return_value=None))
        begin = time.perf_counter()
        memohop.train(data, model, members, epochs=200, device="cuda")
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
