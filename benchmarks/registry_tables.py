"""Published graphs as two tables with hidden labels, for ``tables.py``.

    python benchmarks/registry_tables.py actor cora --data ../shared/data -o folder
    python benchmarks/tables.py folder --seconds 300 -o outputs

Each graph becomes a folder with ``nodes.csv.gz``, ``edges.csv.gz`` and ``truth.csv``: a column for
each feature that is not 0 everywhere, and a label that is empty for a fifth of the nodes, drawn
with a fixed seed. The published splits play no part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa

import memohop
from memohop.data.datasets.registry import describe
from memohop.pyg import Data
from table_case import write


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
        write(folder, *tables(data, directed=describe(name).directed))
        print(f"{folder}: {data.num_nodes} nodes, {data.num_edges} arcs", flush=True)


def tables(data: Data, *, directed: bool) -> tuple[pa.Table, pa.Table]:
    """Nodes and edges of one graph; each edge of an undirected one is there once."""
    x = data.x.to_dense().numpy()
    ids = pa.array([f"node {row}" for row in range(len(x))])
    nodes = {"id": ids, "label": [f"class {number}" for number in data.y.tolist()]}
    nodes |= {f"x{column}": x[:, column] for column in np.flatnonzero(x.any(axis=0))}
    source, target = data.edge_index.numpy()
    once = slice(None) if directed else source <= target
    edges = {"source": ids.take(source[once]), "target": ids.take(target[once])}
    return pa.table(nodes), pa.table(edges)


if __name__ == "__main__":
    main()
