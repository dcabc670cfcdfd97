"""Published graphs as two tables with hidden labels, for ``tables.py``.

    python benchmarks/registry_tables.py actor cora --data ../shared/data -o folder
    python benchmarks/tables.py folder --seconds 300 -o outputs

Each graph becomes a folder with ``nodes.csv.gz``, ``edges.csv.gz`` and ``truth.csv``: a column for
each feature that is not 0 everywhere, and a label that is empty for a fifth of the nodes, drawn
with a fixed seed. The published splits play no part.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from sklearn.model_selection import train_test_split

import memohop
from memohop.data.datasets.registry import describe
from memohop.pyg import Data


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--data", type=Path, help="folder with the dataset files")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    for name in arguments.datasets:
        data = memohop.load(name, root=arguments.data)
        folder = arguments.output / name
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, data, directed=describe(name).directed)
        print(f"{folder}: {data.num_nodes} nodes, {data.num_edges} arcs", flush=True)


def write(folder: Path, data: Data, *, directed: bool) -> None:
    """One graph; each edge of an undirected one is written once."""
    x = data.x.to_dense().numpy()
    labels = np.array([f"class {number}" for number in data.y.tolist()])
    rows = np.arange(len(labels))
    _, hidden = train_test_split(rows, test_size=0.2, random_state=0, stratify=labels)
    ids = pa.array([f"node {row}" for row in rows])
    nodes = {"id": ids, "label": pa.array(labels, mask=np.isin(rows, hidden))}
    nodes |= {f"x{column}": x[:, column] for column in np.flatnonzero(x.any(axis=0))}
    source, target = data.edge_index.numpy()
    once = slice(None) if directed else source <= target
    edges = {"source": ids.take(source[once]), "target": ids.take(target[once])}
    for name, table in (("nodes", nodes), ("edges", edges)):
        with gzip.open(folder / f"{name}.csv.gz", "wb", compresslevel=3) as file:
            pyarrow.csv.write_csv(pa.table(table), file)
    truth = {"id": ids.take(np.sort(hidden)), "truth": labels[np.sort(hidden)]}
    pyarrow.csv.write_csv(pa.table(truth), folder / "truth.csv")


if __name__ == "__main__":
    main()
