"""Commands, run in this process, and tables for them."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet

from memohop.cli import main


def run(capsys, *words, code=0):
    """Standard output and standard error of a command."""
    capsys.readouterr()
    assert main([*map(str, words)]) == code
    return capsys.readouterr()


def json_of(capsys, *words):
    """The rows that a command prints with ``--json``."""
    return json.loads(run(capsys, *words, "--json").out)


def fails(capsys, *words, code=2):
    """The one line on standard error of a command that fails."""
    out, err = run(capsys, *words, code=code)
    assert out == ""
    assert err.startswith("memohop: ")
    assert err.count("\n") == 1
    return err


def read_csv(path):
    """The rows of a CSV file, by column."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def at(folder):
    """The options for the tables in a folder."""
    return ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]


def write_tables(folder, nodes, edges):
    """A table of nodes and one of edges as CSV files, from their columns; the options for them."""
    for name, columns in {"nodes": nodes, "edges": edges}.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    return at(folder)


def write_parquet(folder, nodes, edges):
    """A table of nodes and one of edges as Parquet files."""
    paths = folder / "nodes.parquet", folder / "edges.parquet"
    for path, columns in zip(paths, (nodes, edges), strict=True):
        pa.parquet.write_table(pa.table(columns), path)
    return paths
