"""How much RAM a graph takes in one process, and in each of several that share it.

    python benchmarks/shared_graph.py --nodes 1000000 --edges 40000000 --workers 2

Draws a graph whose labels are in its columns and edges, writes it as Parquet files, and measures
``memohop prepare``, ``train`` (``gcn+mmp``, a few epochs) and ``predict`` (a network and a linear
model, fitted to a small graph) of the folder, in one process and with workers. For each it prints
seconds, the most RAM that one process held (with workers, the most of any worker), the share of
what one process needs, and the score or how far predictions are apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet

_CLASSES, _COLUMNS, _SMALL = 5, 16, 2_000
_CHUNK = 1_000_000  # edges that are drawn at a time


class Measured(NamedTuple):
    """What a command took, and what it said."""

    seconds: float
    gigabytes: float
    said: str


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=40_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--directed", action="store_true", help="an edge is one arc")
    arguments = parser.parse_args()
    workers = ["--workers", f"{arguments.workers}"]
    way = "--directed" if arguments.directed else "--undirected"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "small", _SMALL, 10 * _SMALL)
        write(folder / "large", arguments.nodes, arguments.edges)
        model, graph = folder / "model", folder / "large" / "graph"
        small = folder / "small"
        fit = ["--nodes", small / "nodes.parquet", "--edges", small / "edges.parquet", way]
        fit += ["--models", "gcn+mmp,linear+neighbours", "--trials", "1", "--splits", "2"]
        run("fit", *fit, "--label", "kind", "-o", model)
        large = [folder / "large" / f"{part}.parquet" for part in ("nodes", "edges")]
        made = ["--label", "kind", "--model", model, way, "-o", graph]
        show("prepare", [run("prepare", *large, *made)])
        train = [graph, "--model", "gcn+mmp", "--splits", "0", "--epochs", f"{arguments.epochs}"]
        trained = [run("train", *train, "--json", *more) for more in ([], workers)]
        scores = [json.loads(training.said)[0]["mean"] for training in trained]
        show("train", trained, " and ".join(f"{score:.3f} %" for score in scores))
        outputs = [folder / f"{count}.parquet" for count in (1, arguments.workers)]
        predicted = [
            run("predict", model, graph, "-o", output, *more)
            for output, more in zip(outputs, ([], workers), strict=True)
        ]
        shares = [pa.parquet.read_table(output)["probability of a"] for output in outputs]
        apart = np.abs(np.subtract(*(column.to_numpy() for column in shares))).max()
        show("predict", predicted, f"{apart:.1g} apart")


def write(folder: Path, nodes: int, edges: int) -> None:
    """Draw a graph: half of the edges join nodes of one class."""
    folder.mkdir()
    random = np.random.default_rng(nodes)
    kind = random.integers(_CLASSES, size=nodes)
    columns = {"id": np.arange(nodes), "kind": np.array([*"abcde"])[kind]}
    for number in range(_COLUMNS):
        mean = (kind == number % _CLASSES).astype(np.float32)
        columns[f"v{number}"] = mean + random.standard_normal(nodes, dtype=np.float32)
    pa.parquet.write_table(pa.table(columns), folder / "nodes.parquet")
    order, sizes = np.argsort(kind, kind="stable"), np.bincount(kind)
    starts = np.cumsum(sizes) - sizes
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})
    with pa.parquet.ParquetWriter(folder / "edges.parquet", schema) as file:
        for first in range(0, edges, _CHUNK):
            source, target = random.integers(nodes, size=(2, min(_CHUNK, edges - first)))
            alike = random.random(len(source)) < 0.5
            of = kind[source[alike]]
            target[alike] = order[starts[of] + (random.random(len(of)) * sizes[of]).astype(int)]
            file.write_table(pa.table({"source": source, "target": target}, schema=schema))


def run(*words: object) -> Measured:
    """A command, and the most RAM that it, or a worker of its cluster, held."""
    begin, most = time.perf_counter(), 0.0
    command = [sys.executable, "-m", "memohop", *map(str, words)]
    has_workers = "--workers" in words
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            for each in _workers(process.pid) if has_workers else [process.pid]:
                most = max(most, _peak(each))
            time.sleep(0.05)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return Measured(time.perf_counter() - begin, most, said)


def _workers(pid: int) -> list[int]:
    workers = []
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                if child.name().startswith("ray::RayWorker"):
                    workers.append(child.pid)
    return workers


def _peak(pid: int) -> float:
    """The most RAM that a process has held, in gigabytes."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024 / 1e9
    return 0.0


def show(name: str, measured: list[Measured], more: str = "") -> None:
    """A line of the table."""
    each = [f"{spent.seconds:6.0f} s {spent.gigabytes:6.2f} GB" for spent in measured]
    share = f"{measured[-1].gigabytes / measured[0].gigabytes:.0%}" if len(measured) > 1 else ""
    print(f"{name:8} {' | '.join(each)}  {share}  {more}", flush=True)


if __name__ == "__main__":
    main()
