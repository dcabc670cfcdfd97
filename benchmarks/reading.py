"""How long it takes to read a table of a million nodes and one of ten million edges.

    python benchmarks/reading.py [--nodes 1000000] [--edges 10000000] [--form csv|csv.gz|parquet]
    python benchmarks/reading.py --columns

Writes the tables to a temporary folder: string ids, four number columns with gaps, a flag, a
category, a text of eight words and a label that half of the nodes lack. Reads them in a new process
and prints the seconds of ``read_graph`` without imports, and the peak resident size of the process.
On a busy machine the seconds of work on all cores are the ones to compare.

``--columns`` measures how the work grows from 1,000 to 10,000 columns, half of them words, in a
table of 100 nodes. Reading takes time linear in the number of columns, so the ratio should be near
ten. A ratio near a hundred means that something searches a list for every column.
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
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def node_table(count: int, generator: np.random.Generator) -> pa.Table:
    """Nodes with every kind of column."""
    words = np.array([f"word{number}" for number in range(5000)])
    texts = words[(5000 * generator.random((count, 8)) ** 3).astype(int)]
    columns = {"id": [f"node-{number}" for number in range(count)]}
    for number in range(4):
        values = generator.normal(size=count)
        columns[f"number{number}"] = pa.array(values, mask=generator.random(count) < 0.05)
    columns["flag"] = generator.random(count) < 0.3
    columns["city"] = np.char.add("city", generator.integers(200, size=count).astype(str))
    columns["about"] = [" ".join(row) for row in texts]
    kind = np.char.add("kind", generator.integers(5, size=count).astype(str))
    columns["label"] = pa.array(kind, mask=generator.random(count) < 0.5)
    return pa.table(columns)


def edge_table(count: int, nodes: int, generator: np.random.Generator) -> pa.Table:
    """Edges between random nodes."""
    names = pa.array([f"node-{number}" for number in range(nodes)])
    ends = generator.integers(nodes, size=(2, count))
    return pa.table({"source": names.take(ends[0]), "target": names.take(ends[1])})


def write(table: pa.Table, path: Path) -> None:
    """Writes a table in the format of the path's ending."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
        return
    with pa.output_stream(str(path), compression="detect") as stream:
        pa.csv.write_csv(table, stream)


def read(nodes: str, edges: str) -> None:
    """Reads the tables and prints the cost."""
    from memohop.data.tables import read_graph

    start, start_of_work = time.perf_counter(), time.process_time()
    graph = read_graph(nodes, edges, label="label")
    seconds, work = time.perf_counter() - start, time.process_time() - start_of_work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows, features = graph.data.x.shape
    print(f"{rows} nodes, {features} features, {graph.data.num_edges} arcs", end=": ")
    print(f"{seconds:.1f} s ({work:.1f} s of work on all cores), {peak:.2f} GiB at most")


def read_wide(folder: Path) -> None:
    """Prints the work for 1,000 and for 10,000 columns, and the ratio."""
    from memohop.data.tables import read_graph

    generator = np.random.default_rng(0)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    write(pa.table({"source": range(99), "target": range(1, 100)}), edges)
    work = []
    for count in (10, 1_000, 10_000):  # the first warms up imports
        columns: dict[str, object] = {"id": range(100), "label": ["a", "b"] * 50}
        for number in range(0, count, 2):
            columns[f"number{number}"] = generator.normal(size=100)
            columns[f"word{number}"] = np.array(["x", "y", "z"])[generator.integers(3, size=100)]
        write(pa.table(columns), nodes)
        start = time.process_time()
        read_graph(nodes, edges, label="label")
        work.append(time.process_time() - start)
    print(f"1,000 columns {work[1]:.2f} s, 10,000 columns {work[2]:.2f} s of work", end=": ")
    print(f"a ratio of {work[2] / work[1]:.1f}")


def main() -> None:
    """Makes the tables and reads them in another process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--form", default="csv", choices=["csv", "csv.gz", "parquet"])
    parser.add_argument(
        "--columns", action="store_true", help="measure how work grows with columns"
    )
    parser.add_argument("--read", nargs=2, metavar="PATH", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(*arguments.read)
        return
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.columns:
            read_wide(Path(folder))
            return
        nodes, edges = (Path(folder, f"{name}.{arguments.form}") for name in ("nodes", "edges"))
        write(node_table(arguments.nodes, generator), nodes)
        write(edge_table(arguments.edges, arguments.nodes, generator), edges)
        sizes = ", ".join(f"{path.stat().st_size / 1e6:.0f} MB" for path in (nodes, edges))
        print(f"{arguments.form}, {sizes}", end=": ", flush=True)
        subprocess.run([sys.executable, __file__, "--read", nodes, edges], check=True)


if __name__ == "__main__":
    main()
