"""How long `memohop prepare` takes, and which library maps ids to numbers best.

    python benchmarks/preparing.py [--nodes 1000000] [--edges 20000000] [--folder FOLDER]
    python benchmarks/preparing.py --compare [--nodes 1000000] [--edges 20000000]

Makes folders of Parquet files in a temporary folder (or in FOLDER, where they are found again): ids
such as ``u4711`` in random order, two columns of numbers, a flag, a category and a label that half
of the nodes lack; edges between random nodes, some of which have many. Prepares them in a new
process, and prints seconds, the peak resident size of the process, the load of the machine before,
and the size of what was written.

``--compare`` instead lets DuckDB and Polars map the ids of both ends to numbers, two threads each
in a new process: ``join`` writes the pairs to Parquet, ``sort`` also makes them distinct and
sorts them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

FILES = 8
GIB = 2**30


def named(numbers: np.ndarray) -> pa.Array:
    """Ids from numbers."""
    return pc.binary_join_element_wise("u", pa.array(numbers).cast(pa.string()), "")


def make(folder: Path, nodes: int, edges: int) -> None:
    """Writes folders ``nodes`` and ``edges``, unless they are there."""
    if (folder / "made").exists():
        return
    generator = np.random.default_rng(0)
    numbers = generator.permutation(nodes)
    for kind, count in (("nodes", nodes), ("edges", edges)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        bounds = np.linspace(0, count, FILES + 1).astype(int)
        for number, (start, end) in enumerate(pairwise(bounds)):
            path = folder / kind / f"part-{number}.parquet"
            with pa.parquet.ParquetWriter(path, SCHEMAS[kind]) as writer:
                for first in range(start, end, 1_000_000):
                    rows = slice(first, min(first + 1_000_000, end))
                    table = TABLES[kind](rows, numbers, generator)
                    writer.write_table(table.cast(SCHEMAS[kind]))
    (folder / "made").touch()


def node_rows(rows: slice, numbers: np.ndarray, generator: np.random.Generator) -> pa.Table:
    """Nodes with columns of several kinds."""
    count = rows.stop - rows.start
    kinds = pa.array([f"kind{number}" for number in range(5)])
    cities = pa.array([f"city{number}" for number in range(8)])
    known = generator.random(count) < 0.5
    return pa.table(
        {
            "id": named(numbers[rows]),
            "amount": generator.lognormal(size=count),
            "age": pa.array(generator.integers(18, 90, count), mask=generator.random(count) < 0.05),
            "active": generator.random(count) < 0.3,
            "city": cities.take(pa.array(generator.integers(8, size=count))),
            "label": kinds.take(pa.array(generator.integers(5, size=count), mask=~known)),
        }
    )


def edge_rows(rows: slice, numbers: np.ndarray, generator: np.random.Generator) -> pa.Table:
    """Edges from anywhere to nodes of which some are in demand."""
    count, nodes = rows.stop - rows.start, len(numbers)
    target = (nodes * generator.random(count) ** 2).astype(np.int64)
    return pa.table(
        {"source": named(generator.integers(nodes, size=count)), "target": named(target)}
    )


SCHEMAS = {
    "nodes": pa.schema(
        {
            "id": pa.string(),
            "amount": pa.float64(),
            "age": pa.int64(),
            "active": pa.bool_(),
            "city": pa.string(),
            "label": pa.string(),
        }
    ),
    "edges": pa.schema({"source": pa.string(), "target": pa.string()}),
}
TABLES = {"nodes": node_rows, "edges": edge_rows}


def by_duckdb(folder: Path, output: Path, *, ordered: bool) -> None:
    """Maps ids with DuckDB."""
    import duckdb

    with duckdb.connect(str(output) + ".db") as database:
        database.execute(
            f"SET threads = 2; SET memory_limit = '4GB'; SET temp_directory = '{output}.t'"
        )
        database.execute(
            "CREATE TABLE nodes AS SELECT id, (row_number() OVER () - 1)::INTEGER AS number "
            f"FROM read_parquet('{folder}/nodes/*.parquet')"
        )
        pairs = (
            "SELECT s.number AS source, t.number AS target "
            f"FROM read_parquet('{folder}/edges/*.parquet') e "
            "LEFT JOIN nodes s ON s.id = e.source LEFT JOIN nodes t ON t.id = e.target"
        )
        if ordered:
            pairs = f"SELECT DISTINCT source, target FROM ({pairs}) ORDER BY source, target"
        database.execute("SET preserve_insertion_order = false")
        database.execute(f"COPY ({pairs}) TO '{output}' (FORMAT parquet)")


def by_polars(folder: Path, output: Path, *, ordered: bool) -> None:
    """Maps ids with the streaming engine of Polars."""
    import polars as pl

    nodes = pl.scan_parquet(f"{folder}/nodes/*.parquet").select("id").with_row_index("number")
    pairs = (
        pl.scan_parquet(f"{folder}/edges/*.parquet")
        .join(nodes.rename({"number": "begin"}), left_on="source", right_on="id", how="left")
        .join(nodes.rename({"number": "end"}), left_on="target", right_on="id", how="left")
        .select("begin", "end")
    )
    if ordered:
        pairs = pairs.unique().sort("begin", "end")
    pairs.sink_parquet(output, engine="streaming")


def prepare(folder: Path, output: Path, *, ordered: bool) -> None:
    """The whole preparation."""
    import memohop

    graph = memohop.prepare(
        folder / "nodes", folder / "edges", output, label="label", directed=False
    )
    print(graph, flush=True)


WAYS = {"duckdb": by_duckdb, "polars": by_polars, "prepare": prepare}


def run(way: str, folder: Path, output: Path, *, ordered: bool) -> None:
    """Prints the cost of one way in this process."""
    start, work = time.perf_counter(), time.process_time()
    WAYS[way](folder, output, ordered=ordered)
    seconds, work = time.perf_counter() - start, time.process_time() - work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    print(f"{seconds:.1f} s ({work:.1f} s of work), {peak:.2f} GiB at most")


def size(path: Path) -> float:
    """Gigabytes in a file or a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e9


def main() -> None:
    """Makes the tables and runs each way in another process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, help="where the tables are, or will be")
    parser.add_argument("--compare", action="store_true", help="DuckDB against Polars")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        way, folder, output, ordered = arguments.run
        run(way, Path(folder), Path(output), ordered=ordered == "sort")
        return
    environment = os.environ | {"POLARS_MAX_THREADS": "2"}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        folder = arguments.folder or Path(scratch, "tables")
        make(folder, arguments.nodes, arguments.edges)
        print(f"{arguments.nodes} nodes, {arguments.edges} edges, {size(folder):.1f} GB of Parquet")
        jobs = [("prepare", "all")]
        if arguments.compare:
            jobs = [(way, task) for task in ("join", "sort") for way in ("duckdb", "polars")]
        for way, task in jobs:
            output = Path(scratch, f"{way}-{task}")
            load = os.getloadavg()[0]
            print(f"{way} {task} (load before {load:.1f})", end=": ", flush=True)
            command = [sys.executable, __file__, "--run", way, folder, output, task]
            subprocess.run(command, check=True, env=environment)
            print(f"  wrote {size(output):.2f} GB")


if __name__ == "__main__":
    main()
